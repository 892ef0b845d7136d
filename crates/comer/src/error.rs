//! Everything that can go wrong, in words that name the thing, what was found and what was expected.

use std::path::PathBuf;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A hyper-parameter is out of range.
    #[error("config: {field} is {found}, expected {expected}")]
    Config {
        /// The field of [`ModelConfig`](crate::ModelConfig).
        field: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// A token list cannot be a vocabulary.
    #[error("vocabulary: token {token:?} is not allowed, expected {expected}")]
    Vocab {
        /// The token in question.
        token: String,
        /// What the list has to keep to.
        expected: &'static str,
    },
    /// A formula has a token that the vocabulary lacks.
    #[error("token {token:?} is not in the vocabulary")]
    UnknownToken {
        /// The token in question.
        token: String,
    },
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// A file is not a model file, or its parts do not fit together.
    #[error("{name}: not a usable model file: {reason}")]
    ModelFile {
        /// The file, or another name for where the bytes came from.
        name: String,
        /// What was wrong and what would be right.
        reason: String,
    },
    /// A file is not a checkpoint of a CoMER model.
    #[error("{name}: not a usable checkpoint: {reason}")]
    Checkpoint {
        /// The file.
        name: String,
        /// What was wrong and what would be right.
        reason: String,
    },
    /// Pen strokes cannot be read or drawn.
    #[error("{format}: {reason}")]
    Ink {
        /// Where they came from: `InkML`, `JSON of strokes` or `ink`.
        format: &'static str,
        /// What was wrong and what would be right.
        reason: String,
    },
    /// A picture file cannot be read.
    #[error("not a picture that can be read: {reason}")]
    PictureFile {
        /// What was wrong and what would be right.
        reason: String,
    },
    /// A data set cannot be read.
    #[cfg(feature = "dataset")]
    #[error(transparent)]
    Dataset(#[from] comer_eval::Error),
    /// A picture cannot be given to the network.
    #[error("picture of {width} x {height} pixels: {reason}")]
    Image {
        /// Its width.
        width: usize,
        /// Its height.
        height: usize,
        /// What was wrong and what would be right.
        reason: String,
    },
    /// The one who asked does not want the answer any more.
    #[error("stopped before the formula was read")]
    Stopped,
    /// What the encoder gives does not fit the decoder.
    #[error("features of {height} x {width} cells: {found} numbers, expected {expected}")]
    Features {
        /// Rows of the grid.
        height: usize,
        /// Cells in a row.
        width: usize,
        /// How many numbers there are.
        found: usize,
        /// How many there should be.
        expected: String,
    },
}
