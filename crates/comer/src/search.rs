//! Approximate joint search (section 3.1 of the paper): both directions search, and each scores what the other found.
//!
//! The search works on token ids and a [`StepDecoder`]; it knows nothing of tensors.
//! 1. Each direction keeps its best `beam` prefixes, all in one batch. A prefix that ends becomes a candidate.
//! 2. Every candidate that can still win is scored in the other direction (see `rescore`).
//! 3. The best sum of both directions' scores wins.
//!
//! Tokens that are known already are fixed: the search from the left writes nothing else at their positions, and the other
//! direction only scores.
//!
//! With a language model, its share is added to the scores that step 3 compares (see `language_score`).

mod beam;
mod language_score;
mod rescore;

use crate::config::{SearchConfig, Strategy};
use crate::direction::Direction;
use crate::error::Result;
use crate::grammar::Grammar;
use crate::language_model::LanguageModel;
use crate::step_decoder::StepDecoder;
use crate::token::TokenId;
use beam::{BeamSearch, Candidate, Dropped};
use language_score::LanguageScore;

/// A formula that the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its tokens, as they are printed.
    pub tokens: Vec<TokenId>,
    /// The sum of both directions' mean log-probabilities, or the only direction's, with the language model's share: 0 would
    /// be certain.
    pub score: f32,
    /// The score of each direction; both unless only one was searched.
    pub by_direction: Vec<DirectionScore>,
}

/// The log-probabilities that one direction gives to a formula's tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionScore {
    /// Which direction.
    pub direction: Direction,
    /// One for each token as they are printed; 0 where the token was fixed.
    pub tokens: Vec<f32>,
    /// That the formula ends where it does; `None` where the length limit ended it.
    pub end: Option<f32>,
}

impl Answer {
    /// The probability that the whole formula is right, in 0..=1: the geometric mean of the directions'.
    pub fn confidence(&self) -> f32 {
        let whole = |direction_score: &DirectionScore| {
            direction_score.tokens.iter().sum::<f32>() + direction_score.end.unwrap_or(0.0)
        };
        self.mean(whole)
    }

    /// The probability that a token is right given those around it, in 0..=1: the geometric mean of the directions'.
    pub fn token_confidence(&self, index: usize) -> f32 {
        self.mean(|direction_score| direction_score.tokens.get(index).copied().unwrap_or(f32::NEG_INFINITY))
    }

    /// Makes the fixed tokens certain.
    fn confirm(&mut self, fixed: &[Option<TokenId>]) {
        for direction_score in &mut self.by_direction {
            let fixed = direction_score.tokens.iter_mut().zip(fixed).filter(|(_, fixed)| fixed.is_some());
            fixed.for_each(|(log_prob, _)| *log_prob = 0.0);
        }
    }

    fn mean(&self, log_prob: impl Fn(&DirectionScore) -> f32) -> f32 {
        let sum: f32 = self.by_direction.iter().map(log_prob).sum();
        (sum / self.by_direction.len().max(1) as f32).exp().min(1.0)
    }
}

/// The best formulas, the best first: at most `config.answers`, at least one unless the grammar allows none.
///
/// `interrupt` is called before each step of the decoder; its error ends the search.
pub fn search(
    decoder: &mut impl StepDecoder,
    config: &SearchConfig,
    grammar: &Grammar,
    language_model: Option<&LanguageModel>,
    interrupt: &dyn Fn() -> Result<()>,
) -> Result<Vec<Answer>> {
    let grammar = config.grammar.then_some(grammar);
    let language_model = language_model.filter(|model| config.language_model && model.weight > 0.0);
    let directions =
        if config.searches_both_directions() { &Direction::BOTH[..] } else { &[Direction::LeftToRight] };
    let mut sides: Vec<BeamSearch> =
        directions.iter().map(|&direction| BeamSearch::new(direction, config, grammar)).collect();
    decoder.restart();
    let vocab = decoder.vocab_size();
    let (mut parents, mut tokens) = (Vec::new(), Vec::new());
    for length in 1..config.max_length {
        parents.clear();
        tokens.clear();
        for side in sides.iter_mut().filter(|side| !side.done()) {
            side.push_rows(&mut parents, &mut tokens);
        }
        if tokens.is_empty() {
            break;
        }
        interrupt()?;
        let log_probs = decoder.step(&parents, &tokens);
        for side in sides.iter_mut().filter(|side| !side.done()) {
            side.extend_beams(length, log_probs, vocab);
        }
        if let [left, right] = &mut sides[..] {
            let least = rescore::least_known(left.found(), right.found(), config.answers);
            let least = least - language_slack(config, language_model, length);
            left.stop_below(least);
            right.stop_below(least);
        }
    }
    let mut sides = sides.into_iter().map(BeamSearch::finish);
    let (left, not_left) = sides.next().unwrap_or_default();
    let mut answers = match config.strategy {
        Strategy::Joint => {
            let (right, not_right) = sides.next().unwrap_or_else(|| (Vec::new(), Dropped::anything()));
            let candidates = left.iter().chain(&right).map(Candidate::score_and_length);
            let language = LanguageScore::new(language_model, config, &Direction::BOTH, candidates);
            let found = [(left, not_right), (right, not_left)];
            rescore::rescore(decoder, config, &language, found, interrupt)?
        }
        Strategy::LeftToRight | Strategy::Greedy => {
            let candidates = left.iter().map(Candidate::score_and_length);
            let language = LanguageScore::new(language_model, config, directions, candidates);
            left.into_iter().map(|candidate| candidate.into_answer(&language)).collect()
        }
    };
    answers.sort_by(|a, b| b.score.total_cmp(&a.score));
    answers.truncate(config.answers);
    answers.iter_mut().for_each(|answer| answer.confirm(&config.fixed));
    Ok(answers)
}

/// How far a formula may be below the best by what the decoder says and still win by the language model: as far as the
/// search keeps prefixes.
fn language_slack(config: &SearchConfig, language_model: Option<&LanguageModel>, length: usize) -> f32 {
    match (language_model, config.margin) {
        (None, _) => 0.0,
        (Some(_), None) => f32::INFINITY,
        (Some(_), Some(margin)) => margin / (length as f32).powf(config.alpha),
    }
}

#[cfg(test)]
mod tests;
