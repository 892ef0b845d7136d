//! Where rows are not zero, as bits: found once, and read by every product that skips zeros.
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops are unrolled for certain, iterators only mostly"
)]

use std::ops::Range;

use super::Kernels;
use super::conv::extent;
use super::sparse::{BITS, Inputs};
use super::vector::Vector;

/// Rows that are marked together, at least.
const ROWS: usize = 96;

/// A bit for each number of some rows, set where it is not zero.
#[derive(Clone, Debug, Default)]
pub struct NonzeroMask {
    rows: usize,
    channels: usize,
    /// `words()` for each row, and one more.
    bits: Vec<u64>,
}

/// Rows that are mostly zeros, `stride` apart, and where they are not.
#[derive(Clone, Copy)]
pub struct SparseRows<'a> {
    /// The rows.
    pub values: &'a [f32],
    /// From one row to the next.
    pub stride: usize,
    /// Marks of rows that these are a part of.
    pub mask: &'a NonzeroMask,
    /// The channel in the mask that the first number of each row is.
    pub first: usize,
}

/// Sets the bits of some channels.
pub(super) struct Marking {
    values: *const f32,
    stride: usize,
    channels: Range<usize>,
    bits: *mut u64,
    words: usize,
}

// SAFETY: the pointers of a job stay valid while it runs, its values are only read, and whoever runs parts of it on
// several threads gives each part rows of its own.
unsafe impl Sync for Marking {}

impl NonzeroMask {
    /// A mask of rows of zeros.
    pub fn new(rows: usize, channels: usize) -> Self {
        let mut mask = Self::default();
        mask.clear(rows, channels);
        mask
    }

    /// Becomes a mask of rows of zeros.
    pub fn clear(&mut self, rows: usize, channels: usize) {
        (self.rows, self.channels) = (rows, channels);
        self.bits.clear();
        self.bits.resize(rows * self.words() + 1, 0);
    }

    /// Numbers that are not zero.
    pub fn count(&self) -> usize {
        self.bits.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    fn words(&self) -> usize {
        self.channels.div_ceil(BITS).max(1)
    }
}

impl SparseRows<'_> {
    /// Pointers to some of the rows' numbers and to their bits.
    ///
    /// # Panics
    /// If there are not as many rows, or numbers in each.
    pub(super) fn checked(&self, rows: usize, depth: usize) -> Inputs {
        let Self { values, stride, mask, first } = *self;
        assert!(values.len() >= extent(rows, stride, depth), "input too short");
        assert!(mask.rows >= rows && mask.channels >= first + depth, "mask too small");
        Inputs {
            values: values.as_ptr(),
            stride,
            depth,
            bits: mask.bits.as_ptr(),
            words: mask.words(),
            first,
        }
    }
}

impl Kernels {
    /// Marks what is not zero in all rows of some channels, of which none is marked yet.
    ///
    /// # Panics
    /// If the slice is too short for the rows of the mask, or the mask has no such channels.
    pub fn mark_nonzero(
        &self,
        mask: &mut NonzeroMask,
        channels: Range<usize>,
        (values, stride): (&[f32], usize),
    ) {
        assert!(values.len() >= extent(mask.rows, stride, channels.len()), "values too short");
        assert!(channels.start <= channels.end && channels.end <= mask.channels, "mask too small");
        let words = mask.words();
        let (values, bits) = (values.as_ptr(), mask.bits.as_mut_ptr());
        let job = Marking { values, stride, channels, bits, words };
        self.split_rows(mask.rows, ROWS, |rows| {
            // SAFETY: the lengths were checked above, `pixels` exist only where their instruction set does, and no two
            // parts share a row.
            unsafe { (self.pixels.marking)(&job, rows) }
        });
    }
}

/// The bits of some rows.
#[inline(always)]
pub(super) unsafe fn marking_part<V: Vector>(job: &Marking, rows: Range<usize>) {
    let (first, count) = (job.channels.start, job.channels.len());
    for row in rows {
        for place in (0..count).step_by(BITS) {
            // SAFETY: the caller vouches for the job and the instruction set: the row has these numbers and bits.
            unsafe {
                let from = job.values.add(row * job.stride + place);
                let found = nonzero::<V>(from, BITS.min(count - place));
                let (word, shift) = ((first + place) / BITS, (first + place) % BITS);
                let bits = job.bits.add(row * job.words + word);
                *bits |= found << shift;
                // Bits that are set past the word's end belong to the row's next word, which then exists.
                let rest = found >> 1 >> (BITS - 1 - shift);
                if rest != 0 {
                    *bits.add(1) |= rest;
                }
            }
        }
    }
}

/// Bits that are set where up to 64 numbers are not zero.
#[inline(always)]
unsafe fn nonzero<V: Vector>(from: *const f32, count: usize) -> u64 {
    let (mut bits, mut place) = (0, 0);
    // SAFETY: the caller vouches for the instruction set and `count` numbers.
    unsafe {
        while place + V::LANES <= count {
            bits |= u64::from(V::load(from.add(place)).nonzero()) << place;
            place += V::LANES;
        }
        while place + V::Rest::LANES <= count && V::Rest::LANES > 1 {
            bits |= u64::from(V::Rest::load(from.add(place)).nonzero()) << place;
            place += V::Rest::LANES;
        }
        while place < count {
            bits |= u64::from(f32::load(from.add(place)).nonzero()) << place;
            place += 1;
        }
    }
    bits
}
