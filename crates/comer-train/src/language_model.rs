//! N-gram language models of formulas: modified Kneser-Ney smoothing with weighted lists, pruned to a size.
//!
//! An n-gram that was seen `n` times keeps the share `1 - D(n) / n` of its weight, with the usual discounts `D` for 1, 2
//! and more; the rest goes to the next shorter context. Shorter n-grams count the different tokens before them. [`Text`]
//! excludes formulas of tests, [`train`] estimates the model, [`perplexities`] evaluates it on other formulas.

mod counts;
mod estimate;
mod text;

use comer::internal::language_model::{LanguageModel, Recurrence};
use comer::internal::token::{EOS, SOS};
use comer::internal::{Direction, TokenId, Vocab};

use crate::error::{Error, Result};

pub use estimate::Estimate;
pub use text::{List, Text, parse_list};

/// A formula of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its tokens.
    pub tokens: Vec<TokenId>,
    /// Its count.
    pub count: u32,
    /// The weight of its list.
    pub weight: f64,
}

/// Options for training a language model.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Length of the longest n-grams, 2 to 8.
    pub order: usize,
    /// Maximum size of the file in bytes.
    pub max_bytes: usize,
    /// The weight of its log-probabilities in the search.
    pub weight: f32,
    /// The maximum share of the probability of letters that goes to letters seen before in the same formula.
    pub share: f32,
    /// The number of seen letters at which half of that share is reached.
    pub prior: f32,
}

impl Default for Options {
    fn default() -> Self {
        Self { order: 7, max_bytes: 600_000, weight: 0.2, share: 0.5, prior: 2.0 }
    }
}

/// Bytes of a file in addition to the n-grams: its header, including provenance.
const HEADER_BYTES: usize = 8 << 10;

/// Estimates a model of both reading directions.
pub fn train(text: &Text, vocab: &Vocab, options: &Options) -> Result<LanguageModel> {
    let invalid = |reason: String| Error::Data(format!("language model: {reason}"));
    if !(2..=8).contains(&options.order) {
        return Err(invalid(format!("n-grams of {} tokens, expected 2 to 8", options.order)));
    }
    if text.lines.is_empty() {
        return Err(invalid("the text has no formulas, expected at least one".into()));
    }
    let max_bytes = options.max_bytes.saturating_sub(HEADER_BYTES) / 2;
    let reversed = |line: &Line| Line { tokens: line.tokens.iter().rev().copied().collect(), ..line.clone() };
    let ngrams = |lines: &[Line], ends| {
        Estimate::new(lines, vocab.len(), ends, options.order).prune(max_bytes).map_err(invalid)
    };
    let backward: Vec<Line> = text.lines.iter().map(reversed).collect();
    let (forward, backward) =
        rayon::join(|| ngrams(&text.lines, (SOS, EOS)), || ngrams(&backward, (EOS, SOS)));
    let model = LanguageModel {
        vocab: vocab.clone(),
        forward: forward?,
        backward: backward?,
        recurrence: Recurrence::of_letters(options.share, options.prior, vocab)?,
        weight: options.weight,
        provenance: Default::default(),
    };
    let bytes = model.to_bytes()?.len();
    if bytes > options.max_bytes {
        return Err(invalid(format!("it takes {bytes} bytes, expected at most {}", options.max_bytes)));
    }
    Ok(model)
}

/// The perplexity per token, including the end of each formula: left to right, right to left.
pub fn perplexities(model: &LanguageModel, formulas: &[Vec<TokenId>]) -> [f64; 2] {
    [Direction::LeftToRight, Direction::RightToLeft].map(|direction| {
        let (mut sum, mut count) = (0.0, 0);
        for formula in formulas {
            let written: Vec<TokenId> = match direction {
                Direction::LeftToRight => formula.clone(),
                Direction::RightToLeft => formula.iter().rev().copied().collect(),
            };
            sum += model.score(direction, &written).iter().map(|&value| f64::from(value)).sum::<f64>();
            count += formula.len() + 1;
        }
        (-sum / count as f64).exp()
    })
}

#[cfg(test)]
mod tests;
