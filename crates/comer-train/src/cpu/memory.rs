//! The memory that a decoder attends to, from the DenseNet's features, and the auxiliary losses on the way.

use comer::internal::TokenId;
use comer::internal::position::{encode, frequencies, share};
use comer::internal::weights::Weights;

use super::decoder_batch::DecoderBatch;
use super::densenet::EncoderFeatures;
use super::linear::{LayerNorm, LayerNormTape, Linear, add};
use super::loss::{presence_cross_entropy, symbol_cross_entropy};
use super::product::Matrix;

/// The auxiliary losses on the projected features.
#[derive(Clone, Copy)]
pub(super) struct Auxiliary<'a> {
    /// The weight of the symbol loss and the symbol of each cell; `None` without this loss.
    pub symbols: Option<(f32, &'a [TokenId])>,
    /// The weight of the presence loss; 0 without this loss.
    pub presence: f32,
}

/// The memory of a batch: the projected features plus positional encodings, normalised.
pub(super) struct Memory {
    /// `[cells][d_model]`
    pub values: Vec<f32>,
    pub symbol_loss: f64,
    pub presence_loss: f64,
    norm: LayerNormTape,
    /// The gradients of the projected features by the auxiliary losses, `[cells][d_model]`; empty without one.
    auxiliary: Vec<Vec<f32>>,
}

impl Memory {
    pub fn forward(
        batch: &DecoderBatch,
        features: &EncoderFeatures,
        losses: Auxiliary,
        gradients: &mut Weights,
    ) -> Self {
        let cells = Linear::new(batch.weights, "encoder.projection").forward(feature_rows(features));
        let mut auxiliary = Vec::new();
        let mut classify = |path: &str, loss: &dyn Fn(&mut [f32]) -> f64| {
            let (loss, gradient) = classify(batch, path, &cells, loss, gradients);
            auxiliary.push(gradient);
            loss
        };
        let symbol_loss = losses.symbols.map_or(0.0, |(weight, symbols)| {
            classify("symbols", &|logits| symbol_cross_entropy(logits, symbols, weight))
        });
        let presence_loss = match losses.presence {
            0.0 => 0.0,
            weight => classify("presence", &|logits| presence_cross_entropy(batch, logits, weight)),
        };
        let (values, norm) = add_positions(batch, cells);
        Self { values, symbol_loss, presence_loss, norm, auxiliary }
    }

    /// The gradient of the features, from that of the memory.
    pub fn backward(
        &self,
        batch: &DecoderBatch,
        features: &EncoderFeatures,
        mut gradient: Vec<f32>,
        gradients: &mut Weights,
    ) -> Vec<f32> {
        LayerNorm::new(batch.weights, "encoder.norm").backward(&self.norm, &mut gradient, gradients);
        self.auxiliary.iter().for_each(|auxiliary| add(&mut gradient, auxiliary));
        let linear = Linear::new(batch.weights, "encoder.projection");
        linear.insert_grad(feature_rows(features), &gradient, gradients);
        linear.backward(&gradient)
    }
}

/// A loss over the logits of a linear layer on the cells, which it replaces by their gradient; and the gradient of the
/// cells, `[cells][d_model]`.
fn classify(
    batch: &DecoderBatch,
    path: &str,
    cells: &[f32],
    loss: &dyn Fn(&mut [f32]) -> f64,
    gradients: &mut Weights,
) -> (f64, Vec<f32>) {
    let d = batch.config.d_model;
    let linear = Linear::new(batch.weights, path);
    let rows = Matrix::rows(cells, cells.len() / d, d, d);
    let mut logits = linear.forward(rows);
    let loss = loss(&mut logits);
    linear.insert_grad(rows, &logits, gradients);
    (loss, linear.backward(&logits))
}

fn add_positions(batch: &DecoderBatch, mut cells: Vec<f32>) -> (Vec<f32>, LayerNormTape) {
    let d = batch.config.d_model;
    let frequencies = frequencies(d / 2);
    for region in batch.cells.pictures() {
        let axis = |length: usize| -> Vec<f32> {
            (1..=length).flat_map(|part| encode(share(part, length), &frequencies)).collect()
        };
        let (columns, rows) = (axis(region.width), axis(region.height));
        let cells = cells[region.start * d..].chunks_exact_mut(d).take(region.height * region.width);
        for (index, cell) in cells.enumerate() {
            let (y, x) = (index / region.width, index % region.width);
            add(&mut cell[..d / 2], &columns[x * (d / 2)..]);
            add(&mut cell[d / 2..], &rows[y * (d / 2)..]);
        }
    }
    LayerNorm::new(batch.weights, "encoder.norm").forward(cells)
}

/// `[cells, channels]`
fn feature_rows(EncoderFeatures { grid, rows }: &EncoderFeatures) -> Matrix<'_> {
    let channels = rows.len() / grid.pixels;
    Matrix::rows(rows, grid.pixels, channels, channels)
}
