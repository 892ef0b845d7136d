//! The inference engine: encoder, decoder and their kernels.

pub mod decoder;
pub mod decoder_state;
pub mod encoder;
pub mod kernels;
mod refinement;
pub mod trace;

/// The encoder's output: one vector for each cell of the image.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// Rows of the grid.
    pub height: usize,
    /// Cells in a row.
    pub width: usize,
    /// `[height * width, d_model]`
    pub values: Vec<f32>,
}
