//! A whole training step on a CPU: pictures and their formulas in, the loss and the gradients of all weights out.

use comer::internal::TokenId;
use comer::internal::config::ModelConfig;
use comer::internal::weights::Weights;

use super::decoder;
use super::densenet::{DenseNet, Features, NormStatistics};
use super::grid::Grid;
use super::scene::{Reading, Scene};

/// The network, its weights borrowed from a model.
pub struct Network<'a> {
    /// The shape of the network.
    pub config: &'a ModelConfig,
    /// All tensors of the model.
    pub weights: &'a Weights,
    /// Chooses what is dropped; a step's own number.
    pub seed: u32,
    /// How far from certain the decoder should be: 0 for the plain cross entropy.
    pub label_smoothing: f32,
    /// The weight of the second loss and the symbol of each cell (see [`crate::symbols`]); `None` for no such loss.
    pub symbols: Option<(f32, &'a [TokenId])>,
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
    /// Of the weights that training changes, by their names in the model file.
    pub gradients: Weights,
    /// Of every batch norm; the refinement's stand last, one for each use of it, in order.
    pub statistics: Vec<NormStatistics>,
}

impl Network<'_> {
    /// Reads pictures (the rows of all their pixels, one picture after the other) and learns their formulas in both
    /// directions.
    ///
    /// # Panics
    /// If there are not as many formulas as pictures, or none.
    pub fn step(&self, pixels: &[f32], pictures: Grid, formulas: &[Vec<TokenId>]) -> StepOutput {
        let readings: Vec<Reading> = formulas.iter().flat_map(|formula| Reading::both(formula)).collect();
        let net = self.densenet();
        let (features, tape) = net.forward(pixels, pictures);
        let (mut step, gradient) = self.read(&features, &readings);
        step.statistics.splice(..0, net.statistics(&tape));
        step.gradients.append(&mut net.backward(&tape, &gradient));
        step
    }

    /// The encoder's DenseNet.
    pub fn densenet(&self) -> DenseNet<'_> {
        DenseNet { config: self.config, weights: self.weights, seed: self.seed }
    }

    /// What follows the DenseNet: the step but for the DenseNet's gradients and statistics, and the gradient of the
    /// features' rows. Each picture has two readings, which follow each other.
    ///
    /// # Panics
    /// If there are not twice as many readings as pictures, or none.
    pub fn read(&self, features: &Features, readings: &[Reading]) -> (StepOutput, Vec<f32>) {
        let scene = Scene::new(self.config, self.weights, self.seed, features.grid.clone(), readings);
        let decoded = decoder::read(&scene, features, self.label_smoothing, self.symbols);
        let step = StepOutput {
            loss: decoded.loss.mean,
            targets: decoded.loss.targets,
            correct: decoded.loss.correct,
            symbol_loss: decoded.symbols,
            gradients: decoded.gradients,
            statistics: decoded.statistics,
        };
        (step, decoded.features)
    }
}
