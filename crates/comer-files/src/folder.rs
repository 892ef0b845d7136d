//! Writes a folder as a whole or not at all.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use crate::part;

/// A folder that is being written. It has a temporary name until [`finish`](Self::finish), and is removed without it.
#[derive(Debug)]
pub struct OutputFolder {
    target: PathBuf,
    temporary: PathBuf,
    _lock: Option<File>,
}

impl OutputFolder {
    /// Begins the folder `target`, which must not exist. Its parents are created.
    pub fn create(target: &Path) -> Result<Self> {
        if fs::symlink_metadata(target).is_ok() {
            return Err(Error::new(ErrorKind::AlreadyExists, "already exists, expected a new folder"));
        }
        fs::create_dir_all(part::parent(target))?;
        part::remove_leftovers(target);
        let (temporary, lock) = part::create_folder(target)?;
        Ok(Self { target: target.into(), temporary, _lock: lock })
    }

    /// Writes a file into the folder. `name` is relative and may have folders of its own.
    pub fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        let path = self.temporary.join(name);
        fs::create_dir_all(part::parent(&path))?;
        fs::write(path, bytes)
    }

    /// Syncs everything and gives the folder its name.
    pub fn finish(self) -> Result<()> {
        sync(&self.temporary)?;
        fs::rename(&self.temporary, &self.target)?;
        part::sync_folder(part::parent(&self.target))
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        // After the renaming there is nothing under this name.
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

/// Syncs the files of a folder, then the folder.
fn sync(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        } else {
            // Opened for writing, which some systems need for this.
            File::options().write(true).open(entry.path())?.sync_all()?;
        }
    }
    part::sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_when_it_is_finished() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("sets/train");
        let left = place.path().join("sets/train.1-2.part");
        fs::create_dir_all(left.join("img")).unwrap();
        let folder = OutputFolder::create(&target).unwrap();
        assert!(!left.exists());
        folder.write("img/a.png", b"picture").unwrap();
        assert!(!target.exists());
        folder.finish().unwrap();
        assert_eq!(fs::read(target.join("img/a.png")).unwrap(), b"picture");
        assert_eq!(OutputFolder::create(&target).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(place.path().join("sets")).unwrap().count(), 1);
    }

    #[test]
    fn an_unfinished_folder_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = OutputFolder::create(&place.path().join("train")).unwrap();
        folder.write("a", b"b").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
