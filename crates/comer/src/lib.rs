//! Handwritten mathematics in, LaTeX out.
//!
//! The way of the data, and the room of each step:
//!
//! 1. [`ink`]: pen strokes, read from InkML or JSON, drawn as the training pictures were drawn.
//! 2. [`photo`]: a picture of any kind becomes white ink on black of the size and width the network knows.
//! 3. [`image`]: a picture of white ink on black becomes what the network expects.
//!
//! Around it: [`config`] (the shape of the network), [`vocab`] (the tokens it writes), [`weights`] (the names and
//! shapes of its tensors), [`model_file`] (all of these in one file), `checkpoint` (what the authors'
//! implementation saves).

#[cfg(feature = "import")]
pub mod checkpoint;
pub mod config;
pub mod error;
pub mod image;
pub mod ink;
pub mod model_file;
pub mod photo;
pub mod vocab;
pub mod weights;

pub use config::{Coverage, ModelConfig};
pub use error::{Error, Result};
pub use image::Picture;
pub use ink::Ink;
pub use model_file::{ModelFile, Precision};
pub use vocab::{TokenId, Vocab};
