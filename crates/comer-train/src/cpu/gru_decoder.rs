//! The GRU decoder with coverage attention for training on a CPU: from the memory to the loss, and back.
//!
//! The decoder of WAP and DenseWAP (section 3.1 of the paper). At each step, with the embedding y of the token before:
//! `q = token_gru(y, s)`, `(c, a) = attention(q)`, `s' = context_gru(c, q)`; further GRUs are stacked on s'. The logits are
//! `W_o maxout(W_r [y, s', c])`, where maxout is the larger of two neighbours. The first state is `tanh(W m + b)` with the
//! mean m of the memory. All sequences advance together, so that the products of a step are over all of them.

use comer::internal::weights::Weights;
use rayon::prelude::*;

use super::coverage_attention::{AttentionGradients, AttentionTape, CoverageAttention};
use super::decoder::DecoderOutput;
use super::decoder_batch::{DecoderBatch, Site};
use super::gru::{Gru, GruTape};
use super::linear::{Linear, add, apply_dropout, entry};
use super::loss::cross_entropy;
use super::norm::Dropout;
use super::packed_steps::PackedSteps;
use super::product::{Matrix, Threads, multiply};

const QUERY: &str = "decoder.attention.state.weight";

/// The forward and backward pass, from the memory of the pictures (`[cells][d_model]`). Adds to `gradients`.
pub(super) fn forward_backward(
    batch: &DecoderBatch,
    memory: &[f32],
    smoothing: f32,
    gradients: &mut Weights,
) -> DecoderOutput {
    let decoder = GruDecoder::new(batch, memory);
    let tape = decoder.forward();
    let Readout { inputs, hidden, largest, mut logits } = decoder.read_out(&tape);
    let loss = cross_entropy(batch, &mut logits, smoothing);

    let (d, readout, output) = (decoder.d(), &decoder.readout, &decoder.output);
    output.insert_grad(Matrix::rows(&largest, batch.tokens, d / 2, d / 2), &logits, gradients);
    let mut largest = output.backward(&logits);
    apply_dropout(decoder.dropout(), 0, &mut largest);
    let pairs = hidden.as_chunks::<2>().0.iter().zip(&largest);
    let hidden: Vec<f32> = pairs.flat_map(|(&[a, b], &g)| if a >= b { [g, 0.0] } else { [0.0, g] }).collect();
    readout.insert_grad(Matrix::rows(&inputs, batch.tokens, 3 * d, 3 * d), &hidden, gradients);
    let inputs = decoder.steps.pack(&readout.backward(&hidden), 3 * d);
    let part = |column: usize| -> Vec<f32> {
        inputs.chunks_exact(3 * d).flat_map(|row| &row[column * d..][..d]).copied().collect()
    };
    let memory = decoder.backward(&tape, [part(0), part(1), part(2)], gradients);
    DecoderOutput { loss, statistics: Vec::new(), memory }
}

struct GruDecoder<'a> {
    batch: &'a DecoderBatch<'a>,
    memory: &'a [f32], // [cells][d]
    steps: PackedSteps,
    attention: CoverageAttention<'a>,
    /// `W_f F + b`, `[cells][width]`
    features: Vec<f32>,
    token_gru: Gru<'a>,
    context_gru: Gru<'a>,
    stacked: Vec<Gru<'a>>,
    readout: Linear<'a>,
    output: Linear<'a>,
}

/// What the backward pass needs; all rows are packed.
struct Tape<'a> {
    means: Vec<f32>,        // [pictures][d]
    initial: Vec<Vec<f32>>, // of each layer, [pictures][d]
    tokens: Vec<f32>,       // [rows][d]
    token_gru: GruTape,
    queries: Vec<f32>,                 // [rows][width]
    attention: Vec<AttentionTape<'a>>, // of each sequence, longest first
    contexts: Vec<f32>,                // [rows][d]
    context_gru: GruTape,
    stacked: Vec<GruTape>,
}

impl Tape<'_> {
    /// The GRU whose states are read out.
    fn last(&self) -> &GruTape {
        self.stacked.last().unwrap_or(&self.context_gru)
    }
}

/// The layers above the GRUs, with rows in the order of the sequences.
struct Readout {
    /// The embedding, the last state and the context, `[tokens][3 * d]`.
    inputs: Vec<f32>,
    hidden: Vec<f32>,  // [tokens][d]
    largest: Vec<f32>, // [tokens][d / 2], after dropout
    logits: Vec<f32>,  // [tokens][vocabulary]
}

impl<'a> GruDecoder<'a> {
    fn new(batch: &'a DecoderBatch<'a>, memory: &'a [f32]) -> Self {
        let d = batch.config.d_model;
        let gru = |path: &str| Gru::new(batch.weights, path);
        let features = Linear::new(batch.weights, "decoder.attention.features");
        Self {
            batch,
            memory,
            steps: PackedSteps::new(&batch.sequences),
            attention: CoverageAttention::new(batch),
            features: features.forward(Matrix::rows(memory, memory.len() / d, d, d)),
            token_gru: gru("decoder.token_gru"),
            context_gru: gru("decoder.context_gru"),
            stacked: (1..batch.config.decoder_layers)
                .map(|layer| gru(&format!("decoder.stacked_gru.{layer}")))
                .collect(),
            readout: Linear::new(batch.weights, "decoder.readout"),
            output: Linear::new(batch.weights, "decoder.output"),
        }
    }

    fn d(&self) -> usize {
        self.batch.config.d_model
    }

    fn dropout(&self) -> Option<Dropout> {
        self.batch.dropout(0, Site::Inner)
    }

    fn initial(&self, layer: usize) -> Linear<'a> {
        Linear::new(self.batch.weights, format!("decoder.initial.{layer}"))
    }

    /// The mean of the memory of each picture, `[pictures][d]`.
    fn means(&self) -> Vec<f32> {
        let d = self.d();
        let mean = |region: &super::grid::Region| {
            let cells = region.height * region.width;
            let mut sum = vec![0.0; d];
            self.memory[region.start * d..].chunks_exact(d).take(cells).for_each(|row| add(&mut sum, row));
            sum.iter_mut().for_each(|x| *x /= cells as f32);
            sum
        };
        self.batch.cells.pictures().iter().flat_map(mean).collect()
    }

    /// The states before a step: those of the first step, `[pictures][d]`, or those after the step before.
    fn previous(&self, step: usize, initial: &[f32], next: &[f32]) -> Vec<f32> {
        let (d, count) = (self.d(), self.steps.rows(step).len());
        match step.checked_sub(1) {
            Some(before) => next[self.steps.rows(before).start * d..][..count * d].to_vec(),
            None => self.steps.order.iter().flat_map(|own| &initial[own / 2 * d..][..d]).copied().collect(),
        }
    }

    fn forward(&self) -> Tape<'_> {
        let (batch, d, width) = (self.batch, self.d(), self.batch.config.attention_width);
        let (rows, pictures) = (batch.tokens, batch.cells.sizes.len());
        let means = self.means();
        let initial = |layer: usize| {
            let mut state = self.initial(layer).forward(Matrix::rows(&means, pictures, d, d));
            state.iter_mut().for_each(|x| *x = x.tanh());
            state
        };
        let initial: Vec<Vec<f32>> = (0..batch.config.decoder_layers).map(initial).collect();
        let tokens = self.steps.pack(&self.embed(), d);
        let token_parts = self.token_gru.input.forward(Matrix::rows(&tokens, rows, d, d));
        let query = Matrix::rows(&batch.weights[QUERY].data, width, d, d).transposed();
        let (mut token_gru, mut context_gru) = (self.token_gru.tape(rows), self.context_gru.tape(rows));
        let (mut queries, mut contexts) = (vec![0.0; rows * width], vec![0.0; rows * d]);
        let mut attention: Vec<AttentionTape> = self.steps.order.iter().map(|&own| self.start(own)).collect();
        for step in 0..self.steps.steps() {
            let range = self.steps.rows(step);
            let (first, count) = (range.start, range.len());
            let previous = self.previous(step, &initial[0], &context_gru.next);
            let parts = &token_parts[first * 3 * d..][..count * 3 * d];
            self.token_gru.forward(&mut token_gru, range.clone(), parts, &previous);
            let states = &token_gru.next[first * d..][..count * d];
            let state_rows = Matrix::rows(states, count, d, d);
            let queries = &mut queries[first * width..][..count * width];
            multiply(queries, width, state_rows, query, false, Threads::All);
            let contexts = &mut contexts[first * d..][..count * d];
            let sequences = attention[..count].par_iter_mut().zip(queries.par_chunks_exact(width));
            sequences
                .zip(contexts.par_chunks_exact_mut(d))
                .for_each(|((tape, query), context)| self.attention.forward(tape, query, context));
            let parts = self.context_gru.input.forward(Matrix::rows(contexts, count, d, d));
            self.context_gru.forward(&mut context_gru, range, &parts, states);
        }
        let mut stacked: Vec<GruTape> = Vec::with_capacity(self.stacked.len());
        for (gru, initial) in self.stacked.iter().zip(&initial[1..]) {
            let below = &stacked.last().unwrap_or(&context_gru).next;
            let parts = gru.input.forward(Matrix::rows(below, rows, d, d));
            let mut tape = gru.tape(rows);
            for step in 0..self.steps.steps() {
                let range = self.steps.rows(step);
                let previous = self.previous(step, initial, &tape.next);
                gru.forward(
                    &mut tape,
                    range.clone(),
                    &parts[range.start * 3 * d..range.end * 3 * d],
                    &previous,
                );
            }
            stacked.push(tape);
        }
        Tape { means, initial, tokens, token_gru, queries, attention, contexts, context_gru, stacked }
    }

    /// From the tokens, last states and contexts to the logits.
    fn read_out(&self, tape: &Tape) -> Readout {
        let (d, tokens) = (self.d(), self.batch.tokens);
        let mut inputs = vec![0.0; tokens * 3 * d];
        for (column, part) in [&tape.tokens, &tape.last().next, &tape.contexts].into_iter().enumerate() {
            self.steps.unpack(part, d, &mut inputs, column * d, 3 * d);
        }
        let hidden = self.readout.forward(Matrix::rows(&inputs, tokens, 3 * d, 3 * d));
        let mut largest: Vec<f32> = hidden.as_chunks::<2>().0.iter().map(|&[a, b]| a.max(b)).collect();
        apply_dropout(self.dropout(), 0, &mut largest);
        let logits = self.output.forward(Matrix::rows(&largest, tokens, d / 2, d / 2));
        Readout { inputs, hidden, largest, logits }
    }

    /// The embeddings in the order of the sequences, `[tokens][d]`.
    fn embed(&self) -> Vec<f32> {
        let (d, table) = (self.d(), &self.batch.weights["decoder.embedding.weight"].data);
        let tokens = self.batch.sequences.iter().flat_map(|sequence| &sequence.tokens.inputs);
        tokens.flat_map(|&token| &table[usize::from(token) * d..][..d]).copied().collect()
    }

    /// The attention of a sequence before its first step.
    fn start(&self, index: usize) -> AttentionTape<'_> {
        let (d, width) = (self.d(), self.batch.config.attention_width);
        let (sequence, region) = (&self.batch.sequences[index], self.batch.cells.pictures()[index / 2]);
        let cells = sequence.cells();
        let features = &self.features[region.start * width..][..cells * width];
        self.attention.start(sequence, features, &self.memory[region.start * d..][..cells * d])
    }

    /// From the gradients of tokens, last states and contexts by the readout (packed rows of d) to that of the memory.
    fn backward(
        &self,
        tape: &Tape,
        [mut tokens, mut states, mut contexts]: [Vec<f32>; 3],
        gradients: &mut Weights,
    ) -> Vec<f32> {
        let (batch, d, width) = (self.batch, self.d(), self.batch.config.attention_width);
        let mut initial: Vec<Vec<f32>> = Vec::new();
        for (index, (gru, own)) in self.stacked.iter().zip(&tape.stacked).enumerate().rev() {
            let below = index.checked_sub(1).map_or(&tape.context_gru, |below| &tape.stacked[below]);
            let mut parts = gru.gradients(batch.tokens);
            let mut carried = Vec::new();
            for step in (0..self.steps.steps()).rev() {
                let range = self.steps.rows(step);
                let gradient = &mut states[range.start * d..range.end * d];
                add(gradient, &carried);
                carried = gru.backward(own, range, gradient, &mut parts);
            }
            states = gru.insert_grad(own, &below.next, &parts, gradients);
            initial.push(carried);
        }

        let query = Matrix::rows(&batch.weights[QUERY].data, width, d, d);
        let mut token_parts = self.token_gru.gradients(batch.tokens);
        let mut context_parts = self.context_gru.gradients(batch.tokens);
        let mut queries = vec![0.0; batch.tokens * width];
        let mut sequences: Vec<AttentionGradients> =
            tape.attention.iter().map(|own| self.attention.gradients(own)).collect();
        let mut carried = Vec::new();
        for step in (0..self.steps.steps()).rev() {
            let range = self.steps.rows(step);
            let (first, count) = (range.start, range.len());
            let gradient = &mut states[first * d..][..count * d];
            add(gradient, &carried);
            let mut state =
                self.context_gru.backward(&tape.context_gru, range.clone(), gradient, &mut context_parts);
            let contexts = &mut contexts[first * d..][..count * d];
            let parts = &context_parts.input[first * 3 * d..][..count * 3 * d];
            self.context_gru.input.backward_add(parts, contexts);
            let own_queries = &tape.queries[first * width..][..count * width];
            let queries = &mut queries[first * width..][..count * width];
            let parts = tape.attention[..count].par_iter().zip(&mut sequences[..count]);
            let rows = own_queries.par_chunks_exact(width).zip(queries.par_chunks_exact_mut(width));
            parts.zip(rows).zip(contexts.par_chunks_exact(d)).for_each(
                |(((own, sums), (query, query_gradient)), context)| {
                    self.attention.backward(own, step, query, context, sums, query_gradient);
                },
            );
            multiply(&mut state, d, Matrix::rows(queries, count, width, width), query, true, Threads::All);
            carried = self.token_gru.backward(&tape.token_gru, range, &state, &mut token_parts);
        }
        initial.push(carried);
        initial.reverse();

        let rows = Matrix::rows(&tape.token_gru.next, batch.tokens, d, d);
        let left = Matrix::rows(&queries, batch.tokens, width, width).transposed();
        let target = &mut entry(gradients, QUERY.into(), &batch.weights[QUERY].shape).data;
        multiply(target, d, left, rows, false, Threads::All);
        self.context_gru.insert_grad(&tape.context_gru, &tape.contexts, &context_parts, gradients);
        add(&mut tokens, &self.token_gru.insert_grad(&tape.token_gru, &tape.tokens, &token_parts, gradients));
        self.embed_backward(&tokens, gradients);
        let pairs: Vec<_> = tape.attention.iter().zip(sequences).collect();
        self.attention.insert_grad(&pairs, gradients);
        let mut memory = self.memory_backward(&pairs, gradients);
        self.initial_backward(tape, &initial, &mut memory, gradients);
        memory
    }

    fn embed_backward(&self, packed: &[f32], gradients: &mut Weights) {
        let (d, name) = (self.d(), "decoder.embedding.weight");
        let mut rows = vec![0.0; packed.len()];
        self.steps.unpack(packed, d, &mut rows, 0, d);
        let table = entry(gradients, name.into(), &self.batch.weights[name].shape);
        let tokens = self.batch.sequences.iter().flat_map(|sequence| &sequence.tokens.inputs);
        for (&token, row) in tokens.zip(rows.chunks_exact(d)) {
            add(&mut table.data[usize::from(token) * d..][..d], row);
        }
    }

    /// The gradient of the memory by the attention of all sequences, `[cells][d]`.
    fn memory_backward(
        &self,
        sequences: &[(&AttentionTape, AttentionGradients)],
        gradients: &mut Weights,
    ) -> Vec<f32> {
        let (d, width) = (self.d(), self.batch.config.attention_width);
        let (mut memory, mut features) = (vec![0.0; self.memory.len()], vec![0.0; self.features.len()]);
        for (&index, (_, own)) in self.steps.order.iter().zip(sequences) {
            let start = self.batch.cells.pictures()[index / 2].start;
            add(&mut memory[start * d..], &own.memory);
            add(&mut features[start * width..], &own.features);
        }
        let linear = Linear::new(self.batch.weights, "decoder.attention.features");
        linear.insert_grad(Matrix::rows(self.memory, memory.len() / d, d, d), &features, gradients);
        linear.backward_add(&features, &mut memory);
        memory
    }

    /// Backward through the first states; `states` has their gradients for each layer, one row for each sequence.
    fn initial_backward(
        &self,
        tape: &Tape,
        states: &[Vec<f32>],
        memory: &mut [f32],
        gradients: &mut Weights,
    ) {
        let (d, pictures) = (self.d(), self.batch.cells.pictures());
        let mut means = vec![0.0; tape.means.len()];
        for (layer, (states, initial)) in states.iter().zip(&tape.initial).enumerate() {
            let mut gradient = vec![0.0; initial.len()];
            for (own, state) in self.steps.order.iter().zip(states.chunks_exact(d)) {
                add(&mut gradient[own / 2 * d..][..d], state);
            }
            gradient.iter_mut().zip(initial).for_each(|(g, y)| *g *= 1.0 - y * y);
            let linear = self.initial(layer);
            linear.insert_grad(Matrix::rows(&tape.means, pictures.len(), d, d), &gradient, gradients);
            linear.backward_add(&gradient, &mut means);
        }
        for (region, mean) in pictures.iter().zip(means.chunks_exact(d)) {
            let cells = region.height * region.width;
            for cell in memory[region.start * d..].chunks_exact_mut(d).take(cells) {
                cell.iter_mut().zip(mean).for_each(|(sum, x)| *sum += x / cells as f32);
            }
        }
    }
}

#[cfg(test)]
mod tests;
