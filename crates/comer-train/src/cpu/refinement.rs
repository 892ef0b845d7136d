//! The attention refinement module for one sequence, forward and backward.
//!
//! Coverage has the maps of a cell side by side and the steps one after the other, so that each step is a small picture
//! for the convolution kernels of the inference engine.

use comer::internal::config::{COVERAGE_KERNEL, ModelConfig};
use comer::internal::engine::kernels::{Activation, Kernels, PackedConv5x5, PackedMatrix};
use comer::internal::weights::{Tensor, Weights};

use super::buffer::Buffer;
use super::linear::{add, apply_dropout, entry};
use super::norm::Dropout;
use super::simd::vectorised;

/// Taps of the convolution.
const TAPS: usize = COVERAGE_KERNEL * COVERAGE_KERNEL;

/// Rows per partial sum.
const ROWS: usize = 128;

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

    /// The cells of all steps.
    fn rows(self) -> usize {
        self.steps * self.cells()
    }

    /// Each step as a picture.
    fn sizes(self) -> Vec<(usize, usize)> {
        vec![(self.height, self.width); self.steps]
    }
}

/// Attention weights before dropout (`[heads][steps][cells]`), the dropout, and the offset of its first index.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub weights: &'a [f32],
    pub dropout: Option<Dropout>,
    pub offset: usize,
}

/// The coverage of each step, for the maps of all sources: the sum over the previous steps, `[steps][cells][maps]`.
pub(super) fn accumulate_coverage(shape: Shape, heads: usize, sources: &[Source]) -> Buffer {
    let maps = sources.len() * heads;
    let mut coverage = Buffer::new(shape.rows() * maps);
    let cells = shape.cells();
    let (mut sum, mut step_weights) = (vec![0.0; cells], vec![0.0; cells]);
    vectorised(
        #[inline(always)]
        || {
            for map in 0..maps {
                let (source, head) = (&sources[map / heads], map % heads);
                sum.fill(0.0);
                for (step, coverage) in coverage.chunks_exact_mut(cells * maps).enumerate() {
                    for (coverage, &sum) in coverage.chunks_exact_mut(maps).zip(&sum) {
                        coverage[map] = sum;
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
    let mut result = vec![0.0; maps * shape.rows()];
    let mut sum = vec![0.0; cells * maps];
    vectorised(
        #[inline(always)]
        || {
            for (step, coverage) in coverage.chunks_exact(cells * maps).enumerate().rev() {
                for (map, result) in result.chunks_exact_mut(shape.rows()).enumerate() {
                    for (result, sum) in
                        result[step * cells..][..cells].iter_mut().zip(sum.chunks_exact(maps))
                    {
                        *result = sum[map];
                    }
                }
                add(&mut sum, coverage);
            }
        },
    );
    result
}

/// `decoder.refinement` of the model file except its norm, which needs all sequences.
pub(super) struct Refinement<'a> {
    kernels: Kernels,
    conv: &'a Tensor, // [channels, maps, 5, 5]
    packed_conv: PackedConv5x5,
    /// With its taps reversed.
    backward_conv: PackedConv5x5,
    projection: &'a Tensor, // [heads, channels, 1, 1]
    packed_projection: PackedMatrix,
    backward_projection: PackedMatrix,
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
        if config.coverage_inputs() == 0 {
            return None;
        }
        // Sequences are processed in parallel, each on one thread.
        let kernels = Kernels::detect().alone();
        let conv = &weights["decoder.refinement.conv.weight"];
        let bias = &weights["decoder.refinement.conv.bias"].data;
        let projection = &weights["decoder.refinement.projection.weight"];
        let (channels, maps, heads) = (conv.shape[0], conv.shape[1], projection.shape[0]);
        let taps = conv.data.as_chunks::<TAPS>().0;
        let reversed = |map: usize, channel: usize| {
            let mut taps = taps[channel * maps + map];
            taps.reverse();
            taps
        };
        let transposed = |channel: usize, head: usize| projection.data[head * channels + channel];
        Some(Self {
            kernels,
            conv,
            packed_conv: PackedConv5x5::from_rows(&kernels, &conv.data, bias),
            backward_conv: PackedConv5x5::new(&kernels, &vec![0.0; maps], channels, reversed),
            projection,
            packed_projection: PackedMatrix::from_rows(&kernels, &projection.data, &vec![0.0; heads]),
            backward_projection: PackedMatrix::new(&kernels, &vec![0.0; channels], heads, transposed),
        })
    }

    fn channels(&self) -> usize {
        self.conv.shape[0]
    }

    fn maps(&self) -> usize {
        self.conv.shape[1]
    }

    fn heads(&self) -> usize {
        self.projection.shape[0]
    }

    /// From coverage to the input of the norm (`[heads][steps][cells]`) and the activations between the convolutions
    /// (`[steps][cells][channels]`).
    pub fn forward(&self, shape: Shape, coverage: &[f32]) -> (Vec<f32>, Buffer) {
        let (rows, channels, heads) = (shape.rows(), self.channels(), self.heads());
        let mut hidden = Buffer::new(rows * channels);
        let (input, output) = ((coverage, self.maps()), (&mut hidden[..], channels));
        self.kernels.conv5x5(&self.packed_conv, input, &shape.sizes(), Activation::Relu, output);
        let mut projected = Buffer::new(rows * heads);
        let (input, output) = ((&hidden[..], channels), (&mut projected[..], heads));
        self.kernels.matmul(&self.packed_projection, input, rows, Activation::None, output);
        let mut values = vec![0.0; heads * rows];
        transpose(&projected, heads, &mut values);
        (values, hidden)
    }

    /// The gradient of the coverage and those of the weights, from that of the values.
    pub fn backward(
        &self,
        shape: Shape,
        coverage: &[f32],
        hidden: &[f32],
        gradient: &[f32],
    ) -> (Buffer, RefinementGradients) {
        let (rows, sizes) = (shape.rows(), shape.sizes());
        let (heads, channels, maps) = (self.heads(), self.channels(), self.maps());
        let mut projected = Buffer::new(rows * heads);
        transpose(gradient, rows, &mut projected);
        let outputs = (&projected[..], heads);
        let projection = self.kernels.matmul_weight_grad((hidden, channels), channels, outputs, heads, rows);
        let mut inner = Buffer::new(rows * channels);
        let target = (&mut inner[..], channels);
        self.kernels.matmul(&self.backward_projection, outputs, rows, Activation::None, target);
        let bias = relu_backward(hidden, &mut inner, channels);

        let (input, outputs) = ((coverage, maps), (&inner[..], channels));
        let conv = self.kernels.conv5x5_weight_grad(input, maps, outputs, channels, &sizes);
        let mut result = Buffer::new(rows * maps);
        let target = (&mut result[..], maps);
        self.kernels.conv5x5(&self.backward_conv, outputs, &sizes, Activation::None, target);
        (result, RefinementGradients { conv, bias, projection })
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

/// Turns the gradient of the activations into that of the values before the ReLU, in place; returns its sum over rows.
fn relu_backward(activations: &[f32], gradient: &mut [f32], channels: usize) -> Vec<f32> {
    let mut total = vec![0f64; channels];
    let mut sum = vec![0f32; channels];
    vectorised(
        #[inline(always)]
        || {
            let parts = gradient.chunks_mut(ROWS * channels).zip(activations.chunks(ROWS * channels));
            for (gradient, activations) in parts {
                sum.fill(0.0);
                let rows = gradient.chunks_exact_mut(channels).zip(activations.chunks_exact(channels));
                for (gradient, activations) in rows {
                    for ((g, &x), sum) in gradient.iter_mut().zip(activations).zip(&mut sum) {
                        *g = if x > 0.0 { *g } else { 0.0 };
                        *sum += *g;
                    }
                }
                total.iter_mut().zip(&sum).for_each(|(total, &sum)| *total += f64::from(sum));
            }
        },
    );
    total.into_iter().map(|sum| sum as f32).collect()
}

/// `[rows][columns]` to `[columns][rows]`
fn transpose(values: &[f32], columns: usize, result: &mut [f32]) {
    let rows = values.len() / columns;
    if columns < rows {
        for (column, result) in result.chunks_exact_mut(rows).enumerate() {
            result.iter_mut().zip(values.chunks_exact(columns)).for_each(|(x, row)| *x = row[column]);
        }
    } else {
        for (row, values) in values.chunks_exact(columns).enumerate() {
            values.iter().zip(result.chunks_exact_mut(rows)).for_each(|(&x, result)| result[row] = x);
        }
    }
}
