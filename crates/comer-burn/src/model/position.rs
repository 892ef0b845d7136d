//! Sinusoidal positional encodings of tokens and cells (section 3.3 of the paper).

use burn::prelude::*;
use comer::internal::position::{encode, frequencies, share};

/// Which cells or pixels of a batch are padding: `[batch, height, width]`, true where padded.
#[derive(Clone, Debug, PartialEq)]
pub struct Padding {
    /// Pictures in the batch.
    pub batch: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// True where padded.
    pub values: Vec<bool>,
}

impl Padding {
    /// A batch without padding.
    pub fn none(batch: usize, height: usize, width: usize) -> Self {
        Self { batch, height, width, values: vec![false; batch * height * width] }
    }

    /// Every second row and column: the padding after a layer that halves the picture.
    pub fn halved(&self) -> Self {
        let (height, width) = (self.height.div_ceil(2), self.width.div_ceil(2));
        let rows = (0..self.batch * self.height).filter(|row| (row % self.height).is_multiple_of(2));
        let values =
            rows.flat_map(|row| self.values[row * self.width..][..self.width].iter().step_by(2).copied());
        Self { batch: self.batch, height, width, values: values.collect() }
    }

    /// True where padded: `[batch, height * width]`
    pub fn mask(&self, device: &Device) -> Tensor<2, Bool> {
        let data = TensorData::new(self.values.clone(), [self.batch, self.height * self.width]);
        Tensor::from_data(data, device)
    }
}

/// The encodings of the positions `0..steps` of a formula: `[steps, width]`
pub fn token_positions(steps: usize, width: usize, device: &Device) -> Tensor<2> {
    let frequencies = frequencies(width);
    let values: Vec<f32> = (0..steps).flat_map(|step| encode(step as f64, &frequencies)).collect();
    Tensor::from_data(TensorData::new(values, [steps, width]), device)
}

/// The encodings of the cells of pictures: `[batch, height, width, d_model]`, the half for x before the half for y.
///
/// Positions are relative to the size of the picture without padding, so they do not depend on the batch.
pub fn cell_positions(padding: &Padding, d_model: usize, device: &Device) -> Tensor<4> {
    let Padding { batch, height, width, ref values } = *padding;
    let present = |picture: usize, y: usize, x: usize| !values[(picture * height + y) * width + x];
    let frequencies = frequencies(d_model / 2);
    let mut encodings = Vec::with_capacity(batch * height * width * d_model);
    for picture in 0..batch {
        let mut above = vec![0; width];
        let column = |x: usize| (0..height).filter(|&y| present(picture, y, x)).count();
        let columns: Vec<usize> = (0..width).map(column).collect();
        for y in 0..height {
            let row = (0..width).filter(|&x| present(picture, y, x)).count();
            let mut before = 0;
            for x in 0..width {
                let here = usize::from(present(picture, y, x));
                before += here;
                above[x] += here;
                encodings.extend(encode(share(before, row), &frequencies));
                encodings.extend(encode(share(above[x], columns[x]), &frequencies));
            }
        }
    }
    Tensor::from_data(TensorData::new(encodings, [batch, height, width, d_model]), device)
}
