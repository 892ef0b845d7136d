//! Products with narrow matrices, such as the 24 channels that a dense layer adds: two rows share each register of AVX-512, of
//! which a quarter would be empty otherwise.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use super::pixels::REGISTERS;
use super::vector::Vector;

/// The halves of registers of a narrow matrix, of which a whole register would be left half empty: two rows share each register.
/// None for other matrices, and where registers cannot be shared.
pub(super) fn halves(columns: usize, lanes: usize, half: usize) -> Option<usize> {
    let count = columns.div_ceil(half);
    (half < lanes && count <= REGISTERS && !count.is_multiple_of(2)).then_some(count)
}

/// Results of pairs of rows that share registers: `COUNT` times `V::HALF` columns of each row.
pub(super) struct PairTile<V, const PAIRS: usize, const COUNT: usize> {
    sums: [[V; COUNT]; PAIRS],
}

// SAFETY of all functions: the caller vouches for the instruction set, and for the numbers of every row behind a pointer.
impl<V: Vector, const PAIRS: usize, const COUNT: usize> PairTile<V, PAIRS, COUNT> {
    #[inline(always)]
    pub(super) unsafe fn zeros() -> Self {
        // SAFETY: see above.
        Self { sums: [[unsafe { V::splat(0.0) }; COUNT]; PAIRS] }
    }

    /// What was stored, rows of it one after the other.
    #[inline(always)]
    pub(super) unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see above.
        unsafe {
            let mut tile = Self::zeros();
            for pair in 0..PAIRS {
                for i in 0..COUNT {
                    let first = from.add((2 * pair * COUNT + i) * V::HALF);
                    tile.sums[pair][i] = V::load_two(first, first.add(COUNT * V::HALF));
                }
            }
            tile
        }
    }

    /// Adds the products of `depth` numbers of each row, rows of them one after the other, with the rows of a panel.
    #[inline(always)]
    pub(super) unsafe fn accumulate(&mut self, rows: *const f32, depth: usize, mut weights: *const f32) {
        // SAFETY: see above.
        unsafe {
            let rows: [_; PAIRS] = std::array::from_fn(|pair| rows.add(2 * pair * depth));
            for k in 0..depth {
                let mut columns = [V::splat(0.0); COUNT];
                for i in 0..COUNT {
                    columns[i] = V::load_twice(weights.add(i * V::HALF));
                }
                for pair in 0..PAIRS {
                    let value = V::splat_two(*rows[pair].add(k), *rows[pair].add(depth + k));
                    for i in 0..COUNT {
                        self.sums[pair][i] = self.sums[pair][i].mul_add(value, columns[i]);
                    }
                }
                weights = weights.add(COUNT * V::HALF);
            }
        }
    }

    /// Stores the results, rows of them one after the other.
    #[inline(always)]
    pub(super) unsafe fn store(self, to: *mut f32) {
        for pair in 0..PAIRS {
            for i in 0..COUNT {
                // SAFETY: see above.
                unsafe {
                    let first = to.add((2 * pair * COUNT + i) * V::HALF);
                    self.sums[pair][i].store_two(first, first.add(COUNT * V::HALF));
                }
            }
        }
    }
}
