//! Products with rows that are mostly zeros, such as the channels behind a ReLU and dropout: zeros are skipped.
//!
//! Rows come with a bit for each number, set where it is not zero. Up to 64 bits are a word, and only those that are set are visited.
//! The sums of a row stay in registers meanwhile, and the stretch of weights that the bits choose from in the first cache.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::ops::Range;

use super::pixels::LINE;
use super::vector::Vector;

/// Bits of a word.
pub(super) const BITS: usize = u64::BITS as usize;
/// Rows that take their turn with every stretch of weights before the next ones do: they stay in the second cache.
pub(super) const ROWS: usize = 96;
/// Rows of which numbers are asked for ahead of time.
const AHEAD: usize = 16;
/// Registers of a panel at most. Browsers have few to spare: there, panels of six take 15 % less time than panels of twelve.
const REGISTERS: usize = if cfg!(target_arch = "wasm32") { 6 } else { 12 };
/// Lanes of the widest register.
const LANES: usize = 16;

/// The number of panels of so many columns, and the registers of each: 6, 8, 10 or 12, as few panels as possible.
pub(super) fn panels(columns: usize, lanes: usize) -> (usize, usize) {
    let registers = columns.div_ceil(lanes).max(1);
    let panels = registers.div_ceil(REGISTERS);
    (panels, registers.div_ceil(panels).next_multiple_of(2).max(6))
}

/// Rows that are mostly zeros, with a bit for each number.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub values: *const f32,
    pub stride: usize,
    pub depth: usize,
    /// `words` for each row and one more.
    pub bits: *const u64,
    pub words: usize,
    /// The bit of a row's first number.
    pub first: usize,
}

/// Rows of any numbers.
#[derive(Clone, Copy)]
pub(super) struct Outputs {
    pub values: *const f32,
    pub stride: usize,
    pub columns: usize,
}

/// `output[row] = bias + weights * input[row]`
pub(super) struct SparseProduct {
    pub weights: *const f32,
    pub bias: *const f32,
    pub input: Inputs,
    pub output: *mut f32,
    pub output_stride: usize,
    pub columns: usize,
    /// Starts with what is in the output, not with the bias.
    pub accumulate: bool,
    /// Results below become this.
    pub floor: f32,
}

/// `sum[row][k] += weights[k] * gradient[row]` where `input[row][k]` is not zero.
pub(super) struct SparseInputGradient {
    pub weights: *const f32,
    pub input: Inputs,
    pub gradient: Outputs,
    pub sum: *mut f32,
    pub sum_stride: usize,
}

/// The sums of the products of inputs and gradients.
pub(super) struct SparseWeightGradient {
    pub input: Inputs,
    pub gradient: Outputs,
}

// SAFETY: the pointers of a job stay valid while it runs, its inputs are only read, and whoever runs parts of it on
// several threads gives each part rows of its own.
unsafe impl Sync for SparseProduct {}
// SAFETY: as above.
unsafe impl Sync for SparseInputGradient {}
// SAFETY: as above.
unsafe impl Sync for SparseWeightGradient {}

impl Inputs {
    /// The depth in as few stretches as possible, of about equal length.
    fn stretches(self) -> impl Iterator<Item = Range<usize>> {
        let length = self.depth.div_ceil(self.depth.div_ceil(BITS).max(1)).next_multiple_of(8).max(1);
        (0..self.depth.max(1)).step_by(length).map(move |first| first..self.depth.min(first + length))
    }

    /// Bits that are set where a stretch of a row is not zero.
    #[inline(always)]
    unsafe fn nonzero(self, row: usize, stretch: &Range<usize>) -> u64 {
        let first = self.first + stretch.start;
        // SAFETY: the caller vouches for the row, which another word follows.
        unsafe {
            let word = self.bits.add(row * self.words + first / BITS);
            let shift = first % BITS;
            let bits = *word >> shift | *word.add(1) << 1 << (BITS - 1 - shift);
            bits & u64::MAX.checked_shr((BITS - stretch.len()) as u32).unwrap_or(0)
        }
    }

    /// Asks for the numbers of a later row.
    #[inline(always)]
    unsafe fn prefetch<V: Vector>(self, row: usize, stretch: &Range<usize>) {
        // SAFETY: the caller vouches for the row; what comes after it is not read.
        let from = unsafe { self.row(row, stretch.start) };
        for line in (0..stretch.len()).step_by(LINE) {
            V::prefetch(from.wrapping_add(AHEAD * self.stride + line));
        }
    }

    #[inline(always)]
    unsafe fn row(self, row: usize, first: usize) -> *const f32 {
        // SAFETY: the caller vouches for the row.
        unsafe { self.values.add(row * self.stride + first) }
    }
}

/// Calls a function for panels of as many registers as are asked for.
macro_rules! with_registers {
    ($registers:expr, $function:ident::<$vector:ty>($($argument:expr),*)) => {
        match $registers {
            6 => $function::<$vector, 6>($($argument),*),
            8 => $function::<$vector, 8>($($argument),*),
            10 => $function::<$vector, 10>($($argument),*),
            _ => $function::<$vector, REGISTERS>($($argument),*),
        }
    };
}

/// All panels for some rows.
#[inline(always)]
pub(super) unsafe fn product_part<V: Vector>(job: &SparseProduct, rows: Range<usize>) {
    let (panels, registers) = panels(job.columns, V::LANES);
    for first in rows.clone().step_by(ROWS) {
        let rows = first..rows.end.min(first + ROWS);
        for panel in 0..panels {
            // SAFETY: the caller vouches for the job and the instruction set.
            unsafe { with_registers!(registers, product_panel::<V>(job, panel, rows.clone())) }
        }
    }
}

#[inline(always)]
unsafe fn product_panel<V: Vector, const COUNT: usize>(
    job: &SparseProduct,
    panel: usize,
    rows: Range<usize>,
) {
    let width = COUNT * V::LANES;
    let columns = job.columns - panel * width;
    for stretch in job.input.stretches() {
        let resume = job.accumulate || stretch.start > 0;
        let floor = if stretch.end == job.input.depth { job.floor } else { f32::NEG_INFINITY };
        for row in rows.clone() {
            // SAFETY: the caller vouches for the job and the instruction set.
            unsafe {
                let bits = job.input.nonzero(row, &stretch);
                job.input.prefetch::<V>(row, &stretch);
                let output = job.output.add(row * job.output_stride + panel * width);
                let mut sums = match resume {
                    true => load_row::<V, COUNT>(output, columns),
                    false => load_row(job.bias.add(panel * width), width),
                };
                let weights = job.weights.add((panel * job.input.depth + stretch.start) * width);
                accumulate(&mut sums, bits, (job.input.row(row, stretch.start), 1), weights);
                if floor > f32::NEG_INFINITY {
                    for i in 0..COUNT {
                        sums[i] = sums[i].at_least(V::splat(floor));
                    }
                }
                store_row(sums, output, columns);
            }
        }
    }
}

/// All panels for some rows.
#[inline(always)]
pub(super) unsafe fn input_gradient_part<V: Vector>(job: &SparseInputGradient, rows: Range<usize>) {
    let (panels, registers) = panels(job.gradient.columns, V::LANES);
    for first in rows.clone().step_by(ROWS) {
        let rows = first..rows.end.min(first + ROWS);
        for panel in 0..panels {
            // SAFETY: the caller vouches for the job and the instruction set.
            unsafe { with_registers!(registers, input_gradient_panel::<V>(job, panel, rows.clone())) }
        }
    }
}

#[inline(always)]
unsafe fn input_gradient_panel<V: Vector, const COUNT: usize>(
    job: &SparseInputGradient,
    panel: usize,
    rows: Range<usize>,
) {
    let width = COUNT * V::LANES;
    for stretch in job.input.stretches() {
        for row in rows.clone() {
            // SAFETY: the caller vouches for the job and the instruction set. There is a row of weights for every bit, and
            // one for the number 64, which stands for none.
            unsafe {
                let mut bits = job.input.nonzero(row, &stretch);
                let gradient = job.gradient.values.add(row * job.gradient.stride + panel * width);
                let gradient = load_row::<V, COUNT>(gradient, job.gradient.columns - panel * width);
                let weights = job.weights.add((panel * job.input.depth + stretch.start) * width);
                let sum = job.sum.add(row * job.sum_stride + stretch.start);
                for line in (0..stretch.len()).step_by(LINE) {
                    V::prefetch(sum.wrapping_add(AHEAD * job.sum_stride + line));
                }
                let mut none = 0.0;
                while bits != 0 {
                    let places = [next(&mut bits), next(&mut bits), next(&mut bits), next(&mut bits)];
                    let mut products = [V::splat(0.0); 4];
                    for i in 0..COUNT {
                        for place in 0..4 {
                            let weight = V::load(weights.add(places[place] * width + i * V::LANES));
                            products[place] = products[place].mul_add(gradient[i], weight);
                        }
                    }
                    let products = V::sums(products);
                    for place in 0..4 {
                        let to = if places[place] < BITS { sum.add(places[place]) } else { &raw mut none };
                        *to += products[place];
                    }
                }
            }
        }
    }
}

/// Adds the sums over some rows to `sums`: panels of `[depth, registers * lanes]`.
#[inline(always)]
pub(super) unsafe fn weight_gradient_part<V: Vector>(
    job: &SparseWeightGradient,
    rows: Range<usize>,
    sums: *mut f32,
    scratch: *mut f32,
) {
    let (panels, registers) = panels(job.gradient.columns, V::LANES);
    for first in rows.clone().step_by(BITS) {
        let rows = first..rows.end.min(first + BITS);
        for panel in 0..panels {
            // SAFETY: the caller vouches for the job, the instruction set, the sums and the scratch space.
            unsafe {
                with_registers!(
                    registers,
                    weight_gradient_panel::<V>(job, panel, rows.clone(), sums, scratch)
                );
            }
        }
    }
}

#[inline(always)]
unsafe fn weight_gradient_panel<V: Vector, const COUNT: usize>(
    job: &SparseWeightGradient,
    panel: usize,
    rows: Range<usize>,
    sums: *mut f32,
    scratch: *mut f32,
) {
    let width = COUNT * V::LANES;
    let columns = job.gradient.columns - panel * width;
    // SAFETY: the caller vouches for the job, the instruction set, the sums and the scratch space: `BITS` rows of a panel.
    unsafe {
        for (index, row) in rows.clone().enumerate() {
            let from = job.gradient.values.add(row * job.gradient.stride + panel * width);
            store_row::<V, COUNT>(load_row(from, columns), scratch.add(index * width), width);
        }
        for stretch in job.input.stretches() {
            let mut bits = [0; BITS];
            for (index, row) in rows.clone().enumerate() {
                bits[index] = job.input.nonzero(row, &stretch);
                job.input.prefetch::<V>(row, &stretch);
            }
            transpose(&mut bits);
            for (k, bits) in stretch.clone().zip(bits) {
                let to = sums.add((panel * job.input.depth + k) * width);
                let mut sums = load_row::<V, COUNT>(to, width);
                accumulate(&mut sums, bits, (job.input.row(rows.start, k), job.input.stride), scratch);
                store_row(sums, to, width);
            }
        }
    }
}

/// The number of the lowest bit that is set, 64 if there is none, and clears it.
#[inline(always)]
fn next(bits: &mut u64) -> usize {
    let place = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    place
}

/// Adds for every set bit the product of the value of its number, which lie `stride` apart, and the row of that number.
#[inline(always)]
unsafe fn accumulate<V: Vector, const COUNT: usize>(
    sums: &mut [V; COUNT],
    mut bits: u64,
    (values, stride): (*const f32, usize),
    rows: *const f32,
) {
    let width = COUNT * V::LANES;
    // SAFETY: the caller vouches for the instruction set, and for a value and a row of each bit.
    unsafe {
        if V::MANY {
            // Two sets of sums, so that the next addition does not wait for the one before.
            let mut others = [V::splat(0.0); COUNT];
            while bits & bits.wrapping_sub(1) != 0 {
                let (first, second) = (next(&mut bits), next(&mut bits));
                let (a, b) = (V::splat(*values.add(first * stride)), V::splat(*values.add(second * stride)));
                for i in 0..COUNT {
                    sums[i] = sums[i].mul_add(a, V::load(rows.add(first * width + i * V::LANES)));
                }
                for i in 0..COUNT {
                    others[i] = others[i].mul_add(b, V::load(rows.add(second * width + i * V::LANES)));
                }
            }
            for i in 0..COUNT {
                sums[i] = sums[i].add(others[i]);
            }
        }
        while bits != 0 {
            let place = next(&mut bits);
            let value = V::splat(*values.add(place * stride));
            for i in 0..COUNT {
                sums[i] = sums[i].mul_add(value, V::load(rows.add(place * width + i * V::LANES)));
            }
        }
    }
}

/// The first `count` numbers, zeros after them.
#[inline(always)]
unsafe fn load_row<V: Vector, const COUNT: usize>(from: *const f32, count: usize) -> [V; COUNT] {
    // SAFETY: the caller vouches for the instruction set and `count` numbers.
    unsafe {
        let mut row = [V::splat(0.0); COUNT];
        if count >= COUNT * V::LANES {
            for i in 0..COUNT {
                row[i] = V::load(from.add(i * V::LANES));
            }
            return row;
        }
        let mut lanes = [0.0; REGISTERS * LANES];
        std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
        for i in 0..COUNT {
            row[i] = V::load(lanes.as_ptr().add(i * V::LANES));
        }
        row
    }
}

/// Stores the first `count` numbers.
#[inline(always)]
unsafe fn store_row<V: Vector, const COUNT: usize>(row: [V; COUNT], to: *mut f32, count: usize) {
    // SAFETY: the caller vouches for the instruction set and `count` numbers.
    unsafe {
        if count >= COUNT * V::LANES {
            for i in 0..COUNT {
                row[i].store(to.add(i * V::LANES));
            }
            return;
        }
        let mut lanes = [0.0; REGISTERS * LANES];
        for i in 0..COUNT {
            row[i].store(lanes.as_mut_ptr().add(i * V::LANES));
        }
        std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
    }
}

/// Exchanges the rows and columns of a square of bits.
#[inline(always)]
fn transpose(bits: &mut [u64; BITS]) {
    let (mut side, mut mask) = (BITS / 2, u64::from(u32::MAX));
    while side > 0 {
        let mut row = 0;
        while row < BITS {
            let exchanged = ((bits[row] >> side) ^ bits[row + side]) & mask;
            bits[row] ^= exchanged << side;
            bits[row + side] ^= exchanged;
            row = (row + side + 1) & !side;
        }
        side /= 2;
        mask ^= mask << side;
    }
}
