//! Metrics of token sequences: Levenshtein distance, edits, BLEU.

use std::collections::HashMap;
use std::hash::Hash;

use crate::lexer::split;

/// The tokens of a formula, with or without spaces between them.
pub fn tokens(formula: &str) -> Vec<&str> {
    split(formula).into_iter().map(|token| token.text).collect()
}

/// Whether two formulas have the same structure: the same tokens if all symbols are considered equal.
pub fn same_structure(one: &[&str], other: &[&str]) -> bool {
    const STRUCTURE: [&str; 7] = ["{", "}", "^", "_", r"\frac", r"\sqrt", r"\limits"];
    let is_symbol = |token: &str| !STRUCTURE.contains(&token);
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| one == other || (is_symbol(one) && is_symbol(other)))
}

/// Levenshtein distance: the least number of replacements, deletions and insertions.
pub fn levenshtein<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let (one, other) = without_common_ends(one, other);
    let mut row: Vec<usize> = (0..=one.len()).collect();
    for (done, item) in other.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = done + 1;
        for place in 0..one.len() {
            let replaced = diagonal + usize::from(one[place] != *item);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[one.len()]
}

fn without_common_ends<'a, T: PartialEq>(one: &'a [T], other: &'a [T]) -> (&'a [T], &'a [T]) {
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    (&one[..one.len() - end], &other[..other.len() - end])
}

/// The largest table of [`edits`]; only predictions of tens of thousands of tokens need a larger one.
const MAX_TABLE: usize = 1 << 24;

/// The edits from the ground truth to the prediction as pairs of tokens; empty on the left for an insertion and on the
/// right for a deletion. None if there are too many tokens.
pub fn edits<'a>(truth: &[&'a str], prediction: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    let (truth, prediction) = without_common_ends(truth, prediction);
    let width = truth.len() + 1;
    if width.checked_mul(prediction.len() + 1)? > MAX_TABLE {
        return None;
    }
    let mut table: Vec<u32> = (0..width as u32).collect();
    for (done, token) in prediction.iter().enumerate() {
        table.push(done as u32 + 1);
        for (place, expected) in truth.iter().enumerate() {
            let above = done * width + place;
            let replaced = table[above] + u32::from(expected != token);
            let left = table[above + width];
            table.push(replaced.min(table[above + 1] + 1).min(left + 1));
        }
    }
    let mut found = Vec::new();
    let (mut column, mut line) = (truth.len(), prediction.len());
    while column > 0 || line > 0 {
        let cost = table[line * width + column];
        if column > 0 && line > 0 {
            let same = truth[column - 1] == prediction[line - 1];
            if table[(line - 1) * width + column - 1] + u32::from(!same) == cost {
                (column, line) = (column - 1, line - 1);
                if !same {
                    found.push((truth[column], prediction[line]));
                }
                continue;
            }
        }
        if column > 0 && table[line * width + column - 1] + 1 == cost {
            column -= 1;
            found.push((truth[column], ""));
        } else {
            line -= 1;
            found.push(("", prediction[line]));
        }
    }
    found.reverse();
    Some(found)
}

/// Corpus BLEU-4 without smoothing.
#[derive(Clone, Debug, Default)]
pub struct Bleu {
    matched: [usize; 4],
    offered: [usize; 4],
    truth_length: usize,
    prediction_length: usize,
}

impl Bleu {
    /// Adds a formula.
    pub fn add(&mut self, truth: &[&str], prediction: &[&str]) {
        self.truth_length += truth.len();
        self.prediction_length += prediction.len();
        for length in 1..=4 {
            let in_truth = counts(truth.windows(length));
            for (run, count) in counts(prediction.windows(length)) {
                self.offered[length - 1] += count;
                self.matched[length - 1] += count.min(in_truth.get(run).copied().unwrap_or(0));
            }
        }
    }

    /// The score in percent.
    pub fn percent(&self) -> f64 {
        if self.matched.contains(&0) {
            return 0.0;
        }
        let ratio = |(matched, offered): (&usize, &usize)| (*matched as f64 / *offered as f64).ln();
        let precision = self.matched.iter().zip(&self.offered).map(ratio).sum::<f64>() / 4.0;
        let shortness = (1.0 - self.truth_length as f64 / self.prediction_length as f64).min(0.0);
        100.0 * (precision + shortness).exp()
    }
}

fn counts<T: Eq + Hash>(items: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_and_mistakes_by_hand() {
        for (truth, prediction, expected) in [
            ("x + 1", "x + 1", vec![]),
            ("x + 1", "x - 1", vec![("+", "-")]),
            ("x + 1", "x 1", vec![("+", "")]),
            ("x 1", "x + 1", vec![("", "+")]),
            ("x", "", vec![("x", "")]),
            ("a b c d", "b x d", vec![("a", ""), ("c", "x")]),
        ] {
            let (truth, prediction) = (tokens(truth), tokens(prediction));
            assert_eq!(levenshtein(&truth, &prediction), expected.len());
            assert_eq!(edits(&truth, &prediction).unwrap(), expected);
        }
        let long = vec!["x"; 30_000];
        assert_eq!(edits(&["a"; 1_000], &long), None);
        assert_eq!(levenshtein(&["x"; 20], &long), 29_980);
    }

    #[test]
    fn structure_is_what_is_left_without_the_symbols() {
        for (one, other, expected) in [
            ("x ^ { 2 }", "y ^ { 3 }", true),
            ("x ^ { 2 }", "x _ { 2 }", false),
            (r"\frac { 1 } { 2 }", r"\frac { a } { b }", true),
            ("x", "x y", false),
            ("x", "{", false),
        ] {
            assert_eq!(same_structure(&tokens(one), &tokens(other)), expected, "{one} / {other}");
        }
    }

    #[test]
    fn bleu_by_hand() {
        let mut bleu = Bleu::default();
        bleu.add(&["a", "b", "c", "d", "e"], &["a", "b", "c", "d", "e"]);
        assert!((bleu.percent() - 100.0).abs() < 1e-9);
        // Of 5 + 4 single tokens 8 match, of 4 + 3 pairs 5, of 3 + 2 threes 3, of 2 + 1 fours 2; 9 tokens for 10.
        bleu.add(&["a", "b", "c", "d", "e"], &["a", "b", "x", "d"]);
        let precision: f64 = (8.0 / 9.0) * (5.0 / 7.0) * (3.0 / 5.0) * (2.0 / 3.0);
        let expected = 100.0 * precision.powf(0.25) * (1.0f64 - 10.0 / 9.0).exp();
        assert!((bleu.percent() - expected).abs() < 1e-9, "{} {expected}", bleu.percent());
        assert_eq!(Bleu::default().percent(), 0.0);
    }

    proptest! {
        #[test]
        fn there_are_as_many_mistakes_as_the_distance(one in "[abc]{0,12}", other in "[abc]{0,12}") {
            let (one, other) = (tokens(&one), tokens(&other));
            prop_assert_eq!(edits(&one, &other).unwrap().len(), levenshtein(&one, &other));
            prop_assert_eq!(levenshtein(&one, &other), levenshtein(&other, &one));
        }
    }
}
