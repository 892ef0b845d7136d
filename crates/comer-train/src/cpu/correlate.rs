//! The gradient of a 3 x 3 convolution's weights: each the sum over all pixels of the output's gradient times the input
//! a tap away.
//!
//! Pixels are taken in chunks that fit the second cache. Within a chunk a tile of sums, a few outputs by a few inputs by
//! the three taps of a column, stays in registers while the pixels pass by, sixteen at a time.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled into registers; closures would not be compiled for the instruction set"
)]

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::grid::{Grid, LINE};

/// Pixels of a chunk.
const CHUNK: usize = 1536;

/// A stretch of a picture's pixels, and its place in the rows of a chunk: a multiple of [`LINE`].
struct Piece {
    compact: usize,
    bordered: usize,
    width: usize,
    /// The column of the first pixel.
    column: usize,
    length: usize,
    place: usize,
}

/// All pixels of a batch in chunks.
fn chunks(grid: &Grid) -> Vec<Vec<Piece>> {
    let (mut chunks, mut chunk, mut place) = (Vec::new(), Vec::new(), 0);
    for picture in grid.pictures() {
        let (mut done, pixels) = (0, picture.height * picture.width);
        while done < pixels {
            let length = (pixels - done).min(CHUNK - place);
            chunk.push(Piece {
                compact: picture.start + done,
                bordered: picture.bordered + done,
                width: picture.width,
                column: done % picture.width,
                length,
                place,
            });
            done += length;
            place += length.next_multiple_of(LINE);
            if place >= CHUNK {
                chunks.push(std::mem::take(&mut chunk));
                place = 0;
            }
        }
    }
    chunks.push(chunk);
    chunks
}

/// `[out, in, 3, 3]` from the bordered input and the compact gradient of the output (`[out][stride]`).
pub(super) fn correlate(input: &[f32], inputs: usize, gradient: &[f32], grid: &Grid) -> Vec<f32> {
    let outputs = gradient.len() / grid.stride;
    let partial = |pieces: &Vec<Piece>| {
        let mut sums = vec![0.0; outputs * inputs * 9];
        let mut rows = vec![0.0; outputs * CHUNK];
        for shift in 0..3 {
            for (row, gradient) in rows.chunks_exact_mut(CHUNK).zip(gradient.chunks_exact(grid.stride)) {
                pieces.iter().for_each(|piece| piece.copy(gradient, row, shift));
            }
            let job = Job { pieces, rows: &rows, input, inputs, grid, shift, sums: &mut sums };
            Arch::new().dispatch(job);
        }
        sums
    };
    let partials: Vec<Vec<f32>> = chunks(grid).par_iter().map(partial).collect();
    let mut result = vec![0.0; outputs * inputs * 9];
    partials.iter().for_each(|sums| super::linear::add(&mut result, sums));
    result
}

impl Piece {
    /// Copies pixels, but for those whose neighbour in this column of taps lies beyond the edge; zeros after the last.
    fn copy(&self, from: &[f32], to: &mut [f32], shift: usize) {
        let to = &mut to[self.place..][..self.length.next_multiple_of(LINE)];
        to[..self.length].copy_from_slice(&from[self.compact..][..self.length]);
        to[self.length..].fill(0.0);
        let edge = match shift {
            0 => 0,
            1 => return,
            _ => self.width - 1,
        };
        let first = (edge + self.width - self.column) % self.width;
        to.iter_mut().skip(first).step_by(self.width).for_each(|x| *x = 0.0);
    }
}

/// The sums of one chunk for one column of taps.
struct Job<'a> {
    pieces: &'a [Piece],
    rows: &'a [f32], // [out][CHUNK]
    input: &'a [f32],
    inputs: usize,
    grid: &'a Grid,
    shift: usize,
    sums: &'a mut [f32], // [out, in, 3, 3]
}

impl WithSimd for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // As many sums as fit the registers beside a column's numbers: 24 of 32, or 9 of 16.
        if S::REGISTER_COUNT >= 32 {
            self.tiles::<S, 4, 2>(simd);
        } else {
            self.tiles::<S, 3, 1>(simd);
        }
    }
}

impl Job<'_> {
    #[inline(always)]
    fn tiles<S: Simd, const OUTPUTS: usize, const INPUTS: usize>(&mut self, simd: S) {
        let outputs = self.rows.len() / CHUNK;
        for output in (0..outputs).step_by(OUTPUTS) {
            for input in (0..self.inputs).step_by(INPUTS) {
                // Where there are fewer left than a tile has, the last one is summed more than once.
                let (mut output_rows, mut input_rows) = ([0; OUTPUTS], [0; INPUTS]);
                for o in 0..OUTPUTS {
                    output_rows[o] = (output + o).min(outputs - 1);
                }
                for i in 0..INPUTS {
                    input_rows[i] = (input + i).min(self.inputs - 1);
                }
                let tile = self.tile(simd, output_rows, input_rows);
                for o in 0..OUTPUTS {
                    for i in 0..INPUTS {
                        let first = (output_rows[o] * self.inputs + input_rows[i]) * 9 + self.shift;
                        for down in 0..3 {
                            self.sums[first + 3 * down] = simd.reduce_sum_f32s(tile[o][i][down]);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const OUTPUTS: usize, const INPUTS: usize>(
        &self,
        simd: S,
        outputs: [usize; OUTPUTS],
        inputs: [usize; INPUTS],
    ) -> [[[S::f32s; 3]; INPUTS]; OUTPUTS] {
        let mut sums = [[[simd.splat_f32s(0.0); 3]; INPUTS]; OUTPUTS];
        for piece in self.pieces {
            let length = piece.length.next_multiple_of(LINE);
            let count = length / S::F32_LANES;
            let mut left: [&[S::f32s]; OUTPUTS] = [&[]; OUTPUTS];
            for (left, row) in left.iter_mut().zip(outputs) {
                *left = &S::as_simd_f32s(&self.rows[row * CHUNK + piece.place..][..length]).0[..count];
            }
            let mut right: [[&[S::f32s]; 3]; INPUTS] = [[&[]; 3]; INPUTS];
            for (right, row) in right.iter_mut().zip(inputs) {
                // The tap above and to the left is a row and a pixel before.
                let first = row * self.grid.bordered_stride + piece.bordered - piece.width - 1 + self.shift;
                for (down, right) in right.iter_mut().enumerate() {
                    let values = &self.input[first + down * piece.width..][..length];
                    *right = &S::as_simd_f32s(values).0[..count];
                }
            }
            for index in 0..count {
                let mut taps = [[simd.splat_f32s(0.0); 3]; INPUTS];
                for i in 0..INPUTS {
                    for down in 0..3 {
                        taps[i][down] = right[i][down][index];
                    }
                }
                for o in 0..OUTPUTS {
                    let value = left[o][index];
                    for i in 0..INPUTS {
                        for down in 0..3 {
                            sums[o][i][down] = simd.mul_add_e_f32s(value, taps[i][down], sums[o][i][down]);
                        }
                    }
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_definition() {
        let grid = Grid::new(vec![(3, 1), (45, 70), (1, 20), (2, 2)]);
        let (inputs, outputs) = (3, 5);
        let number = |i: usize| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5;
        let compact: Vec<f32> = (0..inputs * grid.stride).map(number).collect();
        let gradient: Vec<f32> = (0..outputs * grid.stride).map(|i| number(i + 3)).collect();
        let mut bordered = grid.bordered(inputs);
        for (row, compact) in
            bordered.chunks_exact_mut(grid.bordered_stride).zip(compact.chunks_exact(grid.stride))
        {
            grid.border(compact, row);
        }
        let found = correlate(&bordered, inputs, &gradient, &grid);
        for (index, found) in found.into_iter().enumerate() {
            let (output, input, tap) = (index / 9 / inputs, index / 9 % inputs, index % 9);
            let mut expected = 0.0;
            for place in grid.pictures() {
                for pixel in 0..place.height * place.width {
                    let (y, x) = (pixel / place.width + tap / 3, pixel % place.width + tap % 3);
                    if (1..=place.height).contains(&y) && (1..=place.width).contains(&x) {
                        let neighbour = place.start + (y - 1) * place.width + x - 1;
                        let value = compact[input * grid.stride + neighbour];
                        expected += f64::from(value)
                            * f64::from(gradient[output * grid.stride + place.start + pixel]);
                    }
                }
            }
            assert!((f64::from(found) - expected).abs() < 1e-3, "{index}: {found}, expected {expected}");
        }
    }
}
