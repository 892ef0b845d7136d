//! A file as it is stored, deflated or not, so that many of them fit into memory.

use std::borrow::Cow;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress};

/// The bytes of a file as they are in its folder or zip. Clones share them.
#[derive(Clone, Debug)]
pub struct StoredFile {
    bytes: Arc<[u8]>,
    deflated: bool,
    size: u64,
    checksum: u32,
}

impl StoredFile {
    /// A file that is stored as it is.
    pub fn new(bytes: Vec<u8>) -> Self {
        let (size, checksum) = (bytes.len() as u64, crc32fast::hash(&bytes));
        Self { bytes: bytes.into(), deflated: false, size, checksum }
    }

    /// A file of a zip, which states its size and checksum.
    pub(crate) fn in_zip(bytes: Vec<u8>, deflated: bool, size: u64, checksum: u32) -> Self {
        Self { bytes: bytes.into(), deflated, size, checksum }
    }

    /// Bytes in memory.
    pub fn stored_size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of the file.
    pub fn unpack(&self) -> Result<Cow<'_, [u8]>> {
        let bytes = if self.deflated {
            // Not more than the zip states, whatever the bytes inflate to.
            let mut bytes = Vec::with_capacity(self.size as usize);
            Decompress::new(false).decompress_vec(&self.bytes, &mut bytes, FlushDecompress::Finish)?;
            bytes.into()
        } else {
            Cow::Borrowed(&self.bytes[..])
        };
        if bytes.len() as u64 != self.size || crc32fast::hash(&bytes) != self.checksum {
            return Err(Error::new(ErrorKind::InvalidData, "its checksum is wrong: the zip is damaged"));
        }
        Ok(bytes)
    }
}
