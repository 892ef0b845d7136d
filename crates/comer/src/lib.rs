//! Handwritten mathematics in, LaTeX out.
//!
//! The way of the data, and the room of each step:
//!
//! 1. [`image`]: a picture of white ink on black becomes what the network expects.
//! 2. [`engine`]: the network itself; its encoder reads features off the picture, its decoder tells what comes next.
//! 3. [`search`]: both reading directions look for the best formula, within the [`grammar`] of LaTeX.
//!
//! Around it: [`config`] (the shape of the network), [`vocab`] (the tokens it writes), [`weights`] (the names and
//! shapes of its tensors), [`model_file`] (all of these in one file), `checkpoint` (what the authors'
//! implementation saves).

#[cfg(feature = "import")]
pub mod checkpoint;
pub mod config;
pub mod engine;
pub mod error;
pub mod grammar;
pub mod image;
pub mod model_file;
pub mod search;
pub mod vocab;
pub mod weights;

pub use config::{Coverage, ModelConfig, SearchConfig};
pub use error::{Error, Result};
pub use model_file::{ModelFile, Precision};
pub use vocab::{TokenId, Vocab};
