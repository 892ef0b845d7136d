//! Statistics of norms, and dropout.
#![allow(clippy::needless_range_loop, reason = "loops over several slices of one length")]

use comer::internal::config::NORM_EPSILON;

/// The statistics of a channel over a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    pub mean: f32,
    /// Biased, as the normalisation uses it.
    pub variance: f32,
}

impl Statistics {
    #[inline(always)]
    pub fn of(values: &[f32]) -> Self {
        let count = values.len() as f64;
        let mean = (total(values, |x| x) / count) as f32;
        let variance = total(values, |x| (x - mean) * (x - mean)) / count;
        Self { mean, variance: variance as f32 }
    }

    #[inline(always)]
    pub fn inverse_deviation(&self) -> f32 {
        (f64::from(self.variance) + NORM_EPSILON).sqrt().recip() as f32
    }
}

/// The sum over a row: in f32 within short chunks, in f64 over the chunks.
#[inline(always)]
pub(super) fn total(values: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let mut sum = 0.0;
    for part in values.chunks(2048) {
        let mut lanes = [0f32; 32];
        let chunks = part.chunks_exact(32);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += term(x);
            }
        }
        sum += lanes.iter().map(|&x| f64::from(x)).sum::<f64>();
        sum += rest.iter().map(|&x| f64::from(term(x))).sum::<f64>();
    }
    sum
}

/// Dropout as a function of the seed and the index, so that no mask needs to be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropout {
    seed: u32,
    threshold: u32,
    /// The factor of values that are kept: 1 / (1 - rate).
    pub scale: f32,
}

impl Dropout {
    /// Drops a share `rate` of the values; none for a rate of 0.
    pub fn new(rate: f64, seed: u32) -> Self {
        let threshold = (rate * f64::from(u32::MAX)) as u32;
        Self { seed: mix(seed), threshold, scale: (1.0 - rate).recip() as f32 }
    }

    /// The factor of the value at `index`: 0 or 1 / (1 - rate).
    #[inline(always)]
    pub fn factor(&self, index: usize) -> f32 {
        if self.bits(index) >= self.threshold { self.scale } else { 0.0 }
    }

    /// Multiplies the values of two rows, or of the last one, by their factors. The values at the same place share a random number, of
    /// which each has half of the bits: half the work of [`Self::factor`].
    #[inline(always)]
    pub fn apply_to_rows(&self, pair: usize, upper: &mut [f32], lower: Option<&mut [f32]>) {
        let (first, threshold) = (pair * upper.len(), self.threshold >> 16);
        let factor = |bits: u32| if bits >= threshold { self.scale } else { 0.0 };
        if let Some(lower) = lower {
            let lower = &mut lower[..upper.len()];
            for c in 0..upper.len() {
                let bits = self.bits(first + c);
                upper[c] *= factor(bits & 0xffff);
                lower[c] *= factor(bits >> 16);
            }
        } else {
            for c in 0..upper.len() {
                upper[c] *= factor(self.bits(first + c) & 0xffff);
            }
        }
    }

    #[inline(always)]
    fn bits(&self, index: usize) -> u32 {
        mix((index as u32).wrapping_mul(0x9e37_79b9) ^ self.seed)
    }
}

#[inline(always)]
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_share_and_values_that_share_a_random_number_are_independent() {
        let (rows, channels) = (4001, 25);
        let dropout = Dropout::new(0.2, 7);
        let mut values = vec![1.0; rows * channels];
        for (pair, values) in values.chunks_mut(2 * channels).enumerate() {
            let (upper, lower) = values.split_at_mut(channels);
            dropout.apply_to_rows(pair, upper, Some(lower).filter(|lower| !lower.is_empty()));
        }
        assert!(values.iter().all(|&x| x == 0.0 || x == 1.25));
        let share = |kept: &dyn Fn(&[f32]) -> bool| {
            values.chunks_exact(2 * channels).filter(|pair| kept(pair)).count() as f64 / (rows / 2) as f64
        };
        // Four standard deviations are 0.036 and 0.043.
        for c in 0..channels {
            for place in [c, channels + c] {
                assert!((share(&|pair| pair[place] > 0.0) - 0.8).abs() < 0.036, "{place}");
            }
            for other in [channels + c, (c + 1) % channels] {
                let both = share(&|pair| pair[c] > 0.0 && pair[other] > 0.0);
                assert!((both - 0.64).abs() < 0.043, "{c} and {other}: {both}");
            }
        }
    }
}
