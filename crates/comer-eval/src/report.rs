//! The figures of a run: rates by protocol and by length, and confusions.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;

use crate::metrics::{Bleu, edits, levenshtein, tokens};
use crate::reliability::Reliability;
use crate::score::{FileScore, Protocol};

/// Rates by one protocol, in percent of the files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Without errors.
    pub exp_rate: f64,
    /// With at most one error.
    pub le1: f64,
    /// With at most two errors.
    pub le2: f64,
    /// With at most three errors.
    pub le3: f64,
    /// Right except for the symbols.
    pub structure: f64,
}

/// Rates of the formulas of one range of lengths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LengthRates {
    /// The tokens of the caption: `1-10`, ..., `over 50`.
    pub tokens: String,
    /// Number of formulas.
    pub files: usize,
    /// Percent without errors by each protocol of [`Protocol::ALL`].
    pub exp_rates: [Option<f64>; 3],
}

/// A token of the captions and the token predicted instead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Confusion {
    /// Number of times.
    pub count: usize,
    /// The token of the caption; empty where there is none.
    pub truth: String,
    /// The token of the prediction; empty where it is missing.
    pub prediction: String,
}

/// How much of the ink was left unread or read twice, in percent.
///
/// The recogniser reports the shares of each image; here they are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InkRates {
    /// Number of images.
    pub files: usize,
    /// Unread ink, averaged over the images.
    pub unread: f64,
    /// Ink that was read twice, averaged over the images.
    pub reread: f64,
    /// Images with any unread ink.
    pub files_unread: f64,
    /// Images with any ink that was read twice.
    pub files_reread: f64,
}

impl InkRates {
    /// Averages the shares `[unread, reread]` of each image, in 0..=1; none if there are no images.
    pub fn new(shares: &[[f32; 2]]) -> Option<Self> {
        // Sorted, so that the order of the images does not change the last digits.
        let mut shares = shares.to_vec();
        shares.sort_by(|one, other| one[0].total_cmp(&other[0]).then(one[1].total_cmp(&other[1])));
        let files = shares.len();
        let mean = |number: usize| {
            100.0 * shares.iter().map(|share| f64::from(share[number])).sum::<f64>() / files as f64
        };
        let any = |number: usize| percent(shares.iter().filter(|share| share[number] > 0.0).count(), files);
        (files > 0).then(|| Self {
            files,
            unread: mean(0),
            reread: mean(1),
            files_unread: any(0),
            files_reread: any(1),
        })
    }
}

/// How often a prediction has another number of symbols than the caption, in percent of the files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SymbolCounts {
    /// Fewer: something was left out.
    pub fewer: f64,
    /// More: something was read twice, or made up.
    pub more: f64,
}

impl SymbolCounts {
    fn new(pairs: &[(Vec<&str>, Vec<&str>)]) -> Option<Self> {
        // The other tokens have no ink.
        let symbols = |tokens: &[&str]| {
            tokens.iter().filter(|token| !matches!(**token, "{" | "}" | "^" | "_" | r"\limits")).count()
        };
        let share = |order: Ordering| {
            let is_so = |(caption, prediction): &&(Vec<&str>, Vec<&str>)| {
                symbols(prediction).cmp(&symbols(caption)) == order
            };
            percent(pairs.iter().filter(is_so).count(), pairs.len())
        };
        (!pairs.is_empty()).then(|| Self { fewer: share(Ordering::Less), more: share(Ordering::Greater) })
    }
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of files in the ground truth.
    pub files: usize,
    /// Files without a prediction.
    pub missing: usize,
    /// Files whose prediction has no label graph.
    pub unreadable: usize,
    /// Against the competition's label graphs, if there are any.
    pub official: Option<Rates>,
    /// Against the label graphs of the captions, if there are any.
    pub caption: Option<Rates>,
    /// Token match against the captions, if there are any.
    pub token: Option<Rates>,
    /// Token edits per hundred tokens of the captions.
    pub token_error_rate: Option<f64>,
    /// BLEU-4 in percent.
    pub bleu4: Option<f64>,
    /// How often symbols were left out or added, if there are captions.
    pub symbols: Option<SymbolCounts>,
    /// How much of the ink was read; none if only predictions are known.
    pub ink: Option<InkRates>,
    /// How far confidences can be trusted, by token match; none if only predictions are known.
    pub reliability: Option<Reliability>,
    /// By the length of the captions.
    pub by_length: Vec<LengthRates>,
    /// The most frequent confusions, most frequent first.
    pub confusions: Vec<Confusion>,
}

/// Number of confusions in a report.
const CONFUSIONS: usize = 60;

impl Report {
    /// Summarises the scores of a run.
    pub fn new(scores: &[FileScore]) -> Self {
        let texts =
            |score: &FileScore| Some((score.caption.clone()?, score.prediction.clone().unwrap_or_default()));
        let texts: Vec<(String, String)> = scores.iter().filter_map(texts).collect();
        let pairs: Vec<(Vec<&str>, Vec<&str>)> =
            texts.iter().map(|(caption, prediction)| (tokens(caption), tokens(prediction))).collect();
        let mut bleu = Bleu::default();
        for (caption, prediction) in &pairs {
            bleu.add(caption, prediction);
        }
        let captioned: usize = pairs.iter().map(|(caption, _)| caption.len()).sum();
        let changed: usize = pairs.iter().map(|(caption, prediction)| levenshtein(caption, prediction)).sum();
        Self {
            files: scores.len(),
            missing: scores.iter().filter(|score| score.prediction.is_none()).count(),
            unreadable: scores.iter().filter(|score| score.unreadable.is_some()).count(),
            official: rates(scores, Protocol::Official),
            caption: rates(scores, Protocol::Caption),
            token: rates(scores, Protocol::Token),
            token_error_rate: (captioned > 0).then(|| percent(changed, captioned)),
            bleu4: (captioned > 0).then(|| bleu.percent()),
            symbols: SymbolCounts::new(&pairs),
            ink: None,
            reliability: None,
            by_length: by_length(scores),
            confusions: confusions(&pairs),
        }
    }

    /// The rates of one protocol.
    pub fn rates(&self, protocol: Protocol) -> Option<Rates> {
        match protocol {
            Protocol::Official => self.official,
            Protocol::Caption => self.caption,
            Protocol::Token => self.token,
        }
    }

    /// The figures beside the rates, one sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let tokens = self.token_error_rate.zip(self.bleu4);
        let tokens = tokens.map(|(rate, bleu)| format!("Token error rate {rate:.2} %, BLEU-4 {bleu:.2}."));
        let symbols = self.symbols.map(|SymbolCounts { fewer, more }| {
            format!("Fewer symbols than the caption in {fewer:.2} % of the files, more in {more:.2} %.")
        });
        let ink = self.ink.map(|ink| {
            format!(
                "Unread ink {:.2} % (in {:.2} % of the files), ink read twice {:.2} % (in {:.2} % of the files).",
                ink.unread, ink.files_unread, ink.reread, ink.files_reread
            )
        });
        let reliability = self.reliability.as_ref().map(Reliability::sentence);
        [tokens, symbols, ink, reliability].into_iter().flatten().collect()
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}

fn rates(scores: &[FileScore], protocol: Protocol) -> Option<Rates> {
    let found: Vec<_> = scores.iter().filter_map(|score| score.by(protocol)).collect();
    let at_most =
        |errors| percent(found.iter().filter(|mistakes| mistakes.errors <= errors).count(), found.len());
    (!found.is_empty()).then(|| Rates {
        exp_rate: at_most(0),
        le1: at_most(1),
        le2: at_most(2),
        le3: at_most(3),
        structure: percent(found.iter().filter(|mistakes| mistakes.same_structure).count(), found.len()),
    })
}

fn by_length(scores: &[FileScore]) -> Vec<LengthRates> {
    let buckets = [(1, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, usize::MAX)];
    let lengths: Vec<Option<usize>> =
        scores.iter().map(|score| score.caption.as_ref().map(|caption| tokens(caption).len())).collect();
    let rates = |(from, to): (usize, usize)| {
        let is_in = |length: &Option<usize>| length.is_some_and(|length| (from..=to).contains(&length));
        let files =
            || scores.iter().zip(&lengths).filter(|(_, length)| is_in(length)).map(|(score, _)| score);
        let exp_rate = |protocol| {
            let found: Vec<_> = files().filter_map(|score| score.by(protocol)).collect();
            let right = found.iter().filter(|mistakes| mistakes.errors == 0).count();
            (!found.is_empty()).then(|| percent(right, found.len()))
        };
        LengthRates {
            tokens: if to == usize::MAX { format!("over {}", from - 1) } else { format!("{from}-{to}") },
            files: files().count(),
            exp_rates: Protocol::ALL.map(exp_rate),
        }
    };
    buckets.map(rates).into_iter().filter(|rates| rates.files > 0).collect()
}

fn confusions(pairs: &[(Vec<&str>, Vec<&str>)]) -> Vec<Confusion> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for (caption, prediction) in pairs {
        let found = edits(caption, prediction).unwrap_or_default();
        // Braces only follow from scripts and fractions.
        let is_brace = |token: &str| matches!(token, "{" | "}");
        for edit in found.into_iter().filter(|(truth, prediction)| !is_brace(truth) && !is_brace(prediction))
        {
            *counts.entry(edit).or_default() += 1;
        }
    }
    let named = |((truth, prediction), count): ((&str, &str), usize)| Confusion {
        count,
        truth: truth.into(),
        prediction: prediction.into(),
    };
    let mut confusions: Vec<Confusion> = counts.into_iter().map(named).collect();
    confusions.sort_by(|one, other| {
        (other.count, &one.truth, &one.prediction).cmp(&(one.count, &other.truth, &other.prediction))
    });
    confusions.truncate(CONFUSIONS);
    confusions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Truth, score};
    use crate::{Dialect, LabelGraph};

    #[test]
    fn ink_is_added_up() {
        assert_eq!(InkRates::new(&[]), None);
        let rates = InkRates::new(&[[0.5, 0.0], [0.25, 0.0], [0.0, 0.0], [0.0, 1.0]]).unwrap();
        let expected =
            InkRates { files: 4, unread: 18.75, reread: 25.0, files_unread: 50.0, files_reread: 25.0 };
        assert_eq!(rates, expected);
    }

    #[test]
    fn figures_by_hand() {
        let captions = ["x + 1", "x + 1", "x + 1", &"x ".repeat(60)];
        let predictions = ["x + 1", "x + l", "x +", &"x ".repeat(60)];
        let truths: Vec<Truth> = captions
            .iter()
            .enumerate()
            .map(|(number, caption)| Truth {
                name: number.to_string(),
                caption: Some(caption.to_string()),
                graph: LabelGraph::from_latex(caption, Dialect::Official).ok(),
            })
            .collect();
        let predictions =
            predictions.iter().enumerate().map(|(number, text)| (number.to_string(), text.to_string()));
        let report = Report::new(&score(&truths, &predictions.collect(), Dialect::Official));
        let official = Rates { exp_rate: 50.0, le1: 75.0, le2: 100.0, le3: 100.0, structure: 75.0 };
        assert_eq!((report.files, report.missing, report.unreadable), (4, 0, 0));
        assert_eq!(report.official, Some(official));
        assert_eq!(report.caption, Some(official));
        assert_eq!(report.token.unwrap().le1, 100.0);
        assert_eq!(report.symbols, Some(SymbolCounts { fewer: 25.0, more: 0.0 }));
        assert!((report.token_error_rate.unwrap() - 100.0 * 2.0 / 69.0).abs() < 1e-9);
        let lengths: Vec<_> =
            report.by_length.iter().map(|rates| (rates.tokens.as_str(), rates.files)).collect();
        assert_eq!(lengths, [("1-10", 3), ("over 50", 1)]);
        assert_eq!(report.by_length[1].exp_rates, [Some(100.0); 3]);
        let confusion = |truth: &str, prediction: &str| Confusion {
            count: 1,
            truth: truth.into(),
            prediction: prediction.into(),
        };
        assert_eq!(report.confusions, [confusion("1", ""), confusion("1", "l")]);
    }
}
