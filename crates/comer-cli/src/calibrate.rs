//! Fits the confidences of a model on formulas that it was not trained on.

use std::path::Path;

use anyhow::{Result, bail};
use comer::internal::ModelFile;
use comer::internal::calibration::{Calibration, Curve, KEY, Sample};
use comer::{Candidate, Input, RecognizeOptions, Recognizer};
use comer_eval::reliability::Reliability;
use comer_train::stroke_set::{self, Record};
use rayon::prelude::*;
use serde_json::json;

use crate::output::{Progress, message};

/// What one search said of the formulas of a set.
#[derive(Default)]
struct Said {
    formulas: Vec<Sample>,
    /// The formulas again, and which of their tokens are right.
    candidates: Vec<(Candidate, Vec<bool>)>,
}

impl Said {
    /// The tokens of the formulas that are taken.
    fn tokens(&self, taken: impl Fn(usize) -> bool) -> Vec<Sample> {
        let taken = self.candidates.iter().enumerate().filter(|(at, _)| taken(*at));
        taken
            .flat_map(|(_, (best, right))| best.tokens.iter().zip(right))
            .map(|(token, &right)| Sample { probability: token.confidence, tokens: 1, right })
            .collect()
    }
}

/// Reads the formulas of a set, fits the curves, and stores them in the provenance of the model. Says on stderr how far
/// confidences of formulas, tokens and symbols are off before and after, the latter by fitting on each half of the set and
/// measuring on the other.
pub fn calibrate(model: &mut ModelFile, set: &Path, take: Option<usize>) -> Result<()> {
    let records = stroke_set::read(set)?;
    let step = take.map_or(1, |take| records.len().div_ceil(take.max(1)));
    let records: Vec<Record> = records.into_iter().step_by(step).collect();
    if records.len() < 50 {
        bail!("{}: it has {} formulas, expected at least 50", set.display(), records.len());
    }
    model.provenance.remove(KEY);
    let recognizer = Recognizer::new(model.clone())?;
    let joint = read(&recognizer, &records, &RecognizeOptions::new().threads(1))?;
    let greedy = read(&recognizer, &records, &RecognizeOptions::new().greedy().threads(1))?;
    for (name, samples) in [("joint search", &joint.formulas), ("greedy search", &greedy.formulas)] {
        let before = reliability(samples, &Curve::IDENTITY);
        let halves = [0, 1].map(|half| samples.iter().skip(half).step_by(2).copied().collect::<Vec<_>>());
        let fitted = |fit: usize, measured: usize| -> Vec<(f32, bool)> {
            let curve = Curve::fit(&halves[fit]);
            halves[measured]
                .iter()
                .map(|sample| (curve.apply(sample.probability, sample.tokens), sample.right))
                .collect()
        };
        let after = Reliability::new(&[fitted(0, 1), fitted(1, 0)].concat());
        report(&format!("{name}, {} formulas", samples.len()), &before, &after);
    }
    report_tokens(&joint);
    let calibration = Calibration {
        joint: Curve::fit(&joint.formulas),
        one_direction: Curve::fit(&greedy.formulas),
        token: Curve::fit(&joint.tokens(|_| true)),
    };
    model.provenance.insert(KEY.into(), json!(calibration));
    Ok(())
}

fn report(what: &str, before: &Reliability, after: &Reliability) {
    message(format_args!(
        "{what}: expected calibration error {:.3} before, {:.3} after (cross-validated)",
        before.error, after.error
    ));
}

/// How far confidences of tokens are off, and those of symbols, which are products of them.
fn report_tokens(said: &Said) {
    let halves = [0, 1].map(|half| Curve::fit(&said.tokens(|at| at % 2 != half)));
    let (mut tokens, mut symbols) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (at, (best, right)) in said.candidates.iter().enumerate() {
        // A symbol is right if all tokens are of which its confidence is the product.
        let with = |confidence: &dyn Fn(usize, f32) -> f32| {
            let mut changed = best.clone();
            let own = changed.tokens.iter_mut().enumerate();
            own.for_each(|(token, own)| own.confidence = confidence(token, own.confidence));
            changed
        };
        let truth = with(&|token, _| f32::from(u8::from(right[token]))).symbol_confidences();
        for (curve, (tokens, symbols)) in
            [Curve::IDENTITY, halves[at % 2]].iter().zip(tokens.iter_mut().zip(&mut symbols))
        {
            let said = with(&|_, own| curve.apply(own, 1));
            tokens.extend(said.tokens.iter().map(|token| token.confidence).zip(right.iter().copied()));
            let said = said.symbol_confidences();
            let pairs = said.iter().zip(&truth).filter_map(|(said, truth)| said.zip(*truth));
            symbols.extend(pairs.map(|(said, truth)| (said, truth > 0.5)));
        }
    }
    for (what, [before, after]) in [("tokens", &tokens), ("symbols", &symbols)] {
        let name = format!("joint search, {} {what}", before.len());
        report(&name, &Reliability::new(before), &Reliability::new(after));
    }
}

fn reliability(samples: &[Sample], curve: &Curve) -> Reliability {
    let said = samples.iter().map(|sample| (curve.apply(sample.probability, sample.tokens), sample.right));
    Reliability::new(&said.collect::<Vec<_>>())
}

fn read(recognizer: &Recognizer, records: &[Record], options: &RecognizeOptions) -> Result<Said> {
    let progress = Progress::new(records.len());
    let one = |record: &Record| -> Result<Candidate> {
        let ink = record.ink().map_err(anyhow::Error::msg)?;
        let best = recognizer.recognize_with(&Input::from_ink(ink)?, options)?.best;
        progress.advance();
        Ok(best)
    };
    let read: Vec<Result<Candidate>> = records.par_iter().with_max_len(1).map(one).collect();
    let mut said = Said::default();
    for (record, best) in records.iter().zip(read) {
        let best = match best {
            Ok(best) => best,
            Err(error) => {
                message(format_args!("left out: {}: {error:#}", record.id));
                continue;
            }
        };
        let truth: Vec<&str> = record.tokens.split_whitespace().collect();
        let found: Vec<&str> = best.tokens.iter().map(|token| token.text.as_str()).collect();
        said.formulas.push(Sample {
            probability: best.confidence,
            tokens: found.len(),
            right: found == truth,
        });
        let right = matched(&found, &truth);
        said.candidates.push((best, right));
    }
    Ok(said)
}

/// Which of the found tokens are in the truth, by the longest common subsequence.
fn matched(found: &[&str], truth: &[&str]) -> Vec<bool> {
    let mut longest = vec![vec![0usize; truth.len() + 1]; found.len() + 1];
    for row in (0..found.len()).rev() {
        for column in (0..truth.len()).rev() {
            longest[row][column] = if found[row] == truth[column] {
                longest[row + 1][column + 1] + 1
            } else {
                longest[row + 1][column].max(longest[row][column + 1])
            };
        }
    }
    let mut matched = vec![false; found.len()];
    let (mut row, mut column) = (0, 0);
    while row < found.len() && column < truth.len() {
        if found[row] == truth[column] {
            matched[row] = true;
            (row, column) = (row + 1, column + 1);
        } else if longest[row + 1][column] >= longest[row][column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use super::matched;

    #[test]
    fn tokens_are_right_where_both_agree() {
        let split = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        for (found, truth, expected) in [
            ("x + y", "x + y", vec![true, true, true]),
            ("x - y", "x + y", vec![true, false, true]),
            ("x ^ { 2 }", "x 2", vec![true, false, false, true, false]),
            ("a b", "c", vec![false, false]),
        ] {
            assert_eq!(matched(&split(found), &split(truth)), expected, "{found}");
        }
    }
}
