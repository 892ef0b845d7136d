//! The errors of this crate.

use std::borrow::Cow;
use std::path::PathBuf;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: what was found and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A formula cannot be parsed.
    #[error("token {position} ({token:?}): {reason}")]
    Formula {
        /// Number of the token, from 1.
        position: usize,
        /// The token itself.
        token: String,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// A line of a label graph file cannot be parsed.
    #[error("label graph line {line}: found {found:?}, expected {expected}")]
    GraphLine {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// A file or folder has no data of the expected kind.
    #[error("{}: nothing found, expected {expected}", path.display())]
    Nothing {
        /// The file or folder.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// A data set has no split of the given name.
    #[error("{}: no split {split:?}, expected one of {known}", path.display())]
    UnknownSplit {
        /// The folder or zip.
        path: PathBuf,
        /// The requested name.
        split: String,
        /// The names that there are, separated by commas.
        known: String,
    },
    /// A data set has several splits and none was named.
    #[error("{}: several splits ({sets}), expected the name of one", path.display())]
    Sets {
        /// The folder or zip.
        path: PathBuf,
        /// The folders of the splits.
        sets: String,
    },
}

/// The start of what was found, for messages: a line of a file may be its only one.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        None => text.into(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
