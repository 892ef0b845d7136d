//! The attention refinement module for one sequence, forward and backward.
//!
//! Coverage is stored in planes with borders, one for each map and step, so that a tap of the convolution reads one
//! contiguous range of a plane. The ranges of a few steps at a time are the columns of a matrix product.

use super::simd::vectorised;
use comer::internal::config::{COVERAGE_KERNEL, ModelConfig};
use comer::internal::weights::{Tensor, Weights};

use super::linear::{add, apply_dropout, entry};
use super::norm::Dropout;
use super::product::{Matrix, Threads, multiply};

/// Radius of the convolution kernel.
const RADIUS: usize = COVERAGE_KERNEL / 2;

/// Taps of the convolution.
const TAPS: usize = COVERAGE_KERNEL * COVERAGE_KERNEL;

/// Columns per product, such that the factors fit in the L2 cache.
const COLUMNS: usize = 256;

/// The size of a sequence and its picture.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub steps: usize,
    pub height: usize,
    pub width: usize,
}

impl Shape {
    fn cells(self) -> usize {
        self.height * self.width
    }

    /// Distance between rows of cells in a bordered plane, with zeros between them.
    fn pitch(self) -> usize {
        self.width + RADIUS
    }

    /// The rows of a plane that contain cells.
    fn span(self) -> usize {
        self.height * self.pitch()
    }

    /// Distance between the planes of two steps.
    fn plane(self) -> usize {
        (self.height + RADIUS) * self.pitch()
    }

    /// Offset of the first plane of a map.
    fn margin(self) -> usize {
        RADIUS * (self.pitch() + 1)
    }

    /// Distance between two maps.
    fn stride(self) -> usize {
        self.margin() + self.steps * self.plane() + RADIUS
    }

    /// Ranges of steps that are processed together.
    fn chunks(self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let most = (COLUMNS / self.span()).max(1);
        (0..self.steps).step_by(most).map(move |first| first..(first + most).min(self.steps))
    }

    /// The offset of each row of cells in a compact plane and in a bordered one.
    fn rows(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.height).map(move |y| (y * self.width, y * self.pitch()))
    }
}

/// Attention weights before dropout (`[heads][steps][cells]`), the dropout, and the offset of its first index.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub weights: &'a [f32],
    pub dropout: Option<Dropout>,
    pub offset: usize,
}

/// The coverage of each step, for the maps of all sources: the sum over the previous steps, bordered.
pub(super) fn accumulate_coverage(shape: Shape, heads: usize, sources: &[Source]) -> Vec<f32> {
    let maps = sources.len() * heads;
    let mut coverage = vec![0.0; maps * shape.stride()];
    let cells = shape.cells();
    let (mut sum, mut step_weights) = (vec![0.0; cells], vec![0.0; cells]);
    vectorised(
        #[inline(always)]
        || {
            for (map, planes) in coverage.chunks_exact_mut(shape.stride()).enumerate() {
                let (source, head) = (&sources[map / heads], map % heads);
                sum.fill(0.0);
                let planes = planes[shape.margin()..].chunks_exact_mut(shape.plane());
                for (step, plane) in planes.take(shape.steps).enumerate() {
                    for (compact, bordered) in shape.rows() {
                        plane[bordered..][..shape.width].copy_from_slice(&sum[compact..][..shape.width]);
                    }
                    let from = (head * shape.steps + step) * cells;
                    step_weights.copy_from_slice(&source.weights[from..][..cells]);
                    apply_dropout(source.dropout, source.offset + from, &mut step_weights);
                    add(&mut sum, &step_weights);
                }
            }
        },
    );
    coverage
}

/// The backward pass of [`accumulate_coverage`]: the gradient of the weights of all sources after dropout,
/// `[maps][steps][cells]`.
pub(super) fn coverage_backward(shape: Shape, maps: usize, coverage: &[f32]) -> Vec<f32> {
    let cells = shape.cells();
    let mut result = vec![0.0; maps * shape.steps * cells];
    let mut sum = vec![0.0; cells];
    vectorised(
        #[inline(always)]
        || {
            let all = result.chunks_exact_mut(shape.steps * cells);
            for (result, planes) in all.zip(coverage.chunks_exact(shape.stride())) {
                sum.fill(0.0);
                let planes = planes[shape.margin()..].chunks_exact(shape.plane()).take(shape.steps);
                for (result, plane) in result.chunks_exact_mut(cells).zip(planes).rev() {
                    result.copy_from_slice(&sum);
                    for (compact, bordered) in shape.rows() {
                        add(&mut sum[compact..][..shape.width], &plane[bordered..][..shape.width]);
                    }
                }
            }
        },
    );
    result
}

/// `decoder.refinement` of the model file except its norm, which needs all sequences.
pub(super) struct Refinement<'a> {
    conv: &'a Tensor, // [channels, maps, 5, 5]
    bias: &'a [f32],
    projection: &'a Tensor, // [heads, channels, 1, 1]
}

/// The contribution of one sequence to the gradients.
pub(super) struct RefinementGradients {
    conv: Vec<f32>,
    bias: Vec<f32>,
    projection: Vec<f32>,
}

impl<'a> Refinement<'a> {
    /// None for a model without coverage.
    pub fn new(config: &ModelConfig, weights: &'a Weights) -> Option<Self> {
        (config.coverage_inputs() > 0).then(|| Self {
            conv: &weights["decoder.refinement.conv.weight"],
            bias: &weights["decoder.refinement.conv.bias"].data,
            projection: &weights["decoder.refinement.projection.weight"],
        })
    }

    fn channels(&self) -> usize {
        self.conv.shape[0]
    }

    fn depth(&self) -> usize {
        self.conv.shape[1] * TAPS
    }

    fn heads(&self) -> usize {
        self.projection.shape[0]
    }

    fn conv(&self) -> Matrix<'a> {
        Matrix::rows(&self.conv.data, self.channels(), self.depth(), self.depth())
    }

    fn projection(&self) -> Matrix<'a> {
        Matrix::rows(&self.projection.data, self.heads(), self.channels(), self.channels())
    }

    /// From coverage to the input of the norm (`[heads][steps][cells]`) and the activations between the convolutions
    /// (`[channels][steps][span]`), which are undefined between the rows of cells.
    pub fn forward(&self, shape: Shape, coverage: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (columns, cells) = (shape.steps * shape.span(), shape.cells());
        let mut hidden = vec![0.0; self.channels() * columns];
        let mut values = vec![0.0; self.heads() * shape.steps * cells];
        let (mut patches, mut projected) = (Vec::new(), Vec::new());
        for steps in shape.chunks() {
            let count = steps.len() * shape.span();
            self.patches(shape, steps.clone(), coverage, &mut patches);
            let right = Matrix::rows(&patches, self.depth(), count, count);
            let part = &mut hidden[steps.start * shape.span()..];
            multiply(part, columns, self.conv(), right, false, Threads::One);
            vectorised(
                #[inline(always)]
                || {
                    for (row, &bias) in part.chunks_mut(columns).zip(self.bias) {
                        row[..count].iter_mut().for_each(|x| *x = (*x + bias).max(0.0));
                    }
                },
            );
            projected.resize(self.heads() * count, 0.0);
            let right = Matrix::rows(part, self.channels(), count, columns);
            multiply(&mut projected, count, self.projection(), right, false, Threads::One);
            for (head, projected) in projected.chunks_exact(count).enumerate() {
                for (step, plane) in steps.clone().zip(projected.chunks_exact(shape.span())) {
                    let values = &mut values[(head * shape.steps + step) * cells..][..cells];
                    for (compact, bordered) in shape.rows() {
                        values[compact..][..shape.width].copy_from_slice(&plane[bordered..][..shape.width]);
                    }
                }
            }
        }
        (values, hidden)
    }

    /// The gradient of the coverage, bordered, and those of the weights, from that of the values.
    pub fn backward(
        &self,
        shape: Shape,
        coverage: &[f32],
        hidden: &[f32],
        gradient: &[f32],
    ) -> (Vec<f32>, RefinementGradients) {
        let (columns, cells) = (shape.steps * shape.span(), shape.cells());
        let (heads, channels, depth) = (self.heads(), self.channels(), self.depth());
        let mut sums = RefinementGradients {
            conv: vec![0.0; channels * depth],
            bias: vec![0.0; channels],
            projection: vec![0.0; heads * channels],
        };
        let mut result = vec![0.0; coverage.len()];
        let (mut patches, mut projected, mut inner) = (Vec::new(), Vec::new(), Vec::new());
        for steps in shape.chunks() {
            let count = steps.len() * shape.span();
            projected.clear();
            projected.resize(heads * count, 0.0);
            for (head, projected) in projected.chunks_exact_mut(count).enumerate() {
                for (step, plane) in steps.clone().zip(projected.chunks_exact_mut(shape.span())) {
                    let gradient = &gradient[(head * shape.steps + step) * cells..][..cells];
                    for (compact, bordered) in shape.rows() {
                        plane[bordered..][..shape.width].copy_from_slice(&gradient[compact..][..shape.width]);
                    }
                }
            }
            let hidden = &hidden[steps.start * shape.span()..];
            let left = Matrix::rows(&projected, heads, count, count);
            let right = Matrix::rows(hidden, channels, count, columns).transposed();
            multiply(&mut sums.projection, channels, left, right, true, Threads::One);
            inner.resize(channels * count, 0.0);
            multiply(&mut inner, count, self.projection().transposed(), left, false, Threads::One);
            vectorised(
                #[inline(always)]
                || {
                    let rows = inner.chunks_exact_mut(count).zip(hidden.chunks(columns));
                    for ((gradient, hidden), bias) in rows.zip(&mut sums.bias) {
                        for (g, &x) in gradient.iter_mut().zip(hidden) {
                            *g = if x > 0.0 { *g } else { 0.0 };
                        }
                        *bias += super::norm::total(gradient, |x| x) as f32;
                    }
                },
            );
            self.patches(shape, steps.clone(), coverage, &mut patches);
            let left = Matrix::rows(&inner, channels, count, count);
            let right = Matrix::rows(&patches, depth, count, count).transposed();
            multiply(&mut sums.conv, depth, left, right, true, Threads::One);
            multiply(&mut patches, count, self.conv().transposed(), left, false, Threads::One);
            vectorised(
                #[inline(always)]
                || {
                    tap_ranges(shape, steps.clone(), depth, |from, to| {
                        add(&mut result[to..][..shape.span()], &patches[from..][..shape.span()]);
                    })
                },
            );
        }
        (result, sums)
    }

    /// The input of each tap for some steps (im2col): `[maps * 5 * 5][steps * span]`
    fn patches(&self, shape: Shape, steps: std::ops::Range<usize>, coverage: &[f32], patches: &mut Vec<f32>) {
        patches.resize(self.depth() * steps.len() * shape.span(), 0.0);
        tap_ranges(shape, steps, self.depth(), |from, to| {
            patches[from..][..shape.span()].copy_from_slice(&coverage[to..][..shape.span()]);
        });
    }

    /// Adds the contribution of one sequence to the gradients.
    pub fn accumulate_grad(&self, sums: &RefinementGradients, gradients: &mut Weights) {
        for (leaf, values, shape) in [
            ("conv.weight", &sums.conv, &self.conv.shape),
            ("conv.bias", &sums.bias, &vec![self.channels()]),
            ("projection.weight", &sums.projection, &self.projection.shape),
        ] {
            add(&mut entry(gradients, format!("decoder.refinement.{leaf}"), shape).data, values);
        }
    }
}

/// Calls `each` for every tap and step with the offset of its range in the patches and in the bordered planes.
#[inline(always)]
fn tap_ranges(shape: Shape, steps: std::ops::Range<usize>, depth: usize, mut each: impl FnMut(usize, usize)) {
    for row in 0..depth {
        let (map, tap) = (row / TAPS, row % TAPS);
        let shift = tap / COVERAGE_KERNEL * shape.pitch() + tap % COVERAGE_KERNEL;
        for (index, step) in steps.clone().enumerate() {
            let from = (row * steps.len() + index) * shape.span();
            // The first tap is two rows and two cells back, at the start of the margin.
            each(from, map * shape.stride() + step * shape.plane() + shift);
        }
    }
}
