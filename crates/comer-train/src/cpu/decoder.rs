//! The transformer decoder for training on a CPU: from the memory to the loss, and back.
//!
//! Linear layers process the tokens of all sequences at once, attention each sequence separately.

use comer::internal::position::{encode, frequencies};
use comer::internal::weights::Weights;
use rayon::prelude::*;

use super::attention::{SelfAttention, SelfTape};
use super::cross::{CrossAttention, CrossTape};
use super::decoder_batch::{DecoderBatch, Site};
use super::densenet::NormStatistics;
use super::linear::{
    LayerNorm, LayerNormTape, Linear, add, entry, relu_dropout, relu_dropout_backward, residual,
    residual_backward,
};
use super::loss::{Loss, cross_entropy};
use super::product::Matrix;

/// The output of the forward and backward pass of a decoder.
pub(super) struct DecoderOutput {
    pub loss: Loss,
    pub statistics: Vec<NormStatistics>,
    /// The gradient of the memory.
    pub memory: Vec<f32>,
}

struct LayerTape {
    input: Vec<f32>, // [tokens][d_model], as are the others
    self_attention: SelfTape,
    self_norm: LayerNormTape,
    middle: Vec<f32>,
    cross_attention: CrossTape,
    cross_norm: LayerNormTape,
    last: Vec<f32>,
    inner: Vec<f32>, // [tokens][feed_forward]
    feed_forward_norm: LayerNormTape,
}

/// The forward and backward pass, from the memory of the pictures (`[cells][d_model]`). Adds to `gradients`.
pub(super) fn forward_backward(
    batch: &DecoderBatch,
    memory: &[f32],
    smoothing: f32,
    gradients: &mut Weights,
) -> DecoderOutput {
    let (mut x, embedding_tapes) = embed(batch);
    let mut tapes: Vec<LayerTape> = Vec::with_capacity(batch.config.decoder_layers);
    for index in 0..batch.config.decoder_layers {
        let layer = Layer { batch, memory, index };
        let previous = tapes.last().map(|tape| &tape.cross_attention);
        let (output, tape) = layer.forward(x, previous);
        x = output;
        tapes.push(tape);
    }
    let output = Linear::new(batch.weights, "decoder.output");
    let d = batch.config.d_model;
    let x = Matrix::rows(&x, batch.tokens, d, d);
    let mut logits = output.forward(x);
    let loss = cross_entropy(batch, &mut logits, smoothing);
    output.insert_grad(x, &logits, gradients);
    let mut gradient = output.backward(&logits);

    let mut memory_gradient = vec![0.0; memory.len()];
    let mut attention_gradients = Vec::new();
    let mut statistics = Vec::new();
    while let Some(tape) = tapes.pop() {
        let layer = Layer { batch, memory, index: tapes.len() };
        let previous = tapes.last().map(|tape| &tape.cross_attention);
        attention_gradients = layer.backward(
            &tape,
            previous,
            &attention_gradients,
            &mut gradient,
            &mut memory_gradient,
            gradients,
        );
        statistics.extend(tape.cross_attention.statistics());
    }
    statistics.reverse();
    embed_backward(batch, &embedding_tapes, gradient, gradients);
    DecoderOutput { loss, statistics, memory: memory_gradient }
}

/// The embeddings of the tokens with positional encodings: `[tokens][d_model]`
fn embed(batch: &DecoderBatch) -> (Vec<f32>, [LayerNormTape; 2]) {
    let d = batch.config.d_model;
    let table = &batch.weights["decoder.embedding.weight"].data;
    let mut embedded = Vec::with_capacity(batch.tokens * d);
    for sequence in &batch.sequences {
        for &token in &sequence.tokens.inputs {
            embedded.extend_from_slice(&table[usize::from(token) * d..][..d]);
        }
    }
    let (mut embedded, first) = LayerNorm::new(batch.weights, "decoder.embedding_norm").forward(embedded);
    let steps = batch.sequences.iter().map(|sequence| sequence.steps()).max().unwrap_or(0);
    let frequencies = frequencies(d);
    let positions: Vec<f32> = (0..steps).flat_map(|step| encode(step as f64, &frequencies)).collect();
    for part in batch.tokens_of_sequences(&mut embedded, d) {
        add(part, &positions);
    }
    let (embedded, second) = LayerNorm::new(batch.weights, "decoder.input_norm").forward(embedded);
    (embedded, [first, second])
}

fn embed_backward(
    batch: &DecoderBatch,
    [first, second]: &[LayerNormTape; 2],
    mut gradient: Vec<f32>,
    gradients: &mut Weights,
) {
    let (d, name) = (batch.config.d_model, "decoder.embedding.weight");
    LayerNorm::new(batch.weights, "decoder.input_norm").backward(second, &mut gradient, gradients);
    LayerNorm::new(batch.weights, "decoder.embedding_norm").backward(first, &mut gradient, gradients);
    let table = entry(gradients, name.into(), &batch.weights[name].shape);
    let tokens = batch.sequences.iter().flat_map(|sequence| &sequence.tokens.inputs);
    for (&token, row) in tokens.zip(gradient.chunks_exact(d)) {
        add(&mut table.data[usize::from(token) * d..][..d], row);
    }
}

/// One layer: self-attention, cross-attention and a feed-forward network, each as a residual branch with a layer norm after it.
struct Layer<'a> {
    batch: &'a DecoderBatch<'a>,
    memory: &'a [f32],
    index: usize,
}

impl<'a> Layer<'a> {
    fn path(&self, leaf: &str) -> String {
        format!("decoder.layers.{}.{leaf}", self.index)
    }

    fn norm(&self, leaf: &str) -> LayerNorm<'a> {
        LayerNorm::new(self.batch.weights, self.path(leaf))
    }

    fn linear(&self, leaf: &str) -> Linear<'a> {
        Linear::new(self.batch.weights, self.path(leaf))
    }

    fn self_attention(&self) -> SelfAttention<'a> {
        SelfAttention { batch: self.batch, layer: self.index }
    }

    fn cross_attention(&self) -> CrossAttention<'a> {
        CrossAttention { batch: self.batch, memory: self.memory, layer: self.index }
    }

    fn rows<'v>(&self, values: &'v [f32]) -> Matrix<'v> {
        let width = values.len() / self.batch.tokens;
        Matrix::rows(values, self.batch.tokens, width, width)
    }

    fn forward(&self, input: Vec<f32>, previous: Option<&CrossTape>) -> (Vec<f32>, LayerTape) {
        let dropout = |site| self.batch.dropout(self.index, site);
        let (mut branch, self_attention) = self.self_attention().forward(&input);
        residual(&mut branch, &input, dropout(Site::SelfBranch));
        let (middle, self_norm) = self.norm("self_attention_norm").forward(branch);

        let (mut branch, cross_attention) = self.cross_attention().forward(&middle, previous);
        residual(&mut branch, &middle, dropout(Site::CrossBranch));
        let (last, cross_norm) = self.norm("cross_attention_norm").forward(branch);

        let mut inner = self.linear("expand").forward(self.rows(&last));
        relu_dropout(&mut inner, dropout(Site::Inner));
        let mut branch = self.linear("contract").forward(self.rows(&inner));
        residual(&mut branch, &last, dropout(Site::FeedForwardBranch));
        let (output, feed_forward_norm) = self.norm("feed_forward_norm").forward(branch);
        let tape = LayerTape {
            input,
            self_attention,
            self_norm,
            middle,
            cross_attention,
            cross_norm,
            last,
            inner,
            feed_forward_norm,
        };
        (output, tape)
    }

    /// Turns the gradient of the output into that of the input, in place; returns that of the previous layer's attention.
    fn backward(
        &self,
        tape: &LayerTape,
        previous: Option<&CrossTape>,
        attention_gradients: &[Vec<f32>],
        gradient: &mut [f32],
        memory: &mut [f32],
        gradients: &mut Weights,
    ) -> Vec<Vec<f32>> {
        let dropout = |site| self.batch.dropout(self.index, site);
        self.norm("feed_forward_norm").backward(&tape.feed_forward_norm, gradient, gradients);
        let branch = residual_backward(gradient, dropout(Site::FeedForwardBranch));
        let (expand, contract) = (self.linear("expand"), self.linear("contract"));
        contract.insert_grad(self.rows(&tape.inner), &branch, gradients);
        let mut inner = contract.backward(&branch);
        relu_dropout_backward(&tape.inner, &mut inner, dropout(Site::Inner));
        expand.insert_grad(self.rows(&tape.last), &inner, gradients);
        expand.backward_add(&inner, gradient);

        self.norm("cross_attention_norm").backward(&tape.cross_norm, gradient, gradients);
        let branch = residual_backward(gradient, dropout(Site::CrossBranch));
        let cross = self.cross_attention().backward(
            &tape.cross_attention,
            previous,
            &tape.middle,
            &branch,
            attention_gradients,
            gradients,
        );
        add(gradient, &cross.x);
        memory.par_chunks_mut(1 << 14).zip(cross.memory.par_chunks(1 << 14)).for_each(|(sum, x)| add(sum, x));

        self.norm("self_attention_norm").backward(&tape.self_norm, gradient, gradients);
        let branch = residual_backward(gradient, dropout(Site::SelfBranch));
        self.self_attention().backward(&tape.self_attention, &tape.input, &branch, gradient, gradients);
        cross.previous
    }
}
