//! Training the encoder on a CPU at the speed of the machine.
//!
//! Nine tenths of a training step are the DenseNet's. Here it is written out over plain slices, forward and backward,
//! with the products left to the `gemm` crate; [`crate::model::densenet`] is its oracle and serves all other devices.

mod densenet;
mod grid;
mod norm;
mod pool;
mod product;
mod unit;

pub use densenet::{DenseNet, Features, NormStatistics, Tape};
pub use grid::Grid;
