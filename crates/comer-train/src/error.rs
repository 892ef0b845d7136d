//! The errors of this crate.

use std::path::PathBuf;

/// An error of this crate. Messages name the file, what was found and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid recipe.
    #[error("{path}: {reason}")]
    Recipe {
        /// The file of the recipe.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: std::io::Error,
    },
    /// An unusable run folder or checkpoint.
    #[error("{path}: {reason}")]
    Run {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Training has diverged.
    #[error("training stopped at step {step}: {reason}; {kept}")]
    Diverged {
        /// The step.
        step: u64,
        /// What was observed.
        reason: String,
        /// Where the last good state is.
        kept: String,
    },
    /// Missing or invalid data.
    #[error("{0}")]
    Data(String),
    /// An unavailable device.
    #[error("device {name:?} is not available: {reason}")]
    Device {
        /// The requested device.
        name: String,
        /// The cause, and what is available.
        reason: String,
    },
    /// An error of the recognition library: models, pictures, ink.
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
