//! The trainable CoMER model on Burn, and its trainer.
//!
//! [`model`] reads like the paper; [`cpu`] computes it faster where there is no GPU; [`initial`] makes the weights that
//! training starts from. A run in the order of its work: [`recipe`], [`samples`], [`augment`], [`batches`], [`network`],
//! [`optimizer`] with its [`schedule`], [`validation`], [`checkpoint`], all of it in [`trainer`].

pub mod augment;
pub mod batches;
pub mod checkpoint;
pub mod cpu;
pub mod curves;
pub mod device;
pub mod error;
pub mod initial;
pub mod model;
pub mod network;
pub mod optimizer;
pub mod recipe;
pub mod run_folder;
pub mod samples;
pub mod schedule;
pub mod symbols;
pub mod trainer;
pub mod validation;

pub use error::{Error, Result};
