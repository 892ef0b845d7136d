//! The decoder for training on a CPU: from the DenseNet's features to the loss, and back.
//!
//! Linear maps run over the tokens of all sequences at once, attention over each sequence for itself.

use comer::internal::TokenId;
use comer::internal::position::{encode, frequencies, share};
use comer::internal::weights::Weights;
use rayon::prelude::*;

use super::attention::{SelfAttention, SelfTape};
use super::cross::{CrossAttention, CrossTape};
use super::densenet::{Features, NormStatistics};
use super::linear::{LayerNorm, LayerNormTape, Linear, activate, add, deactivate, dropped, entry, join};
use super::loss::{Loss, cross_entropy, symbol_entropy};
use super::product::Matrix;
use super::scene::{Scene, Site};

/// What the decoder's pass gave.
pub(super) struct Decoded {
    pub loss: Loss,
    pub gradients: Weights,
    pub statistics: Vec<NormStatistics>,
    /// The gradient of the features' rows.
    pub features: Vec<f32>,
    /// The loss of the cells' symbols.
    pub symbols: f64,
}

struct LayerTape {
    input: Vec<f32>, // [tokens][d_model], as are the others
    words: SelfTape,
    words_norm: LayerNormTape,
    middle: Vec<f32>,
    cells: CrossTape,
    cells_norm: LayerNormTape,
    last: Vec<f32>,
    inner: Vec<f32>, // [tokens][feed_forward]
    feed_forward_norm: LayerNormTape,
}

/// Forward and backward, from the features of the scene's pictures.
pub(super) fn read(
    scene: &Scene,
    features: &Features,
    smoothing: f32,
    symbols: Option<(f32, &[TokenId])>,
) -> Decoded {
    let mut gradients = Weights::new();
    let cells = Linear::new(scene.weights, "encoder.projection").forward(feature_rows(features));
    let named = symbols.map(|(weight, symbols)| name_cells(scene, &cells, symbols, weight, &mut gradients));
    let (memory, memory_tape) = look(scene, cells);
    let (mut x, word_tapes) = embed(scene);
    let mut tapes: Vec<LayerTape> = Vec::with_capacity(scene.config.decoder_layers);
    for index in 0..scene.config.decoder_layers {
        let layer = Layer { scene, memory: &memory, index };
        let previous = tapes.last().map(|tape| &tape.cells);
        let (output, tape) = layer.forward(x, previous);
        x = output;
        tapes.push(tape);
    }
    let output = Linear::new(scene.weights, "decoder.output");
    let d = scene.config.d_model;
    let x = Matrix::rows(&x, scene.tokens, d, d);
    let mut logits = output.forward(x);
    let loss = cross_entropy(scene, &mut logits, smoothing);
    output.note(x, &logits, &mut gradients);
    let mut gradient = output.back(&logits);

    let mut memory_gradient = vec![0.0; memory.len()];
    let mut later = Vec::new();
    let mut statistics = Vec::new();
    while let Some(tape) = tapes.pop() {
        let layer = Layer { scene, memory: &memory, index: tapes.len() };
        let previous = tapes.last().map(|tape| &tape.cells);
        later = layer.backward(&tape, previous, &later, &mut gradient, &mut memory_gradient, &mut gradients);
        statistics.extend(tape.cells.statistics());
    }
    statistics.reverse();
    embed_back(scene, &word_tapes, gradient, &mut gradients);
    let (symbols, further) = named.unwrap_or_default();
    let features = look_back(scene, features, &memory_tape, memory_gradient, &further, &mut gradients);
    Decoded { loss, gradients, statistics, features, symbols }
}

/// The loss of naming the symbol of each cell, and the gradient of the cells, `[cells][d_model]`.
fn name_cells(
    scene: &Scene,
    cells: &[f32],
    symbols: &[TokenId],
    weight: f32,
    gradients: &mut Weights,
) -> (f64, Vec<f32>) {
    let d = scene.config.d_model;
    let linear = Linear::new(scene.weights, "symbols");
    let rows = Matrix::rows(cells, cells.len() / d, d, d);
    let mut logits = linear.forward(rows);
    let loss = symbol_entropy(&mut logits, symbols, weight);
    linear.note(rows, &logits, gradients);
    (loss, linear.back(&logits))
}

/// The features, projected to the decoder's width, with the places of the cells added: `[cells][d_model]`
fn look(scene: &Scene, mut cells: Vec<f32>) -> (Vec<f32>, LayerNormTape) {
    let d = scene.config.d_model;
    let frequencies = frequencies(d / 2);
    for place in scene.cells.pictures() {
        let axis = |length: usize| -> Vec<f32> {
            (1..=length).flat_map(|part| encode(share(part, length), &frequencies)).collect()
        };
        let (columns, rows) = (axis(place.width), axis(place.height));
        let cells = cells[place.start * d..].chunks_exact_mut(d).take(place.height * place.width);
        for (index, cell) in cells.enumerate() {
            let (y, x) = (index / place.width, index % place.width);
            add(&mut cell[..d / 2], &columns[x * (d / 2)..]);
            add(&mut cell[d / 2..], &rows[y * (d / 2)..]);
        }
    }
    LayerNorm::new(scene.weights, "encoder.norm").forward(cells)
}

/// The gradient of the features' rows; `further` is added to that of the projected features.
fn look_back(
    scene: &Scene,
    features: &Features,
    tape: &LayerNormTape,
    mut gradient: Vec<f32>,
    further: &[f32],
    gradients: &mut Weights,
) -> Vec<f32> {
    LayerNorm::new(scene.weights, "encoder.norm").backward(tape, &mut gradient, gradients);
    add(&mut gradient, further);
    let linear = Linear::new(scene.weights, "encoder.projection");
    linear.note(feature_rows(features), &gradient, gradients);
    linear.back(&gradient)
}

/// `[cells, channels]`
fn feature_rows(Features { grid, rows }: &Features) -> Matrix<'_> {
    let channels = rows.len() / grid.pixels;
    Matrix::rows(rows, grid.pixels, channels, channels)
}

/// The tokens' embeddings with their places: `[tokens][d_model]`
fn embed(scene: &Scene) -> (Vec<f32>, [LayerNormTape; 2]) {
    let d = scene.config.d_model;
    let table = &scene.weights["decoder.embedding.weight"].data;
    let mut words = Vec::with_capacity(scene.tokens * d);
    for sequence in &scene.sequences {
        for &token in &sequence.reading.inputs {
            words.extend_from_slice(&table[usize::from(token) * d..][..d]);
        }
    }
    let (mut words, first) = LayerNorm::new(scene.weights, "decoder.embedding_norm").forward(words);
    let steps = scene.sequences.iter().map(|sequence| sequence.steps()).max().unwrap_or(0);
    let frequencies = frequencies(d);
    let places: Vec<f32> = (0..steps).flat_map(|step| encode(step as f64, &frequencies)).collect();
    for part in scene.tokens_of_sequences(&mut words, d) {
        add(part, &places);
    }
    let (words, second) = LayerNorm::new(scene.weights, "decoder.input_norm").forward(words);
    (words, [first, second])
}

fn embed_back(
    scene: &Scene,
    [first, second]: &[LayerNormTape; 2],
    mut gradient: Vec<f32>,
    gradients: &mut Weights,
) {
    let (d, name) = (scene.config.d_model, "decoder.embedding.weight");
    LayerNorm::new(scene.weights, "decoder.input_norm").backward(second, &mut gradient, gradients);
    LayerNorm::new(scene.weights, "decoder.embedding_norm").backward(first, &mut gradient, gradients);
    let table = entry(gradients, name.into(), &scene.weights[name].shape);
    let tokens = scene.sequences.iter().flat_map(|sequence| &sequence.reading.inputs);
    for (&token, row) in tokens.zip(gradient.chunks_exact(d)) {
        add(&mut table.data[usize::from(token) * d..][..d], row);
    }
}

/// One layer: attention to the formula so far, attention to the picture, a feed-forward network; each added to what
/// came in, then normalised.
struct Layer<'a> {
    scene: &'a Scene<'a>,
    memory: &'a [f32],
    index: usize,
}

impl<'a> Layer<'a> {
    fn path(&self, leaf: &str) -> String {
        format!("decoder.layers.{}.{leaf}", self.index)
    }

    fn norm(&self, leaf: &str) -> LayerNorm<'a> {
        LayerNorm::new(self.scene.weights, self.path(leaf))
    }

    fn linear(&self, leaf: &str) -> Linear<'a> {
        Linear::new(self.scene.weights, self.path(leaf))
    }

    fn words(&self) -> SelfAttention<'a> {
        SelfAttention { scene: self.scene, layer: self.index }
    }

    fn cells(&self) -> CrossAttention<'a> {
        CrossAttention { scene: self.scene, memory: self.memory, layer: self.index }
    }

    fn rows<'v>(&self, values: &'v [f32]) -> Matrix<'v> {
        let width = values.len() / self.scene.tokens;
        Matrix::rows(values, self.scene.tokens, width, width)
    }

    fn forward(&self, input: Vec<f32>, previous: Option<&CrossTape>) -> (Vec<f32>, LayerTape) {
        let drop = |site| self.scene.drop(self.index, site);
        let (mut branch, words) = self.words().forward(&input);
        join(&mut branch, &input, drop(Site::SelfBranch));
        let (middle, words_norm) = self.norm("self_attention_norm").forward(branch);

        let (mut branch, cells) = self.cells().forward(&middle, previous);
        join(&mut branch, &middle, drop(Site::CrossBranch));
        let (last, cells_norm) = self.norm("cross_attention_norm").forward(branch);

        let mut inner = self.linear("expand").forward(self.rows(&last));
        activate(&mut inner, drop(Site::Inner));
        let mut branch = self.linear("contract").forward(self.rows(&inner));
        join(&mut branch, &last, drop(Site::FeedForwardBranch));
        let (output, feed_forward_norm) = self.norm("feed_forward_norm").forward(branch);
        let tape =
            LayerTape { input, words, words_norm, middle, cells, cells_norm, last, inner, feed_forward_norm };
        (output, tape)
    }

    /// Turns the gradient of the output into that of the input, in place; answers that of the previous layer's attention.
    fn backward(
        &self,
        tape: &LayerTape,
        previous: Option<&CrossTape>,
        later: &[Vec<f32>],
        gradient: &mut [f32],
        memory: &mut [f32],
        gradients: &mut Weights,
    ) -> Vec<Vec<f32>> {
        let drop = |site| self.scene.drop(self.index, site);
        self.norm("feed_forward_norm").backward(&tape.feed_forward_norm, gradient, gradients);
        let branch = dropped(gradient, drop(Site::FeedForwardBranch));
        let (expand, contract) = (self.linear("expand"), self.linear("contract"));
        contract.note(self.rows(&tape.inner), &branch, gradients);
        let mut inner = contract.back(&branch);
        deactivate(&tape.inner, &mut inner, drop(Site::Inner));
        expand.note(self.rows(&tape.last), &inner, gradients);
        expand.add_back(&inner, gradient);

        self.norm("cross_attention_norm").backward(&tape.cells_norm, gradient, gradients);
        let branch = dropped(gradient, drop(Site::CrossBranch));
        let back = self.cells().backward(&tape.cells, previous, &tape.middle, &branch, later, gradients);
        add(gradient, &back.x);
        memory.par_chunks_mut(1 << 14).zip(back.memory.par_chunks(1 << 14)).for_each(|(sum, x)| add(sum, x));

        self.norm("self_attention_norm").backward(&tape.words_norm, gradient, gradients);
        let branch = dropped(gradient, drop(Site::SelfBranch));
        self.words().backward(&tape.words, &tape.input, &branch, gradient, gradients);
        back.previous
    }
}
