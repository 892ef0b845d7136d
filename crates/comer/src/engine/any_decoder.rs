//! The decoder of a model, whichever kind its config chooses.

use super::Features;
use super::decoder::Decoder;
use super::decoder_state::DecoderState;
use super::gru_decoder::GruDecoder;
use super::gru_state::GruState;
use super::trace::StepTrace;
use crate::config::{DecoderKind, ModelConfig};
use crate::error::Result;
use crate::step_decoder::StepDecoder;
use crate::token::TokenId;
use crate::weights::Weights;

/// A decoder of either kind.
pub enum AnyDecoder {
    /// The transformer.
    Transformer(Decoder),
    /// GRUs with coverage attention.
    Gru(GruDecoder),
}

/// A decoder of either kind at work on one image.
pub enum AnyState<'a> {
    /// The transformer.
    Transformer(DecoderState<'a>),
    /// GRUs with coverage attention.
    Gru(GruState<'a>),
}

impl AnyDecoder {
    /// Packs the decoder of a model whose vocabulary has `vocab` tokens.
    pub fn new(config: &ModelConfig, vocab: usize, weights: &Weights) -> Result<Self> {
        match config.decoder {
            DecoderKind::Transformer => Decoder::new(config, vocab, weights).map(Self::Transformer),
            DecoderKind::Gru => GruDecoder::new(config, vocab, weights).map(Self::Gru),
        }
    }

    /// Prepares to decode `features`.
    pub fn start(&self, features: &Features) -> Result<AnyState<'_>> {
        match self {
            Self::Transformer(decoder) => decoder.start(features).map(AnyState::Transformer),
            Self::Gru(decoder) => decoder.start(features).map(AnyState::Gru),
        }
    }
}

impl AnyState<'_> {
    /// Uses the threads of the current rayon pool, which changes no result.
    pub fn on_all_cores(&mut self) {
        match self {
            Self::Transformer(state) => state.on_all_cores(),
            Self::Gru(state) => state.on_all_cores(),
        }
    }

    /// Feeds `tokens` to the decoder, the start token first, and records each step.
    pub fn trace(&mut self, tokens: &[TokenId]) -> Result<Vec<StepTrace>> {
        match self {
            Self::Transformer(state) => state.trace(tokens),
            Self::Gru(state) => state.trace(tokens),
        }
    }
}

impl StepDecoder for AnyState<'_> {
    fn vocab_size(&self) -> usize {
        match self {
            Self::Transformer(state) => state.vocab_size(),
            Self::Gru(state) => state.vocab_size(),
        }
    }

    fn restart(&mut self) {
        match self {
            Self::Transformer(state) => state.restart(),
            Self::Gru(state) => state.restart(),
        }
    }

    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32] {
        match self {
            Self::Transformer(state) => state.step(parents, tokens),
            Self::Gru(state) => state.step(parents, tokens),
        }
    }
}
