//! Multi-head attention of one sequence over plain slices, and self-attention.

use super::simd::vectorised;
use comer::internal::weights::Weights;
use rayon::prelude::*;

use super::decoder_batch::{DecoderBatch, Sequence, Site};
use super::linear::{Linear, apply_dropout};
use super::norm::Dropout;
use super::product::{Matrix, Threads, multiply};
use super::softmax;

/// Rows of `[heads][width]` values, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub values: &'a [f32],
    pub count: usize,
    pub stride: usize,
}

/// The heads of an attention layer.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub count: usize,
    pub width: usize,
}

impl Heads {
    pub fn new(batch: &DecoderBatch) -> Self {
        Self { count: batch.config.heads, width: batch.config.head_width() }
    }

    /// The scale of queries.
    pub fn scale(self) -> f32 {
        (self.width as f32).sqrt().recip()
    }

    fn part<'a>(self, rows: Rows<'a>, head: usize) -> Matrix<'a> {
        Matrix::rows(&rows.values[head * self.width..], rows.count, self.width, rows.stride)
    }

    /// The dot products of every row of `left` with every row of `right`: `[heads][left][right]`
    pub fn dot_products(self, left: Rows, right: Rows) -> Vec<f32> {
        let mut result = vec![0.0; self.count * left.count * right.count];
        for (head, result) in result.chunks_exact_mut(left.count * right.count).enumerate() {
            let (left, keys) = (self.part(left, head), self.part(right, head).transposed());
            multiply(result, right.count, left, keys, false, Threads::One);
        }
        result
    }

    /// Weighted sums of the rows of `right`, with weights `[heads][left][right]`: one for each row of `left`, `stride` apart.
    pub fn weighted_sum(self, weights: &[f32], right: Rows, left: &mut [f32], stride: usize) {
        let rows = weights.len() / self.count / right.count;
        for (head, weights) in weights.chunks_exact(rows * right.count).enumerate() {
            let weights = Matrix::rows(weights, rows, right.count, right.count);
            multiply(
                &mut left[head * self.width..],
                stride,
                weights,
                self.part(right, head),
                false,
                Threads::One,
            );
        }
    }

    /// Weighted sums of the rows of `left` with the same weights, one for each row of `right`; accumulates if `add`.
    pub fn weighted_sum_transposed(
        self,
        weights: &[f32],
        left: Rows,
        right: &mut [f32],
        stride: usize,
        add: bool,
    ) {
        let rows = weights.len() / self.count / left.count;
        for (head, weights) in weights.chunks_exact(rows * left.count).enumerate() {
            let weights = Matrix::rows(weights, left.count, rows, rows).transposed();
            multiply(
                &mut right[head * self.width..],
                stride,
                weights,
                self.part(left, head),
                add,
                Threads::One,
            );
        }
    }
}

/// Softmax of each row of energies, in place.
pub(super) fn softmax_rows(energies: &mut [f32], width: usize) {
    vectorised(
        #[inline(always)]
        || {
            energies.chunks_exact_mut(width).for_each(|row| {
                softmax::forward(row);
            })
        },
    );
}

/// Turns the gradient of the weights after dropout into that of the energies, row by row, in place.
pub(super) fn softmax_rows_backward(
    weights: &[f32],
    gradient: &mut [f32],
    width: usize,
    dropout: Option<Dropout>,
    offset: usize,
) {
    vectorised(
        #[inline(always)]
        || {
            apply_dropout(dropout, offset, gradient);
            for (weights, gradient) in weights.chunks_exact(width).zip(gradient.chunks_exact_mut(width)) {
                softmax::backward(weights, gradient);
            }
        },
    );
}

/// A copy with dropout; the first value has the index `offset`.
pub(super) fn with_dropout(weights: &[f32], dropout: Option<Dropout>, offset: usize) -> Vec<f32> {
    let mut result = weights.to_vec();
    vectorised(
        #[inline(always)]
        || apply_dropout(dropout, offset, &mut result),
    );
    result
}

/// Scales the first `width` values of rows that lie `stride` apart.
pub(super) fn scale_rows(values: &mut [f32], stride: usize, width: usize, scale: f32) {
    for row in values.chunks_exact_mut(stride) {
        row[..width].iter_mut().for_each(|x| *x *= scale);
    }
}

/// Causal self-attention of one layer.
pub(super) struct SelfAttention<'a> {
    pub batch: &'a DecoderBatch<'a>,
    pub layer: usize,
}

/// What the backward pass needs.
pub(super) struct SelfTape {
    packed: Vec<f32>,       // [tokens][queries, keys, values]
    weights: Vec<Vec<f32>>, // for each sequence [heads][steps][steps], before dropout
    mixed: Vec<f32>,        // [tokens][d_model]
}

impl<'a> SelfAttention<'a> {
    fn linear(&self, leaf: &str) -> Linear<'a> {
        Linear::new(self.batch.weights, format!("decoder.layers.{}.self_attention.{leaf}", self.layer))
    }

    /// The queries, keys or values (`part` 0, 1, 2) of a sequence.
    fn rows<'v>(&self, packed: &'v [f32], sequence: &Sequence, part: usize) -> Rows<'v> {
        let d = self.batch.config.d_model;
        Rows { values: &packed[sequence.first * 3 * d + part * d..], count: sequence.steps(), stride: 3 * d }
    }

    /// Offset of the weights of a sequence, for dropout.
    fn offset(&self, sequence: &Sequence) -> usize {
        let before = self.batch.sequences.iter().take_while(|other| other.first < sequence.first);
        before.map(|other| self.batch.config.heads * other.steps() * other.steps()).sum()
    }

    /// `[tokens][d_model]` to the same.
    pub fn forward(&self, x: &[f32]) -> (Vec<f32>, SelfTape) {
        let (batch, heads) = (self.batch, Heads::new(self.batch));
        let d = batch.config.d_model;
        let mut packed = self.linear("packed").forward(Matrix::rows(x, batch.tokens, d, d));
        scale_rows(&mut packed, 3 * d, d, heads.scale());
        let mut mixed = vec![0.0; batch.tokens * d];
        let dropout = batch.dropout(self.layer, Site::SelfWeights);
        let one = |(sequence, mixed): (&Sequence, &mut [f32])| {
            let [queries, keys, values] = [0, 1, 2].map(|part| self.rows(&packed, sequence, part));
            let mut weights = heads.dot_products(queries, keys);
            apply_mask(&mut weights, sequence);
            softmax_rows(&mut weights, sequence.steps());
            heads.weighted_sum(&with_dropout(&weights, dropout, self.offset(sequence)), values, mixed, d);
            weights
        };
        let parts = batch.tokens_of_sequences(&mut mixed, d);
        let weights = batch.sequences.par_iter().zip(parts).map(one).collect();
        let output = self.linear("output").forward(Matrix::rows(&mixed, batch.tokens, d, d));
        (output, SelfTape { packed, weights, mixed })
    }

    /// Adds the gradient of the input to `sum`, from that of the output.
    pub fn backward(
        &self,
        tape: &SelfTape,
        x: &[f32],
        gradient: &[f32],
        sum: &mut [f32],
        gradients: &mut Weights,
    ) {
        let (batch, heads) = (self.batch, Heads::new(self.batch));
        let d = batch.config.d_model;
        let output = self.linear("output");
        output.insert_grad(Matrix::rows(&tape.mixed, batch.tokens, d, d), gradient, gradients);
        let mixed = output.backward(gradient);
        let mut packed = vec![0.0; batch.tokens * 3 * d];
        let dropout = batch.dropout(self.layer, Site::SelfWeights);
        let one = |((sequence, weights), target): ((&Sequence, &Vec<f32>), &mut [f32])| {
            let [queries, keys, values] = [0, 1, 2].map(|part| self.rows(&tape.packed, sequence, part));
            let mixed = Rows { values: &mixed[sequence.first * d..], count: sequence.steps(), stride: d };
            let offset = self.offset(sequence);
            heads.weighted_sum_transposed(
                &with_dropout(weights, dropout, offset),
                mixed,
                &mut target[2 * d..],
                3 * d,
                false,
            );
            let mut energies = heads.dot_products(mixed, values);
            softmax_rows_backward(weights, &mut energies, sequence.steps(), dropout, offset);
            heads.weighted_sum(&energies, keys, target, 3 * d);
            heads.weighted_sum_transposed(&energies, queries, &mut target[d..], 3 * d, false);
            scale_rows(target, 3 * d, d, heads.scale());
        };
        let parts = batch.tokens_of_sequences(&mut packed, 3 * d);
        batch.sequences.par_iter().zip(&tape.weights).zip(parts).for_each(one);
        let linear = self.linear("packed");
        linear.insert_grad(Matrix::rows(x, batch.tokens, d, d), &packed, gradients);
        linear.backward_add(&packed, sum);
    }
}

/// Masks later tokens and padding.
fn apply_mask(energies: &mut [f32], sequence: &Sequence) {
    let steps = sequence.steps();
    for (row, energies) in energies.chunks_exact_mut(steps).enumerate() {
        for (key, energy) in energies.iter_mut().enumerate() {
            if key > row % steps || sequence.is_hidden(key) {
                *energy = f32::NEG_INFINITY;
            }
        }
    }
}
