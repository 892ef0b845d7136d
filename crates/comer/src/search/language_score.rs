//! The language model's share of a formula's score.
//!
//! The decoder's scores are means over a formula's tokens. The language model's log-probabilities are divided by one length for all
//! candidates instead: divided by their own lengths, longer formulas would win, since tokens such as braces are cheap. It does
//! not take part in the search for candidates, for the same reason: prefixes of unlike lengths compete there.

use crate::config::SearchConfig;
use crate::direction::Direction;
use crate::language_model::LanguageModel;
use crate::token::TokenId;

/// Scores formulas by a language model, if there is one.
pub(super) struct LanguageScore<'a> {
    model: Option<&'a LanguageModel>,
    directions: &'a [Direction],
    /// What the log-probabilities are multiplied by.
    factor: f32,
}

impl<'a> LanguageScore<'a> {
    /// The directions are those of the decoder. The candidates have a score and a length in tokens each; the common length is
    /// that of the best one.
    pub(super) fn new(
        model: Option<&'a LanguageModel>,
        config: &SearchConfig,
        directions: &'a [Direction],
        candidates: impl Iterator<Item = (f32, usize)>,
    ) -> Self {
        // The end counts as a token.
        let length = candidates.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(1, |best| best.1 + 1);
        let factor = model.map_or(0.0, |model| model.weight) / (length as f32).powf(config.alpha);
        Self { model, directions, factor }
    }

    /// The share of a formula, at most 0. The tokens are in the order of printing.
    pub(super) fn of(&self, tokens: &[TokenId]) -> f32 {
        let Some(model) = self.model else { return 0.0 };
        let sum =
            |&direction: &Direction| -> f32 { model.score(direction, &direction.order(tokens)).iter().sum() };
        self.factor * self.directions.iter().map(sum).sum::<f32>()
    }
}
