//! Records what each layer of the decoder does while a formula is written.

use super::decoder_state::DecoderState;
use super::kernels::Activation;
use super::kernels::rows::log_softmax;
use crate::error::{Error, Result};
use crate::step_decoder::StepDecoder;
use crate::token::{PAD, TokenId};

/// One layer in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerTrace {
    /// What it gives to the next layer, `[d_model]`.
    pub output: Vec<f32>,
    /// Its refined attention over the image, `[heads, cells]`.
    pub attention: Vec<f32>,
    /// The coverage that its refinement saw, `[inputs, cells]`; empty where there is none.
    pub coverage: Vec<f32>,
    /// What was taken off its attention's energies, `[heads, cells]`; empty where there is none.
    pub refinement: Vec<f32>,
}

/// One step of the decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTrace {
    /// The log-probabilities of what comes next, `[vocab]`.
    pub log_probs: Vec<f32>,
    /// Each layer, the first one first.
    pub layers: Vec<LayerTrace>,
}

impl StepTrace {
    /// The last layer's attention over the image, the mean over its heads: `[cells]`, which add up to 1.
    pub fn attention(&self, heads: usize) -> Vec<f32> {
        let maps = self.layers.last().map_or(&[][..], |layer| &layer.attention);
        let cells = maps.len() / heads;
        (0..cells).map(|cell| maps[cell..].iter().step_by(cells).sum::<f32>() / heads as f32).collect()
    }
}

impl DecoderState<'_> {
    /// Feeds `tokens` to the decoder, the start token first, and records each step.
    ///
    /// With the start token and all tokens of a formula but the last, step `i` is the one that wrote token `i`. Since all
    /// tokens are known, each layer does all steps at once, as in training.
    pub fn trace(&mut self, tokens: &[TokenId]) -> Result<Vec<StepTrace>> {
        if let Some(token) = tokens.iter().find(|&&token| usize::from(token) >= self.vocab_size()) {
            return Err(Error::UnknownToken { token: format!("number {token}") });
        }
        self.restart();
        let (decoder, steps, d) = (self.decoder, tokens.len(), self.decoder.config.d_model);
        // Padding is never attended to.
        let before =
            |last: usize| (0..=last).filter(|&step| tokens[step] != PAD).map(|step| step as u32).collect();
        self.histories = (0..steps).map(before).collect();
        self.prefixes = (0..steps).collect();
        self.at_once = true;
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut embedded = Vec::with_capacity(steps * d);
        for (position, &token) in tokens.iter().enumerate() {
            decoder.embed(&[token], position, &mut scratch);
            embedded.extend_from_slice(&scratch.x);
        }
        scratch.x = embedded;
        let mut layers: Vec<Vec<LayerTrace>> = vec![Vec::new(); steps];
        let each = decoder.config.heads * self.grid.cells();
        for (index, layer) in decoder.layers.iter().enumerate() {
            self.write_attention(index, layer, &mut scratch);
            self.read_attention(index, layer, &mut scratch);
            decoder.feed_forward(layer, &mut scratch);
            let coverage = index.checked_sub(1).and_then(|before| self.coverage.get(before));
            let coverage = coverage.zip(decoder.refinement.as_ref());
            for (step, layers) in layers.iter_mut().enumerate() {
                layers.push(LayerTrace {
                    output: scratch.x[step * d..][..d].to_vec(),
                    attention: self.attention[index].refined[step * each..][..each].to_vec(),
                    coverage: coverage
                        .map_or(Vec::new(), |(sums, refinement)| sums.maps(refinement, self.grid, step)),
                    refinement: coverage
                        .map_or(Vec::new(), |_| scratch.refinement[step * each..][..each].to_vec()),
                });
            }
        }
        let mut log_probs = Vec::new();
        decoder.linear(&decoder.output, &scratch.x, d, &mut log_probs, Activation::None);
        log_softmax(decoder.kernels, &mut log_probs, decoder.vocab);
        self.scratch = scratch;
        self.at_once = false;
        // Other searches start from the beginning.
        self.restart();
        let steps = log_probs.chunks_exact(decoder.vocab).zip(layers);
        Ok(steps.map(|(row, layers)| StepTrace { log_probs: row.to_vec(), layers }).collect())
    }
}
