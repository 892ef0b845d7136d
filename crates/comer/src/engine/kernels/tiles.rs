//! The inner loops, written once over [`Block`] and compiled for each instruction set.
//!
//! A tile of results, a few rows by a few blocks, stays in registers while the depth passes by: each step loads one
//! block per column and spreads one weight per row. Every result is the sum over the depth in the same order whatever
//! tile it falls into, so that results depend neither on the split of the work nor on the number of threads.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::ops::Range;

use super::SIDE;
use super::block::{BLOCK, Block};

/// `output[row, pixel] = bias[row] + sum over d of weights[row, d] * input[d, pixel]`, with pointers.
pub(super) struct Multiply {
    /// Panels of `ROWS` rows, each `[depth, ROWS]`.
    pub weights: *const f32,
    pub bias: *const f32,
    pub depth: usize,
    pub input: *const f32,
    pub input_row: usize,
    pub input_block: usize,
    pub output: Output,
}

/// `output[row, pixel] = bias[row] + sum over channels, y, x of weights[row, channel, y, x] * input[channel, pixel + ...]`.
pub(super) struct Convolve {
    /// Panels of `ROWS` rows, each `[channels, SIDE, SIDE, ROWS]`.
    pub weights: *const f32,
    pub bias: *const f32,
    pub channels: usize,
    /// The first pixel of the first plane; rows of zeros lie before and after each plane.
    pub input: *const f32,
    pub plane: usize,
    pub width: usize,
    pub output: Output,
}

/// Where results go.
#[derive(Clone, Copy)]
pub(super) struct Output {
    pub values: *mut f32,
    pub row: usize,
    pub block: usize,
    pub rows: usize,
    pub columns: usize,
    /// What is below becomes this.
    pub floor: f32,
}

// SAFETY: the pointers of a job stay good while it runs, its inputs are only read, and whoever runs parts of it on
// several threads gives each part rows and columns of its own.
unsafe impl Sync for Multiply {}
// SAFETY: as above.
unsafe impl Sync for Convolve {}

/// One instruction set's entry points; each runs a job for some panels of rows and some blocks of columns.
pub(super) struct Entries {
    /// Rows of a tile, and of a panel of packed weights.
    pub rows: usize,
    /// Blocks of a tile at most.
    pub wide: usize,
    pub multiply: unsafe fn(&Multiply, Range<usize>, Range<usize>),
    pub convolve: unsafe fn(&Convolve, Range<usize>, Range<usize>),
}

macro_rules! entries {
    ($name:ident, $block:ty, rows $rows:literal, wide $wide:literal $(, enable $feature:literal)?) => {
        pub(super) static $name: Entries = {
            $(#[target_feature(enable = $feature)])?
            unsafe fn multiply(job: &Multiply, panels: Range<usize>, blocks: Range<usize>) {
                // SAFETY: the caller vouches for the instruction set and for the job.
                unsafe { multiply_part::<$block, $rows, $wide>(job, panels, blocks) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn convolve(job: &Convolve, panels: Range<usize>, blocks: Range<usize>) {
                // SAFETY: as above.
                unsafe { convolve_part::<$block, $rows, $wide>(job, panels, blocks) }
            }
            Entries { rows: $rows, wide: $wide, multiply, convolve }
        };
    };
}

// The tiles fill the registers: 8 x 3 of AVX-512's 32, 6 x 2 of AVX2's 16, 6 x 4 of NEON's 32, 2 x 4 of WebAssembly's.
#[cfg(target_arch = "x86_64")]
entries!(AVX512, super::block::Avx512, rows 8, wide 3, enable "avx512f");
#[cfg(target_arch = "x86_64")]
entries!(AVX2, super::block::Avx2, rows 6, wide 1, enable "avx2,fma");
#[cfg(target_arch = "aarch64")]
entries!(NEON, super::block::Neon, rows 6, wide 1, enable "neon");
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
entries!(SIMD128, super::block::Simd128, rows 2, wide 1);
entries!(PLAIN, super::block::Plain, rows 2, wide 1);

/// Calls `$strip` with 3, 2 or 1 blocks at a time until `$blocks` is covered; four are two and two, not three and one.
macro_rules! strips {
    ($wide:ident, $blocks:ident, |$first:ident, $count:ident| $strip:expr) => {
        let mut $first = $blocks.start;
        while $first < $blocks.end {
            let left = $blocks.end - $first;
            if $wide >= 3 && (left == 3 || left >= 5) {
                const $count: usize = 3;
                $strip;
                $first += $count;
            } else if $wide >= 2 && left >= 2 {
                const $count: usize = 2;
                $strip;
                $first += $count;
            } else {
                const $count: usize = 1;
                $strip;
                $first += $count;
            }
        }
    };
}

#[inline(always)]
unsafe fn multiply_part<B: Block, const ROWS: usize, const WIDE: usize>(
    job: &Multiply,
    panels: Range<usize>,
    blocks: Range<usize>,
) {
    strips!(WIDE, blocks, |first, COUNT| for panel in panels.clone() {
        // SAFETY: the caller vouches for the job and the instruction set.
        unsafe { multiply_tile::<B, ROWS, COUNT>(job, panel, first) }
    });
}

#[inline(always)]
unsafe fn multiply_tile<B: Block, const ROWS: usize, const COUNT: usize>(
    job: &Multiply,
    panel: usize,
    first: usize,
) {
    // SAFETY: the caller vouches for the job: `depth` rows of input in each of its blocks, whole panels of weights
    // and bias.
    unsafe {
        let mut sums = start::<B, ROWS, COUNT>(job.bias.add(panel * ROWS));
        let mut weights = job.weights.add(panel * ROWS * job.depth);
        let mut input = job.input.add(first * job.input_block);
        // The blocks after these are wanted next; each of the first few panels asks for a part of one of them.
        let ahead = panel % COUNT * job.input_block + panel / COUNT % 4 * (job.depth / 4) * job.input_row;
        let mut ahead = input.wrapping_add(COUNT * job.input_block + ahead);
        for d in 0..job.depth {
            if d % 4 == 0 {
                B::prefetch::<false>(ahead);
                ahead = ahead.wrapping_add(job.input_row);
            }
            let mut columns = [B::filled(0.0); COUNT];
            for i in 0..COUNT {
                columns[i] = B::load(input.add(i * job.input_block));
            }
            step::<B, ROWS, COUNT>(&mut sums, weights, &columns);
            weights = weights.add(ROWS);
            input = input.add(job.input_row);
        }
        finish::<B, ROWS, COUNT>(&job.output, sums, panel * ROWS, first);
    }
}

#[inline(always)]
unsafe fn convolve_part<B: Block, const ROWS: usize, const WIDE: usize>(
    job: &Convolve,
    panels: Range<usize>,
    blocks: Range<usize>,
) {
    strips!(WIDE, blocks, |first, COUNT| {
        let mut bits = [[u16::MAX; COUNT]; SIDE];
        let mut x = first * BLOCK % job.width;
        for pixel in 0..COUNT * BLOCK {
            if x < SIDE / 2 || x + SIDE / 2 >= job.width {
                for shift in 0..SIDE {
                    let inside = x + shift >= SIDE / 2 && x + shift < job.width + SIDE / 2;
                    bits[shift][pixel / BLOCK] &= !(u16::from(!inside) << (pixel % BLOCK));
                }
            }
            x = if x + 1 == job.width { 0 } else { x + 1 };
        }
        for panel in panels.clone() {
            // SAFETY: the caller vouches for the job and the instruction set.
            unsafe { convolve_tile::<B, ROWS, COUNT>(job, panel, first, &bits) }
        }
    });
}

/// The pixels of a plane lie one after the other, so a neighbour is a fixed distance away, and only those beyond the
/// left and right edge (which are pixels of the next row) have to be masked out: `bits[shift]` are those inside.
#[inline(always)]
unsafe fn convolve_tile<B: Block, const ROWS: usize, const COUNT: usize>(
    job: &Convolve,
    panel: usize,
    first: usize,
    bits: &[[u16; COUNT]; SIDE],
) {
    // SAFETY: the caller vouches for the job: `SIDE / 2` rows and pixels readable around each plane, whole panels of
    // weights and bias.
    unsafe {
        let mut masks = [[B::mask(0); COUNT]; SIDE];
        for x in 0..SIDE {
            for i in 0..COUNT {
                masks[x][i] = B::mask(bits[x][i]);
            }
        }
        let mut sums = start::<B, ROWS, COUNT>(job.bias.add(panel * ROWS));
        let mut weights = job.weights.add(panel * ROWS * job.channels * SIDE * SIDE);
        let corner = SIDE / 2 * (job.width + 1);
        let mut plane = job.input.add(first * BLOCK).sub(corner);
        for _ in 0..job.channels {
            for y in 0..SIDE {
                let row = plane.add(y * job.width);
                // The next plane is too far away for the machine to see it coming.
                for i in 0..=COUNT {
                    B::prefetch::<true>(row.wrapping_add(job.plane + i * BLOCK));
                }
                for x in 0..SIDE {
                    let mut columns = [B::filled(0.0); COUNT];
                    for i in 0..COUNT {
                        let from = row.add(x + i * BLOCK);
                        columns[i] =
                            if x == SIDE / 2 { B::load(from) } else { B::load_masked(from, masks[x][i]) };
                    }
                    step::<B, ROWS, COUNT>(&mut sums, weights, &columns);
                    weights = weights.add(ROWS);
                }
            }
            plane = plane.add(job.plane);
        }
        finish::<B, ROWS, COUNT>(&job.output, sums, panel * ROWS, first);
    }
}

/// A tile that starts with the bias of its rows.
#[inline(always)]
unsafe fn start<B: Block, const ROWS: usize, const COUNT: usize>(bias: *const f32) -> [[B; COUNT]; ROWS] {
    // SAFETY: the caller vouches for `ROWS` numbers of bias.
    unsafe {
        let mut sums = [[B::filled(0.0); COUNT]; ROWS];
        for r in 0..ROWS {
            sums[r] = [B::filled(*bias.add(r)); COUNT];
        }
        sums
    }
}

/// One step of the depth.
#[inline(always)]
unsafe fn step<B: Block, const ROWS: usize, const COUNT: usize>(
    sums: &mut [[B; COUNT]; ROWS],
    weights: *const f32,
    columns: &[B; COUNT],
) {
    // SAFETY: the caller vouches for `ROWS` weights.
    unsafe {
        for r in 0..ROWS {
            let weight = B::splat(*weights.add(r));
            for i in 0..COUNT {
                sums[r][i] = sums[r][i].add_product(weight, columns[i]);
            }
        }
    }
}

/// Stores a tile, but nothing past the last row or column.
#[inline(always)]
unsafe fn finish<B: Block, const ROWS: usize, const COUNT: usize>(
    output: &Output,
    mut sums: [[B; COUNT]; ROWS],
    first_row: usize,
    first: usize,
) {
    // SAFETY: the caller vouches for `rows` rows of `columns` numbers in the output's layout.
    unsafe {
        let floor = B::splat(output.floor);
        let to = output.values.add(first_row * output.row + first * output.block);
        let whole = first_row + ROWS <= output.rows && (first + COUNT) * BLOCK <= output.columns;
        for r in 0..ROWS {
            for i in 0..COUNT {
                sums[r][i] = sums[r][i].at_least(floor);
                if whole {
                    sums[r][i].store(to.add(r * output.row + i * output.block));
                }
            }
        }
        if !whole {
            for r in 0..ROWS.min(output.rows - first_row) {
                for i in 0..COUNT {
                    let mut lanes = [0.0; BLOCK];
                    sums[r][i].store(lanes.as_mut_ptr());
                    let count = BLOCK.min(output.columns - (first + i) * BLOCK);
                    let to = to.add(r * output.row + i * output.block);
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
                }
            }
        }
    }
}
