//! Scores the candidates of each direction in the other one.
//!
//! Both directions often find the same formula, whose scores are then known already. What the other direction did not find
//! it dropped, which bounds the score that it can give; and scores only fall as tokens are added: a candidate is given up as
//! soon as it cannot be among the answers any more. Candidates that start alike share their beginnings, as in a trie. The
//! result is that of scoring every candidate in full.

use super::beam::{Candidate, Dropped};
use super::language_score::LanguageScore;
use super::{Answer, DirectionScore};
use crate::config::SearchConfig;
use crate::error::Result;
use crate::step_decoder::StepDecoder;
use crate::token::TokenId;

/// How far the sums of the search and of the scoring of one formula may differ by rounding.
const ROUNDING: f32 = 1e-3;

/// A candidate that is scored in the other direction.
struct Check {
    candidate: Candidate,
    /// The candidate's tokens in the other direction's order, with its start and end.
    tokens: Vec<TokenId>,
    log_probs: Vec<f32>,
    /// Of the log-probabilities so far.
    sum: f32,
    /// The language model's share.
    language: f32,
    /// What the sum will be at most, since the other direction did not find the formula.
    greatest_sum: f32,
    row: usize,
}

/// Scores the candidates in both directions; those that cannot be among the best `config.answers` are left out. `found` are
/// the candidates of each direction, with what the other one dropped.
pub(super) fn rescore(
    decoder: &mut impl StepDecoder,
    config: &SearchConfig,
    language: &LanguageScore,
    found: [(Vec<Candidate>, Dropped); 2],
    interrupt: &dyn Fn() -> Result<()>,
) -> Result<Vec<Answer>> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut checks: Vec<Check> = Vec::new();
    let [(left, not_right), (right, not_left)] = found;
    let dropped =
        std::iter::repeat_n(&not_right, left.len()).chain(std::iter::repeat_n(&not_left, right.len()));
    let found: Vec<&Candidate> = left.iter().chain(&right).collect();
    for (index, (&candidate, dropped)) in found.iter().zip(dropped).enumerate() {
        let printed = candidate.direction.order(&candidate.tokens);
        let same = |other: &Candidate| {
            other.direction != candidate.direction
                && other.end.is_some()
                && other.direction.order(&other.tokens) == printed
        };
        match found.iter().enumerate().find(|(_, other)| same(other)) {
            // The other direction found it too, so its score is known; of such a pair the first is kept.
            Some((at, other)) if candidate.end.is_none() || index < at => {
                let score = candidate.score + other.score + language.of(&printed);
                add(&mut answers, candidate, score, other.direction_score());
            }
            Some(_) => {}
            None => checks.push(Check::new(candidate.clone(), dropped, language.of(&printed))),
        }
    }
    let vocab = decoder.vocab_size();
    decoder.restart();
    let (mut parents, mut tokens): (Vec<usize>, Vec<TokenId>) = (Vec::new(), Vec::new());
    for position in 0.. {
        let least = least_score(&answers, config.answers);
        checks.retain(|check| check.total(check.greatest_score(config)) >= least);
        if checks.is_empty() {
            break;
        }
        interrupt()?;
        parents.clear();
        tokens.clear();
        for check in &mut checks {
            let step = (check.row, check.tokens[position]);
            let known = parents.iter().copied().zip(tokens.iter().copied()).position(|other| other == step);
            check.row = known.unwrap_or(tokens.len());
            if known.is_none() {
                parents.push(step.0);
                tokens.push(step.1);
            }
        }
        let log_probs = decoder.step(&parents, &tokens);
        for check in &mut checks {
            let log_prob = log_probs[check.row * vocab + usize::from(check.tokens[position + 1])];
            check.log_probs.push(log_prob);
            check.sum += log_prob;
        }
        let finished = checks.extract_if(.., |check| check.log_probs.len() + 1 == check.tokens.len());
        for check in finished.collect::<Vec<_>>() {
            let score = check.total(check.score(config));
            let direction = check.candidate.direction.other();
            let (end, tokens) =
                check.log_probs.split_last().map_or((None, &[][..]), |(&end, rest)| (Some(end), rest));
            let direction_score = DirectionScore { direction, tokens: direction.order(tokens), end };
            add(&mut answers, &check.candidate, score, direction_score);
        }
    }
    Ok(answers)
}

impl Check {
    fn new(candidate: Candidate, dropped: &Dropped, language: f32) -> Self {
        let direction = candidate.direction.other();
        let (start, end) = direction.ends();
        let reversed: Vec<TokenId> = candidate.tokens.iter().rev().copied().collect();
        let tokens = std::iter::once(start).chain(reversed).chain([end]).collect();
        let greatest_sum = dropped.greatest_sum(candidate.tokens.len()) + ROUNDING;
        Self { candidate, tokens, log_probs: Vec::new(), sum: 0.0, language, greatest_sum, row: 0 }
    }

    /// The score with both directions' shares and the language model's.
    fn total(&self, other: f32) -> f32 {
        self.candidate.score + other + self.language
    }

    /// The other direction's score.
    fn score(&self, config: &SearchConfig) -> f32 {
        self.sum / ((self.tokens.len() - 1) as f32).powf(config.alpha)
    }

    /// The other direction's score at most: later tokens can only lower the sum.
    fn greatest_score(&self, config: &SearchConfig) -> f32 {
        self.sum.min(self.greatest_sum) / ((self.tokens.len() - 1) as f32).powf(config.alpha)
    }
}

/// Adds an answer; of two with the same tokens, which the length limit can bring about, the better one stays.
fn add(answers: &mut Vec<Answer>, candidate: &Candidate, score: f32, other: DirectionScore) {
    let mut by_direction = vec![candidate.direction_score(), other];
    by_direction.sort_by_key(|direction_score| direction_score.direction as u8);
    let tokens = candidate.direction.order(&candidate.tokens);
    let answer = Answer { tokens, score, by_direction };
    match answers.iter_mut().find(|known| known.tokens == answer.tokens) {
        Some(known) if known.score < answer.score => *known = answer,
        Some(_) => {}
        None => answers.push(answer),
    }
}

/// The score that an answer needs to be among the best `count`, as far as both directions found the same formulas.
pub(super) fn least_known(left: &[Candidate], right: &[Candidate], count: usize) -> f32 {
    let same = |left: &Candidate, right: &Candidate| {
        left.end.is_some() && right.end.is_some() && left.tokens.iter().eq(right.tokens.iter().rev())
    };
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
    nth_best(
        pairs.filter(|(left, right)| same(left, right)).map(|(left, right)| left.score + right.score),
        count,
    )
}

/// The score that an answer needs to be among the best `count`.
fn least_score(answers: &[Answer], count: usize) -> f32 {
    nth_best(answers.iter().map(|answer| answer.score), count)
}

fn nth_best(scores: impl Iterator<Item = f32>, count: usize) -> f32 {
    let mut scores: Vec<f32> = scores.collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    scores.get(count.saturating_sub(1)).copied().unwrap_or(f32::NEG_INFINITY)
}
