//! A text file that grows line by line and survives interruption: evaluation answers, training logs.

use std::fs::{File, OpenOptions};
use std::io::{Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::limit;
use crate::lock::lock;
use crate::read::read;

/// An append-only text file with one writer. Text that cannot be written, on a full disk for instance, is kept for the next
/// [`flush`](Self::flush).
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    written: u64,
    pending: String,
}

impl Journal {
    /// Opens or creates the file and drops everything after the first `length` bytes.
    pub fn open(path: impl Into<PathBuf>, length: u64) -> Result<Self> {
        let path = path.into();
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        lock(&file)?;
        let written = length.min(file.metadata()?.len());
        file.set_len(written)?;
        Ok(Self { path, file, written, pending: String::new() })
    }

    /// Opens a journal whose first line is `key`, and returns the complete lines after it. A journal with another key is
    /// emptied, and a line that was cut off is dropped.
    pub fn resume(path: impl Into<PathBuf>, key: &str) -> Result<(Self, Vec<String>)> {
        let path = path.into();
        let text = match read(&path, limit::LINES) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            text => text.unwrap_or_default(),
        };
        let text = String::from_utf8_lossy(&text);
        let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = complete.lines();
        if lines.next() == Some(key) {
            return Ok((Self::open(path, complete.len() as u64)?, lines.map(String::from).collect()));
        }
        let mut journal = Self::open(path, 0)?;
        journal.write(&format!("{key}\n"));
        journal.flush()?;
        Ok((journal, Vec::new()))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds text, which is in the file after the next [`flush`](Self::flush).
    pub fn write(&mut self, text: &str) {
        self.pending.push_str(text);
    }

    /// The file's length in bytes, pending text included.
    pub fn length(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Writes pending text to the disk.
    pub fn flush(&mut self) -> Result<()> {
        let start = self.file.seek(SeekFrom::Start(self.written));
        let result = start
            .and_then(|_| self.file.write_all(self.pending.as_bytes()))
            .and_then(|()| self.file.sync_data());
        match result {
            Ok(()) => {
                self.written = self.length();
                self.pending.clear();
                Ok(())
            }
            Err(reason) => {
                // A part that was written is written again.
                let _ = self.file.set_len(self.written);
                Err(reason)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_resumes_after_its_last_complete_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.tsv");
        let (mut journal, lines) = Journal::resume(&path, "# a").unwrap();
        assert!(lines.is_empty());
        journal.write("one\ntwo\nthr");
        journal.flush().unwrap();
        drop(journal);

        let (mut journal, lines) = Journal::resume(&path, "# a").unwrap();
        assert_eq!(lines, ["one", "two"]);
        journal.write("three\n");
        assert_eq!(journal.length(), 4 + 4 + 4 + 6);
        journal.flush().unwrap();
        drop(journal);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# a\none\ntwo\nthree\n");
        assert!(Journal::resume(&path, "# b").unwrap().1.is_empty());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "# b\n");
    }

    #[test]
    fn opening_drops_what_stands_after_the_given_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "12345").unwrap();
        let mut journal = Journal::open(&path, 3).unwrap();
        journal.write("x");
        journal.flush().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "123x");
        let second = Journal::open(&path, 99).unwrap_err();
        assert_eq!(second.kind(), std::io::ErrorKind::WouldBlock);
        drop(journal);
        assert_eq!(Journal::open(&path, 99).unwrap().length(), 4);
    }
}
