//! Approximate joint search (section 3.1 of the paper): both reading directions search, each judges the other's finds.
//!
//! The search knows token numbers and a decoder that it can ask for the next token's probabilities, nothing of tensors.
//! 1. Each direction keeps its best `beam` prefixes, all in one batch; one that ends becomes a candidate.
//! 2. Every candidate that may still win is written again in the other direction (see `rescore`).
//! 3. The best sum of both directions' scores wins.

mod beam;
mod rescore;

use crate::config::{SearchConfig, Strategy};
use crate::grammar::{Direction, Grammar};
use crate::vocab::{EOS, SOS, TokenId};
use beam::{Candidate, Side};

/// A decoder that continues prefixes by one token each.
pub trait Step {
    /// How many tokens its vocabulary has.
    fn vocab_size(&self) -> usize;

    /// Forgets all prefixes.
    fn restart(&mut self);

    /// Continues prefixes and gives the logarithms of the probabilities of what comes next, `[tokens, vocab_size]`.
    ///
    /// Row `i` is the prefix of row `parents[i]` of the step before, then `tokens[i]`. In the first step there is none
    /// before, and `parents` says nothing.
    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32];

    /// Whether nobody wants the answer any more; asked before each step.
    fn stopped(&self) -> bool {
        false
    }
}

/// A formula that the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its tokens, as they are printed.
    pub tokens: Vec<TokenId>,
    /// The sum of both directions' mean logarithms, or the only direction's: 0 would be certain.
    pub score: f32,
    /// What each direction says; both unless only one was searched.
    pub opinions: Vec<Opinion>,
}

/// The logarithms of the probabilities that one direction gives to a formula's tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// Which direction.
    pub direction: Direction,
    /// One for each token as they are printed.
    pub tokens: Vec<f32>,
    /// That the formula ends where it does; `None` where the length limit ended it.
    pub end: Option<f32>,
}

impl Answer {
    /// The probability that the whole formula is right, in 0..=1: the geometric mean of the directions'.
    pub fn confidence(&self) -> f32 {
        let whole = |opinion: &Opinion| opinion.tokens.iter().sum::<f32>() + opinion.end.unwrap_or(0.0);
        self.mean(whole)
    }

    /// The probability that a token is right given those around it, in 0..=1: the geometric mean of the directions'.
    pub fn token_confidence(&self, index: usize) -> f32 {
        self.mean(|opinion| opinion.tokens.get(index).copied().unwrap_or(f32::NEG_INFINITY))
    }

    fn mean(&self, logarithm: impl Fn(&Opinion) -> f32) -> f32 {
        let sum: f32 = self.opinions.iter().map(logarithm).sum();
        (sum / self.opinions.len().max(1) as f32).exp().min(1.0)
    }
}

impl Direction {
    /// The token that starts a prefix, and the one that ends it.
    pub(crate) fn ends(self) -> (TokenId, TokenId) {
        match self {
            Direction::LeftToRight => (SOS, EOS),
            Direction::RightToLeft => (EOS, SOS),
        }
    }

    fn other(self) -> Self {
        match self {
            Direction::LeftToRight => Direction::RightToLeft,
            Direction::RightToLeft => Direction::LeftToRight,
        }
    }

    /// Turns printed order into the order of writing, and back.
    pub(crate) fn order<T: Clone>(self, values: &[T]) -> Vec<T> {
        match self {
            Direction::LeftToRight => values.to_vec(),
            Direction::RightToLeft => values.iter().rev().cloned().collect(),
        }
    }
}

/// The best formulas, the best first: at most `config.answers`, at least one unless the grammar allows none.
/// What a decoder that was stopped gives is worth nothing.
pub fn search(decoder: &mut impl Step, config: &SearchConfig, grammar: &Grammar) -> Vec<Answer> {
    let grammar = config.grammar.then_some(grammar);
    let directions: &[Direction] = match config.strategy {
        Strategy::Joint => &[Direction::LeftToRight, Direction::RightToLeft],
        Strategy::LeftToRight | Strategy::Greedy => &[Direction::LeftToRight],
    };
    let mut sides: Vec<Side> =
        directions.iter().map(|&direction| Side::new(direction, config, grammar)).collect();
    decoder.restart();
    let vocab = decoder.vocab_size();
    let (mut parents, mut tokens) = (Vec::new(), Vec::new());
    for length in 1..config.max_length {
        parents.clear();
        tokens.clear();
        for side in sides.iter_mut().filter(|side| !side.done()) {
            side.ask(&mut parents, &mut tokens);
        }
        if tokens.is_empty() || decoder.stopped() {
            break;
        }
        let logarithms = decoder.step(&parents, &tokens);
        for side in sides.iter_mut().filter(|side| !side.done()) {
            side.grow(length, logarithms, vocab);
        }
        if let [left, right] = &mut sides[..] {
            let least = rescore::least_known(left.found(), right.found(), config.answers);
            left.give_up_below(least);
            right.give_up_below(least);
        }
    }
    let found: Vec<Candidate> = sides.into_iter().flat_map(Side::finish).collect();
    let mut answers = match config.strategy {
        Strategy::Joint => rescore::rescore(decoder, config, found),
        Strategy::LeftToRight | Strategy::Greedy => found.into_iter().map(Candidate::into_answer).collect(),
    };
    answers.sort_by(|a, b| b.score.total_cmp(&a.score));
    answers.truncate(config.answers);
    answers
}

#[cfg(test)]
mod tests;
