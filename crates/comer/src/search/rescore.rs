//! Scores the candidates of each direction in the other one.
//!
//! Both directions often find the same formula, whose scores are then known already. What the other direction did not find
//! it dropped, which bounds the score that it can give; and scores only fall as tokens are added: a candidate is given up as
//! soon as it cannot be among the answers any more. Candidates that start alike share their beginnings, as in a trie. The
//! result is that of scoring every candidate in full.

use super::beam::{Candidate, Dropped};
use super::language_score::LanguageScore;
use super::{Answer, Opinion};
use crate::config::SearchConfig;
use crate::error::Result;
use crate::step_decoder::StepDecoder;
use crate::token::TokenId;

/// How far the sums of the search and of the scoring of one formula may differ by rounding.
const ROUNDING: f32 = 1e-3;

/// A candidate being written again in the other direction.
struct Check {
    candidate: Candidate,
    /// The candidate's tokens in the other direction's order, with its start and end.
    tokens: Vec<TokenId>,
    logarithms: Vec<f32>,
    /// Of the logarithms so far.
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
                add(&mut answers, candidate, score, other.opinion());
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
        let logarithms = decoder.step(&parents, &tokens);
        for check in &mut checks {
            let logarithm = logarithms[check.row * vocab + usize::from(check.tokens[position + 1])];
            check.logarithms.push(logarithm);
            check.sum += logarithm;
        }
        let finished = checks.extract_if(.., |check| check.logarithms.len() + 1 == check.tokens.len());
        for check in finished.collect::<Vec<_>>() {
            let score = check.total(check.score(config));
            let direction = check.candidate.direction.other();
            let (end, tokens) =
                check.logarithms.split_last().map_or((None, &[][..]), |(&end, rest)| (Some(end), rest));
            let opinion = Opinion { direction, tokens: direction.order(tokens), end };
            add(&mut answers, &check.candidate, score, opinion);
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
        Self { candidate, tokens, logarithms: Vec::new(), sum: 0.0, language, greatest_sum, row: 0 }
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
fn add(answers: &mut Vec<Answer>, candidate: &Candidate, score: f32, other: Opinion) {
    let mut opinions = vec![candidate.opinion(), other];
    opinions.sort_by_key(|opinion| opinion.direction as u8);
    let tokens = candidate.direction.order(&candidate.tokens);
    let answer = Answer { tokens, score, opinions };
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
