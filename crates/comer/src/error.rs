//! The errors of the library.

use std::path::{Path, PathBuf};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done. Messages name what was found and what was expected; an underlying error is the
/// [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Recognition was cancelled through its [`CancelToken`](crate::CancelToken).
    #[error("recognition was cancelled")]
    Cancelled,
    /// The deadline passed before a formula was recognised.
    #[error("the deadline passed before recognition finished")]
    DeadlineExceeded,
    /// An option or a hyper-parameter is out of range.
    #[error("{field} is {found}, expected {expected}")]
    #[non_exhaustive]
    Config {
        /// The name of the option.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    #[non_exhaustive]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file was read, but is no input that can be recognised.
    #[error("{}", path.display())]
    #[non_exhaustive]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// Bytes are not an image file that can be decoded.
    #[error("not a readable image: {reason}")]
    #[non_exhaustive]
    Decode {
        /// What is wrong, and what would be right.
        reason: String,
        /// The error of the decoder, if the file got that far.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// An image cannot be given to the model.
    #[error("image of {width} x {height} pixels: {reason}")]
    #[non_exhaustive]
    Image {
        /// The width in pixels.
        width: usize,
        /// The height in pixels.
        height: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Pen strokes cannot be parsed or drawn.
    #[error("{format}: {reason}")]
    #[non_exhaustive]
    Ink {
        /// Where the strokes came from: `InkML`, `JSON strokes` or `ink`.
        format: &'static str,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A file is not a model file, or its parts do not fit together.
    #[error("{name}: not a usable model file: {reason}")]
    #[non_exhaustive]
    ModelFile {
        /// The file, or another name of the source.
        name: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A file is not a language model, or not one for the vocabulary of the model.
    #[error("{name}: not a usable language model: {reason}")]
    #[non_exhaustive]
    LanguageModel {
        /// The file, or another name of the source.
        name: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A file is not a checkpoint of a CoMER model.
    #[error("{name}: not a usable checkpoint: {reason}")]
    #[non_exhaustive]
    Checkpoint {
        /// The file.
        name: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A data set cannot be read.
    #[cfg(feature = "dataset")]
    #[error(transparent)]
    Dataset(#[from] comer_eval::Error),
    /// A list of tokens cannot be a vocabulary.
    #[error("vocabulary: token {token:?} is not allowed, expected {expected}")]
    #[non_exhaustive]
    Vocab {
        /// The token.
        token: String,
        /// What the list has to keep to.
        expected: &'static str,
    },
    /// A formula has a token that the model does not know.
    #[error("token {token:?} is not in the vocabulary")]
    #[non_exhaustive]
    UnknownToken {
        /// The token.
        token: String,
    },
    /// The features of an image do not fit the decoder.
    #[error("features of {height} x {width} cells: {found} numbers, expected {expected}")]
    #[non_exhaustive]
    Features {
        /// Rows of cells.
        height: usize,
        /// Cells in a row.
        width: usize,
        /// How many numbers there are.
        found: usize,
        /// How many there should be.
        expected: String,
    },
    /// The threads that were asked for could not be started.
    #[error("cannot start {threads} threads")]
    #[non_exhaustive]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The error of the thread pool.
        source: rayon::ThreadPoolBuildError,
    },
}

impl Error {
    /// The same about the model in a file, which is not known where the parts of a model are looked at.
    pub(crate) fn of(mut self, file: &str) -> Self {
        if let Self::ModelFile { name, .. } | Self::LanguageModel { name, .. } = &mut self {
            *name = file.into();
        }
        self
    }

    /// Names the file that could not be read.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: "read", path: path.into(), source }
    }

    /// Names the file that could not be written.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: "write", path: path.into(), source }
    }
}
