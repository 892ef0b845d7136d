//! What every step of the network is made of: a product or convolution, then batch norm, ReLU and dropout.

use super::simd::vectorised;
use comer::internal::engine::kernels::{Activation, Kernels, Layout, PackedRows, Planes};
use comer::internal::weights::{Tensor, Weights};
use rayon::prelude::*;

use super::grid::{Grid, Place};
use super::norm::{Channel, Drop, Statistics};
use super::product::{Matrix, Threads, multiply};

/// A convolution's weights and those of the norm after it, by their names in the model file.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    pub path: &'a str,
    pub weights: &'a Weights,
    pub relu: bool,
    pub drop: Option<Drop>,
}

/// What the backward pass needs of a unit: the values before its norm, and their statistics.
pub(super) struct UnitTape {
    values: Vec<f32>, // [channels][stride]
    pub statistics: Vec<Statistics>,
}

impl<'a> Unit<'a> {
    /// The convolution's weights: `[out, in, side, side]`
    pub fn convolution(&self) -> &'a Tensor {
        &self.weights[&format!("{}.conv.weight", self.path)]
    }

    /// The name under which the gradient of a part of the norm is kept.
    fn norm(&self, leaf: &str) -> String {
        match self.path.strip_suffix("last_norm") {
            Some(_) => format!("{}.{leaf}", self.path),
            None => format!("{}.norm.{leaf}", self.path),
        }
    }

    fn channels(&self, statistics: &[Statistics], grid: &Grid) -> Vec<Channel> {
        let (weight, bias) =
            (&self.weights[&self.norm("weight")].data, &self.weights[&self.norm("bias")].data);
        let channel = |(index, &statistics): (usize, &Statistics)| Channel {
            statistics,
            weight: weight[index],
            bias: bias[index],
            relu: self.relu,
            drop: self.drop.map(|drop| (drop, index * grid.stride)),
        };
        statistics.iter().enumerate().map(channel).collect()
    }

    /// Normalises `values` (`[channels][stride]`) into `output`, rows of any length that `place` fills from compact ones.
    pub fn normalise(
        &self,
        values: Vec<f32>,
        grid: &Grid,
        output: &mut [f32],
        output_stride: usize,
        place: impl Fn(&[f32], &mut [f32]) + Sync,
    ) -> UnitTape {
        // Not as many as there are rows: what a kernel writes has room for more at its end.
        let count = self.weights[&self.norm("weight")].data.len();
        let channels = self.channels(&vec![Statistics::default(); count], grid);
        let statistics = run(&values, channels, true, grid, (output, output_stride), place);
        UnitTape { values, statistics }
    }

    /// The output of [`Self::normalise`] once more.
    pub fn activate(
        &self,
        tape: &UnitTape,
        grid: &Grid,
        output: &mut [f32],
        output_stride: usize,
        place: impl Fn(&[f32], &mut [f32]) + Sync,
    ) {
        let channels = self.channels(&tape.statistics, grid);
        run(&tape.values, channels, false, grid, (output, output_stride), place);
    }

    /// Turns the gradient of the output (`[channels][stride]`) into that of the values before the norm, in place, and
    /// notes the gradients of the norm's weights.
    pub fn denormalise(&self, tape: &UnitTape, grid: &Grid, gradient: &mut [f32], gradients: &mut Weights) {
        let channels = self.channels(&tape.statistics, grid);
        let rows = gradient.par_chunks_exact_mut(grid.stride).zip(tape.values.par_chunks_exact(grid.stride));
        let (weight, bias): (Vec<f32>, Vec<f32>) = rows
            .zip(channels)
            .map(|((gradient, input), channel)| {
                let (gradient, input) = (&mut gradient[..grid.pixels], &input[..grid.pixels]);
                vectorised(
                    #[inline(always)]
                    || channel.backward(input, gradient),
                )
            })
            .unzip();
        for (leaf, data) in [("weight", weight), ("bias", bias)] {
            gradients.insert(self.norm(leaf), Tensor { shape: vec![data.len()], data });
        }
    }

    /// Notes the gradient of the convolution's weights.
    pub fn note(&self, data: Vec<f32>, gradients: &mut Weights) {
        let shape = self.convolution().shape.clone();
        gradients.insert(format!("{}.conv.weight", self.path), Tensor { shape, data });
    }
}

/// Normalises each row and places the result; before that takes the row's statistics, if asked to.
fn run(
    values: &[f32],
    channels: Vec<Channel>,
    measure: bool,
    grid: &Grid,
    (output, output_stride): (&mut [f32], usize),
    place: impl Fn(&[f32], &mut [f32]) + Sync,
) -> Vec<Statistics> {
    let inputs = values.par_chunks_exact(grid.stride);
    let rows = output.par_chunks_exact_mut(output_stride).zip(inputs).zip(channels);
    rows.map_init(
        || vec![0.0; grid.pixels],
        |row, ((output, input), mut channel)| {
            vectorised(
                #[inline(always)]
                || {
                    let input = &input[..grid.pixels];
                    if measure {
                        channel.statistics = Statistics::of(input);
                    }
                    channel.forward(input, row);
                    place(row, output);
                },
            );
            channel.statistics
        },
    )
    .collect()
}

/// A 1 x 1 convolution: `[in][stride]` to `[out][stride]`
pub(super) fn mix_channels(weights: &Tensor, input: &[f32], grid: &Grid) -> Vec<f32> {
    let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
    let mut output = vec![0.0; outputs * grid.stride];
    let left = Matrix::rows(&weights.data, outputs, inputs, inputs);
    let right = Matrix::rows(input, inputs, grid.pixels, grid.stride);
    multiply(&mut output, grid.stride, left, right, false, Threads::All);
    output
}

/// The backward pass of [`mix_channels`]: answers the gradient of the weights and adds that of the input to `sum`.
pub(super) fn unmix_channels(
    weights: &Tensor,
    input: &[f32],
    grid: &Grid,
    gradient: &[f32],
    sum: &mut [f32],
) -> Vec<f32> {
    let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
    let gradient = Matrix::rows(gradient, outputs, grid.pixels, grid.stride);
    let left = Matrix::rows(&weights.data, outputs, inputs, inputs).transposed();
    multiply(sum, grid.stride, left, gradient, true, Threads::All);
    let mut result = vec![0.0; outputs * inputs];
    let right = Matrix::rows(input, inputs, grid.pixels, grid.stride).transposed();
    multiply(&mut result, inputs, gradient, right, false, Threads::All);
    result
}

/// A 3 x 3 convolution of bordered rows to compact ones: `[out][stride]`
pub(super) fn convolve(weights: &Tensor, input: &[f32], grid: &Grid) -> Vec<f32> {
    convolve_rows(&weights.data, weights.shape[0], input, grid)
}

/// The gradient of the input of [`convolve`], compact, from the bordered gradient of its output: the same convolution
/// with its taps turned round.
pub(super) fn convolve_back(weights: &Tensor, gradient: &[f32], grid: &Grid) -> Vec<f32> {
    let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
    let mut turned = Vec::with_capacity(weights.data.len());
    for input in 0..inputs {
        for output in 0..outputs {
            turned.extend(weights.data[(output * inputs + input) * 9..][..9].iter().rev());
        }
    }
    convolve_rows(&turned, inputs, gradient, grid)
}

fn convolve_rows(weights: &[f32], outputs: usize, input: &[f32], grid: &Grid) -> Vec<f32> {
    let kernels = Kernels::detect();
    let packed = PackedRows::new(&kernels, weights, &vec![0.0; outputs]);
    let mut output = grid.compact(outputs);
    for &Place { height, width, start, bordered } in grid.pictures() {
        let planes = Planes { height, width, origin: bordered, stride: grid.bordered_stride };
        let target = (&mut output[start..], Layout::rows(grid.stride));
        kernels.convolve(&packed, (input, planes), Activation::None, target);
    }
    output
}
