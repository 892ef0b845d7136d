//! Max and mean pooling over 2 x 2 pixels, with partial windows at the border.
#![allow(
    clippy::needless_range_loop,
    reason = "loops over several slices of one length; iterators over all of them hide that"
)]

use rayon::prelude::*;

use super::buffer::Buffer;
use super::decoder_batch::split_lengths;
use super::grid::Grid;
use super::simd::vectorised;

/// One or two rows of a picture, which are pooled to one.
struct Strip {
    /// First pixel and rows of the picture.
    start: usize,
    height: usize,
    width: usize,
}

impl Strip {
    /// The pixels of window `x`, in reading order.
    #[inline(always)]
    fn window(&self, x: usize) -> impl Iterator<Item = usize> + use<> {
        let Self { height, width, .. } = *self;
        (0..height).flat_map(move |y| (2 * x..width.min(2 * x + 2)).map(move |x| y * width + x))
    }
}

fn strips(from: &Grid) -> Vec<Strip> {
    let mut strips = Vec::new();
    for region in from.pictures() {
        strips.extend((0..region.height).step_by(2).map(|y| Strip {
            start: region.start + y * region.width,
            height: (region.height - y).min(2),
            width: region.width,
        }));
    }
    strips
}

/// Pixels with `channels` values each.
#[derive(Clone, Copy)]
pub(super) struct Pixels<'a> {
    pub grid: &'a Grid,
    pub values: &'a [f32],
    pub channels: usize,
}

/// The maximum of each window, into pixels that lie `stride` apart.
pub(super) fn max_forward(input: Pixels, output: &mut [f32], stride: usize) {
    forward(input, output, stride, |most, x| if x > most { x } else { most }, |_| 1.0);
}

/// The mean of each window, over the pixels that exist, into pixels that lie `stride` apart.
pub(super) fn mean_forward(input: Pixels, output: &mut [f32], stride: usize) {
    forward(input, output, stride, |sum, x| sum + x, |count| 1.0 / count as f32);
}

fn forward(
    Pixels { grid, values, channels }: Pixels,
    output: &mut [f32],
    stride: usize,
    combine: impl Fn(f32, f32) -> f32 + Sync,
    share: impl Fn(usize) -> f32 + Sync,
) {
    let strips = strips(grid);
    let outputs = split_lengths(output, strips.iter().map(|strip| strip.width.div_ceil(2) * stride));
    strips.par_iter().zip(outputs).for_each(|(strip, output)| {
        vectorised(
            #[inline(always)]
            || {
                let pixels = &values[strip.start * channels..];
                for (x, output) in output.chunks_exact_mut(stride).enumerate() {
                    let output = &mut output[..channels];
                    let mut count = 0;
                    for pixel in strip.window(x) {
                        let pixel = &pixels[pixel * channels..][..channels];
                        for c in 0..channels {
                            output[c] = if count == 0 { pixel[c] } else { combine(output[c], pixel[c]) };
                        }
                        count += 1;
                    }
                    let share = share(count);
                    output.iter_mut().for_each(|x| *x *= share);
                }
            },
        );
    });
}

/// The gradient of the maximum's input, from that of its output, which lies `stride` apart: it goes to the first maximum
/// of each window.
pub(super) fn max_backward(input: Pixels, gradient: &[f32], stride: usize) -> Buffer {
    let channels = input.channels;
    backward(
        input.grid,
        channels,
        gradient,
        stride,
        #[inline(always)]
        |strip: &Strip, x, gradient: &[f32], result: &mut [f32], scratch: &mut [f32]| {
            let pixels = &input.values[strip.start * channels..];
            let (most, left) = scratch.split_at_mut(channels);
            most.fill(f32::NEG_INFINITY);
            left.copy_from_slice(gradient);
            for pixel in strip.window(x) {
                let pixel = &pixels[pixel * channels..][..channels];
                for c in 0..channels {
                    most[c] = if pixel[c] > most[c] { pixel[c] } else { most[c] };
                }
            }
            for index in strip.window(x) {
                let pixel = &pixels[index * channels..][..channels];
                let result = &mut result[index * channels..][..channels];
                let (most, left) = (&most[..channels], &mut left[..channels]);
                for c in 0..channels {
                    let hit = pixel[c] == most[c];
                    result[c] = if hit { left[c] } else { 0.0 };
                    left[c] = if hit { 0.0 } else { left[c] };
                }
            }
        },
    )
}

/// The gradient of the mean's input, from that of its output, which lies `stride` apart.
pub(super) fn mean_backward(grid: &Grid, channels: usize, gradient: &[f32], stride: usize) -> Buffer {
    backward(
        grid,
        channels,
        gradient,
        stride,
        #[inline(always)]
        |strip: &Strip, x, gradient: &[f32], result: &mut [f32], _: &mut [f32]| {
            let share = 1.0 / strip.window(x).count() as f32;
            for index in strip.window(x) {
                let result = &mut result[index * channels..][..channels];
                for c in 0..channels {
                    result[c] = gradient[c] * share;
                }
            }
        },
    )
}

/// Calls `each` with a strip, the number of a window, the gradient of its output, the strip's part of the result and two
/// pixels of scratch space.
fn backward(
    grid: &Grid,
    channels: usize,
    gradient: &[f32],
    stride: usize,
    each: impl Fn(&Strip, usize, &[f32], &mut [f32], &mut [f32]) + Sync,
) -> Buffer {
    let mut result = Buffer::new(grid.pixels * channels);
    let strips = strips(grid);
    let results =
        split_lengths(&mut result, strips.iter().map(|strip| strip.height * strip.width * channels));
    let mut first = 0;
    let firsts: Vec<usize> = strips
        .iter()
        .map(|strip| {
            first += strip.width.div_ceil(2);
            first - strip.width.div_ceil(2)
        })
        .collect();
    (&strips, results, firsts).into_par_iter().for_each(|(strip, result, first)| {
        vectorised(
            #[inline(always)]
            || {
                let mut scratch = vec![0.0; 2 * channels];
                for x in 0..strip.width.div_ceil(2) {
                    let gradient = &gradient[(first + x) * stride..][..channels];
                    each(strip, x, gradient, result, &mut scratch);
                }
            },
        );
    });
    result
}
