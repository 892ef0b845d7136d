//! What can go wrong while training.

use std::path::PathBuf;

/// Every error of this crate; the messages name the file, what was found and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A recipe that cannot be followed.
    #[error("{path}: {reason}")]
    Recipe {
        /// The recipe's file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// A run folder or checkpoint that does not fit what was asked for.
    #[error("{path}: {reason}")]
    Run {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A training that cannot go on.
    #[error("training stopped at step {step}: {reason}; {kept}")]
    Diverged {
        /// The step.
        step: u64,
        /// What was seen.
        reason: String,
        /// Where the last good state is.
        kept: String,
    },
    /// Nothing to learn from.
    #[error("{0}")]
    Data(String),
    /// A device that is not there, or that failed.
    #[error("device {name:?} is not available: {reason}")]
    Device {
        /// The device as it was asked for.
        name: String,
        /// Why not, and what is available.
        reason: String,
    },
    /// Anything of recognition: models, pictures, ink.
    #[error(transparent)]
    Recognition(#[from] comer::Error),
}

impl From<comer_eval::Error> for Error {
    fn from(error: comer_eval::Error) -> Self {
        match error {
            comer_eval::Error::File { path, reason } => Self::File { path, reason },
            other => Self::Data(other.to_string()),
        }
    }
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
