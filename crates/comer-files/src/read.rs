//! Reads files up to a limit.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};
use std::path::{Component, Path};

/// A reader that fails once more than its limit was read.
#[derive(Debug)]
pub struct Limited<R> {
    inner: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Limited<R> {
    /// Reads at most `limit` bytes from `inner`.
    pub fn new(inner: R, limit: u64) -> Self {
        Self { inner, limit, left: limit }
    }
}

impl Limited<File> {
    /// The length of the file; `None` for a device or a pipe.
    pub fn length(&self) -> Result<Option<usize>> {
        let metadata = self.inner.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        usize::try_from(metadata.len()).map(Some).map_err(Error::other)
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(too_large(self.limit)),
            };
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.inner.read(&mut buffer[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("larger than the limit of {limit} bytes"))
}

/// Whether a name from a file (a caption, an archive) stays in the folder that it is joined to, and is the plainest name of its file.
pub fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    parts.all(|part| matches!(part, Component::Normal(_)))
        && name.split('/').all(|part| !["", "."].contains(&part))
}

/// Opens a file of at most `limit` bytes.
pub fn open(path: &Path, limit: u64) -> Result<Limited<File>> {
    let file = File::open(path)?;
    // Devices and pipes have no length and are stopped by the reader.
    if file.metadata()?.len() > limit {
        return Err(too_large(limit));
    }
    Ok(Limited::new(file, limit))
}

/// The bytes of a file of at most `limit` bytes; of a device or a pipe also at most [`limit::STREAM`](crate::limit::STREAM).
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut file = open(path, limit)?;
    let mut bytes = Vec::new();
    match file.length()? {
        Some(length) => bytes.try_reserve_exact(length)?,
        None => file = Limited::new(file.inner, limit.min(crate::limit::STREAM)),
    }
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a reader has, of at most `limit` bytes.
pub fn read_from(reader: impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Limited::new(reader, limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file of at most `limit` bytes as text.
pub fn read_text(path: &Path, limit: u64) -> Result<String> {
    let bytes = read(path, limit)?;
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "not UTF-8"))
}

/// The lines of a file of at most [`limit::LINES`](crate::limit::LINES) bytes, each of at most
/// [`limit::LINE`](crate::limit::LINE).
pub fn lines(path: &Path) -> Result<impl Iterator<Item = Result<String>>> {
    let mut file = BufReader::new(open(path, crate::limit::LINES)?);
    let mut number = 0;
    Ok(std::iter::from_fn(move || {
        number += 1;
        line(&mut file, number, crate::limit::LINE).transpose()
    }))
}

/// The next line without its end, or none.
fn line(reader: &mut impl BufRead, number: usize, limit: u64) -> Result<Option<String>> {
    let mut line = Vec::new();
    // Room for the end of the line.
    if reader.take(limit + 2).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        line.pop_if(|byte| *byte == b'\r');
    }
    if line.len() as u64 > limit {
        let reason = format!("line {number} is larger than the limit of {limit} bytes");
        return Err(Error::new(ErrorKind::FileTooLarge, reason));
    }
    let invalid = |_| Error::new(ErrorKind::InvalidData, format!("line {number} is not UTF-8"));
    String::from_utf8(line).map(Some).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_longest_that_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_from(&b"12345"[..], 5).unwrap(), b"12345");
        assert_eq!(read_from(&b"12345"[..], 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
    }

    #[test]
    fn lines_are_those_of_text_up_to_a_limit() {
        let all = |text: &str| {
            let mut reader = text.as_bytes();
            (1..).map_while(|number| line(&mut reader, number, 5).transpose()).collect::<Result<Vec<_>>>()
        };
        for text in ["", "\n", "12345", "a\n\nb\r\n12345\r\n12345\n", "a\n\r"] {
            assert_eq!(all(text).unwrap(), text.lines().collect::<Vec<_>>(), "{text:?}");
        }
        for text in ["a\n123456", "a\n123456\nb", "a\n12345678\nb"] {
            let error = all(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
            assert_eq!(error.to_string(), "line 2 is larger than the limit of 5 bytes");
        }
        assert_eq!(line(&mut &b"\xff\n"[..], 1, 5).unwrap_err().to_string(), "line 1 is not UTF-8");
    }

    #[test]
    fn names_that_leave_the_folder_are_seen() {
        assert!(is_inside("a") && is_inside("img/a.png") && is_inside("..a"));
        for name in ["", "/etc/passwd", "../a", "img/../../a"] {
            assert!(!is_inside(name), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_endless_file_is_an_error() {
        let error = read(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "larger than the limit of 1048576 bytes");
        let error = read(Path::new("/dev/zero"), crate::limit::MODEL).unwrap_err();
        assert_eq!(error.to_string(), "larger than the limit of 268435456 bytes");
    }
}
