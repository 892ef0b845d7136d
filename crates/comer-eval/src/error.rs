//! Everything that can go wrong, in words that name the thing, what was found and what was expected.

use std::path::PathBuf;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A formula is not LaTeX that can be read.
    #[error("token {position} ({token:?}): {reason}")]
    Formula {
        /// Which token, from 1 on.
        position: usize,
        /// The token itself.
        token: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A line of a label graph file cannot be read.
    #[error("label graph line {line}: found {found:?}, expected {expected}")]
    GraphLine {
        /// Which line, from 1 on.
        line: usize,
        /// What it says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file or folder was read but has nothing of what was asked for.
    #[error("{}: nothing found, expected {expected}", path.display())]
    Nothing {
        /// The file or folder.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
    /// A data set has no split of the given name.
    #[error("{}: no split {split:?}, expected one of {known}", path.display())]
    UnknownSplit {
        /// The folder or zip.
        path: PathBuf,
        /// The name that was asked for.
        split: String,
        /// The names that there are, separated by commas.
        known: String,
    },
    /// A folder or zip has several sets of formulas.
    #[error("{}: several sets ({sets}), expected the name of one", path.display())]
    Sets {
        /// The folder or zip.
        path: PathBuf,
        /// The folders of the sets.
        sets: String,
    },
}
