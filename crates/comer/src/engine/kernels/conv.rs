//! Matrix products, 3 x 3 and 5 x 5 convolutions over channels-last pictures: every pixel has its channels side by side.
//!
//! This file packs weights, checks every length and then hands pointers to the loops in `pixels` and `winograd`.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::pairs::halves;
use super::pixels::{Direct, Product, panels};
use super::transforms::{self, POINTS, SIDE, SMALL_SIDE};
use super::vector::{Plain, Vector};
use super::winograd::{self, GROUP, Pixels, Winograd};
use super::{Activation, Buffer, Kernels};

/// Taps of the convolution.
pub(super) const TAPS: usize = 9;

thread_local! {
    /// Space for transformed tiles.
    pub(super) static SCRATCH: RefCell<Buffer> = RefCell::default();
}

/// The weights of a linear map from `depth` to `columns` numbers, and a bias for each column.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    columns: usize,
    depth: usize,
    lanes: usize,
    /// Panels of `[depth, registers * lanes]`; columns past the last are zero.
    values: Buffer,
    bias: Buffer,
}

impl PackedMatrix {
    /// Packs the map whose weight from input `k` to output `column` is `weight(column, k)`.
    pub fn new(kernels: &Kernels, bias: &[f32], depth: usize, weight: impl Fn(usize, usize) -> f32) -> Self {
        let (columns, lanes) = (bias.len(), kernels.pixels.lanes);
        let (values, bias) = (pack(columns, depth, lanes, weight), padded_bias(bias, lanes));
        Self { columns, depth, lanes, values, bias }
    }

    /// Packs a row-major matrix with a row of inputs for each number of the bias.
    ///
    /// # Panics
    /// If the matrix is not a whole number of such rows.
    pub fn from_rows(kernels: &Kernels, matrix: &[f32], bias: &[f32]) -> Self {
        let depth = matrix.len().checked_div(bias.len()).unwrap_or(0);
        assert_eq!(matrix.len(), bias.len() * depth, "matrix of {} rows", bias.len());
        Self::new(kernels, bias, depth, |column, k| matrix[column * depth + k])
    }

    /// Numbers that the map gives.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Numbers that the map takes.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

/// How a 3 x 3 convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// As it is defined.
    Direct,
    /// With a quarter of the multiplications and twice the rounding error.
    Winograd,
}

/// The weights of a 3 x 3 convolution with zeros around the picture, and a bias for each output channel.
#[derive(Clone, Debug)]
pub struct PackedConv {
    algorithm: Algorithm,
    columns: usize,
    depth: usize,
    lanes: usize,
    /// Of a tile of results, with [`Algorithm::Winograd`].
    side: usize,
    /// For each tap or point the panels of a matrix; with [`Algorithm::Direct`] the taps lie within each panel.
    values: Buffer,
    bias: Buffer,
    zeros: Buffer,
}

impl PackedConv {
    /// Packs the convolution whose weight from channel `k` to `column` is `taps(column, k)`, row by row.
    pub fn new(
        kernels: &Kernels,
        algorithm: Algorithm,
        bias: &[f32],
        depth: usize,
        taps: impl Fn(usize, usize) -> [f32; TAPS],
    ) -> Self {
        let (columns, lanes) = (bias.len(), kernels.pixels.lanes);
        let values = match algorithm {
            Algorithm::Direct => {
                pack(columns, TAPS * depth, lanes, |column, k| taps(column, k % depth)[k / depth])
            }
            Algorithm::Winograd => pack_points(columns, depth, point_lanes(kernels, columns), taps),
        };
        let mut zeros = Buffer::default();
        zeros.at_least(depth).fill(0.0);
        Self { algorithm, columns, depth, lanes, side: SIDE, values, bias: padded_bias(bias, lanes), zeros }
    }

    /// Packs weights `[out, in, 3, 3]` with an output channel for each number of the bias.
    ///
    /// # Panics
    /// If there are not as many weights.
    pub fn from_rows(kernels: &Kernels, algorithm: Algorithm, weights: &[f32], bias: &[f32]) -> Self {
        let depth = weights.len().checked_div(bias.len() * TAPS).unwrap_or(0);
        assert_eq!(weights.len(), bias.len() * depth * TAPS, "weights of {} channels", bias.len());
        let taps = weights.as_chunks::<TAPS>().0;
        Self::new(kernels, algorithm, bias, depth, |column, k| taps[column * depth + k])
    }

    /// Output channels.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Input channels.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

/// The weights of a 5 x 5 convolution with zeros around the picture, and a bias for each output channel.
#[derive(Clone, Debug)]
pub struct PackedConv5x5(PackedConv);

impl PackedConv5x5 {
    /// Packs the convolution whose weight from channel `k` to `column` is `taps(column, k)`, row by row.
    pub fn new(
        kernels: &Kernels,
        bias: &[f32],
        depth: usize,
        taps: impl Fn(usize, usize) -> [f32; 25],
    ) -> Self {
        let (columns, lanes) = (bias.len(), kernels.pixels.lanes);
        let point_lanes = point_lanes(kernels, columns);
        let points = (0..columns * depth).map(|index| taps(index / depth, index % depth));
        let points: Vec<_> = points.map(|taps| transforms::transform_weights_5x5(&taps)).collect();
        let (mut values, stride) = (Buffer::default(), depth * columns.next_multiple_of(point_lanes));
        for (point, values) in values.at_least(POINTS * stride).chunks_exact_mut(stride.max(1)).enumerate() {
            let weight = |column: usize, k: usize| points[column * depth + k][point];
            values.copy_from_slice(&pack(columns, depth, point_lanes, weight));
        }
        let mut zeros = Buffer::default();
        zeros.at_least(depth).fill(0.0);
        let (algorithm, side, bias) = (Algorithm::Winograd, SMALL_SIDE, padded_bias(bias, lanes));
        Self(PackedConv { algorithm, columns, depth, lanes, side, values, bias, zeros })
    }

    /// Packs weights `[out, in, 5, 5]` with an output channel for each number of the bias.
    ///
    /// # Panics
    /// If there are not as many weights.
    pub fn from_rows(kernels: &Kernels, weights: &[f32], bias: &[f32]) -> Self {
        let depth = weights.len().checked_div(bias.len() * 25).unwrap_or(0);
        assert_eq!(weights.len(), bias.len() * depth * 25, "weights of {} channels", bias.len());
        let taps = weights.as_chunks::<25>().0;
        Self::new(kernels, bias, depth, |column, k| taps[column * depth + k])
    }
}

/// Panels of `[depth, registers * lanes]`.
fn pack(columns: usize, depth: usize, lanes: usize, weight: impl Fn(usize, usize) -> f32) -> Buffer {
    let mut values = Buffer::default();
    let mut rest = values.at_least(depth * columns.next_multiple_of(lanes));
    for panel in panels(columns, lanes) {
        let (first, width) = (panel.start * lanes, panel.len() * lanes);
        let (values, after) = rest.split_at_mut(depth * width);
        for (k, row) in values.chunks_exact_mut(width).enumerate() {
            for (column, value) in (first..columns).zip(row) {
                *value = weight(column, k);
            }
        }
        rest = after;
    }
    values
}

/// The lanes that the weights of Winograd's points are packed for.
fn point_lanes(kernels: &Kernels, columns: usize) -> usize {
    let (lanes, half) = (kernels.pixels.lanes, kernels.pixels.half);
    halves(columns, lanes, half).map_or(lanes, |_| half)
}

/// For each point panels as those of [`pack`].
fn pack_points(
    columns: usize,
    depth: usize,
    lanes: usize,
    taps: impl Fn(usize, usize) -> [f32; TAPS],
) -> Buffer {
    let mut values = Buffer::default();
    let stride = depth * columns.next_multiple_of(lanes);
    let points = values.at_least(POINTS * stride);
    for panel in panels(columns, lanes) {
        let (first, width) = (panel.start * lanes, panel.len() * lanes);
        for k in 0..depth {
            for index in (0..width).step_by(Plain::LANES) {
                let mut lanes = [[0.0; Plain::LANES]; TAPS];
                for (lane, column) in (first + index..columns).take(Plain::LANES).enumerate() {
                    for (lanes, tap) in lanes.iter_mut().zip(taps(column, k)) {
                        lanes[lane] = tap;
                    }
                }
                let place = first * depth + k * width + index;
                // SAFETY: every machine has the plain registers, which are arrays.
                let weights = unsafe { transforms::transform_weights(lanes.map(Plain)) };
                for (point, weight) in weights.into_iter().enumerate() {
                    points[point * stride + place..][..Plain::LANES].copy_from_slice(&weight.0);
                }
            }
        }
    }
    values
}

fn padded_bias(bias: &[f32], lanes: usize) -> Buffer {
    let mut padded = Buffer::default();
    padded.at_least(bias.len().next_multiple_of(lanes))[..bias.len()].copy_from_slice(bias);
    padded
}

/// The length that a slice needs for `rows` rows of `width` numbers, `stride` apart.
pub(super) fn extent(rows: usize, stride: usize, width: usize) -> usize {
    match rows {
        0 => 0,
        rows => (rows - 1).saturating_mul(stride).saturating_add(width),
    }
}

impl Kernels {
    /// `output[row] = bias + weights * input[row]` for rows that lie a stride apart: a 1 x 1 convolution, if the rows
    /// are pixels.
    ///
    /// # Panics
    /// If a slice is too short for its rows, rows of the output overlap, or the weights were packed for other kernels.
    pub fn matmul(
        &self,
        weights: &PackedMatrix,
        input: (&[f32], usize),
        rows: usize,
        activation: Activation,
        output: (&mut [f32], usize),
    ) {
        self.product(weights, input, rows, activation, output, false);
    }

    /// Adds `weights * input[row]` to `output[row]`; the bias does not count.
    ///
    /// # Panics
    /// As [`Self::matmul`].
    pub fn matmul_add(
        &self,
        weights: &PackedMatrix,
        input: (&[f32], usize),
        rows: usize,
        output: (&mut [f32], usize),
    ) {
        self.product(weights, input, rows, Activation::None, output, true);
    }

    fn product(
        &self,
        weights: &PackedMatrix,
        (input, input_stride): (&[f32], usize),
        rows: usize,
        activation: Activation,
        (output, output_stride): (&mut [f32], usize),
        accumulate: bool,
    ) {
        let (depth, columns) = (weights.depth, weights.columns);
        assert_eq!(weights.lanes, self.pixels.lanes, "weights packed for other kernels");
        assert!(input.len() >= extent(rows, input_stride, depth), "input too short");
        assert!(output.len() >= extent(rows, output_stride, columns), "output too short");
        assert!(output_stride >= columns, "rows of the output overlap");
        let job = Product {
            weights: weights.values.as_ptr(),
            bias: weights.bias.as_ptr(),
            depth,
            columns,
            input: input.as_ptr(),
            input_stride,
            output: output.as_mut_ptr(),
            output_stride,
            accumulate,
            floor: activation.floor(),
        };
        self.split_rows(rows, GROUP, |rows| {
            // SAFETY: the lengths were checked above, `pixels` exist only where their instruction set does, and no two
            // parts share a row.
            unsafe { (self.pixels.product)(&job, rows) }
        });
    }

    /// A 3 x 3 convolution of pictures of these heights and widths, which lie one after the other, a pixel every stride.
    ///
    /// # Panics
    /// If a slice is too short for the pixels, pixels of the output overlap, or the weights were packed for other kernels.
    pub fn conv3x3(
        &self,
        weights: &PackedConv,
        input: (&[f32], usize),
        sizes: &[(usize, usize)],
        activation: Activation,
        output: (&mut [f32], usize),
    ) {
        self.convolve(weights, input, sizes, activation, output);
    }

    /// A 5 x 5 convolution, otherwise as [`Self::conv3x3`].
    ///
    /// # Panics
    /// As [`Self::conv3x3`].
    pub fn conv5x5(
        &self,
        weights: &PackedConv5x5,
        input: (&[f32], usize),
        sizes: &[(usize, usize)],
        activation: Activation,
        output: (&mut [f32], usize),
    ) {
        self.convolve(&weights.0, input, sizes, activation, output);
    }

    fn convolve(
        &self,
        weights: &PackedConv,
        (input, input_stride): (&[f32], usize),
        sizes: &[(usize, usize)],
        activation: Activation,
        (output, output_stride): (&mut [f32], usize),
    ) {
        let (depth, columns) = (weights.depth, weights.columns);
        let area = |&(height, width): &(usize, usize)| height.saturating_mul(width);
        let pixels = sizes.iter().map(area).fold(0, usize::saturating_add);
        assert_eq!(weights.lanes, self.pixels.lanes, "weights packed for other kernels");
        assert!(input.len() >= extent(pixels, input_stride, depth), "input too short");
        assert!(output.len() >= extent(pixels, output_stride, columns), "output too short");
        assert!(output_stride >= columns, "pixels of the output overlap");
        if weights.algorithm == Algorithm::Winograd {
            let job = Winograd {
                weights: weights.values.as_ptr(),
                bias: weights.bias.as_ptr(),
                depth,
                columns,
                input: Pixels { values: input.as_ptr(), stride: input_stride, zeros: weights.zeros.as_ptr() },
                output: output.as_mut_ptr(),
                output_stride,
                floor: activation.floor(),
                places: winograd::places(sizes, weights.side),
            };
            let length = winograd::scratch_length(depth, self.pixels.lanes);
            return self.split_rows(job.places.len().div_ceil(GROUP), 1, |groups| {
                SCRATCH.with_borrow_mut(|scratch| {
                    // SAFETY: as in `product`; the pixels of all tiles lie within the lengths that were checked.
                    unsafe { (self.pixels.winograd)(&job, groups, scratch.at_least(length).as_mut_ptr()) }
                });
            });
        }
        let mut start = 0;
        for &(height, width) in sizes {
            let product = Product {
                weights: weights.values.as_ptr(),
                bias: weights.bias.as_ptr(),
                depth,
                columns,
                input: input.as_ptr().wrapping_add(start * input_stride),
                input_stride,
                output: output.as_mut_ptr().wrapping_add(start * output_stride),
                output_stride,
                accumulate: false,
                floor: activation.floor(),
            };
            let job = Direct { product, height, width, zeros: weights.zeros.as_ptr() };
            self.split_rows(height * width, GROUP, |pixels| {
                // SAFETY: as in `product`.
                unsafe { (self.pixels.direct)(&job, pixels) }
            });
            start += height * width;
        }
    }

    /// Calls `part` with ranges of rows that cover all of them once: all at once, or on the threads of the current rayon
    /// pool, in multiples of `unit` rows.
    pub(super) fn split_rows(&self, rows: usize, unit: usize, part: impl Fn(Range<usize>) + Sync) {
        let threads = self.threads();
        if threads == 1 {
            return part(0..rows);
        }
        // A few parts for each thread, so that none waits long for another.
        let length = rows.div_ceil(3 * threads).next_multiple_of(unit).max(1);
        (0..rows.div_ceil(length)).into_par_iter().with_max_len(1).for_each(|index| {
            part(index * length..rows.min((index + 1) * length));
        });
    }
}
