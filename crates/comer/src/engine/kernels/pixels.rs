//! Products over channels-last pictures, written once over [`Vector`] and compiled for each instruction set.
//!
//! A tile of results, a few pixels by a few registers of output channels, stays in registers while the input channels
//! pass by: each step loads one row of a panel of weights and broadcasts one number of every pixel. A result is the
//! sum over the depth in the same order whatever tile it falls into, so that results depend neither on the split of the
//! work nor on the number of threads.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::ops::Range;

use super::gradient::{MatrixGradient, WinogradGradient, matrix_part, winograd_gradient_part};
use super::nonzero::{Marking, marking_part};
use super::sparse::{self, SparseInputGradient, SparseProduct, SparseWeightGradient};
use super::vector::Vector;
use super::winograd::{Winograd, winograd_part};

/// Depth of a product that is worked on at a time: a panel of it stays in the first cache.
const DEPTH: usize = 192;

/// Pixels that take their turn with every panel before the next ones do: they stay in the second cache.
const PIXELS: usize = 96;

/// Numbers of a cache line.
pub(super) const LINE: usize = 16;

/// Registers of a panel at most. Browsers keep 15 registers on x86-64: with three, the sums of a tile would not stay in them.
pub(super) const REGISTERS: usize = if cfg!(target_arch = "wasm32") { 2 } else { 3 };

/// The registers of each panel of `columns` output channels. Four are two and two, not three and one; and with registers of
/// eight numbers, of which there are few, an even number is cut into twos: tiles of six pixels by two are the fastest.
pub(super) fn panels(columns: usize, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    let (mut first, end) = (0, columns.div_ceil(lanes));
    std::iter::from_fn(move || {
        let left = end - first;
        let twos = left == 4 || (lanes == 8 && left.is_multiple_of(2));
        let count = left.min(if twos { 2 } else { REGISTERS });
        first += count;
        (count > 0).then(|| first - count..first)
    })
}

/// Rows of numbers and where they go; panels of weights are `[depth, registers * lanes]`, one after the other.
pub(super) struct Product {
    /// The weights of all panels.
    pub weights: *const f32,
    /// One for each column of all panels.
    pub bias: *const f32,
    pub depth: usize,
    pub columns: usize,
    pub input: *const f32,
    pub input_stride: usize,
    pub output: *mut f32,
    pub output_stride: usize,
    /// Starts with what is in the output, not with the bias.
    pub accumulate: bool,
    /// Results below become this.
    pub floor: f32,
}

/// A 3 x 3 convolution of one picture, as it is defined.
pub(super) struct Direct {
    /// `depth` is that of one tap; a panel has the taps one after the other.
    pub product: Product,
    pub height: usize,
    pub width: usize,
    /// As many zeros as there are input channels.
    pub zeros: *const f32,
}

// SAFETY: the pointers of a job stay valid while it runs, its inputs are only read, and whoever runs parts of it on
// several threads gives each part rows of its own.
unsafe impl Sync for Product {}
// SAFETY: as above.
unsafe impl Sync for Direct {}

/// One instruction set's entry points; each runs a part of a job.
pub(super) struct Entries {
    pub lanes: usize,
    /// Lanes that a row has of a register that two rows share.
    pub half: usize,
    pub product: unsafe fn(&Product, Range<usize>),
    pub direct: unsafe fn(&Direct, Range<usize>),
    pub winograd: unsafe fn(&Winograd, Range<usize>, *mut f32),
    pub matrix_gradient: unsafe fn(&MatrixGradient, Range<usize>, *mut f32, *mut f32),
    pub winograd_gradient: unsafe fn(&WinogradGradient, Range<usize>, *mut f32, *mut f32),
    pub marking: unsafe fn(&Marking, Range<usize>),
    pub sparse_product: unsafe fn(&SparseProduct, Range<usize>),
    pub sparse_input_gradient: unsafe fn(&SparseInputGradient, Range<usize>),
    pub sparse_weight_gradient: unsafe fn(&SparseWeightGradient, Range<usize>, *mut f32, *mut f32),
}

macro_rules! entries {
    ($name:ident, $vector:ty, rows $three:literal $two:literal $(, enable $feature:literal)?) => {
        pub(super) static $name: Entries = {
            $(#[target_feature(enable = $feature)])?
            unsafe fn product(job: &Product, rows: Range<usize>) {
                // SAFETY: the caller vouches for the instruction set and for the job.
                unsafe { product_part::<$vector, $three, $two>(job, rows) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn direct(job: &Direct, pixels: Range<usize>) {
                // SAFETY: as above.
                unsafe { direct_part::<$vector, $three, $two>(job, pixels) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn winograd(job: &Winograd, tiles: Range<usize>, scratch: *mut f32) {
                // SAFETY: as above.
                unsafe { winograd_part::<$vector, $three, $two>(job, tiles, scratch) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn matrix_gradient(job: &MatrixGradient, rows: Range<usize>, sums: *mut f32, scratch: *mut f32) {
                // SAFETY: as above.
                unsafe { matrix_part::<$vector, $three, $two>(job, rows, sums, scratch) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn winograd_gradient(
                job: &WinogradGradient,
                groups: Range<usize>,
                sums: *mut f32,
                scratch: *mut f32,
            ) {
                // SAFETY: as above.
                unsafe { winograd_gradient_part::<$vector, $three, $two>(job, groups, sums, scratch) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn marking(job: &Marking, rows: Range<usize>) {
                // SAFETY: as above.
                unsafe { marking_part::<$vector>(job, rows) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn sparse_product(job: &SparseProduct, rows: Range<usize>) {
                // SAFETY: as above.
                unsafe { sparse::product_part::<$vector>(job, rows) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn sparse_input_gradient(job: &SparseInputGradient, rows: Range<usize>) {
                // SAFETY: as above.
                unsafe { sparse::input_gradient_part::<$vector>(job, rows) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn sparse_weight_gradient(
                job: &SparseWeightGradient,
                rows: Range<usize>,
                sums: *mut f32,
                scratch: *mut f32,
            ) {
                // SAFETY: as above.
                unsafe { sparse::weight_gradient_part::<$vector>(job, rows, sums, scratch) }
            }
            Entries {
                lanes: <$vector as Vector>::LANES,
                half: <$vector as Vector>::HALF,
                product,
                direct,
                winograd,
                matrix_gradient,
                winograd_gradient,
                marking,
                sparse_product,
                sparse_input_gradient,
                sparse_weight_gradient,
            }
        };
    };
}

// Tiles of so many pixels by three registers, or by two: 12 registers of 16, or 24 of 32; in WebAssembly 8.
#[cfg(target_arch = "x86_64")]
entries!(AVX512, super::vector::Avx512, rows 8 12, enable "avx512f,avx512vl,avx2,fma,bmi1");
#[cfg(target_arch = "x86_64")]
entries!(AVX2, super::vector::Avx2, rows 3 6, enable "avx2,fma,bmi1");
#[cfg(target_arch = "aarch64")]
entries!(NEON, super::vector::Neon, rows 8 12, enable "neon");
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
entries!(SIMD128, super::vector::Simd128, rows 3 4);
entries!(PLAIN, super::vector::Plain, rows 4 6);

/// All panels for some rows.
#[inline(always)]
pub(super) unsafe fn product_part<V: Vector, const THREE: usize, const TWO: usize>(
    job: &Product,
    rows: Range<usize>,
) {
    for first in rows.clone().step_by(PIXELS) {
        let rows = first..rows.end.min(first + PIXELS);
        for panel in panels(job.columns, V::LANES) {
            // SAFETY: the caller vouches for the job and the instruction set.
            unsafe {
                match panel.len() {
                    3 => product_panel::<V, THREE, 3>(job, panel.start, rows.clone()),
                    2 => product_panel::<V, TWO, 2>(job, panel.start, rows.clone()),
                    _ => product_panel::<V, TWO, 1>(job, panel.start, rows.clone()),
                }
            }
        }
    }
}

/// One panel, which starts with register `first`, for some rows: a stretch of the depth after the other.
#[inline(always)]
unsafe fn product_panel<V: Vector, const ROWS: usize, const COUNT: usize>(
    job: &Product,
    first: usize,
    rows: Range<usize>,
) {
    let stretches = job.depth.div_ceil(DEPTH).max(1);
    for stretch in 0..stretches {
        let depth = stretch * job.depth / stretches..(stretch + 1) * job.depth / stretches;
        for row in rows.clone().step_by(ROWS) {
            // SAFETY: the caller vouches for the job: `depth` numbers in each row of the input, whole panels of weights
            // and bias, and `columns` numbers in each row of the output.
            unsafe {
                let input = job.input.add(row * job.input_stride + depth.start);
                let output = job.output.add(row * job.output_stride + first * V::LANES);
                let mut tile = Tile::<V, ROWS, COUNT>::new(output, job.output_stride);
                (tile.rows, tile.columns) = (ROWS.min(rows.end - row), job.columns - first * V::LANES);
                let weights = job.weights.add(first * V::LANES * job.depth + depth.start * COUNT * V::LANES);
                let last = tile.rows - 1;
                let mut tile = match stretch == 0 && !job.accumulate {
                    true => tile.start(job.bias.add(first * V::LANES)),
                    false => tile.resume(),
                };
                if first == 0 {
                    // The first panel meets rows that are still far away; the others find them in the second cache.
                    for r in ROWS..2 * ROWS {
                        for k in (0..depth.len()).step_by(LINE) {
                            V::prefetch(input.wrapping_add(r * job.input_stride + k));
                        }
                    }
                }
                if job.accumulate && stretch == 0 {
                    // What the next panel adds to, or the first one for the next pixels.
                    let next = (first + COUNT) * V::LANES;
                    let ahead = match next < job.columns {
                        true => COUNT * V::LANES,
                        false => PIXELS * job.output_stride - first * V::LANES,
                    };
                    for r in 0..ROWS {
                        for column in (0..REGISTERS * V::LANES).step_by(LINE) {
                            V::prefetch(output.wrapping_add(r * job.output_stride + ahead + column));
                        }
                    }
                }
                let input = std::array::from_fn(|r| input.add(r.min(last) * job.input_stride));
                tile.accumulate(input, depth.len(), weights);
                tile.finish((stretch + 1 == stretches).then_some(job.floor));
            }
        }
    }
}

/// The direct convolution for some pixels of the picture.
#[inline(always)]
unsafe fn direct_part<V: Vector, const THREE: usize, const TWO: usize>(job: &Direct, pixels: Range<usize>) {
    for panel in panels(job.product.columns, V::LANES) {
        // SAFETY: the caller vouches for the job and the instruction set.
        unsafe {
            match panel.len() {
                3 => direct_panel::<V, THREE, 3>(job, panel.start, pixels.clone()),
                2 => direct_panel::<V, TWO, 2>(job, panel.start, pixels.clone()),
                _ => direct_panel::<V, TWO, 1>(job, panel.start, pixels.clone()),
            }
        }
    }
}

#[inline(always)]
unsafe fn direct_panel<V: Vector, const ROWS: usize, const COUNT: usize>(
    job: &Direct,
    first: usize,
    pixels: Range<usize>,
) {
    let Direct { product, height, width, zeros } = job;
    for pixel in pixels.clone().step_by(ROWS) {
        // SAFETY: the caller vouches for the job: `height * width` pixels of `depth` numbers, whole panels of weights and
        // bias, and `columns` numbers for each pixel of the output.
        unsafe {
            let output = product.output.add(pixel * product.output_stride + first * V::LANES);
            let mut tile = Tile::<V, ROWS, COUNT>::new(output, product.output_stride);
            (tile.rows, tile.columns) = (ROWS.min(pixels.end - pixel), product.columns - first * V::LANES);
            let last = tile.rows - 1;
            let mut tile = tile.start(product.bias.add(first * V::LANES));
            let mut weights = product.weights.add(first * V::LANES * product.depth * 9);
            for tap in 0..9 {
                let input = std::array::from_fn(|r| {
                    let pixel = pixel + r.min(last);
                    let (y, x) = (pixel / width + tap / 3, pixel % width + tap % 3);
                    match (1..=*height).contains(&y) && (1..=*width).contains(&x) {
                        true => product.input.add(((y - 1) * width + x - 1) * product.input_stride),
                        false => *zeros,
                    }
                });
                tile.accumulate(input, product.depth, weights);
                weights = weights.add(product.depth * COUNT * V::LANES);
            }
            tile.finish(Some(product.floor));
        }
    }
}

/// Results that stay in registers, and where they go.
pub(super) struct Tile<V, const ROWS: usize, const COUNT: usize> {
    pub output: *mut f32,
    pub stride: usize,
    /// Rows and columns that exist; what lies beyond is not written.
    pub rows: usize,
    pub columns: usize,
    pub sums: [[V; COUNT]; ROWS],
}

// SAFETY of all functions: the caller vouches for the instruction set, for `rows` rows of `columns` numbers in the
// output, and for the other pointers as each function says.
impl<V: Vector, const ROWS: usize, const COUNT: usize> Tile<V, ROWS, COUNT> {
    /// A whole tile of zeros.
    #[inline(always)]
    pub(super) unsafe fn new(output: *mut f32, stride: usize) -> Self {
        // SAFETY: see above.
        let sums = [[unsafe { V::splat(0.0) }; COUNT]; ROWS];
        Self { output, stride, rows: ROWS, columns: COUNT * V::LANES, sums }
    }

    /// Starts with the bias, `COUNT` registers of it.
    #[inline(always)]
    unsafe fn start(mut self, bias: *const f32) -> Self {
        for i in 0..COUNT {
            // SAFETY: see above.
            let bias = unsafe { V::load(bias.add(i * V::LANES)) };
            for r in 0..ROWS {
                self.sums[r][i] = bias;
            }
        }
        self
    }

    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.rows >= ROWS && self.columns >= COUNT * V::LANES
    }

    /// Starts with what is in the output.
    #[inline(always)]
    pub(super) unsafe fn resume(mut self) -> Self {
        // SAFETY: see above.
        unsafe {
            if self.is_whole() {
                for r in 0..ROWS {
                    for i in 0..COUNT {
                        self.sums[r][i] = V::load(self.output.add(r * self.stride + i * V::LANES));
                    }
                }
                return self;
            }
            for r in 0..ROWS.min(self.rows) {
                let mut lanes = [0.0; REGISTERS * 16];
                let count = self.columns.min(COUNT * V::LANES);
                std::ptr::copy_nonoverlapping(self.output.add(r * self.stride), lanes.as_mut_ptr(), count);
                for i in 0..COUNT {
                    self.sums[r][i] = V::load(lanes.as_ptr().add(i * V::LANES));
                }
            }
        }
        self
    }

    /// Adds the products of `depth` numbers of each row with the rows of a panel.
    #[inline(always)]
    pub(super) unsafe fn accumulate(
        &mut self,
        rows: [*const f32; ROWS],
        depth: usize,
        mut weights: *const f32,
    ) {
        // SAFETY: see above; each row has `depth` numbers, the panel `depth` rows.
        unsafe {
            for k in 0..depth {
                let mut columns = [V::splat(0.0); COUNT];
                for i in 0..COUNT {
                    columns[i] = V::load(weights.add(i * V::LANES));
                }
                for r in 0..ROWS {
                    let value = V::splat(*rows[r].add(k));
                    for i in 0..COUNT {
                        self.sums[r][i] = self.sums[r][i].mul_add(value, columns[i]);
                    }
                }
                weights = weights.add(COUNT * V::LANES);
            }
        }
    }

    /// Adds the products of `count` rows of a panel with the numbers at `rows` of as many vectors, `stride` apart.
    #[inline(always)]
    pub(super) unsafe fn accumulate_transposed(
        &mut self,
        mut values: *const f32,
        stride: usize,
        rows: [usize; ROWS],
        count: usize,
        mut panel: *const f32,
    ) {
        // SAFETY: see above; each vector has the numbers at `rows`, the panel `count` rows.
        unsafe {
            for _ in 0..count {
                let mut columns = [V::splat(0.0); COUNT];
                for i in 0..COUNT {
                    columns[i] = V::load(panel.add(i * V::LANES));
                }
                for r in 0..ROWS {
                    let value = V::splat(*values.add(rows[r]));
                    for i in 0..COUNT {
                        self.sums[r][i] = self.sums[r][i].mul_add(value, columns[i]);
                    }
                }
                panel = panel.add(COUNT * V::LANES);
                values = values.add(stride);
            }
        }
    }

    /// Stores the results, raised to the floor if there is one.
    #[inline(always)]
    pub(super) unsafe fn finish(mut self, floor: Option<f32>) {
        // SAFETY: see above.
        unsafe {
            if let Some(floor) = floor.filter(|&floor| floor > f32::NEG_INFINITY) {
                for r in 0..ROWS {
                    for i in 0..COUNT {
                        self.sums[r][i] = self.sums[r][i].at_least(V::splat(floor));
                    }
                }
            }
            if self.is_whole() {
                for r in 0..ROWS {
                    for i in 0..COUNT {
                        self.sums[r][i].store(self.output.add(r * self.stride + i * V::LANES));
                    }
                }
                return;
            }
            for r in 0..ROWS.min(self.rows) {
                let mut lanes = [0.0; REGISTERS * 16];
                for i in 0..COUNT {
                    self.sums[r][i].store(lanes.as_mut_ptr().add(i * V::LANES));
                }
                let count = self.columns.min(COUNT * V::LANES);
                std::ptr::copy_nonoverlapping(lanes.as_ptr(), self.output.add(r * self.stride), count);
            }
        }
    }
}
