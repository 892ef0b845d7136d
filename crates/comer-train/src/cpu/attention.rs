//! Multi-head attention of one sequence over plain slices: three products, from which both passes are made; and the
//! attention of a formula to itself.

use super::simd::vectorised;
use comer::internal::weights::Weights;
use rayon::prelude::*;

use super::linear::{Linear, drop_all};
use super::norm::Drop;
use super::product::{Matrix, Threads, multiply};
use super::scene::{Scene, Sequence, Site};
use super::softmax;

/// Rows of numbers, `stride` apart, in which the heads' parts stand side by side.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub values: &'a [f32],
    pub count: usize,
    pub stride: usize,
}

/// The heads of an attention.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub count: usize,
    pub width: usize,
}

impl Heads {
    pub fn new(scene: &Scene) -> Self {
        Self { count: scene.config.heads, width: scene.config.head_width() }
    }

    /// What queries are multiplied by.
    pub fn scale(self) -> f32 {
        (self.width as f32).sqrt().recip()
    }

    fn part<'a>(self, rows: Rows<'a>, head: usize) -> Matrix<'a> {
        Matrix::rows(&rows.values[head * self.width..], rows.count, self.width, rows.stride)
    }

    /// The products of every row of `left` with every row of `right`: `[heads][left][right]`
    pub fn compare(self, left: Rows, right: Rows) -> Vec<f32> {
        let mut result = vec![0.0; self.count * left.count * right.count];
        for (head, result) in result.chunks_exact_mut(left.count * right.count).enumerate() {
            let (left, keys) = (self.part(left, head), self.part(right, head).transposed());
            multiply(result, right.count, left, keys, false, Threads::One);
        }
        result
    }

    /// Sums of the rows of `right` by weights (`[heads][left][right]`): one for each row of `left`, `stride` apart.
    pub fn mix(self, weights: &[f32], right: Rows, left: &mut [f32], stride: usize) {
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

    /// Sums of the rows of `left` by the same weights: one for each row of `right`, added to what is there if `add`.
    pub fn spread(self, weights: &[f32], left: Rows, right: &mut [f32], stride: usize, add: bool) {
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

/// Energies become weights, row by row, in place.
pub(super) fn weigh(energies: &mut [f32], width: usize) {
    vectorised(
        #[inline(always)]
        || {
            energies.chunks_exact_mut(width).for_each(|row| {
                softmax::forward(row);
            })
        },
    );
}

/// Turns the gradient of dropped weights into that of the energies, row by row, in place.
pub(super) fn unweigh(weights: &[f32], gradient: &mut [f32], width: usize, drop: Option<Drop>, place: usize) {
    vectorised(
        #[inline(always)]
        || {
            drop_all(drop, place, gradient);
            for (weights, gradient) in weights.chunks_exact(width).zip(gradient.chunks_exact_mut(width)) {
                softmax::backward(weights, gradient);
            }
        },
    );
}

/// A copy in which numbers are dropped, the first of which stands at `place`.
pub(super) fn dropped(weights: &[f32], drop: Option<Drop>, place: usize) -> Vec<f32> {
    let mut result = weights.to_vec();
    vectorised(
        #[inline(always)]
        || drop_all(drop, place, &mut result),
    );
    result
}

/// Multiplies the first `width` numbers of rows that lie `stride` apart.
pub(super) fn scale_rows(values: &mut [f32], stride: usize, width: usize, scale: f32) {
    for row in values.chunks_exact_mut(stride) {
        row[..width].iter_mut().for_each(|x| *x *= scale);
    }
}

/// The attention of a formula's tokens to those before them.
pub(super) struct SelfAttention<'a> {
    pub scene: &'a Scene<'a>,
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
        Linear::new(self.scene.weights, format!("decoder.layers.{}.self_attention.{leaf}", self.layer))
    }

    /// A sequence's rows of queries, keys or values (`part` 0, 1, 2).
    fn rows<'v>(&self, packed: &'v [f32], sequence: &Sequence, part: usize) -> Rows<'v> {
        let d = self.scene.config.d_model;
        Rows { values: &packed[sequence.first * 3 * d + part * d..], count: sequence.steps(), stride: 3 * d }
    }

    /// Where a sequence's weights stand among all that are dropped.
    fn place(&self, sequence: &Sequence) -> usize {
        let before = self.scene.sequences.iter().take_while(|other| other.first < sequence.first);
        before.map(|other| self.scene.config.heads * other.steps() * other.steps()).sum()
    }

    /// `[tokens][d_model]` to the same.
    pub fn forward(&self, x: &[f32]) -> (Vec<f32>, SelfTape) {
        let (scene, heads) = (self.scene, Heads::new(self.scene));
        let d = scene.config.d_model;
        let mut packed = self.linear("packed").forward(Matrix::rows(x, scene.tokens, d, d));
        scale_rows(&mut packed, 3 * d, d, heads.scale());
        let mut mixed = vec![0.0; scene.tokens * d];
        let drop = scene.drop(self.layer, Site::SelfWeights);
        let one = |(sequence, mixed): (&Sequence, &mut [f32])| {
            let [queries, keys, values] = [0, 1, 2].map(|part| self.rows(&packed, sequence, part));
            let mut weights = heads.compare(queries, keys);
            hide(&mut weights, sequence);
            weigh(&mut weights, sequence.steps());
            heads.mix(&dropped(&weights, drop, self.place(sequence)), values, mixed, d);
            weights
        };
        let parts = scene.tokens_of_sequences(&mut mixed, d);
        let weights = scene.sequences.par_iter().zip(parts).map(one).collect();
        let output = self.linear("output").forward(Matrix::rows(&mixed, scene.tokens, d, d));
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
        let (scene, heads) = (self.scene, Heads::new(self.scene));
        let d = scene.config.d_model;
        let output = self.linear("output");
        output.note(Matrix::rows(&tape.mixed, scene.tokens, d, d), gradient, gradients);
        let mixed = output.back(gradient);
        let mut packed = vec![0.0; scene.tokens * 3 * d];
        let drop = scene.drop(self.layer, Site::SelfWeights);
        let one = |((sequence, weights), target): ((&Sequence, &Vec<f32>), &mut [f32])| {
            let [queries, keys, values] = [0, 1, 2].map(|part| self.rows(&tape.packed, sequence, part));
            let mixed = Rows { values: &mixed[sequence.first * d..], count: sequence.steps(), stride: d };
            let place = self.place(sequence);
            heads.spread(&dropped(weights, drop, place), mixed, &mut target[2 * d..], 3 * d, false);
            let mut energies = heads.compare(mixed, values);
            unweigh(weights, &mut energies, sequence.steps(), drop, place);
            heads.mix(&energies, keys, target, 3 * d);
            heads.spread(&energies, queries, &mut target[d..], 3 * d, false);
            scale_rows(target, 3 * d, d, heads.scale());
        };
        let parts = scene.tokens_of_sequences(&mut packed, 3 * d);
        scene.sequences.par_iter().zip(&tape.weights).zip(parts).for_each(one);
        let linear = self.linear("packed");
        linear.note(Matrix::rows(x, scene.tokens, d, d), &packed, gradients);
        linear.add_back(&packed, sum);
    }
}

/// Hides from every token those after it, and padding.
fn hide(energies: &mut [f32], sequence: &Sequence) {
    let steps = sequence.steps();
    for (row, energies) in energies.chunks_exact_mut(steps).enumerate() {
        for (key, energy) in energies.iter_mut().enumerate() {
            if key > row % steps || sequence.is_hidden(key) {
                *energy = f32::NEG_INFINITY;
            }
        }
    }
}
