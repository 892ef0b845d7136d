//! Products and convolutions at the speed of the machine, over slices: they know shapes and strides, not the model.
//!
//! Pictures take [`Kernels::multiply`] (a matrix of weights times the pixels: the 1 x 1 convolution) and
//! [`Kernels::convolve`] (3 x 3), each with a bias and, if asked for, a ReLU; this file checks every length and then
//! hands pointers to the loops in `tiles`. The decoder's few rows at a time go through `panels` and `rows`. It is the
//! only place of the crate with unsafe code.
#![allow(unsafe_code)]

mod block;
mod buffer;
mod conv;
#[cfg(test)]
mod conv_tests;
mod gradient;
mod packed;
pub(crate) mod panels;
mod pixels;
pub(crate) mod rows;
#[cfg(test)]
mod tests;
mod tiles;
mod vector;
mod winograd;

use rayon::prelude::*;

pub use block::BLOCK;
pub use buffer::Buffer;
pub use conv::{Algorithm, PackedConv, PackedMatrix};
pub use packed::PackedRows;

/// The side of [`Kernels::convolve`]'s kernel.
const SIDE: usize = 3;

/// An instruction set that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// No particular one.
    Plain,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512F.
    Avx512,
    /// 64-bit ARM.
    Neon,
    /// WebAssembly with 128-bit vectors.
    Simd128,
}

impl Isa {
    const BEST_FIRST: [Isa; 5] = [Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Simd128, Isa::Plain];

    /// Those that this machine has, the best first; [`Isa::Plain`] is always the last.
    pub fn available() -> impl Iterator<Item = Isa> {
        Self::BEST_FIRST.into_iter().filter(|isa| isa.entries().is_some())
    }

    fn pixel_entries(self) -> Option<&'static pixels::Entries> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if is_x86_feature_detected!("avx512f") => Some(&pixels::AVX512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") => {
                Some(&pixels::AVX2)
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if std::arch::is_aarch64_feature_detected!("neon") => Some(&pixels::NEON),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Isa::Simd128 => Some(&pixels::SIMD128),
            Isa::Plain => Some(&pixels::PLAIN),
            _ => None,
        }
    }

    fn entries(self) -> Option<&'static tiles::Entries> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if is_x86_feature_detected!("avx512f") => Some(&tiles::AVX512),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") => {
                Some(&tiles::AVX2)
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if std::arch::is_aarch64_feature_detected!("neon") => Some(&tiles::NEON),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Isa::Simd128 => Some(&tiles::SIMD128),
            Isa::Plain => Some(&tiles::PLAIN),
            _ => None,
        }
    }
}

/// The kernels of one instruction set.
#[derive(Clone, Copy)]
pub struct Kernels {
    isa: Isa,
    entries: &'static tiles::Entries,
    pixels: &'static pixels::Entries,
    threaded: bool,
}

/// Where the numbers of a matrix lie: row `r` of column `c` is at `r * row + c / BLOCK * block + c % BLOCK`.
///
/// With `block == BLOCK` the rows are ordinary rows, such as the planes of a picture; with `row == BLOCK` the matrix is
/// cut into blocks of sixteen columns, each holding all its rows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// From one row to the next.
    pub row: usize,
    /// From one block of columns to the next.
    pub block: usize,
}

impl Layout {
    /// Ordinary rows, `stride` apart.
    pub fn rows(stride: usize) -> Self {
        Self { row: stride, block: BLOCK }
    }

    /// Blocks of sixteen columns with room for `rows` rows.
    pub fn blocks(rows: usize) -> Self {
        Self { row: BLOCK, block: rows * BLOCK }
    }

    /// The length that a slice needs at least for `rows` rows of `columns` columns, counted in whole blocks.
    fn length(self, rows: usize, columns: usize) -> usize {
        if rows == 0 || columns == 0 {
            return 0;
        }
        let (rows, blocks) = ((rows - 1).saturating_mul(self.row), (columns - 1) / BLOCK);
        rows.saturating_add(blocks.saturating_mul(self.block)).saturating_add(BLOCK)
    }
}

/// A picture's planes one after the other in a slice, for [`Kernels::convolve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Rows of pixels in a plane.
    pub height: usize,
    /// Pixels in a row; a plane's rows follow each other without a gap.
    pub width: usize,
    /// From the start of the slice to the first plane.
    pub origin: usize,
    /// From one plane to the next.
    pub stride: usize,
}

impl Planes {
    /// Planes with enough space around them for a convolution; [`Self::clear`] zeroes it.
    pub fn new(height: usize, width: usize) -> Self {
        let margin = SIDE / 2 * (width + 1);
        // An odd number of cache lines, for planes a power of two apart would fight for the same lines of the cache.
        let lines = (height * width + margin).div_ceil(BLOCK) | 1;
        Self { height, width, origin: margin.next_multiple_of(BLOCK), stride: lines * BLOCK }
    }

    /// Pixels in a plane.
    pub fn pixels(&self) -> usize {
        self.height.saturating_mul(self.width)
    }

    /// The length of a slice for `count` planes and the space around them.
    pub fn length(&self, count: usize) -> usize {
        self.origin + count * self.stride + self.origin + BLOCK
    }

    /// Zeroes the space before, between and after `count` planes, which stands for the zeros around a picture.
    pub fn clear(&self, values: &mut [f32], count: usize) {
        values[..self.origin].fill(0.0);
        for plane in 0..count {
            let end = self.origin + plane * self.stride + self.pixels();
            let next = if plane + 1 < count { end - self.pixels() + self.stride } else { self.length(count) };
            values[end..next].fill(0.0);
        }
    }
}

/// Whether a kernel's results end in a ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// As they are.
    None,
    /// What is below zero becomes zero.
    Relu,
}

impl Activation {
    fn floor(self) -> f32 {
        match self {
            Activation::None => f32::NEG_INFINITY,
            Activation::Relu => 0.0,
        }
    }
}

impl Kernels {
    /// The best kernels for this machine.
    pub fn detect() -> Self {
        Isa::available().find_map(Self::with).expect("the plain kernels run everywhere")
    }

    /// The kernels of one instruction set, if this machine has it.
    pub fn with(isa: Isa) -> Option<Self> {
        let (entries, pixels) = (isa.entries()?, isa.pixel_entries()?);
        Some(Self { isa, entries, pixels, threaded: true })
    }

    /// The same kernels, but each call stays on the thread that made it.
    pub fn alone(self) -> Self {
        Self { threaded: false, ..self }
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// `output[row, pixel] = bias[row] + sum over d of weights[row, d] * input[d, pixel]` for the given blocks of
    /// `pixels` pixels: a 1 x 1 convolution.
    ///
    /// # Panics
    /// If a slice is shorter than its layout asks for, or the weights were packed for other kernels.
    pub fn multiply(
        &self,
        weights: &PackedRows,
        (input, input_layout): (&[f32], Layout),
        pixels: usize,
        activation: Activation,
        (output, output_layout): (&mut [f32], Layout),
    ) {
        assert_eq!(weights.panel, self.entries.rows, "weights packed for other kernels");
        assert!(input.len() >= input_layout.length(weights.depth, pixels), "input too short");
        let job = tiles::Multiply {
            weights: weights.values.as_ptr(),
            bias: weights.bias.as_ptr(),
            depth: weights.depth,
            input: input.as_ptr(),
            input_row: input_layout.row,
            input_block: input_layout.block,
            output: tiles::Output::new(output, output_layout, weights.rows, pixels, activation),
        };
        self.split(weights.rows, pixels, |panels, blocks| {
            // SAFETY: the lengths were checked above, `entries` exist only where their instruction set does, and no two
            // parts share a panel and a block.
            unsafe { (self.entries.multiply)(&job, panels, blocks) }
        });
    }

    /// A 3 x 3 convolution with zeros around the picture; `weights` has a depth of channels x 3 x 3.
    ///
    /// # Panics
    /// If a slice is shorter than its layout asks for, the planes have too little space around them, or the weights were
    /// packed for other kernels.
    pub fn convolve(
        &self,
        weights: &PackedRows,
        (input, planes): (&[f32], Planes),
        activation: Activation,
        (output, output_layout): (&mut [f32], Layout),
    ) {
        assert_eq!(weights.panel, self.entries.rows, "weights packed for other kernels");
        let channels = weights.depth / (SIDE * SIDE);
        assert_eq!(weights.depth, channels * SIDE * SIDE, "weights of another depth");
        let pixels = planes.pixels();
        let margin = (SIDE / 2).saturating_mul(planes.width.saturating_add(1));
        let space = planes.origin >= margin && planes.stride >= pixels.saturating_add(margin);
        assert!(channels > 0 && pixels > 0 && space, "planes without space around them");
        let last = planes.origin.saturating_add((channels - 1).saturating_mul(planes.stride));
        let reach = pixels.saturating_add(BLOCK - 1).saturating_add(margin);
        assert!(input.len() >= last.saturating_add(reach), "input too short");
        let job = tiles::Convolve {
            weights: weights.values.as_ptr(),
            bias: weights.bias.as_ptr(),
            channels,
            input: input[planes.origin..].as_ptr(),
            plane: planes.stride,
            width: planes.width,
            output: tiles::Output::new(output, output_layout, weights.rows, pixels, activation),
        };
        self.split(weights.rows, pixels, |panels, blocks| {
            // SAFETY: as in `multiply`; the space around the planes was checked too.
            unsafe { (self.entries.convolve)(&job, panels, blocks) }
        });
    }

    /// Calls `part` with each chunk of `length` numbers and its index, on as many threads as the kernels use.
    pub fn for_each_chunk(&self, values: &mut [f32], length: usize, part: impl Fn(usize, &mut [f32]) + Sync) {
        if self.threads() == 1 {
            values.chunks_mut(length).enumerate().for_each(|(index, chunk)| part(index, chunk));
        } else {
            values.par_chunks_mut(length).enumerate().for_each(|(index, chunk)| part(index, chunk));
        }
    }

    fn threads(&self) -> usize {
        if self.threaded { rayon::current_num_threads() } else { 1 }
    }

    /// Calls `part` with ranges of row panels and of column blocks that cover the results once: all at once, or on the
    /// threads of the current rayon pool.
    fn split(
        &self,
        rows: usize,
        columns: usize,
        part: impl Fn(std::ops::Range<usize>, std::ops::Range<usize>) + Sync,
    ) {
        let (panels, blocks) = (rows.div_ceil(self.entries.rows), columns.div_ceil(BLOCK));
        let threads = self.threads();
        if threads == 1 {
            return part(0..panels, 0..blocks);
        }
        // A few parts for each thread, so that none waits long for another; along the blocks first, for each of them
        // is then read by one thread only.
        let wanted = 3 * threads;
        let across = wanted.min(blocks.div_ceil(self.entries.wide)).max(1);
        let down = wanted.div_ceil(across).min(panels.div_ceil(2)).max(1);
        (0..across * down).into_par_iter().with_max_len(1).for_each(|index| {
            let (i, j) = (index / across, index % across);
            part(i * panels / down..(i + 1) * panels / down, j * blocks / across..(j + 1) * blocks / across);
        });
    }
}

impl tiles::Output {
    fn new(values: &mut [f32], layout: Layout, rows: usize, columns: usize, activation: Activation) -> Self {
        let plain = layout.block == BLOCK && layout.row >= columns;
        let blocked = layout.row >= BLOCK && layout.block >= rows.saturating_mul(layout.row);
        assert!(plain || blocked, "rows of the output overlap");
        assert!(values.len() >= layout.length(rows, columns), "output too short");
        let floor = activation.floor();
        Self { values: values.as_mut_ptr(), row: layout.row, block: layout.block, rows, columns, floor }
    }
}
