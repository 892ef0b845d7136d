//! Batch norm, ReLU and dropout in one pass over a channel's row, forward and backward.

use comer::internal::config::NORM_EPSILON;

/// Numbers that are summed side by side.
const LANES: usize = 16;

/// A channel's statistics over a batch.
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

/// The sum over a row, in f32 over short stretches and in f64 over those.
#[inline(always)]
pub(super) fn total(values: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let mut sum = 0.0;
    for stretch in values.chunks(2048) {
        let mut lanes = [0f32; 32];
        let chunks = stretch.chunks_exact(32);
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

/// Which numbers of a row are dropped: a function of the seed and the place, so that nothing needs to be kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drop {
    seed: u32,
    threshold: u32,
    /// What kept numbers are multiplied by.
    pub scale: f32,
}

impl Drop {
    /// Drops a share `rate` of the numbers; none for a rate of 0.
    pub fn new(rate: f64, seed: u32) -> Self {
        let threshold = (rate * f64::from(u32::MAX)) as u32;
        Self { seed: mix(seed), threshold, scale: (1.0 - rate).recip() as f32 }
    }

    /// What the number at `place` is multiplied by: 0, or 1 / (1 - rate).
    #[inline(always)]
    pub fn factor(&self, place: usize) -> f32 {
        let kept = mix((place as u32).wrapping_mul(0x9e37_79b9) ^ self.seed) >= self.threshold;
        if kept { self.scale } else { 0.0 }
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

/// A channel's normalisation: `y = weight * (x - mean) / deviation + bias`, then ReLU, then dropout.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    pub statistics: Statistics,
    pub weight: f32,
    pub bias: f32,
    pub relu: bool,
    /// With the place of the row's first number.
    pub drop: Option<(Drop, usize)>,
}

impl Channel {
    #[inline(always)]
    pub fn forward(&self, input: &[f32], output: &mut [f32]) {
        let scale = self.weight * self.statistics.inverse_deviation();
        let shift = self.bias - self.statistics.mean * scale;
        let least = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        match self.drop {
            None => {
                for (y, &x) in output.iter_mut().zip(input) {
                    *y = (x * scale + shift).max(least);
                }
            }
            Some((drop, first)) => {
                for (place, (y, &x)) in output.iter_mut().zip(input).enumerate() {
                    *y = (x * scale + shift).max(least) * drop.factor(first + place);
                }
            }
        }
    }

    /// Turns the gradient of the output into that of the input, in place; answers the gradients of weight and bias.
    #[inline(always)]
    pub fn backward(&self, input: &[f32], gradient: &mut [f32]) -> (f32, f32) {
        let Statistics { mean, .. } = self.statistics;
        let inverse = self.statistics.inverse_deviation();
        let (scale, count) = (self.weight * inverse, input.len() as f32);
        let (bias, weight) = match self.drop {
            None => self.deactivate(input, gradient, |_| 1.0),
            Some((drop, first)) => self.deactivate(
                input,
                gradient,
                #[inline(always)]
                |place| drop.factor(first + place),
            ),
        };
        let (bias, weight) = (bias as f32, weight as f32 * inverse);
        // d x = scale * (g - mean(g) - normal(x) * mean(g * normal(x)))
        let slope = weight * inverse / count;
        let offset = bias / count - mean * slope;
        for (g, &x) in gradient.iter_mut().zip(input) {
            *g = scale * (*g - offset - x * slope);
        }
        (weight, bias)
    }

    /// Turns the gradient of the output into that of the normalised numbers, in place; answers its sum, and that of its
    /// products with the numbers less their mean.
    #[inline(always)]
    fn deactivate(&self, input: &[f32], gradient: &mut [f32], factor: impl Fn(usize) -> f32) -> (f64, f64) {
        const STRETCH: usize = 2048;
        let mean = self.statistics.mean;
        let scale = self.weight * self.statistics.inverse_deviation();
        let shift = self.bias - mean * scale;
        let least = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        let one = |g: f32, x: f32, place: usize| {
            let factor = factor(place);
            if x * scale + shift > least { g * factor } else { 0.0 }
        };
        let (mut bias, mut weight) = (0f64, 0f64);
        let mut first = 0;
        for (gradient, input) in gradient.chunks_mut(STRETCH).zip(input.chunks(STRETCH)) {
            let (mut plain, mut weighted) = ([0f32; LANES], [0f32; LANES]);
            let (gradient, gradient_rest) = gradient.as_chunks_mut::<LANES>();
            let (input, input_rest) = input.as_chunks::<LANES>();
            for (gradient, input) in gradient.iter_mut().zip(input) {
                for lane in 0..LANES {
                    let g = one(gradient[lane], input[lane], first + lane);
                    gradient[lane] = g;
                    plain[lane] += g;
                    weighted[lane] += g * (input[lane] - mean);
                }
                first += LANES;
            }
            for (place, (gradient, &x)) in gradient_rest.iter_mut().zip(input_rest).enumerate() {
                *gradient = one(*gradient, x, first + place);
                bias += f64::from(*gradient);
                weight += f64::from(*gradient * (x - mean));
            }
            bias += plain.iter().map(|&x| f64::from(x)).sum::<f64>();
            weight += weighted.iter().map(|&x| f64::from(x)).sum::<f64>();
        }
        (bias, weight)
    }
}
