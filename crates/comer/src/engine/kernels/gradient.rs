//! The gradients of weights, for training: sums over all pixels of products of an input and an output channel.
//!
//! The pixels are cut into parts of a fixed length whose sums are added in order, so that results do not depend on the
//! number of threads.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::ops::Range;

use rayon::prelude::*;

use super::conv::{SCRATCH, TAPS, extent};
use super::pixels::{LINE, REGISTERS, Tile, panels};
use super::transforms::{self, POINTS, SIDE, SMALL_SIDE};
use super::vector::{Plain, Vector};
use super::winograd::{self, Pixels, Place, spaced, transform_gradient, transform_window};
use super::{Buffer, Kernels};

/// Rows that are worked on together: their numbers stay in the second cache.
const ROWS: usize = 96;
/// Rows of a part.
pub(super) const PART_ROWS: usize = 32 * ROWS;

/// Tiles that are worked on together.
const TILES: usize = 48;
/// Input channels that are worked on at a time.
const DEPTH: usize = 24;
/// Groups of tiles of a part.
const PART_GROUPS: usize = 12;

/// The gradient of a matrix from rows of inputs and the gradients of as many rows of outputs. The inputs, which are many,
/// are packed into panels; the few outputs stay in the first cache and are broadcast.
pub(super) struct MatrixGradient {
    pub gradient: *const f32,
    pub gradient_stride: usize,
    pub outputs: usize,
    pub input: *const f32,
    pub input_stride: usize,
    pub inputs: usize,
}

/// The gradient of the weights of a 3 x 3 or 5 x 5 convolution.
pub(super) struct WinogradGradient {
    pub input: Pixels,
    pub depth: usize,
    pub gradient: Pixels,
    pub columns: usize,
    pub places: Vec<Place>,
}

// SAFETY: the pointers of a job stay valid while it runs and are only read.
unsafe impl Sync for MatrixGradient {}
// SAFETY: as above.
unsafe impl Sync for WinogradGradient {}

/// Adds the sums over some rows to `sums`, `[outputs, inputs]` with the inputs in whole registers.
#[inline(always)]
pub(super) unsafe fn matrix_part<V: Vector, const THREE: usize, const TWO: usize>(
    job: &MatrixGradient,
    rows: Range<usize>,
    sums: *mut f32,
    scratch: *mut f32,
) {
    for first in rows.clone().step_by(ROWS) {
        let rows = first..rows.end.min(first + ROWS);
        for panel in panels(job.inputs, V::LANES) {
            // SAFETY: the caller vouches for the job, the instruction set, the sums and the scratch space.
            unsafe {
                match panel.len() {
                    3 => matrix_panel::<V, THREE, 3>(job, panel.start, rows.clone(), sums, scratch),
                    2 => matrix_panel::<V, TWO, 2>(job, panel.start, rows.clone(), sums, scratch),
                    _ => matrix_panel::<V, TWO, 1>(job, panel.start, rows.clone(), sums, scratch),
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn matrix_panel<V: Vector, const HEIGHT: usize, const COUNT: usize>(
    job: &MatrixGradient,
    panel: usize,
    rows: Range<usize>,
    sums: *mut f32,
    scratch: *mut f32,
) {
    let (first, width) = (panel * V::LANES, COUNT * V::LANES);
    let stride = job.inputs.next_multiple_of(V::LANES);
    let count = width.min(job.inputs - first);
    // What the next panel packs, or the first one of the next rows.
    let ahead = match first + width < job.inputs {
        true => width,
        false => (ROWS * job.input_stride).wrapping_sub(first),
    };
    // SAFETY: the caller vouches for the job: `inputs` and `outputs` numbers in each row; the scratch space has a row of
    // `REGISTERS` registers for each of them.
    unsafe {
        for (index, row) in rows.clone().enumerate() {
            let from = job.input.add(row * job.input_stride + first);
            let to = scratch.add(index * width);
            for column in (0..REGISTERS * V::LANES).step_by(LINE) {
                V::prefetch(from.wrapping_add(ahead + column));
            }
            if count == width {
                for i in 0..COUNT {
                    V::load(from.add(i * V::LANES)).store(to.add(i * V::LANES));
                }
            } else {
                std::ptr::copy_nonoverlapping(from, to, count);
                std::ptr::write_bytes(to.add(count), 0, width - count);
            }
        }
        let gradient = job.gradient.add(rows.start * job.gradient_stride);
        sum_panel::<V, HEIGHT, COUNT>(
            (gradient, job.gradient_stride, rows.len()),
            job.outputs,
            scratch,
            (sums.add(first), stride),
        );
    }
}

/// Adds the products of `depth` numbers of each input row with a panel's rows to `sums`, rows of it `stride` apart.
#[inline(always)]
unsafe fn sum_panel<V: Vector, const HEIGHT: usize, const COUNT: usize>(
    (input, input_stride, rows): (*const f32, usize, usize),
    depth: usize,
    panel: *const f32,
    (sums, stride): (*mut f32, usize),
) {
    for k in (0..depth).step_by(HEIGHT) {
        // SAFETY: the caller vouches for the instruction set and the pointers.
        unsafe {
            let mut tile = Tile::<V, HEIGHT, COUNT>::new(sums.add(k * stride), stride);
            tile.rows = HEIGHT.min(depth - k);
            let last = tile.rows - 1;
            let mut tile = tile.resume();
            let offsets = std::array::from_fn(|r| k + r.min(last));
            tile.accumulate_transposed(input, input_stride, offsets, rows, panel);
            tile.finish(None);
        }
    }
}

/// From one point to the next among the transformed windows and gradients.
fn window_stride() -> usize {
    spaced(TILES * DEPTH)
}

fn gradient_stride(lanes: usize) -> usize {
    spaced(TILES * REGISTERS * lanes)
}

/// Adds the sums over some groups of tiles to `sums`, `[points, depth, columns]` with the columns in whole registers.
#[inline(always)]
pub(super) unsafe fn winograd_gradient_part<V: Vector, const THREE: usize, const TWO: usize>(
    job: &WinogradGradient,
    groups: Range<usize>,
    sums: *mut f32,
    scratch: *mut f32,
) {
    for group in groups {
        let places = &job.places[group * TILES..job.places.len().min((group + 1) * TILES)];
        for panel in panels(job.columns, V::LANES) {
            // SAFETY: the caller vouches for the job, the instruction set, the sums and the scratch space.
            unsafe {
                match panel.len() {
                    3 => winograd_panel::<V, THREE, 3>(job, panel.start, places, sums, scratch),
                    2 => winograd_panel::<V, TWO, 2>(job, panel.start, places, sums, scratch),
                    _ => winograd_panel::<V, TWO, 1>(job, panel.start, places, sums, scratch),
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn winograd_panel<V: Vector, const HEIGHT: usize, const COUNT: usize>(
    job: &WinogradGradient,
    panel: usize,
    places: &[Place],
    sums: *mut f32,
    scratch: *mut f32,
) {
    let (first, width) = (panel * V::LANES, COUNT * V::LANES);
    let stride = job.columns.next_multiple_of(V::LANES);
    let columns = first..job.columns.min(first + width);
    let windows = scratch.wrapping_add(POINTS * gradient_stride(V::LANES));
    // Columns past the last are whatever the scratch space holds; nobody reads their sums.
    // SAFETY: the caller vouches for the job, the instruction set, the sums and the scratch space.
    unsafe {
        for (index, place) in places.iter().enumerate() {
            let to = (scratch.add(index * width), gradient_stride(V::LANES));
            transform_gradient::<V>(&job.gradient, place, columns.clone(), to);
        }
        for k in (0..job.depth).step_by(DEPTH) {
            let depth = k..job.depth.min(k + DEPTH);
            for (index, place) in places.iter().enumerate() {
                let to = (windows.add(index * depth.len()), window_stride());
                transform_window::<V>(&job.input, place, depth.clone(), to);
            }
            for point in 0..POINTS {
                let input = windows.add(point * window_stride()).cast_const();
                let gradient = scratch.add(point * gradient_stride(V::LANES));
                let sums = sums.add((point * job.depth + k) * stride + first);
                sum_panel::<V, HEIGHT, COUNT>(
                    (input, depth.len(), places.len()),
                    depth.len(),
                    gradient,
                    (sums, stride),
                );
            }
        }
    }
}

impl Kernels {
    /// The gradient of a matrix `[columns, depth]`, from `rows` rows of inputs and the gradients of its outputs, each a
    /// stride apart.
    ///
    /// # Panics
    /// If a slice is too short for its rows.
    pub fn matmul_weight_grad(
        &self,
        (input, input_stride): (&[f32], usize),
        depth: usize,
        (gradient, gradient_stride): (&[f32], usize),
        columns: usize,
        rows: usize,
    ) -> Vec<f32> {
        assert!(input.len() >= extent(rows, input_stride, depth), "input too short");
        assert!(gradient.len() >= extent(rows, gradient_stride, columns), "gradient too short");
        let job = MatrixGradient {
            gradient: gradient.as_ptr(),
            gradient_stride,
            outputs: columns,
            input: input.as_ptr(),
            input_stride,
            inputs: depth,
        };
        let stride = depth.next_multiple_of(self.pixels.lanes);
        let scratch = ROWS * REGISTERS * self.pixels.lanes;
        let sums = self.sum_parts(rows, PART_ROWS, columns * stride, scratch, |rows, sums, scratch| {
            // SAFETY: the lengths were checked above, and `pixels` exist only where their instruction set does.
            unsafe { (self.pixels.matrix_gradient)(&job, rows, sums, scratch) }
        });
        let mut result = Vec::with_capacity(columns * depth);
        sums.chunks_exact(stride.max(1)).for_each(|row| result.extend_from_slice(&row[..depth]));
        result
    }

    /// The gradient of a 3 x 3 convolution's weights `[columns, depth, 3, 3]`, from the pixels of pictures and the
    /// gradients of their outputs, each a stride apart.
    ///
    /// # Panics
    /// If a slice is too short for the pixels.
    pub fn conv3x3_weight_grad(
        &self,
        input: (&[f32], usize),
        depth: usize,
        gradient: (&[f32], usize),
        columns: usize,
        sizes: &[(usize, usize)],
    ) -> Vec<f32> {
        let (sums, stride) = self.winograd_sums(input, depth, gradient, columns, SIDE, sizes);
        let mut result = vec![0.0; columns * depth * TAPS];
        let taps = result.as_chunks_mut::<TAPS>().0;
        for k in 0..depth {
            for first in (0..stride).step_by(Plain::LANES) {
                let points = std::array::from_fn(|point| {
                    let place = (point * depth + k) * stride + first;
                    Plain(std::array::from_fn(|lane| sums[place + lane]))
                });
                // SAFETY: every machine has the plain registers, which are arrays.
                let weights = unsafe { transforms::weight_gradient(points) };
                for (lane, column) in (first..columns).take(Plain::LANES).enumerate() {
                    taps[column * depth + k] = weights.map(|weight| weight.0[lane]);
                }
            }
        }
        result
    }

    /// The gradient of a 5 x 5 convolution's weights `[columns, depth, 5, 5]`, otherwise as [`Self::conv3x3_weight_grad`].
    ///
    /// # Panics
    /// If a slice is too short for the pixels.
    pub fn conv5x5_weight_grad(
        &self,
        input: (&[f32], usize),
        depth: usize,
        gradient: (&[f32], usize),
        columns: usize,
        sizes: &[(usize, usize)],
    ) -> Vec<f32> {
        let (sums, stride) = self.winograd_sums(input, depth, gradient, columns, SMALL_SIDE, sizes);
        let taps =
            (0..columns).flat_map(|column| (0..depth).map(move |k| (column, k))).flat_map(|(column, k)| {
                let points = std::array::from_fn(|point| sums[(point * depth + k) * stride + column]);
                transforms::weight_gradient_5x5(&points)
            });
        taps.collect()
    }

    /// The sums of products of transformed windows and gradients, `[points, depth, columns]`, and the distance between
    /// rows of columns.
    fn winograd_sums(
        &self,
        (input, input_stride): (&[f32], usize),
        depth: usize,
        (gradient, gradient_stride): (&[f32], usize),
        columns: usize,
        side: usize,
        sizes: &[(usize, usize)],
    ) -> (Buffer, usize) {
        let area = |&(height, width): &(usize, usize)| height.saturating_mul(width);
        let pixels = sizes.iter().map(area).fold(0, usize::saturating_add);
        assert!(input.len() >= extent(pixels, input_stride, depth), "input too short");
        assert!(gradient.len() >= extent(pixels, gradient_stride, columns), "gradient too short");
        let zeros = vec![0.0; depth.max(columns)];
        let pixels =
            |values: &[f32], stride| Pixels { values: values.as_ptr(), stride, zeros: zeros.as_ptr() };
        let job = WinogradGradient {
            input: pixels(input, input_stride),
            depth,
            gradient: pixels(gradient, gradient_stride),
            columns,
            places: winograd::places(sizes, side),
        };
        let lanes = self.pixels.lanes;
        let stride = columns.next_multiple_of(lanes);
        let scratch = POINTS * (window_stride() + self::gradient_stride(lanes));
        let groups = job.places.len().div_ceil(TILES);
        let length = POINTS * depth * stride;
        let sums = self.sum_parts(groups, PART_GROUPS, length, scratch, |groups, sums, scratch| {
            // SAFETY: as in `matmul_weight_grad`.
            unsafe { (self.pixels.winograd_gradient)(&job, groups, sums, scratch) }
        });
        (sums, stride)
    }

    /// The sum over parts of `length` of `count` rows, each of which adds to `sums` numbers, in order.
    pub(super) fn sum_parts(
        &self,
        count: usize,
        length: usize,
        sums: usize,
        scratch: usize,
        part: impl Fn(Range<usize>, *mut f32, *mut f32) + Sync,
    ) -> Buffer {
        let one = |index: usize| {
            let mut result = Buffer::default();
            let target = result.at_least(sums).as_mut_ptr();
            SCRATCH.with_borrow_mut(|space| {
                let rows = index * length..count.min((index + 1) * length);
                part(rows, target, space.at_least(scratch).as_mut_ptr());
            });
            result
        };
        let parts = count.div_ceil(length).max(1);
        let parts: Vec<Buffer> = match self.threads() {
            1 => (0..parts).map(one).collect(),
            _ => (0..parts).into_par_iter().map(one).collect(),
        };
        let add = |mut sum: Buffer, part: Buffer| {
            sum.iter_mut().zip(part.iter()).for_each(|(sum, x)| *sum += x);
            sum
        };
        parts.into_iter().reduce(add).unwrap_or_default()
    }
}
