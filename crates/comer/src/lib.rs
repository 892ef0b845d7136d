//! Handwritten mathematics in, LaTeX out.
//!
//! The way of the data, and the room of each step:
//!
//! 1. `input`: whatever a user has; strokes go by [`ink`], which draws them as the training pictures were drawn, other
//!    pictures by [`photo`], which makes of them white ink on black of the size and width that the network knows.
//! 2. [`image`]: a picture of white ink on black becomes what the network expects.
//! 3. [`engine`]: the network itself; its encoder reads features off the picture, its decoder tells what comes next.
//! 4. [`search`]: both reading directions look for the best formula, within the [`grammar`] of LaTeX.
//! 5. [`recognizer`]: all of it behind one type.
//! 6. [`alignment`]: where in the picture it was read, for those who ask.
//!
//! Around it: [`config`] (the shape of the network), [`vocab`] (the tokens it writes), [`weights`] (the names and
//! shapes of its tensors), [`model_file`] (all of these in one file), `checkpoint` (what the authors'
//! implementation saves), `dataset` (pictures with their formulas).

pub mod alignment;
#[cfg(feature = "import")]
pub mod checkpoint;
pub mod config;
#[cfg(feature = "dataset")]
pub mod dataset;
pub mod engine;
pub mod error;
pub mod grammar;
pub mod image;
pub mod ink;
#[cfg(feature = "decode")]
pub mod input;
pub mod model_file;
pub mod photo;
pub mod recognizer;
pub mod search;
pub mod vocab;
pub mod weights;

pub use config::{Coverage, ModelConfig, SearchConfig};
pub use error::{Error, Result};
pub use image::Picture;
pub use ink::Ink;
pub use model_file::{ModelFile, Precision};
pub use recognizer::Recognizer;
pub use vocab::{TokenId, Vocab};
