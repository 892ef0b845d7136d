//! Attention with coverage (equations 1 to 4 of the paper), one step of one sequence at a time, forward and backward.
//!
//! With the state s, the features F of a cell and the sum c of all earlier attention, for each head with its part of the
//! hidden layer: `e = v tanh(W_s s + W_f F + U (K * c))`, `a = softmax(e)`, and the context is the sum of `a F` over the
//! cells, each head for its part of F. `U K` is one kernel, computed once per batch.

use comer::internal::engine::coverage_window::Window;
use comer::internal::weights::Weights;

use super::decoder_batch::{DecoderBatch, Sequence, Site};
use super::linear::{add, entry};
use super::norm::Dropout;
use super::product::{Matrix, Threads, multiply};
use super::simd::vectorised;
use super::softmax::{self, dot, tanh};

const CONV: &str = "decoder.attention.conv.weight";
const COVERAGE: &str = "decoder.attention.coverage.weight";
const ENERGY: &str = "decoder.attention.energy.weight";

/// The weights of the attention.
pub(super) struct CoverageAttention<'a> {
    weights: &'a Weights,
    heads: usize,
    d: usize,
    width: usize,
    /// `U K`, `[width][heads * 11 * 11]`
    kernel: Vec<f32>,
    energy: &'a [f32], // [heads][width / heads]
    drop: Option<Dropout>,
}

/// The attention of a sequence to its picture.
pub(super) struct AttentionTape<'a> {
    window: Window,
    /// The part of the kernel that overlaps the picture, `[width][taps]`.
    kernel: Vec<f32>,
    /// `W_f F + b`, `[cells][width]`
    features: &'a [f32],
    memory: &'a [f32], // [cells][d]
    /// The attention of each step, `[steps][heads][cells]`.
    pub weights: Vec<f32>,
    /// The coverage before each step and after the last, `[steps + 1][heads][cells]`.
    coverage: Vec<f32>,
    /// Index of the first map of the sequence, for dropping.
    first: usize,
}

/// Gradients from one sequence.
pub(super) struct AttentionGradients {
    pub memory: Vec<f32>,   // [cells][d]
    pub features: Vec<f32>, // [cells][width]
    kernel: Vec<f32>,       // [width][taps]
    energy: Vec<f32>,       // [width]
    /// The gradient of the attention by the coverage of later steps, `[heads][cells]`.
    later: Vec<f32>,
}

impl<'a> CoverageAttention<'a> {
    pub fn new(batch: &DecoderBatch<'a>) -> Self {
        let (config, weights) = (batch.config, batch.weights);
        let (conv, coverage) = (&weights[CONV], &weights[COVERAGE]);
        let (width, channels) = (config.attention_width, config.coverage_channels);
        let taps = conv.data.len() / channels;
        let mut kernel = vec![0.0; width * taps];
        let left = Matrix::rows(&coverage.data, width, channels, channels);
        let right = Matrix::rows(&conv.data, channels, taps, taps);
        multiply(&mut kernel, taps, left, right, false, Threads::All);
        let drop = batch.dropout_of(config.drop_attention, 0, Site::CrossWeights);
        let energy = &weights[ENERGY].data[..];
        Self { weights, heads: config.heads, d: config.d_model, width, kernel, energy, drop }
    }

    /// A sequence before its first step. `features` is `[cells][width]`, `memory` `[cells][d]`, both of its picture.
    pub fn start<'v>(
        &self,
        sequence: &Sequence,
        features: &'v [f32],
        memory: &'v [f32],
    ) -> AttentionTape<'v> {
        let window = Window::new(self.heads, sequence.height, sequence.width);
        AttentionTape {
            window,
            kernel: window.crop(&self.kernel),
            features,
            memory,
            weights: Vec::with_capacity(sequence.steps() * self.heads * window.cells()),
            coverage: vec![0.0; self.heads * window.cells()],
            first: sequence.first * self.heads,
        }
    }

    /// The hidden layer at a step, `[cells][width]`, and the patches of the coverage, `[cells][taps]`.
    fn hidden(&self, tape: &AttentionTape, step: usize, query: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (window, maps) = (tape.window, self.heads * tape.window.cells());
        let patches = window.patches(&tape.coverage[step * maps..][..maps]);
        let mut hidden = tape.features.to_vec();
        let taps = window.taps();
        let left = Matrix::rows(&patches, window.cells(), taps, taps);
        let right = Matrix::rows(&tape.kernel, self.width, taps, taps).transposed();
        multiply(&mut hidden, self.width, left, right, true, Threads::One);
        vectorised(
            #[inline(always)]
            || {
                for row in hidden.chunks_exact_mut(query.len()) {
                    row.iter_mut().zip(query).for_each(|(x, q)| *x = tanh(*x + q));
                }
            },
        );
        (hidden, patches)
    }

    /// The weights of a step as the context uses them: with the largest of some maps dropped.
    fn used(&self, tape: &AttentionTape, step: usize) -> Vec<f32> {
        let cells = tape.window.cells();
        let mut used = tape.weights[step * self.heads * cells..][..self.heads * cells].to_vec();
        for (head, weights) in used.chunks_exact_mut(cells).enumerate() {
            let number = tape.first + step * self.heads + head;
            if self.drop.is_some_and(|drop| drop.factor(number) == 0.0) {
                let better =
                    |best: usize, cell: usize| if weights[cell] > weights[best] { cell } else { best };
                let most = (1..cells).fold(0, better);
                weights[most] = 0.0;
            }
        }
        used
    }

    /// The next step of a sequence: from `W_s s` (`[width]`) to the context (`[d]`).
    pub fn forward(&self, tape: &mut AttentionTape, query: &[f32], context: &mut [f32]) {
        let (cells, heads) = (tape.window.cells(), self.heads);
        let step = tape.weights.len() / (heads * cells);
        let (hidden, _) = self.hidden(tape, step, query);
        let (part, slice) = (self.width / heads, self.d / heads);
        let mut weights = vec![0.0; heads * cells];
        vectorised(
            #[inline(always)]
            || {
                for (head, weights) in weights.chunks_exact_mut(cells).enumerate() {
                    let energy = &self.energy[head * part..][..part];
                    for (weight, hidden) in weights.iter_mut().zip(hidden.chunks_exact(self.width)) {
                        *weight = dot(&hidden[head * part..][..part], energy);
                    }
                    softmax::forward(weights);
                }
            },
        );
        tape.coverage.extend_from_within(step * heads * cells..);
        add(&mut tape.coverage[(step + 1) * heads * cells..], &weights);
        tape.weights.append(&mut weights);
        let used = self.used(tape, step);
        context.fill(0.0);
        for (head, weights) in used.chunks_exact(cells).enumerate() {
            let context = &mut context[head * slice..][..slice];
            for (&weight, cell) in weights.iter().zip(tape.memory.chunks_exact(self.d)) {
                let values = &cell[head * slice..][..slice];
                context.iter_mut().zip(values).for_each(|(sum, x)| *sum += weight * x);
            }
        }
    }

    pub fn gradients(&self, tape: &AttentionTape) -> AttentionGradients {
        let (cells, taps) = (tape.window.cells(), tape.window.taps());
        AttentionGradients {
            memory: vec![0.0; cells * self.d],
            features: vec![0.0; cells * self.width],
            kernel: vec![0.0; self.width * taps],
            energy: vec![0.0; self.width],
            later: vec![0.0; self.heads * cells],
        }
    }

    /// Backward through a step, after all later ones: from the gradient of the context to that of `W_s s`.
    pub fn backward(
        &self,
        tape: &AttentionTape,
        step: usize,
        query: &[f32],
        context: &[f32],
        gradients: &mut AttentionGradients,
        query_gradient: &mut [f32],
    ) {
        let (cells, heads, width) = (tape.window.cells(), self.heads, self.width);
        let (part, slice, taps) = (width / heads, self.d / heads, tape.window.taps());
        let (hidden, patches) = self.hidden(tape, step, query);
        let (weights, used) = (&tape.weights[step * heads * cells..], self.used(tape, step));
        let AttentionGradients { memory, features, kernel, energy, later } = gradients;
        let mut energies = later.clone(); // [heads][cells]
        let mut hidden_gradient = vec![0.0; cells * width];
        query_gradient.fill(0.0);
        vectorised(
            #[inline(always)]
            || {
                for (head, energies) in energies.chunks_exact_mut(cells).enumerate() {
                    let context = &context[head * slice..][..slice];
                    let (weights, used) = (&weights[head * cells..][..cells], &used[head * cells..]);
                    for (cell, energy) in energies.iter_mut().enumerate() {
                        let at = cell * self.d + head * slice;
                        // A dropped weight does not reach the context.
                        if used[cell] != 0.0 {
                            *energy += dot(&tape.memory[at..at + slice], context);
                        }
                        let sum = &mut memory[at..at + slice];
                        sum.iter_mut().zip(context).for_each(|(sum, x)| *sum += used[cell] * x);
                    }
                    softmax::backward(weights, energies);
                    for (cell, &gradient) in energies.iter().enumerate() {
                        let (first, own) = (cell * width + head * part, head * part..(head + 1) * part);
                        let hidden = &hidden[first..first + part];
                        let target = &mut hidden_gradient[first..first + part];
                        let (v, sum) = (&self.energy[own.clone()], &mut energy[own]);
                        for i in 0..part {
                            sum[i] += gradient * hidden[i];
                            target[i] = gradient * v[i] * (1.0 - hidden[i] * hidden[i]);
                        }
                    }
                }
                hidden_gradient.chunks_exact(width).for_each(|row| add(query_gradient, row));
                add(features, &hidden_gradient);
            },
        );
        if step > 0 {
            let rows = Matrix::rows(&hidden_gradient, cells, width, width);
            let patch_rows = Matrix::rows(&patches, cells, taps, taps);
            multiply(kernel, taps, rows.transposed(), patch_rows, true, Threads::One);
            let mut patches = vec![0.0; patches.len()];
            let right = Matrix::rows(&tape.kernel, width, taps, taps);
            multiply(&mut patches, taps, rows, right, false, Threads::One);
            tape.window.patches_backward(&patches, later);
        }
    }

    /// Adds up the gradients of the weights over the sequences.
    pub fn insert_grad(&self, sequences: &[(&AttentionTape, AttentionGradients)], gradients: &mut Weights) {
        let columns = self.kernel.len() / self.width;
        let mut kernel = vec![0.0; self.kernel.len()];
        let energy = entry(gradients, ENERGY.into(), &self.weights[ENERGY].shape);
        for (tape, own) in sequences {
            add(&mut energy.data, &own.energy);
            let rows = kernel.chunks_exact_mut(columns).zip(own.kernel.chunks_exact(tape.window.taps()));
            for (sum, row) in rows {
                tape.window.kernel_indices().zip(row).for_each(|(index, x)| sum[index] += x);
            }
        }
        // The kernel is U K.
        let (conv, coverage) = (&self.weights[CONV], &self.weights[COVERAGE]);
        let channels = conv.shape[0];
        let kernel = Matrix::rows(&kernel, self.width, columns, columns);
        let outer = Matrix::rows(&coverage.data, self.width, channels, channels);
        let inner = Matrix::rows(&conv.data, channels, columns, columns);
        let target = &mut entry(gradients, COVERAGE.into(), &coverage.shape).data;
        multiply(target, channels, kernel, inner.transposed(), false, Threads::All);
        let target = &mut entry(gradients, CONV.into(), &conv.shape).data;
        multiply(target, columns, outer.transposed(), kernel, false, Threads::All);
    }
}

#[cfg(test)]
mod tests {
    use comer_testing::{GruGolden, noise};

    use super::super::decoder_batch::TokenSequence;
    use super::super::grid::Grid;
    use super::*;

    /// The context by the attention of one head, summed in f64, without the weight of one cell.
    fn context(weights: &[f32], values: impl Fn(usize) -> f32, without: Option<usize>) -> f64 {
        let kept = weights.iter().enumerate().filter(|(cell, _)| Some(*cell) != without);
        kept.map(|(cell, &weight)| f64::from(weight) * f64::from(values(cell))).sum()
    }

    /// For each map of some long sequences, whether the context is without its largest weight. The context has to be the sum
    /// over all cells or over all but that one, and the coverage the sum of whole maps.
    fn dropped_maps(rate: f64) -> Vec<bool> {
        let GruGolden { mut config, weights, sizes, .. } = GruGolden::tiny("gru-stacked");
        config.drop_attention = rate;
        let (heads, d, width, steps) = (config.heads, config.d_model, config.attention_width, 60);
        let formula = vec![7; steps - 1];
        let sequences: Vec<TokenSequence> =
            sizes.iter().flat_map(|_| TokenSequence::both_directions(&formula)).collect();
        let batch = DecoderBatch::new(&config, &weights, 3, Grid::new(sizes), &sequences);
        let attention = CoverageAttention::new(&batch);
        let mut dropped = Vec::new();
        for (index, sequence) in batch.sequences.iter().enumerate() {
            let (cells, seed) = (sequence.cells(), index as u32);
            let [features, memory, queries] =
                [cells * width, cells * d, steps * width].map(|count| noise(count, seed + count as u32));
            let mut tape = attention.start(sequence, &features, &memory);
            let mut coverage = vec![0.0; heads * cells];
            for (step, query) in queries.chunks(width).enumerate() {
                let mut found = vec![0.0; d];
                attention.forward(&mut tape, query, &mut found);
                let maps = &tape.weights[step * heads * cells..][..heads * cells];
                for (head, map) in maps.chunks(cells).enumerate() {
                    assert!((map.iter().sum::<f32>() - 1.0).abs() < 1e-5, "the tape has whole maps");
                    let largest = (0..cells).max_by(|&a, &b| map[a].total_cmp(&map[b]));
                    let differs = |without: Option<usize>| {
                        let columns = head * (d / heads)..(head + 1) * (d / heads);
                        columns.into_iter().any(|k| {
                            let expected = context(map, |cell| memory[cell * d + k], without);
                            (f64::from(found[k]) - expected).abs() > 1e-5
                        })
                    };
                    assert_ne!(differs(None), differs(largest), "step {step}, head {head}");
                    dropped.push(differs(None));
                }
                coverage.iter_mut().zip(maps).for_each(|(sum, x)| *sum += x);
                let kept = &tape.coverage[(step + 1) * heads * cells..];
                assert!(kept.iter().zip(&coverage).all(|(a, b)| (a - b).abs() < 1e-4), "step {step}");
            }
        }
        dropped
    }

    #[test]
    fn drop_attention_drops_the_largest_weight_of_some_maps_but_not_from_the_coverage() {
        assert!(dropped_maps(0.0).iter().all(|&dropped| !dropped));
        let dropped = dropped_maps(0.3);
        assert_eq!(dropped.len(), 720);
        // Three standard deviations are 37.
        let count = dropped.iter().filter(|&&dropped| dropped).count();
        assert!((216 - 37..=216 + 37).contains(&count), "{count} of 720");
        // Each sequence, and each head, draws its own.
        let (first, second) = (&dropped[..120], &dropped[120..240]);
        assert_ne!(first, second);
        assert!(first.chunks(2).any(|heads| heads[0] != heads[1]));
    }
}
