//! Training on a CPU at the speed of the machine.
//!
//! A whole step ([`Network::step`]), forward and backward, is written out here over plain slices, with the products
//! left to the `gemm` crate and the convolutions to the recogniser's kernels; the crate `comer-burn` has
//! the plain model, its oracle. Nothing is padded: pictures keep their own sizes and formulas their own lengths. Results do not
//! depend on the number of threads.

mod attention;
mod batch_norm;
mod buffer;
mod cross;
mod decoder;
mod densenet;
mod grid;
mod linear;
mod loss;
mod network;
mod norm;
mod pool;
mod product;
mod refinement;
mod scene;
mod simd;
mod softmax;
mod unit;

pub use densenet::{DenseNet, Features, NormStatistics, Tape};
pub use grid::Grid;
pub use network::{Network, StepOutput};
pub use scene::Reading;
