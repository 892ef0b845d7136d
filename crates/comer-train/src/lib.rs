//! Trains CoMER models: recipe and data in, a model file out.
//!
//! [`cpu`] is the network with its own backward pass; [`initial`] makes the weights that training starts from. A run in
//! the order of its work: [`recipe`], [`samples`] of [`stroke_set`]s, [`picks`], [`augment`], [`batches`], [`backend`],
//! [`optimizer`] with its [`schedule`], [`validation`], [`checkpoint`], all of it in [`trainer`]. Other devices implement
//! [`backend::Backend`], as the crate `comer-burn` does for GPUs.

pub mod augment;
pub mod backend;
pub mod batches;
pub mod checkpoint;
pub mod cpu;
pub mod curves;
pub mod error;
pub mod initial;
pub mod language_model;
pub mod optimizer;
pub mod picks;
mod random;
pub mod recipe;
pub mod run_folder;
mod sample;
pub mod samples;
pub mod schedule;
pub mod stroke_set;
pub mod symbols;
pub mod synthesis;
pub mod trainer;
pub mod validation;

pub use error::{Error, Result};
