//! Trains CoMER models: recipe and data in, a model file out.
//!
//! [`trainer`] is the loop. In the order of a run: [`recipe`], [`samples`] of [`stroke_set`]s, [`epoch_samples`],
//! [`augment`], [`batches`], [`backend`], [`optimizer`] with its [`schedule`], [`validation`], [`checkpoint`]. [`cpu`] is the
//! network with its own backward pass; [`initial`] initialises its weights. Other devices implement
//! [`backend::Backend`], as the crate `comer-burn` does for GPUs and the feature `mpi` for
//! several machines.

pub mod augment;
pub mod backend;
pub mod batches;
pub mod checkpoint;
pub mod cpu;
pub mod curves;
#[cfg(feature = "mpi")]
pub mod distributed;
pub mod epoch_samples;
pub mod error;
pub mod initial;
pub mod language_model;
pub mod optimizer;
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
