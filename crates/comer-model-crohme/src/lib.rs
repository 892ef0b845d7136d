//! Weights of a CoMER model trained on CROHME, as the bytes of a model file.
//!
//! The [`comer`](https://docs.rs/comer) crate reads them; its feature `bundled` depends on this crate, so that
//! `Recognizer::bundled()` works without a file on disk.
//!
//! The weights are licensed **CC BY-NC-SA 3.0**, as the data they were trained on: they are for non-commercial use.

/// The bytes of the model file: safetensors with the config, the vocabulary and the provenance in its metadata.
pub static MODEL: &[u8] = include_bytes!("../comer.safetensors");

/// The bytes of the file of a language model for [`MODEL`]: n-grams of formulas, used by the search.
pub static LANGUAGE_MODEL: &[u8] = include_bytes!("../language-model.safetensors");

/// The licence of [`MODEL`], as an SPDX identifier.
pub const LICENSE: &str = "CC-BY-NC-SA-3.0";
