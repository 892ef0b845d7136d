//! One direction's beam search.

use super::language_score::LanguageScore;
use super::{Answer, DirectionScore};
use crate::config::{SearchConfig, Strategy};
use crate::direction::Direction;
use crate::grammar::{Grammar, GrammarState};
use crate::token::TokenId;

/// A formula that one direction wrote to its end; everything in the order of writing.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) direction: Direction,
    pub(super) tokens: Vec<TokenId>,
    pub(super) log_probs: Vec<f32>,
    /// `None` where the length limit ended it.
    pub(super) end: Option<f32>,
    /// Of the log-probabilities.
    sum: f32,
    pub(super) score: f32,
}

impl Candidate {
    pub(super) fn direction_score(&self) -> DirectionScore {
        DirectionScore {
            direction: self.direction,
            tokens: self.direction.order(&self.log_probs),
            end: self.end,
        }
    }

    pub(super) fn score_and_length(&self) -> (f32, usize) {
        (self.score, self.tokens.len())
    }

    pub(super) fn into_answer(self, language: &LanguageScore) -> Answer {
        let tokens = self.direction.order(&self.tokens);
        Answer {
            score: self.score + language.of(&tokens),
            tokens,
            by_direction: vec![self.direction_score()],
        }
    }
}

/// A prefix that may still grow.
struct Beam {
    tokens: Vec<TokenId>,
    log_probs: Vec<f32>,
    /// Of the log-probabilities.
    sum: f32,
    /// The row of the decoder's last step that it grew from.
    parent: usize,
    state: Option<GrammarState>,
}

/// The prefixes and formulas that a search dropped, which bound the sum of every formula that it did not find.
#[derive(Clone, Debug, Default)]
pub(super) struct Dropped {
    /// The best sum among the prefixes that were dropped up to each step.
    prefixes: Vec<f32>,
    /// The best sum among the formulas that better ones displaced.
    displaced: Option<f32>,
    /// The best sum among the prefixes that were left when the search stopped.
    unfinished: Option<f32>,
}

impl Dropped {
    /// Nothing was followed.
    pub(super) fn anything() -> Self {
        Self { unfinished: Some(f32::INFINITY), ..Self::default() }
    }

    /// The greatest sum that a formula of so many tokens can have if it was not found: sums only fall, so that it is at
    /// most that of its prefix that was dropped.
    pub(super) fn greatest_sum(&self, tokens: usize) -> f32 {
        // The end counts as a step.
        let steps = tokens + 1;
        let unfinished = self.unfinished.filter(|_| steps > self.prefixes.len());
        let prefix = self.prefixes[..steps.min(self.prefixes.len())].last().copied();
        [prefix, self.displaced, unfinished].into_iter().flatten().fold(f32::NEG_INFINITY, f32::max)
    }
}

/// One direction's search.
pub(super) struct BeamSearch<'a> {
    direction: Direction,
    config: &'a SearchConfig,
    grammar: Option<&'a Grammar>,
    beam: usize,
    beams: Vec<Beam>,
    found: Vec<Candidate>,
    done: bool,
    dropped: Dropped,
    /// The row of the decoder's step that the first beam asked for.
    first_row: usize,
    /// Scratch: the sum of each continuation, with its number in `[beams, vocab]`.
    sums: Vec<(f32, usize)>,
    /// Scratch: whether the grammar allows each token.
    allowed: Vec<bool>,
}

impl<'a> BeamSearch<'a> {
    pub(super) fn new(direction: Direction, config: &'a SearchConfig, grammar: Option<&'a Grammar>) -> Self {
        let state = grammar.map(|grammar| grammar.start(direction));
        let start = Beam { tokens: Vec::new(), log_probs: Vec::new(), sum: 0.0, parent: 0, state };
        Self {
            direction,
            config,
            grammar,
            beam: if config.strategy == Strategy::Greedy { 1 } else { config.beam },
            beams: vec![start],
            found: Vec::new(),
            done: false,
            dropped: Dropped::default(),
            first_row: 0,
            sums: Vec::new(),
            allowed: Vec::new(),
        }
    }

    pub(super) fn done(&self) -> bool {
        self.done
    }

    pub(super) fn found(&self) -> &[Candidate] {
        &self.found
    }

    /// Stops if no beam can reach this score any more, whatever its score in the other direction: sums only fall, and
    /// are at best divided by the greatest length.
    pub(super) fn stop_below(&mut self, least: f32) {
        self.done |= self.beams.iter().all(|beam| self.score(beam.sum, self.config.max_length) < least);
    }

    /// Adds the rows of this direction to the decoder's next step.
    pub(super) fn push_rows(&mut self, parents: &mut Vec<usize>, tokens: &mut Vec<TokenId>) {
        self.first_row = tokens.len();
        for beam in &self.beams {
            parents.push(beam.parent);
            tokens.push(beam.tokens.last().copied().unwrap_or(self.direction.ends().0));
        }
    }

    /// Continues the beams by the decoder's probabilities, when they have `length` tokens with the start.
    pub(super) fn extend_beams(&mut self, length: usize, log_probs: &[f32], vocab: usize) {
        let rows = &log_probs[self.first_row * vocab..][..self.beams.len() * vocab];
        let best = self.rank(length, rows, vocab);
        let (end, mut next) = (self.direction.ends().1, Vec::with_capacity(self.beam));
        // If there are more than the best, these are no better than the last of them.
        let mut dropped = best.get(2 * self.beam - 1).map(|&(sum, _)| sum);
        for (rank, &(sum, index)) in best.iter().enumerate() {
            let (row, token) = (index / vocab, (index % vocab) as TokenId);
            let (beam, log_prob) = (&self.beams[row], rows[index]);
            // A formula that would not have been kept had it gone on is not kept either.
            if next.len() == self.beam || token == end && rank >= self.beam {
                dropped = greater(dropped, sum);
                if next.len() == self.beam {
                    break;
                }
                continue;
            }
            if token == end {
                let score = self.score(sum, length);
                let candidate = beam.candidate(self.direction, Some(log_prob), sum, score);
                if let Some(displaced) = keep(&mut self.found, candidate, self.beam) {
                    self.dropped.displaced = greater(self.dropped.displaced, displaced.sum);
                }
                continue;
            }
            next.push(Beam {
                tokens: [&beam.tokens[..], &[token]].concat(),
                log_probs: [&beam.log_probs[..], &[log_prob]].concat(),
                sum,
                parent: self.first_row + row,
                state: self
                    .grammar
                    .zip(beam.state.as_ref())
                    .map(|(grammar, state)| grammar.advance(state, token)),
            });
        }
        self.beams = next;
        let pruned = self.prune();
        let before = self.dropped.prefixes.last().copied();
        let dropped = [before, dropped, pruned].into_iter().flatten().fold(f32::NEG_INFINITY, f32::max);
        self.dropped.prefixes.push(dropped);
        let highest = best.first().map_or(f32::NEG_INFINITY, |&(sum, _)| self.score(sum, length));
        self.sums = best;
        let full = self.found.len() >= self.beam;
        let settled = self.config.strategy == Strategy::Greedy
            || self.found.iter().all(|candidate| candidate.score >= highest);
        self.done = self.beams.is_empty() || full && settled;
    }

    /// Drops the beams that are below the best prefix or formula by more than the margin, but none that is needed to
    /// find as many formulas as are asked for; gives the best sum of those that it drops.
    fn prune(&mut self) -> Option<f32> {
        let margin = self.config.margin?;
        let sums = self.beams.iter().map(|beam| beam.sum).chain(self.found.iter().map(|found| found.sum));
        let least = sums.fold(f32::NEG_INFINITY, f32::max) - margin;
        let needed = self.config.answers.saturating_sub(self.found.len());
        // The best beams come first.
        let kept = self.beams.iter().take_while(|beam| beam.sum >= least).count().max(needed);
        let dropped = self.beams.get(kept).map(|beam| beam.sum);
        self.beams.truncate(kept);
        dropped
    }

    /// The best `2 * beam` continuations that the grammar allows, with their sums and their numbers, the best first.
    fn rank(&mut self, length: usize, rows: &[f32], vocab: usize) -> Vec<(f32, usize)> {
        // The formula has room for `max_length - 1` tokens beside the start.
        let left = self.config.max_length - length;
        let end = usize::from(self.direction.ends().1);
        self.sums.clear();
        for (row, (beam, log_probs)) in self.beams.iter().zip(rows.chunks_exact(vocab)).enumerate() {
            if let (Some(grammar), Some(state)) = (self.grammar, &beam.state) {
                grammar.allowed(state, left, &mut self.allowed);
                self.allowed[end] = state.complete();
            }
            let tokens = log_probs.iter().enumerate();
            let tokens = tokens.filter(|&(token, _)| beam.state.is_none() || self.allowed[token]);
            let tokens = tokens.filter(|&(token, _)| match self.config.fixed.get(length - 1) {
                Some(Some(fixed)) => token == usize::from(*fixed),
                Some(None) => token != end,
                None => true,
            });
            self.sums.extend(tokens.map(|(token, log_prob)| (beam.sum + log_prob, row * vocab + token)));
        }
        let better = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let most = 2 * self.beam;
        if self.sums.len() > most {
            self.sums.select_nth_unstable_by(most, better);
            self.sums.truncate(most);
        }
        self.sums.sort_unstable_by(better);
        std::mem::take(&mut self.sums)
    }

    fn score(&self, sum: f32, length: usize) -> f32 {
        sum / (length as f32).powf(self.config.alpha)
    }

    /// What was found, and a bound for the rest; at the length limit also what did not end by itself, as far as the
    /// grammar calls it complete.
    pub(super) fn finish(mut self) -> (Vec<Candidate>, Dropped) {
        if !self.done {
            for beam in &self.beams {
                if beam.state.as_ref().is_none_or(GrammarState::complete) {
                    let score = self.score(beam.sum, beam.tokens.len() + 1);
                    let candidate = beam.candidate(self.direction, None, beam.sum, score);
                    if let Some(displaced) = keep(&mut self.found, candidate, self.beam) {
                        self.dropped.displaced = greater(self.dropped.displaced, displaced.sum);
                    }
                }
            }
        }
        // The best beam comes first.
        self.dropped.unfinished = self.beams.first().map(|beam| beam.sum);
        (self.found, self.dropped)
    }
}

impl Beam {
    fn candidate(&self, direction: Direction, end: Option<f32>, sum: f32, score: f32) -> Candidate {
        let (tokens, log_probs) = (self.tokens.clone(), self.log_probs.clone());
        Candidate { direction, tokens, log_probs, end, sum, score }
    }
}

/// Adds a candidate to the best `most`; gives the one that does not belong to them any more.
fn keep(found: &mut Vec<Candidate>, candidate: Candidate, most: usize) -> Option<Candidate> {
    found.push(candidate);
    let worst = (0..found.len()).min_by(|&a, &b| found[a].score.total_cmp(&found[b].score))?;
    (found.len() > most).then(|| found.remove(worst))
}

fn greater(left: Option<f32>, right: f32) -> Option<f32> {
    Some(left.map_or(right, |left| left.max(right)))
}
