//! The inference engine: encoder, decoder and their kernels.

pub mod any_decoder;
pub mod coverage_window;
pub mod decoder;
pub mod decoder_state;
pub mod encoder;
pub mod gru_decoder;
pub mod gru_state;
pub mod kernels;
mod refinement;
pub mod trace;

use crate::error::{Error, Result};

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

impl Features {
    /// Checks that there is a cell, and that each has `d_model` numbers.
    fn check(&self, d_model: usize) -> Result<()> {
        let cells = self.height * self.width;
        if cells == 0 || self.values.len() != cells * d_model {
            return Err(Error::Features {
                height: self.height,
                width: self.width,
                found: self.values.len(),
                expected: format!("at least one cell, and {d_model} numbers for each"),
            });
        }
        Ok(())
    }
}
