//! The product that nearly all of the decoder's work is: a few rows times a matrix packed once.
//!
//! A matrix lies in panels of 32 columns, each `[depth, 32]`, so that a panel is read from front to back and stays in
//! the first cache while the rows pass over it. Convolutions are products too: their rows overlap, see [`Rows`].

#[cfg(any(test, target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
use super::Isa;
use super::block::{BLOCK, Block, Plain};
use super::{Activation, Kernels};
use crate::f16::{f16_to_f32, f32_to_f16};

/// Columns of a panel.
const WIDTH: usize = 2 * BLOCK;

/// A block that starts a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; BLOCK]);

/// The same in 16-bit numbers.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct HalfLine([u16; BLOCK]);

#[derive(Clone)]
enum Lines {
    Whole(Vec<Line>),
    Halves(Vec<HalfLine>),
}

/// A matrix `[depth, columns]` in panels, with a bias for each column.
#[derive(Clone)]
pub(crate) struct Panels {
    columns: usize,
    depth: usize,
    /// `[panels, depth, WIDTH]`
    lines: Lines,
    /// `[panels, WIDTH]`
    bias: Vec<Line>,
}

impl Panels {
    /// Packs the matrix whose number at `(column, depth)` is `value(column, depth)`, with no bias.
    pub(crate) fn pack(columns: usize, depth: usize, value: impl Fn(usize, usize) -> f32) -> Self {
        let panels = columns.div_ceil(WIDTH);
        let mut lines = vec![Line([0.0; BLOCK]); panels * depth * (WIDTH / BLOCK)];
        // In the order of the lines, each written once.
        for (at, line) in lines.iter_mut().enumerate() {
            let (row, block) = (at / (WIDTH / BLOCK), at % (WIDTH / BLOCK));
            let (panel, k) = (row / depth, row % depth);
            for (column, number) in (panel * WIDTH + block * BLOCK..columns).zip(&mut line.0) {
                *number = value(column, k);
            }
        }
        let bias = vec![Line([0.0; BLOCK]); panels * (WIDTH / BLOCK)];
        Self { columns, depth, lines: Lines::Whole(lines), bias }
    }

    /// Stores the matrix in half the memory, if the kernels can read it from there and no number changes: as many bytes less have
    /// to come from memory for every product.
    pub(crate) fn halved(mut self, kernels: Kernels) -> Self {
        if let Lines::Whole(lines) = &self.lines
            && kernels.widens_halves()
            && let Some(halves) = lines.iter().map(halve).collect()
        {
            self.lines = Lines::Halves(halves);
        }
        self
    }

    /// Adds `bias` to each column of every product.
    pub(crate) fn with_bias(mut self, bias: impl Fn(usize) -> f32) -> Self {
        for column in 0..self.columns {
            self.bias[column / BLOCK].0[column % BLOCK] = bias(column);
        }
        self
    }

    /// How many columns the product has.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }
}

/// The numbers as halves, if they are that exactly.
fn halve(line: &Line) -> Option<HalfLine> {
    let halves = line.0.map(f32_to_f16);
    (halves.map(f16_to_f32) == line.0).then_some(HalfLine(halves))
}

/// A number of a panel as it is stored.
trait Stored: Copy {
    unsafe fn load<B: Block>(from: *const Self) -> B;
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<B: Block>(from: *const f32) -> B {
        // SAFETY: the caller vouches for the instruction set and sixteen numbers.
        unsafe { B::load(from) }
    }
}

impl Stored for u16 {
    #[inline(always)]
    unsafe fn load<B: Block>(from: *const u16) -> B {
        // SAFETY: as above.
        unsafe { B::load_halves(from) }
    }
}

/// The left factor: row `r` at depth `offset index * run + i` is `values[r * stride + offsets[offset index] + i]`.
///
/// A plain matrix has one offset, 0, and a run of its whole width. For a convolution the rows are neighbouring cells
/// (stride 1), with an offset for each channel and kernel row, and a run along the kernel's width.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) count: usize,
    pub(crate) stride: usize,
    pub(crate) offsets: &'a [usize],
    pub(crate) run: usize,
}

impl<'a> Rows<'a> {
    /// `count` rows of a plain matrix, of `depth` numbers each, `stride` apart.
    pub(crate) fn plain(values: &'a [f32], count: usize, stride: usize, depth: usize) -> Self {
        Self { values, count, stride, offsets: &[0], run: depth }
    }
}

/// Writes `rows * matrix + bias` to `out`, one row of `matrix.columns()` numbers every `out_stride`.
pub(crate) fn product(
    kernels: Kernels,
    rows: Rows,
    matrix: &Panels,
    out: &mut [f32],
    out_stride: usize,
    activation: Activation,
) {
    if rows.count == 0 || matrix.columns == 0 {
        return;
    }
    let reach = rows.offsets.iter().max().map_or(0, |offset| offset + rows.run);
    assert_eq!(rows.offsets.len() * rows.run, matrix.depth, "the factors' depths differ");
    assert!((rows.count - 1) * rows.stride + reach <= rows.values.len(), "the rows end before the last one");
    assert!((rows.count - 1) * out_stride + matrix.columns <= out.len(), "no room for the product");
    assert!(matrix.columns <= out_stride || rows.count == 1, "the product's rows would overlap");
    let job = Job { rows, matrix, out_stride, positive: activation == Activation::Relu };
    let run = match (kernels.isa(), &matrix.lines) {
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Lines::Halves(_)) => avx512::<u16>,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx512, Lines::Whole(_)) => avx512::<f32>,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, Lines::Halves(_)) => avx2_halves,
        #[cfg(target_arch = "x86_64")]
        (Isa::Avx2, Lines::Whole(_)) => avx2,
        #[cfg(target_arch = "aarch64")]
        (Isa::Neon, _) => neon,
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        (Isa::Simd128, _) => all_tiles::<super::block::Simd128, f32, 2, 1>,
        _ => all_tiles::<Plain, f32, 2, 1>,
    };
    // SAFETY: kernels exist only for instruction sets that are there; the bounds were checked above.
    unsafe { run(&job, out.as_mut_ptr()) }
}

struct Job<'a> {
    rows: Rows<'a>,
    matrix: &'a Panels,
    out_stride: usize,
    positive: bool,
}

/// 12 rows x 2 blocks fill 24 of the 32 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<S: Stored>(job: &Job, out: *mut f32) {
    // SAFETY: the caller vouches for the instructions and the bounds.
    unsafe { all_tiles::<super::block::Avx512, S, 12, 2>(job, out) }
}

/// 6 rows x 1 block fill 12 of the 16 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(job: &Job, out: *mut f32) {
    // SAFETY: the caller vouches for the instructions and the bounds.
    unsafe { all_tiles::<super::block::Avx2, f32, 6, 1>(job, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2_halves(job: &Job, out: *mut f32) {
    // SAFETY: the caller vouches for the instructions and the bounds.
    unsafe { all_tiles::<super::block::Avx2, u16, 6, 1>(job, out) }
}

/// 6 rows x 1 block fill 24 of the 32 registers.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
unsafe fn neon(job: &Job, out: *mut f32) {
    // SAFETY: the caller vouches for the instructions and the bounds.
    unsafe { all_tiles::<super::block::Neon, f32, 6, 1>(job, out) }
}

/// Goes over the panels, and within a panel over tiles of at most `MOST` rows, as equal as can be.
#[inline(always)]
unsafe fn all_tiles<B: Block, S: Stored, const MOST: usize, const BLOCKS: usize>(job: &Job, out: *mut f32) {
    let (count, depth) = (job.rows.count, job.matrix.depth);
    let tiles = count.div_ceil(MOST);
    let panels: *const S = match &job.matrix.lines {
        Lines::Whole(lines) => lines.as_ptr().cast(),
        Lines::Halves(halves) => halves.as_ptr().cast(),
    };
    for column in (0..job.matrix.columns).step_by(BLOCKS * BLOCK) {
        let columns = (job.matrix.columns - column).min(BLOCKS * BLOCK);
        let is_last = column / WIDTH == (job.matrix.columns - 1) / WIDTH;
        for tile in 0..tiles {
            let (first, next) = (tile * count / tiles, (tile + 1) * count / tiles);
            // The weights do not fit the second cache, so that each panel is called for while the one before is worked
            // on: by one tile alone, or half by each of the first two.
            let (ahead, ahead_step) = match (is_last, tiles) {
                (true, _) => (0, 0),
                (false, 1) => (depth * WIDTH, WIDTH),
                (false, _) => (depth * WIDTH + tile.min(1) * depth * BLOCK, BLOCK),
            };
            // SAFETY: the panel and its bias are padded to whole panels; rows and output were checked by the caller.
            unsafe {
                let place = Place {
                    x: job.rows.values.as_ptr().add(first * job.rows.stride),
                    panel: panels.add(column / WIDTH * WIDTH * depth + column % WIDTH),
                    bias: job.matrix.bias.as_ptr().cast::<f32>().add(column),
                    out: out.add(first * job.out_stride + column),
                    columns,
                    ahead,
                    ahead_step,
                };
                if columns <= BLOCK {
                    by_rows::<B, S, MOST, 1>(next - first, job, place);
                } else {
                    by_rows::<B, S, MOST, BLOCKS>(next - first, job, place);
                }
            }
        }
    }
}

/// Where a tile reads and writes.
#[derive(Clone, Copy)]
struct Place<S> {
    x: *const f32,
    panel: *const S,
    bias: *const f32,
    out: *mut f32,
    columns: usize,
    /// From `panel` to what will be needed next, and how far that goes on in each step.
    ahead: usize,
    ahead_step: usize,
}

/// Picks the tile with the right number of rows, so that its loops unroll into registers.
#[inline(always)]
unsafe fn by_rows<B: Block, S: Stored, const MOST: usize, const BLOCKS: usize>(
    rows: usize,
    job: &Job,
    place: Place<S>,
) {
    macro_rules! pick {
        ($($rows:literal)*) => {
            match rows {
                // SAFETY: handed on from the caller.
                $($rows if $rows <= MOST => unsafe { tile::<B, S, $rows, BLOCKS>(job, place) },)*
                _ => unreachable!("tiles have at most {MOST} rows"),
            }
        };
    }
    pick!(1 2 3 4 5 6 7 8 9 10 11 12)
}

#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "counted loops unroll without link-time optimisation too")]
unsafe fn tile<B: Block, S: Stored, const ROWS: usize, const BLOCKS: usize>(job: &Job, place: Place<S>) {
    let stride = job.rows.stride;
    // SAFETY: `product` checked that every row ends within its slice and that the output has room; panels and biases
    // are padded to whole panels; a cut block goes through `lanes`.
    unsafe {
        let mut sums = [[B::filled(0.0); BLOCKS]; ROWS];
        for block in 0..BLOCKS {
            let bias = B::load(place.bias.add(block * BLOCK));
            for row in &mut sums {
                row[block] = bias;
            }
        }
        let mut panel = place.panel;
        let mut ahead = panel.wrapping_add(place.ahead);
        for &offset in job.rows.offsets {
            let mut x = place.x.add(offset);
            for _ in 0..job.rows.run {
                let mut columns = [B::filled(0.0); BLOCKS];
                for block in 0..BLOCKS {
                    columns[block] = S::load(panel.add(block * BLOCK));
                }
                for row in 0..ROWS {
                    let value = B::splat(*x.add(row * stride));
                    for block in 0..BLOCKS {
                        sums[row][block] = sums[row][block].add_product(value, columns[block]);
                    }
                }
                B::prefetch::<false>(ahead.cast());
                ahead = ahead.wrapping_add(place.ahead_step);
                x = x.add(1);
                // After the last step it points beyond the panel.
                panel = panel.wrapping_add(WIDTH);
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            for (block, sum) in sums.into_iter().enumerate() {
                let sum = if job.positive { sum.at_least(B::splat(0.0)) } else { sum };
                let out = place.out.add(row * job.out_stride + block * BLOCK);
                let left = place.columns - block * BLOCK;
                if left >= BLOCK {
                    sum.store(out);
                } else {
                    let mut lanes = [0.0; BLOCK];
                    sum.store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), out, left);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// The product as its definition reads.
    fn oracle(rows: Rows, matrix: &[f32], bias: &[f32], relu: bool) -> Vec<f32> {
        let columns = bias.len();
        let mut out = Vec::new();
        for row in 0..rows.count {
            for (column, &bias) in bias.iter().enumerate() {
                let mut sum = f64::from(bias);
                for (index, &offset) in rows.offsets.iter().enumerate() {
                    for i in 0..rows.run {
                        let x = rows.values[row * rows.stride + offset + i];
                        sum += f64::from(x) * f64::from(matrix[(index * rows.run + i) * columns + column]);
                    }
                }
                out.push(if relu { sum.max(0.0) } else { sum } as f32);
            }
        }
        out
    }

    #[test]
    fn every_instruction_set_multiplies_like_the_definition() {
        // rows, columns, offsets, run, stride
        let cases: [(usize, usize, &[usize], usize, usize); 9] = [
            (1, 1, &[0], 1, 1),
            (20, 113, &[0], 256, 256),
            (3, 8, &[0], 32, 40),
            (13, 32, &[0], 7, 9),
            (25, 33, &[0], 5, 5),
            (12, 48, &[0], 64, 64),
            (7, 17, &[0, 30, 60, 101], 5, 1),
            (29, 32, &[0, 33, 66, 99, 132], 5, 1),
            (2, 70, &[3], 10, 1),
        ];
        for kernels in Isa::available().filter_map(Kernels::with) {
            let isa = kernels.isa();
            for (case, &(count, columns, offsets, run, stride)) in cases.iter().enumerate() {
                let depth = offsets.len() * run;
                let values = numbers((count - 1) * stride + offsets.iter().max().unwrap() + run, case as u32);
                let (matrix, bias) = (numbers(depth * columns, 77), numbers(columns, 5));
                let rows = Rows { values: &values, count, stride, offsets, run };
                let panels = Panels::pack(columns, depth, |column, k| matrix[k * columns + column])
                    .with_bias(|column| bias[column]);
                for (activation, relu) in [(Activation::None, false), (Activation::Relu, true)] {
                    let expected = oracle(rows, &matrix, &bias, relu);
                    let out_stride = columns + 3;
                    let mut out = vec![9.0; count * out_stride];
                    product(kernels, rows, &panels, &mut out, out_stride, activation);
                    for row in 0..count {
                        let (found, beyond) = out[row * out_stride..][..out_stride].split_at(columns);
                        for (found, expected) in found.iter().zip(&expected[row * columns..]) {
                            assert!(
                                (found - expected).abs() < 1e-4,
                                "{isa:?} case {case}: {found} {expected}"
                            );
                        }
                        assert_eq!(beyond, [9.0; 3], "{isa:?} case {case} wrote beyond its columns");
                    }
                }
            }
        }
    }

    #[test]
    fn halves_are_read_like_the_numbers_that_they_are() {
        let (rows, columns, depth) = (7, 70, 33);
        let values = numbers(rows * depth, 3);
        let halves: Vec<f32> =
            numbers(columns * depth, 4).into_iter().map(|x| f16_to_f32(f32_to_f16(x))).collect();
        for kernels in Isa::available().filter_map(Kernels::with) {
            let whole = Panels::pack(columns, depth, |column, k| halves[column * depth + k]);
            let halved = whole.clone().halved(kernels);
            assert_eq!(matches!(halved.lines, Lines::Halves(_)), kernels.widens_halves());
            let run = |matrix: &Panels| {
                let mut out = vec![0.0; rows * columns];
                let rows = Rows::plain(&values, rows, depth, depth);
                product(kernels, rows, matrix, &mut out, columns, Activation::None);
                out
            };
            assert_eq!(run(&whole), run(&halved), "{:?}", kernels.isa());
            // 1/3 is no half.
            let third =
                Panels::pack(columns, depth, |column, k| if column + k == 50 { 1.0 / 3.0 } else { 0.5 });
            assert!(matches!(third.halved(kernels).lines, Lines::Whole(_)));
        }
    }
}
