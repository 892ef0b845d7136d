//! Temporary names beside a target, and what killed processes left under them.
//!
//! A process holds a lock on what it is writing. What is not locked was left behind.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The end of a temporary name; before it are the target's name, the process and a number.
const END: &str = ".part";

/// The folder of a path.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name beside `target` that no one else uses.
fn fresh(target: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}-{}{END}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

/// Creates a file under a temporary name.
pub(crate) fn create_file(target: &Path) -> Result<(PathBuf, File)> {
    loop {
        let path = fresh(target);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) if hold(&file, &path) => return Ok((path, file)),
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
}

/// Creates a folder under a temporary name. The file is its lock; not every system can open a folder.
pub(crate) fn create_folder(target: &Path) -> Result<(PathBuf, Option<File>)> {
    loop {
        let path = fresh(target);
        match fs::create_dir(&path) {
            Ok(()) => match File::open(&path) {
                Ok(file) if hold(&file, &path) => return Ok((path, Some(file))),
                Ok(_) => {}
                Err(_) => return Ok((path, None)),
            },
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
    }
}

/// Locks what was just created; false if another process took it for a leftover in between.
fn hold(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => path.exists(),
        Err(TryLockError::WouldBlock) => false,
        // A file system without locks. Leftovers on it are not removed.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Removes what killed processes left beside `target`. What cannot be removed stays.
pub(crate) fn remove_leftovers(target: &Path) {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = fs::read_dir(parent(target)) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(|found| is_temporary(found, name)) {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Whether `found` is a temporary name of the target `name`.
fn is_temporary(found: &str, name: &str) -> bool {
    let middle = found.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(END));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    middle.and_then(|middle| middle.split_once('-')).is_some_and(|(one, two)| number(one) && number(two))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    // Not every system can open a folder, and not every file system can sync one.
    let Ok(file) = File::open(folder) else { return Ok(()) };
    match file.sync_all() {
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_names_of_the_target_are_leftovers() {
        for (found, expected) in [
            ("a.txt.12-0.part", true),
            ("a.txt.part", false),
            ("a.txt.12.part", false),
            ("a.txt.12-.part", false),
            ("a.txt.1-x.part", false),
            ("b.a.txt.12-0.part", false),
            ("a.txt", false),
        ] {
            assert_eq!(is_temporary(found, "a.txt"), expected, "{found}");
        }
        assert!(is_temporary(fresh(Path::new("x/a.txt")).file_name().unwrap().to_str().unwrap(), "a.txt"));
    }

    #[test]
    fn leftovers_go_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.txt");
        let left = folder.path().join("a.txt.1-0.part");
        fs::write(&left, "half").unwrap();
        let left_folder = folder.path().join("a.txt.1-1.part");
        fs::create_dir_all(left_folder.join("img")).unwrap();
        let (own, _file) = create_file(&target).unwrap();
        let (own_folder, _lock) = create_folder(&target).unwrap();
        remove_leftovers(&target);
        assert!(!left.exists() && !left_folder.exists());
        assert!(own.exists() && own_folder.exists());
    }
}
