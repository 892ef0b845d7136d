//! Recognises handwritten mathematics: an image or pen strokes in, LaTeX out.
//!
//! The model is [CoMER](https://arxiv.org/abs/2207.04410) (ECCV 2022), computed by an inference engine in pure Rust with
//! kernels for AVX-512, AVX2, NEON and WebAssembly SIMD.
//!
//! # Quick start
//! ```
//! # #[cfg(feature = "bundled")] {
//! use comer::{Input, Recognizer};
//!
//! // The feature `bundled` brings a model; `Recognizer::open("model.safetensors")` opens another.
//! let recognizer = Recognizer::bundled()?;
//! // Pen strokes of a one, a plus sign and another one; `Input::from_path("photo.jpg")` reads a file.
//! let strokes = "[[[0, 10], [12, 0], [12, 60]], [[30, 30], [60, 30]], [[45, 15], [45, 45]], [[78, 10], [90, 0], [90, 60]]]";
//! let recognition = recognizer.recognize(&Input::from_bytes(strokes.as_bytes())?)?;
//! assert_eq!(recognition.latex(), "1 + 1");
//! # }
//! # Ok::<(), comer::Error>(())
//! ```
//!
//! # Inputs
//! An [`Input`] is an image file, grey pixels or pen strokes. [`Input::from_bytes`] and [`Input::from_path`] look at the
//! content to tell png, jpeg, bmp, webp, tiff, gif, InkML and JSON strokes apart. Photographs are cleaned: the light is
//! evened out, paper lines are removed, and the ink is redrawn in the size and stroke width of the training images.
//! Strokes are drawn exactly as the training images were.
//!
//! # Options
//! [`RecognizeOptions`] sets the search, the number of candidates, threads, a deadline and cancellation:
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//!
//! use comer::{Error, Input, RecognizeOptions, Recognizer};
//!
//! let recognizer = Recognizer::open("model.safetensors")?;
//! let options = RecognizeOptions::new().nbest(3).deadline(Instant::now() + Duration::from_secs(2));
//! match recognizer.recognize_with(&Input::from_path("photo.jpg")?, &options) {
//!     Ok(recognition) => {
//!         for candidate in recognition.candidates() {
//!             println!("{:5.1} %  {}", 100.0 * candidate.confidence, candidate.latex);
//!         }
//!     }
//!     Err(Error::DeadlineExceeded) => println!("too slow"),
//!     Err(error) => return Err(error),
//! }
//! # Ok::<(), comer::Error>(())
//! ```
//!
//! # Many inputs
//! A [`Recognizer`] is `Send + Sync`. To recognise many inputs, use one thread for each:
//!
//! ```no_run
//! use comer::{Input, RecognizeOptions, Recognizer};
//! use rayon::prelude::*;
//!
//! # fn main() -> comer::Result<()> {
//! let recognizer = Recognizer::open("model.safetensors")?;
//! let options = RecognizeOptions::new().threads(1);
//! let formulas: Vec<String> = ["a.png", "b.inkml", "c.jpg"]
//!     .par_iter()
//!     .map(|path| Ok(recognizer.recognize_with(&Input::from_path(path)?, &options)?.best.latex))
//!     .collect::<comer::Result<_>>()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where tokens were read
//! With [`RecognizeOptions::alignment`], [`Recognition::alignment`] says which cells of the image and which pen strokes each
//! token was read from, and which ink was missed or read twice. See [`Alignment`].
//!
//! # Corrections
//! [`RecognizeOptions::constraints`] fixes tokens that are known, for instance because a user corrected one; the rest is read
//! under that condition. [`Alignment::runners_up`] has what else each token might be.
//!
//! # Language model
//! The search can add the probabilities of a language model of formulas to the decoder's. The bundled model has one;
//! [`Recognizer::load_language_model`] takes one from a file, which `comer train-lm` makes of lists of formulas, and
//! [`RecognizeOptions::language_model`] turns it off.
//!
//! # Features
//! - `decode` (default): image files. Without it, give pixels or strokes.
//! - `bundled`: [`Recognizer::bundled`], a model trained on CROHME (9 MB, licensed CC BY-NC-SA 3.0, non-commercial).
//! - `import`, `dataset`: used by the `comer` program and trainer.

// The order of the data: input -> image -> engine -> search -> recognition, then alignment. ARCHITECTURE.md has a diagram.
pub mod alignment;
mod calibration;
#[cfg(feature = "import")]
mod checkpoint;
mod components;
mod config;
mod constraints;
#[cfg(feature = "dataset")]
mod dataset;
mod derivation;
mod direction;
mod engine;
mod error;
mod f16;
mod formula;
mod grammar;
mod image;
mod ink;
mod input;
mod interrupt;
mod language_model;
mod latex;
mod mapping;
mod model_file;
mod options;
mod photo;
mod position;
mod recognition;
mod recognizer;
mod safetensors;
mod search;
mod step_decoder;
mod token;
mod vocab;
mod weights;

pub use alignment::{Alignment, AlignmentDetail};
pub use constraints::Constraints;
pub use derivation::aligned;
pub use error::{Error, Result};
pub use formula::{Formula, Warning};
pub use image::Image;
pub use ink::{Ink, InkSymbol, Point, Stroke};
pub use input::{Bounds, Input, InputOptions};
pub use interrupt::CancelToken;
pub use options::RecognizeOptions;
pub use recognition::{Candidate, Recognition};
pub use recognizer::Recognizer;
pub use token::Token;

/// What the other crates of this workspace use: not part of the public interface, and free to change.
#[doc(hidden)]
pub mod internal {
    macro_rules! export {
        ($($(#[$feature:meta])? $module:ident),* $(,)?) => {
            $($(#[$feature])? pub mod $module { pub use crate::$module::*; })*
        };
    }
    export!(
        calibration,
        #[cfg(feature = "import")]
        checkpoint,
        config,
        #[cfg(feature = "dataset")]
        dataset,
        engine,
        grammar,
        image,
        ink,
        language_model,
        latex,
        model_file,
        photo,
        position,
        safetensors,
        search,
        step_decoder,
        token,
        vocab,
        weights,
    );
    pub use crate::config::{Coverage, ModelConfig, SearchConfig};
    pub use crate::direction::Direction;
    pub use crate::model_file::{ModelFile, Precision};
    pub use crate::vocab::{TokenId, Vocab};
}

/// The examples of the READMEs are tests. The second one is that of the repository.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../README.md")]
struct Readme;
