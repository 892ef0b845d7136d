//! Handwritten mathematics in, LaTeX out.
//!
//! The way of the data, and the room of each step:
//!
//! 1. `input`: whatever a user has; strokes go by `ink`, which draws them as the training pictures were drawn, other
//!    pictures by `photo`, which makes of them white ink on black of the size and width that the network knows.
//! 2. `image`: a picture of white ink on black becomes what the network expects.
//! 3. `engine`: the network itself; its encoder reads features off the picture, its decoder tells what comes next.
//! 4. `search`: both reading directions look for the best formula, within the `grammar` of LaTeX.
//! 5. `recognizer`: all of it behind one type.
//! 6. `alignment`: where in the picture it was read, for those who ask.
//!
//! Around it: `config` (the shape of the network), `vocab` (the tokens it writes), `weights` (the names and
//! shapes of its tensors), `model_file` (all of these in one file), `checkpoint` (what the authors'
//! implementation saves), `dataset` (pictures with their formulas).

mod alignment;
#[cfg(feature = "import")]
mod checkpoint;
mod components;
mod config;
#[cfg(feature = "dataset")]
mod dataset;
mod direction;
mod engine;
mod error;
mod f16;
mod grammar;
mod image;
mod ink;
#[cfg(feature = "decode")]
mod input;
mod model_file;
mod photo;
mod position;
mod recognizer;
mod safetensors;
mod search;
mod step_decoder;
mod token;
mod vocab;
mod weights;

pub use error::{Error, Result};
pub use image::Image;
pub use ink::Ink;
pub use recognizer::Recognizer;

/// What the other crates of this workspace use: not part of the public interface, and free to change.
#[doc(hidden)]
pub mod internal {
    macro_rules! export {
        ($($(#[$feature:meta])? $module:ident),* $(,)?) => {
            $($(#[$feature])? pub mod $module { pub use crate::$module::*; })*
        };
    }
    export!(
        alignment,
        #[cfg(feature = "import")]
        checkpoint,
        config,
        #[cfg(feature = "dataset")]
        dataset,
        direction,
        engine,
        grammar,
        image,
        ink,
        #[cfg(feature = "decode")]
        input,
        model_file,
        photo,
        position,
        recognizer,
        search,
        step_decoder,
        token,
        vocab,
        weights,
    );
    pub use crate::config::{Coverage, ModelConfig, SearchConfig};
    pub use crate::model_file::{ModelFile, Precision};
    pub use crate::vocab::{TokenId, Vocab};
}
