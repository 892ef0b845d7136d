//! A training step on the CPU: pictures and formulas in, the loss and the gradients of all weights out.

use comer::internal::TokenId;
use comer::internal::config::{DecoderKind, ModelConfig};
use comer::internal::weights::Weights;

use super::decoder_batch::{DecoderBatch, TokenSequence};
use super::densenet::{DenseNet, EncoderFeatures, NormStatistics};
use super::grid::Grid;
use super::memory::{Auxiliary, Memory};
use super::{decoder, gru_decoder};

/// The network, its weights borrowed from a model.
pub struct Network<'a> {
    /// The shape of the network.
    pub config: &'a ModelConfig,
    /// All tensors of the model.
    pub weights: &'a Weights,
    /// Seed of the dropout; different for each step.
    pub seed: u32,
    /// Label smoothing: 0 for plain cross entropy.
    pub label_smoothing: f32,
    /// The weight of the symbol loss and the symbol of each cell (see [`crate::symbols`]); `None` without this loss.
    pub symbols: Option<(f32, &'a [TokenId])>,
    /// The weight of the presence loss (which tokens a picture has); 0 without this loss.
    pub presence: f32,
}

/// The output of a training step.
pub struct StepOutput {
    /// The mean over the target tokens that are not padding.
    pub loss: f64,
    /// Number of these target tokens.
    pub targets: usize,
    /// Target tokens with the highest probability.
    pub correct: usize,
    /// The symbol loss, without its weight; 0 if it is not used.
    pub symbol_loss: f64,
    /// The presence loss, without its weight; 0 if it is not used.
    pub presence_loss: f64,
    /// Gradients of the trainable weights, by their names in the model file.
    pub gradients: Weights,
    /// Statistics of every batch norm; those of the refinement come last, one for each use, in order.
    pub statistics: Vec<NormStatistics>,
}

impl Network<'_> {
    /// Loss and gradients for pictures (`pixels` in the layout of `pictures`) and their formulas, in the directions of the model.
    ///
    /// # Panics
    /// If there are no pictures, or not as many formulas as pictures.
    pub fn step(&self, pixels: &[f32], pictures: Grid, formulas: &[Vec<TokenId>]) -> StepOutput {
        let directions = self.config.directions;
        let sequences: Vec<TokenSequence> =
            formulas.iter().flat_map(|formula| TokenSequence::of_formula(formula, directions)).collect();
        let net = self.densenet();
        let (features, tape) = net.forward(pixels, pictures);
        let (mut step, gradient) = self.decoder_step(&features, &sequences);
        step.statistics.splice(..0, net.statistics(&tape));
        step.gradients.append(&mut net.backward(&tape, &gradient));
        step
    }

    /// The encoder's DenseNet.
    pub fn densenet(&self) -> DenseNet<'_> {
        DenseNet { config: self.config, weights: self.weights, seed: self.seed }
    }

    /// The part of a step after the DenseNet: its output without the gradients and statistics of the DenseNet, and the
    /// gradient of the features. The two sequences of a picture follow each other.
    ///
    /// # Panics
    /// If there are no pictures, or not twice as many sequences as pictures.
    pub fn decoder_step(
        &self,
        features: &EncoderFeatures,
        sequences: &[TokenSequence],
    ) -> (StepOutput, Vec<f32>) {
        let batch = DecoderBatch::new(self.config, self.weights, self.seed, features.grid.clone(), sequences);
        let mut gradients = Weights::new();
        let losses = Auxiliary { symbols: self.symbols, presence: self.presence };
        let memory = Memory::forward(&batch, features, losses, &mut gradients);
        let decode = match self.config.decoder {
            DecoderKind::Transformer => decoder::forward_backward,
            DecoderKind::Gru => gru_decoder::forward_backward,
        };
        let decoded = decode(&batch, &memory.values, self.label_smoothing, &mut gradients);
        let gradient = memory.backward(&batch, features, decoded.memory, &mut gradients);
        let step = StepOutput {
            loss: decoded.loss.mean,
            targets: decoded.loss.targets,
            correct: decoded.loss.correct,
            symbol_loss: memory.symbol_loss,
            presence_loss: memory.presence_loss,
            gradients,
            statistics: decoded.statistics,
        };
        (step, gradient)
    }
}
