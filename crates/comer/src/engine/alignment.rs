//! Where the decoder looked while it wrote a formula: for explanations, overlays and tests.

use super::reading::Reading;
use crate::error::{Error, Result};
use crate::search::Step;
use crate::vocab::TokenId;

/// What one layer did in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerTrace {
    /// What it gives to the next layer, `[d_model]`.
    pub output: Vec<f32>,
    /// Its refined attention over the picture, `[heads, cells]`.
    pub attention: Vec<f32>,
    /// The coverage that its refinement saw, `[inputs, cells]`; empty where there is none.
    pub coverage: Vec<f32>,
    /// What was taken off its attention's energies, `[heads, cells]`; empty where there is none.
    pub refinement: Vec<f32>,
}

/// What the decoder did after one token was given to it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTrace {
    /// The logarithms of the probabilities of what comes next, `[vocab]`.
    pub logarithms: Vec<f32>,
    /// Each layer, the first one first.
    pub layers: Vec<LayerTrace>,
}

impl StepTrace {
    /// The last layer's attention over the picture, the mean over its heads: `[cells]`, which add up to 1.
    pub fn attention(&self, heads: usize) -> Vec<f32> {
        let maps = self.layers.last().map_or(&[][..], |layer| &layer.attention);
        let cells = maps.len() / heads;
        (0..cells).map(|cell| maps[cell..].iter().step_by(cells).sum::<f32>() / heads as f32).collect()
    }
}

impl Reading<'_> {
    /// Gives `tokens` to the decoder one by one, the start token first, and tells what it did after each.
    ///
    /// With the start token and all tokens of a formula but the last, step `i` is the one that wrote token `i`.
    pub fn trace(&mut self, tokens: &[TokenId]) -> Result<Vec<StepTrace>> {
        if let Some(token) = tokens.iter().find(|&&token| usize::from(token) >= self.vocab_size()) {
            return Err(Error::UnknownToken { token: format!("number {token}") });
        }
        self.restart();
        let steps = tokens.iter().map(|&token| {
            self.trace = Some(Vec::new());
            let logarithms = self.step(&[0], &[token]).to_vec();
            StepTrace { logarithms, layers: self.trace.take().unwrap_or_default() }
        });
        Ok(steps.collect())
    }
}
