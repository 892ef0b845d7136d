//! Writes a file as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write};
use std::path::Path;

use crate::part;

/// Replaces the content of `path`: it has the old content or the new one, never a part, and the new one is on the disk when
/// this returns.
///
/// A link is followed. What is not a file (`/dev/stdout`, a pipe) is written directly.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => replace(&fs::canonicalize(path)?, bytes),
        Ok(found) if !found.is_dir() => OpenOptions::new().write(true).open(path)?.write_all(bytes),
        _ => replace(path, bytes),
    }
}

fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    part::remove_leftovers(path);
    let (temporary, file) = part::create_file(path)?;
    write(file, bytes).and_then(|_file| fs::rename(&temporary, path)).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    part::sync_folder(part::parent(path))
}

/// Writes and syncs. The file comes back, because closing it would release its lock before it is renamed.
fn write(mut file: File, bytes: &[u8]) -> Result<File> {
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_new_content_replaces_the_old_and_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        fs::write(folder.path().join("model.99-7.part"), "of a killed process").unwrap();
        fs::write(folder.path().join("other.99-7.part"), "of another file").unwrap();
        for content in ["one", "two"] {
            write_atomic(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(names(folder.path()), ["model", "other.99-7.part"]);
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(write_atomic(&path, b"text").is_err());
        assert!(write_atomic(&folder.path().join("missing/file"), b"text").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_are_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomic(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let device = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        write_atomic(&device, b"text").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
