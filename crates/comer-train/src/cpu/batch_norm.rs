//! Batch norm, ReLU and dropout over `[pixels][channels]`, forward and backward.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over several slices of one length; iterators over all of them hide that"
)]

use rayon::prelude::*;

use super::norm::{Dropout, Statistics};
use super::simd::vectorised;

/// Rows per partial sum: fixed, so that results do not depend on the number of threads.
const ROWS: usize = 128;

/// Calls a function of some channels from a first one on for all channels: for 48 at once, enough sums to keep the processor busy, for
/// 24, which a dense layer has, for 8, and for each.
macro_rules! for_lanes {
    ($channels:expr, |$first:ident| $($path:ident).+::<LANES>($($argument:expr),*)) => {{
        let mut $first = 0;
        while $first + 48 <= $channels {
            $($path).+::<48>($($argument),*);
            $first += 48;
        }
        while $first + 24 <= $channels {
            $($path).+::<24>($($argument),*);
            $first += 24;
        }
        while $first + 8 <= $channels {
            $($path).+::<8>($($argument),*);
            $first += 8;
        }
        while $first < $channels {
            $($path).+::<1>($($argument),*);
            $first += 1;
        }
    }};
}

/// `y = weight * (x - mean) / deviation + bias` for each channel, then ReLU, then dropout.
#[derive(Clone, Copy)]
pub(super) struct BatchNorm<'a> {
    pub weight: &'a [f32],
    pub bias: &'a [f32],
    pub relu: bool,
    pub dropout: Option<Dropout>,
}

/// The statistics of each channel of `[pixels][channels]`.
pub(super) fn statistics(values: &[f32], channels: usize) -> Vec<Statistics> {
    let partial = |rows: &[f32]| {
        let (mut mean, mut squares) = (vec![0f32; channels], vec![0f32; channels]);
        let count = rows.len() / channels;
        vectorised(
            #[inline(always)]
            || {
                for_lanes!(channels, |c| lane_statistics::<LANES>(rows, c, &mut mean, &mut squares));
            },
        );
        (count, mean, squares)
    };
    let partials: Vec<_> = values.par_chunks(ROWS * channels).map(partial).collect();
    let total = (values.len() / channels) as f64;
    let mut result = Vec::with_capacity(channels);
    for c in 0..channels {
        let part = |(count, mean, _): &(usize, Vec<f32>, _)| *count as f64 * f64::from(mean[c]);
        let mean = partials.iter().map(part).sum::<f64>() / total;
        // The sum of squares around the total mean is that around the mean of the part plus count * (difference of means)^2.
        let part = |(count, own, squares): &(usize, Vec<f32>, Vec<f32>)| {
            f64::from(squares[c]) + *count as f64 * (f64::from(own[c]) - mean).powi(2)
        };
        let variance = partials.iter().map(part).sum::<f64>() / total;
        result.push(Statistics { mean: mean as f32, variance: variance as f32 });
    }
    result
}

/// The mean of some channels from `first` on, and the sum of the squares around it.
#[inline(always)]
fn lane_statistics<const LANES: usize>(rows: &[f32], first: usize, mean: &mut [f32], squares: &mut [f32]) {
    let channels = mean.len();
    let count = (rows.len() / channels) as f32;
    let mut sums = [0f32; LANES];
    for row in rows.chunks_exact(channels) {
        let x: &[f32; LANES] = lanes(row, first);
        for lane in 0..LANES {
            sums[lane] += x[lane];
        }
    }
    let means = sums.map(|sum| sum / count);
    let mut sums = [0f32; LANES];
    for row in rows.chunks_exact(channels) {
        let x: &[f32; LANES] = lanes(row, first);
        for lane in 0..LANES {
            sums[lane] += (x[lane] - means[lane]) * (x[lane] - means[lane]);
        }
    }
    mean[first..][..LANES].copy_from_slice(&means);
    squares[first..][..LANES].copy_from_slice(&sums);
}

/// The values of a row from `first` on.
#[inline(always)]
fn lanes<const LANES: usize>(row: &[f32], first: usize) -> &[f32; LANES] {
    row[first..].first_chunk().expect("a row of all channels")
}

impl BatchNorm<'_> {
    fn channels(&self) -> usize {
        self.weight.len()
    }

    /// Normalises contiguous rows into rows that lie `stride` apart.
    pub fn forward(&self, statistics: &[Statistics], values: &[f32], output: &mut [f32], stride: usize) {
        let channels = self.channels();
        let scale: Vec<f32> =
            statistics.iter().zip(self.weight).map(|(s, weight)| weight * s.inverse_deviation()).collect();
        let shift = |((s, scale), bias): ((&Statistics, &f32), &f32)| bias - s.mean * scale;
        let shift: Vec<f32> = statistics.iter().zip(&scale).zip(self.bias).map(shift).collect();
        let least = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        let parts = output.par_chunks_mut(ROWS * stride).zip(values.par_chunks(ROWS * channels));
        parts.enumerate().for_each(|(part, (output, values))| {
            vectorised(
                #[inline(always)]
                || {
                    let (scale, shift) = (&scale[..channels], &shift[..channels]);
                    let pairs = output.chunks_mut(2 * stride).zip(values.chunks(2 * channels));
                    for (pair, (outputs, values)) in pairs.enumerate() {
                        for (output, values) in outputs.chunks_mut(stride).zip(values.chunks_exact(channels))
                        {
                            let output = &mut output[..channels];
                            for c in 0..channels {
                                output[c] = (values[c] * scale[c] + shift[c]).max(least);
                            }
                        }
                        if let Some(dropout) = self.dropout {
                            let mut rows = outputs.chunks_mut(stride).map(|row| &mut row[..channels]);
                            let pair = part * ROWS / 2 + pair;
                            dropout.apply_to_rows(pair, rows.next().unwrap_or_default(), rows.next());
                        }
                    }
                },
            );
        });
    }

    /// Turns the gradient of the output into that of the input, in place; returns the gradients of weight and bias.
    ///
    /// `values` and `output` (with its stride) are those of [`Self::forward`].
    pub fn backward(
        &self,
        statistics: &[Statistics],
        values: &[f32],
        output: (&[f32], usize),
        gradient: &mut [f32],
    ) -> (Vec<f32>, Vec<f32>) {
        let channels = self.channels();
        let sums = self.activation_backward(statistics, values, output, gradient);
        let count = (values.len() / channels) as f32;
        let (mut weight, mut bias) = (Vec::with_capacity(channels), Vec::with_capacity(channels));
        let mut lines = [vec![0.0; channels], vec![0.0; channels], vec![0.0; channels]];
        // d x = scale * (g - mean(g) - normal(x) * mean(g * normal(x))), with normal(x) = (x - mean) * inverse.
        for (c, s) in statistics.iter().enumerate() {
            let inverse = s.inverse_deviation();
            let part = |first: usize| sums.iter().map(|sums| f64::from(sums[first + c])).sum::<f64>() as f32;
            bias.push(part(0));
            weight.push(part(channels) * inverse);
            let slope = weight[c] * inverse / count;
            lines[0][c] = self.weight[c] * inverse;
            lines[1][c] = bias[c] / count - s.mean * slope;
            lines[2][c] = slope;
        }
        let parts = gradient.par_chunks_mut(ROWS * channels).zip(values.par_chunks(ROWS * channels));
        parts.for_each(|(gradient, values)| {
            vectorised(
                #[inline(always)]
                || {
                    let [scale, offset, slope] = [0, 1, 2].map(|line| &lines[line][..channels]);
                    for (gradient, values) in
                        gradient.chunks_exact_mut(channels).zip(values.chunks_exact(channels))
                    {
                        for c in 0..channels {
                            gradient[c] = scale[c] * (gradient[c] - offset[c] - values[c] * slope[c]);
                        }
                    }
                },
            );
        });
        (weight, bias)
    }

    /// Turns the gradient of the output into that of the normalised values, in place. Returns for parts of the rows and each
    /// channel the sum of the gradient and the sum of its product with the values minus their mean.
    fn activation_backward(
        &self,
        statistics: &[Statistics],
        values: &[f32],
        (output, stride): (&[f32], usize),
        gradient: &mut [f32],
    ) -> Vec<Vec<f32>> {
        let channels = self.channels();
        let mean: Vec<f32> = statistics.iter().map(|s| s.mean).collect();
        // Outputs above zero passed both ReLU and dropout.
        let (least, factor) = match self.relu {
            true => (0.0, self.dropout.map_or(1.0, |dropout| dropout.scale)),
            false => (f32::NEG_INFINITY, 1.0),
        };
        let parts = gradient.par_chunks_mut(ROWS * channels).zip(values.par_chunks(ROWS * channels));
        let parts = parts.zip(output.par_chunks(ROWS * stride));
        let part = |((gradient, values), output): ((&mut [f32], &[f32]), &[f32])| {
            let mut sums = vec![0.0; 2 * channels];
            vectorised(
                #[inline(always)]
                || {
                    let mut rows = Activation { channels, stride, least, factor, gradient, values, output };
                    let (plain, weighted) = sums.split_at_mut(channels);
                    for_lanes!(channels, |c| rows.backward::<LANES>(c, &mean, plain, weighted));
                },
            );
            sums
        };
        parts.map(part).collect()
    }
}

/// ReLU and dropout of some rows.
struct Activation<'a> {
    channels: usize,
    /// Distance between rows of the output.
    stride: usize,
    /// The gradient of outputs above this is multiplied by `factor`; that of others is 0.
    least: f32,
    factor: f32,
    gradient: &'a mut [f32],
    values: &'a [f32],
    output: &'a [f32],
}

impl Activation<'_> {
    /// The backward pass of some channels from `first` on.
    #[inline(always)]
    fn backward<const LANES: usize>(
        &mut self,
        first: usize,
        mean: &[f32],
        plain: &mut [f32],
        weighted: &mut [f32],
    ) {
        let mean: &[f32; LANES] = lanes(mean, first);
        let (mut sums, mut products) = ([0f32; LANES], [0f32; LANES]);
        let rows = self.gradient.chunks_exact_mut(self.channels);
        let rows = rows.zip(self.values.chunks_exact(self.channels)).zip(self.output.chunks(self.stride));
        for ((gradient, values), output) in rows {
            let gradient: &mut [f32; LANES] =
                gradient[first..].first_chunk_mut().expect("a row of all channels");
            let (values, output): (&[f32; LANES], &[f32; LANES]) =
                (lanes(values, first), lanes(output, first));
            for lane in 0..LANES {
                let kept = if output[lane] > self.least { self.factor } else { 0.0 };
                let g = gradient[lane] * kept;
                gradient[lane] = g;
                sums[lane] += g;
                products[lane] += g * (values[lane] - mean[lane]);
            }
        }
        plain[first..][..LANES].copy_from_slice(&sums);
        weighted[first..][..LANES].copy_from_slice(&products);
    }
}
