//! A language model of formulas: how likely a token is after those before it, whatever the picture shows.
//!
//! Two n-gram models, one for each reading direction ([`ngrams`]), with one correction: a letter that a formula has used
//! already is likely to come again ([`Recurrence`]). The search ranks its candidates by the decoder's scores and `weight`
//! times these log-probabilities. A language model is a file of its own or a part of a model file.

mod file;
pub mod ngrams;
mod recurrence;
mod scale;

use serde_json::{Map, Value};

use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::token::TokenId;
use crate::vocab::Vocab;

pub use ngrams::{Context, Ngrams};
pub use recurrence::Recurrence;
use recurrence::Seen;

/// What formulas usually look like, read from either end.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageModel {
    /// The tokens that it knows, which have to be those of the model that reads.
    pub vocab: Vocab,
    /// What comes next from left to right.
    pub forward: Ngrams,
    /// What comes next from right to left.
    pub backward: Ngrams,
    /// The tokens that come again.
    pub recurrence: Recurrence,
    /// What the log-probabilities are multiplied by before they are added to the decoder's scores.
    pub weight: f32,
    /// What made it.
    pub provenance: Map<String, Value>,
}

/// The beginning of a formula, as far as the next token depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageModelState {
    direction: Direction,
    context: Context,
    seen: Seen,
}

impl LanguageModel {
    /// The state before the first token.
    pub fn start(&self, direction: Direction) -> LanguageModelState {
        LanguageModelState { direction, context: self.ngrams(direction).start(), seen: Seen::default() }
    }

    /// The state after one more token.
    pub fn advance(&self, state: &LanguageModelState, token: TokenId) -> LanguageModelState {
        let LanguageModelState { direction, context, ref seen } = *state;
        LanguageModelState {
            direction,
            context: self.ngrams(direction).advance(context, token),
            seen: self.recurrence.advance(seen, token),
        }
    }

    /// The log-probabilities of all tokens, `[vocab_size]`; what cannot come next is negative infinity.
    pub fn log_probabilities(&self, state: &LanguageModelState, row: &mut Vec<f32>) {
        row.resize(self.vocab.len(), 0.0);
        self.ngrams(state.direction).log_probabilities(state.context, row);
        self.recurrence.apply(&state.seen, row);
    }

    /// The log-probabilities of a formula's tokens in the order of writing, the end's last.
    pub fn score(&self, direction: Direction, tokens: &[TokenId]) -> Vec<f32> {
        let (mut state, mut row) = (self.start(direction), Vec::new());
        let score = |token: TokenId| {
            self.log_probabilities(&state, &mut row);
            state = self.advance(&state, token);
            row.get(usize::from(token)).copied().unwrap_or(f32::NEG_INFINITY)
        };
        tokens.iter().copied().chain([direction.ends().1]).map(score).collect()
    }

    fn ngrams(&self, direction: Direction) -> &Ngrams {
        match direction {
            Direction::LeftToRight => &self.forward,
            Direction::RightToLeft => &self.backward,
        }
    }

    /// Checks that it is for this vocabulary.
    pub fn check_vocab(&self, vocab: &Vocab) -> Result<()> {
        let (own, other) = (self.vocab.tokens(), vocab.tokens());
        if own == other {
            return Ok(());
        }
        let place = own.iter().zip(other).position(|(own, other)| own != other);
        let place = place.unwrap_or(own.len().min(other.len()));
        let name =
            |tokens: &[String]| tokens.get(place).map_or("no token".into(), |token| format!("{token:?}"));
        let reason = format!(
            "its vocabulary is not that of the model: token {place} is {}, expected {}",
            name(own),
            name(other)
        );
        Err(Error::LanguageModel { name: "language model".into(), reason })
    }
}

#[cfg(test)]
mod tests;
