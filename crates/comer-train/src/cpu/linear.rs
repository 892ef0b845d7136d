//! Linear layers, layer norms and residual branches over `[tokens or cells][width]`, forward and backward.

use super::simd::vectorised;
use comer::internal::weights::{Tensor, Weights};
use rayon::prelude::*;

use super::norm::{Dropout, Statistics};
use super::product::{Matrix, Threads, multiply};
use super::softmax::dot;

/// Rows per partial sum: fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 64;

/// `y = x W^T + b` with weights of the model file, or with some of their rows.
pub(super) struct Linear<'a> {
    path: String,
    weight: &'a Tensor, // [out, in]
    bias: &'a Tensor,
    first: usize,
    outputs: usize,
}

impl<'a> Linear<'a> {
    pub fn new(weights: &'a Weights, path: impl Into<String>) -> Self {
        let path = path.into();
        let (weight, bias) = (&weights[&format!("{path}.weight")], &weights[&format!("{path}.bias")]);
        Self { path, weight, bias, first: 0, outputs: weight.shape[0] }
    }

    /// The layer with rows `first..first + count` only.
    pub fn rows(self, first: usize, count: usize) -> Self {
        Self { first, outputs: count, ..self }
    }

    fn inputs(&self) -> usize {
        self.weight.shape[1]
    }

    /// `[out, in]`
    pub fn matrix(&self) -> Matrix<'a> {
        let inputs = self.inputs();
        Matrix::rows(&self.weight.data[self.first * inputs..], self.outputs, inputs, inputs)
    }

    /// `[rows, in]` to `[rows][out]`
    pub fn forward(&self, input: Matrix) -> Vec<f32> {
        let bias = &self.bias.data[self.first..][..self.outputs];
        let mut output = bias.repeat(input.rows);
        multiply(&mut output, self.outputs, input, self.matrix().transposed(), true, Threads::All);
        output
    }

    /// Stores the gradients of weight and bias, from the input and the gradient of the output (`[rows][out]`).
    pub fn insert_grad(&self, input: Matrix, gradient: &[f32], gradients: &mut Weights) {
        let (inputs, outputs) = (self.inputs(), self.outputs);
        let left = Matrix::rows(gradient, input.rows, outputs, outputs).transposed();
        let target = &mut entry(gradients, format!("{}.weight", self.path), &self.weight.shape).data;
        multiply(&mut target[self.first * inputs..], inputs, left, input, false, Threads::All);
        let target = &mut entry(gradients, format!("{}.bias", self.path), &self.bias.shape).data;
        target[self.first..][..outputs].copy_from_slice(&sum_of_rows(gradient, outputs));
    }

    /// Adds the gradient of the input (`[rows][in]`) to `sum`.
    pub fn backward_add(&self, gradient: &[f32], sum: &mut [f32]) {
        let rows = gradient.len() / self.outputs;
        let left = Matrix::rows(gradient, rows, self.outputs, self.outputs);
        multiply(sum, self.inputs(), left, self.matrix(), true, Threads::All);
    }

    /// The gradient of the input.
    pub fn backward(&self, gradient: &[f32]) -> Vec<f32> {
        let mut result = vec![0.0; gradient.len() / self.outputs * self.inputs()];
        self.backward_add(gradient, &mut result);
        result
    }
}

/// The gradient of this name, initialised with zeros.
pub(super) fn entry<'g>(gradients: &'g mut Weights, name: String, shape: &[usize]) -> &'g mut Tensor {
    let zeros = || Tensor { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] };
    gradients.entry(name).or_insert_with(zeros)
}

/// The sum over rows of `width` values.
fn sum_of_rows(values: &[f32], width: usize) -> Vec<f32> {
    let partial = |rows: &[f32]| {
        let mut sum = vec![0.0; width];
        rows.chunks_exact(width).for_each(|row| add(&mut sum, row));
        sum
    };
    total(values.par_chunks(BLOCK * width).map(partial).collect(), width)
}

/// The sum of partial sums, in order.
fn total(partials: Vec<Vec<f32>>, width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width];
    partials.iter().for_each(|partial| add(&mut sum, partial));
    sum
}

/// `sum += values`, element by element.
#[inline(always)]
pub(super) fn add(sum: &mut [f32], values: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(values) {
        *sum += x;
    }
}

/// A layer norm of the model file.
pub(super) struct LayerNorm<'a> {
    path: String,
    weight: &'a [f32],
    bias: &'a [f32],
}

/// What the backward pass needs: the input and the statistics of each row.
pub(super) struct LayerNormTape {
    input: Vec<f32>,
    statistics: Vec<Statistics>,
}

impl<'a> LayerNorm<'a> {
    pub fn new(weights: &'a Weights, path: impl Into<String>) -> Self {
        let path = path.into();
        let (weight, bias) = (&weights[&format!("{path}.weight")], &weights[&format!("{path}.bias")]);
        Self { path, weight: &weight.data, bias: &bias.data }
    }

    /// Normalises each row.
    pub fn forward(&self, input: Vec<f32>) -> (Vec<f32>, LayerNormTape) {
        let width = self.weight.len();
        let mut output = vec![0.0; input.len()];
        let mut statistics = vec![Statistics::default(); input.len() / width];
        let blocks = output.par_chunks_mut(BLOCK * width).zip(input.par_chunks(BLOCK * width));
        blocks.zip(statistics.par_chunks_mut(BLOCK)).for_each(|((output, input), statistics)| {
            vectorised(
                #[inline(always)]
                || {
                    let rows = output.chunks_exact_mut(width).zip(input.chunks_exact(width));
                    for ((output, input), statistics) in rows.zip(statistics.iter_mut()) {
                        *statistics = Statistics::of(input);
                        let (mean, inverse) = (statistics.mean, statistics.inverse_deviation());
                        for (i, y) in output.iter_mut().enumerate() {
                            *y = (input[i] - mean) * inverse * self.weight[i] + self.bias[i];
                        }
                    }
                },
            );
        });
        (output, LayerNormTape { input, statistics })
    }

    /// Turns the gradient of the output into that of the input, in place, and stores those of weight and bias.
    pub fn backward(&self, tape: &LayerNormTape, gradient: &mut [f32], gradients: &mut Weights) {
        let width = self.weight.len();
        let block = |((gradient, input), statistics): ((&mut [f32], &[f32]), &[Statistics])| {
            let mut sums = vec![0.0; 2 * width];
            vectorised(
                #[inline(always)]
                || {
                    let (weight, bias) = sums.split_at_mut(width);
                    let mut normal = vec![0.0; width];
                    let rows = gradient.chunks_exact_mut(width).zip(input.chunks_exact(width));
                    for ((gradient, input), statistics) in rows.zip(statistics) {
                        let (mean, inverse) = (statistics.mean, statistics.inverse_deviation());
                        for (i, g) in gradient.iter_mut().enumerate() {
                            normal[i] = (input[i] - mean) * inverse;
                            weight[i] += *g * normal[i];
                            bias[i] += *g;
                            *g *= self.weight[i];
                        }
                        let slope = dot(gradient, &normal) / width as f32;
                        let offset = (super::norm::total(gradient, |x| x) / width as f64) as f32;
                        for (g, &normal) in gradient.iter_mut().zip(&normal) {
                            *g = inverse * (*g - offset - normal * slope);
                        }
                    }
                },
            );
            sums
        };
        let blocks = gradient.par_chunks_mut(BLOCK * width).zip(tape.input.par_chunks(BLOCK * width));
        let partials = blocks.zip(tape.statistics.par_chunks(BLOCK)).map(block).collect();
        let mut weight = total(partials, 2 * width);
        let bias = weight.split_off(width);
        for (leaf, data) in [("weight", weight), ("bias", bias)] {
            gradients.insert(format!("{}.{leaf}", self.path), Tensor { shape: vec![width], data });
        }
    }
}

/// A residual branch: `y = x + dropout(y)`
pub(super) fn residual(branch: &mut [f32], x: &[f32], dropout: Option<Dropout>) {
    by_blocks(branch, |first, branch| {
        let x = &x[first..][..branch.len()];
        match dropout {
            Some(dropout) => {
                for (index, (y, &x)) in branch.iter_mut().zip(x).enumerate() {
                    *y = x + *y * dropout.factor(first + index);
                }
            }
            None => add(branch, x),
        }
    });
}

/// The gradient of the branch of [`residual`].
pub(super) fn residual_backward(gradient: &[f32], dropout: Option<Dropout>) -> Vec<f32> {
    let mut result = gradient.to_vec();
    by_blocks(&mut result, |first, result| apply_dropout(dropout, first, result));
    result
}

/// ReLU, then dropout, in place.
pub(super) fn relu_dropout(values: &mut [f32], dropout: Option<Dropout>) {
    by_blocks(values, |first, values| {
        values.iter_mut().for_each(|x| *x = x.max(0.0));
        apply_dropout(dropout, first, values);
    });
}

/// Turns the gradient of the output of [`relu_dropout`] into that of its input, in place.
pub(super) fn relu_dropout_backward(output: &[f32], gradient: &mut [f32], dropout: Option<Dropout>) {
    let scale = dropout.map_or(1.0, |dropout| dropout.scale);
    by_blocks(gradient, |first, gradient| {
        for (g, &y) in gradient.iter_mut().zip(&output[first..]) {
            *g = if y > 0.0 { *g * scale } else { 0.0 };
        }
    });
}

/// Applies dropout in place; the first value has the index `offset`.
#[inline(always)]
pub(super) fn apply_dropout(dropout: Option<Dropout>, offset: usize, values: &mut [f32]) {
    if let Some(dropout) = dropout {
        for (index, x) in values.iter_mut().enumerate() {
            *x *= dropout.factor(offset + index);
        }
    }
}

/// Calls `each` with blocks of the values and the index of their first value, vectorised and on all threads.
fn by_blocks(values: &mut [f32], each: impl Fn(usize, &mut [f32]) + Sync) {
    const LENGTH: usize = 1 << 14;
    values.par_chunks_mut(LENGTH).enumerate().for_each(|(index, values)| {
        vectorised(
            #[inline(always)]
            || each(index * LENGTH, values),
        );
    });
}
