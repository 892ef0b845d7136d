//! The encoder's first step: a 7 x 7 convolution with stride 2 and the 2 x 2 maximum over it, in one go.
//!
//! A pixel after the maximum looks at 9 x 9 pixels of the picture and lies 4 to the right of its neighbour's. So the
//! picture is first dealt out by columns into four hands; then the sixteen pixels of a block that see the same place of
//! their 9 x 9 lie side by side, and the convolution is a product of matrices with a depth of 49.

use super::{Run, runs};
use crate::engine::kernels::{Activation, BLOCK, Kernels, Layout, PackedRows};
use crate::image::Image;

const SIDE: usize = 7;
/// What a pixel after the maximum looks at.
const REACH: usize = SIDE + 2;
/// Positions that the maximum is taken over.
const CORNERS: usize = 4;

pub(super) struct Stem {
    weights: PackedRows,
}

impl Stem {
    pub(super) fn new(weights: PackedRows) -> Self {
        Self { weights }
    }

    /// Height and width after the convolution and the maximum.
    pub(super) fn output_size(picture: &Image) -> (usize, usize) {
        (picture.height().div_ceil(2).div_ceil(2), picture.width().div_ceil(2).div_ceil(2))
    }

    /// Multiplications and additions of the convolution.
    pub(super) fn operations(&self, picture: &Image) -> u64 {
        let pixels = picture.height().div_ceil(2) * picture.width().div_ceil(2);
        2 * (pixels * self.weights.rows() * self.weights.depth()) as u64
    }

    /// Fills the first channels of `output`.
    pub(super) fn run(&self, kernels: &Kernels, picture: &Image, (output, layout): (&mut [f32], Layout)) {
        let (height, width) = Self::output_size(picture);
        let hands = Hands::deal(picture, height, width);
        let channels = self.weights.rows();
        let taps = Layout::blocks(SIDE * SIDE);
        let results = Layout::blocks(channels);
        let alone = kernels.alone();
        kernels.for_each_chunk(output, layout.block, |block, output| {
            let seen = hands.seen(block, height, width);
            let mut input = [[[0.0; BLOCK]; SIDE * SIDE]; CORNERS];
            for (corner, input) in input.iter_mut().enumerate() {
                for (tap, input) in input.iter_mut().enumerate() {
                    *input = seen[2 * (corner / 2) + tap / SIDE][2 * (corner % 2) + tap % SIDE];
                }
            }
            let mut found = vec![0.0; CORNERS * channels * BLOCK];
            let pixels = CORNERS * BLOCK;
            let input = input.as_flattened().as_flattened();
            alone.multiply(&self.weights, (input, taps), pixels, Activation::Relu, (&mut found, results));
            self.blank_missing(picture, block, &mut found);
            let corners: [&[f32]; CORNERS] =
                std::array::from_fn(|corner| &found[corner * results.block..][..results.block]);
            for (i, output) in output[..results.block].iter_mut().enumerate() {
                let larger = |a: f32, b: f32| if a > b { a } else { b };
                *output = larger(larger(corners[0][i], corners[1][i]), larger(corners[2][i], corners[3][i]));
            }
        });
    }

    /// Puts zeros where a corner lies past the end of the convolution: after the ReLU nothing is below.
    fn blank_missing(&self, picture: &Image, block: usize, found: &mut [f32]) {
        let (height, width) = Self::output_size(picture);
        let (rows, columns) = (picture.height().div_ceil(2), picture.width().div_ceil(2));
        for Run { y, x, lane, length } in runs(block, height, width) {
            for (corner, found) in found.chunks_exact_mut(self.weights.rows() * BLOCK).enumerate() {
                let missing = if 2 * y + corner / 2 >= rows {
                    lane..lane + length
                } else if 2 * (x + length - 1) + corner % 2 >= columns {
                    lane + length - 1..lane + length
                } else {
                    continue;
                };
                for channel in found.chunks_exact_mut(BLOCK) {
                    channel[missing.clone()].fill(0.0);
                }
            }
        }
    }
}

/// The picture with its zeros around it, column `c` dealt to hand `c % 4`.
struct Hands {
    /// `[4, rows, columns]`
    values: Vec<f32>,
    rows: usize,
    columns: usize,
}

impl Hands {
    fn deal(picture: &Image, height: usize, width: usize) -> Self {
        let (rows, columns) = (4 * height + REACH - 4, width + REACH / 4);
        let mut values = vec![0.0; 4 * rows * columns];
        let border = SIDE / 2;
        for (y, row) in picture.pixels().chunks_exact(picture.width()).enumerate() {
            for (x, &pixel) in row.iter().enumerate() {
                let (y, x) = (y + border, x + border);
                values[(x % 4 * rows + y) * columns + x / 4] = f32::from(pixel) / 255.0;
            }
        }
        Self { values, rows, columns }
    }

    /// What the pixels of a block see at each place of their 9 x 9.
    fn seen(&self, block: usize, height: usize, width: usize) -> [[[f32; BLOCK]; REACH]; REACH] {
        let mut seen = [[[0.0; BLOCK]; REACH]; REACH];
        for Run { y, x, lane, length } in runs(block, height, width) {
            for (down, seen) in seen.iter_mut().enumerate() {
                for (across, seen) in seen.iter_mut().enumerate() {
                    let start = (across % 4 * self.rows + 4 * y + down) * self.columns + x + across / 4;
                    let from = &self.values[start..];
                    if length == BLOCK {
                        seen.copy_from_slice(&from[..BLOCK]);
                    } else {
                        seen[lane..lane + length].copy_from_slice(&from[..length]);
                    }
                }
            }
        }
        seen
    }
}
