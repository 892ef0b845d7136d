//! A lock that a process holds on a folder.

use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the file `path`, which is created. Fails with [`ErrorKind::WouldBlock`] if another process has it.
    pub fn acquire(path: &Path) -> Result<Self> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        lock(&file)?;
        Ok(Self { _file: file })
    }
}

/// Locks a file. On a file system without locks nothing is locked.
pub(crate) fn lock(file: &File) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::WouldBlock,
            "in use by another process, expected to be its only writer",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let lock = Lock::acquire(&path).unwrap();
        assert_eq!(Lock::acquire(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(lock);
        Lock::acquire(&path).unwrap();
    }
}
