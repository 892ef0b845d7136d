//! The files of a folder or a zip under one interface, and the one walk over folders.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use zip::{CompressionMethod, ZipArchive};

use crate::error::{Error, Result};
use crate::stored_file::StoredFile;

/// Largest image file that is read, stored or unpacked: CROHME's largest has half a megabyte.
const MAX_IMAGE: u64 = 16 << 20;
/// Largest file that is one label graph or one formula.
const MAX_TEXT: u64 = 1 << 20;
/// What the texts of a zip may unpack to: [`BASE_LIMIT`] bytes and [`RATIO`] times the size of the zip.
const RATIO: u64 = 16;
const BASE_LIMIT: u64 = 16 << 20;
/// Most rows of a table: [`ROWS`], and one for each [`ROW`] bytes of its file or zip. A row takes up to 400 bytes in memory,
/// however short it is.
const ROWS: u64 = 100_000;
const ROW: u64 = 32;

/// A folder, a zip, or a single file.
pub(crate) struct Archive {
    path: PathBuf,
    store: Store,
}

enum Store {
    Folder,
    Zip {
        archive: Mutex<ZipArchive<BufReader<File>>>,
        /// Bytes of text that may still be unpacked.
        left: AtomicU64,
    },
    File,
}

impl Archive {
    /// Opens a path; the content decides whether a file is a zip.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |reason| Error::File { path: path.into(), reason };
        let store = if std::fs::metadata(path).map_err(failed)?.is_dir() {
            Store::Folder
        } else {
            let mut start = [0; 4];
            let mut file = File::open(path).map_err(failed)?;
            let is_zip =
                file.read_exact(&mut start).is_ok() && (start == *b"PK\x03\x04" || start == *b"PK\x05\x06");
            if is_zip {
                let left = file.metadata().map_err(failed)?.len().saturating_mul(RATIO) + BASE_LIMIT;
                let archive = ZipArchive::new(BufReader::new(file));
                let archive = archive.map_err(|error| failed(std::io::Error::other(error)))?;
                Store::Zip { archive: Mutex::new(archive), left: left.into() }
            } else {
                Store::File
            }
        };
        Ok(Self { path: path.into(), store })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn zip_size(&self) -> Option<u64> {
        matches!(self.store, Store::Zip { .. })
            .then(|| std::fs::metadata(&self.path).ok())?
            .map(|file| file.len())
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.store, Store::File)
    }

    /// Names of the files with `/` between folders, sorted. Folders that `enter` refuses (by name) are not searched.
    pub(crate) fn names(&self, enter: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut names: Vec<String> = match &self.store {
            Store::File => {
                self.path.file_name().map(|name| name.to_string_lossy().into()).into_iter().collect()
            }
            Store::Folder => walk(&self.path, &enter)?
                .into_iter()
                .map(|path| {
                    let relative = path.strip_prefix(&self.path).unwrap_or(&path);
                    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
                    parts.join("/")
                })
                .collect(),
            Store::Zip { archive, .. } => {
                let archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
                let is_entered = |name: &str| name.split('/').rev().skip(1).all(&enter);
                let names = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
                names.filter(|name| !name.ends_with('/') && is_entered(name)).collect()
            }
        };
        names.sort();
        Ok(names)
    }

    /// An image file as it is stored; none if there is no such file.
    pub(crate) fn read_image(&self, name: &str) -> std::io::Result<Option<StoredFile>> {
        let Store::Zip { archive, .. } = &self.store else {
            return Ok(self.read_bounded(name, MAX_IMAGE)?.map(StoredFile::new));
        };
        let mut archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = archive.index_for_name(name) else { return Ok(None) };
        let file = archive.by_index_raw(index).map_err(std::io::Error::other)?;
        let (size, checksum) = (file.size(), file.crc32());
        let deflated = match file.compression() {
            _ if file.encrypted() => return Err(std::io::Error::other("it is encrypted")),
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            method => {
                let reason = format!("its compression is {method}, expected Deflated or Stored");
                return Err(std::io::Error::other(reason));
            }
        };
        if size > MAX_IMAGE {
            let reason = format!("larger than the limit of {MAX_IMAGE} bytes");
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, reason));
        }
        let bytes = comer_files::read_from(file, MAX_IMAGE)?;
        Ok(Some(StoredFile::in_zip(bytes, deflated, size, checksum)))
    }

    /// A label graph or a formula as text.
    pub(crate) fn read_text(&self, name: &str) -> std::io::Result<String> {
        self.read_text_within(name, MAX_TEXT)
    }

    fn read_text_within(&self, name: &str, limit: u64) -> std::io::Result<String> {
        let invalid = |reason: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        let bytes = self.read_bounded(name, limit)?.ok_or(std::io::ErrorKind::NotFound)?;
        String::from_utf8(bytes).map_err(|_| invalid("not UTF-8"))
    }

    /// A table as text.
    pub(crate) fn read_table(&self, name: &str) -> std::io::Result<String> {
        let text = self.read_text_within(name, comer_files::limit::TEXT)?;
        let most = ROWS + self.zip_size().unwrap_or(text.len() as u64) / ROW;
        let rows = text.lines().count() as u64;
        if rows > most {
            let reason = format!("has {rows} lines, expected at most {most} for its size");
            return Err(std::io::Error::new(ErrorKind::FileTooLarge, reason));
        }
        Ok(text)
    }

    fn read_bounded(&self, name: &str, limit: u64) -> std::io::Result<Option<Vec<u8>>> {
        let path = match &self.store {
            Store::Zip { archive, left } => {
                let mut archive = archive.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(index) = archive.index_for_name(name) else { return Ok(None) };
                let file = archive.by_index(index).map_err(std::io::Error::other)?;
                let available = left.load(Ordering::Relaxed);
                // The size that the zip states may be wrong, so that the limit is checked while reading.
                let bytes = comer_files::read_from(file, limit.min(available)).map_err(|error| {
                    if error.kind() != ErrorKind::FileTooLarge || limit <= available {
                        return error;
                    }
                    let reason = format!("the texts of the zip unpack to more than {RATIO} times its size");
                    std::io::Error::new(ErrorKind::FileTooLarge, reason)
                })?;
                left.store(available - bytes.len() as u64, Ordering::Relaxed);
                return Ok(Some(bytes));
            }
            // A caption may be called `/etc/x` or `../x`.
            Store::Folder if !comer_files::is_inside(name) => return Ok(None),
            Store::Folder => self.path.join(name),
            Store::File => self.path.clone(),
        };
        match comer_files::read(&path, limit) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }
}

/// Every file below a folder that has one of the extensions (in any case), sorted.
pub fn find_files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut paths = walk(folder, &|_| true)?;
    paths.retain(|path| {
        let own = path.extension().unwrap_or_default();
        extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension))
    });
    paths.sort();
    Ok(paths)
}

/// Every file below a folder, sorted, but for hidden ones and those in hidden folders.
pub fn visible_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let visible = |name: &str| !name.starts_with('.');
    let mut paths = walk(folder, &visible)?;
    paths.retain(|path| path.file_name().is_some_and(|name| visible(&name.to_string_lossy())));
    paths.sort();
    Ok(paths)
}

/// Every file below a folder. Links to folders are not followed, because they may lead back.
fn walk(folder: &Path, enter: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let failed = |reason| Error::File { path: folder.clone(), reason };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_type().map_err(failed)?.is_dir() {
                files.push(entry.path());
            } else if enter(&entry.file_name().to_string_lossy()) {
                folders.push(entry.path());
            }
        }
    }
    Ok(files)
}
