//! The network for training on a CPU, without a framework.
//!
//! [`Network::step`] runs the forward and backward pass over plain slices. The `gemm` crate computes matrix products, the
//! kernels of the inference engine compute convolutions. The crate `comer-burn` has the reference model that tests compare
//! with. Neither pictures nor formulas are padded. Results do not depend on the number of threads.

mod attention;
mod batch_norm;
mod buffer;
mod coverage_attention;
mod cross;
mod decoder;
mod decoder_batch;
mod densenet;
mod grid;
mod gru;
mod gru_decoder;
mod linear;
mod loss;
mod memory;
mod network;
mod norm;
mod packed_steps;
mod pool;
mod product;
mod refinement;
mod simd;
mod softmax;
mod unit;

pub use decoder_batch::TokenSequence;
pub use densenet::{DenseNet, DenseNetTape, EncoderFeatures, NormStatistics};
pub use grid::Grid;
pub use network::{Network, StepOutput};
