//! Recognition without a training framework: the encoder, the decoder, and the kernels that they compute with.

pub mod decoder;
pub mod decoder_state;
pub mod encoder;
pub mod kernels;
mod refinement;
pub mod trace;

/// What the encoder read from a picture: one vector for each cell of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// Rows of the grid.
    pub height: usize,
    /// Cells in a row.
    pub width: usize,
    /// `[height * width, d_model]`
    pub values: Vec<f32>,
}
