//! Compares two runs: which files only one has right, and a bootstrap interval over files.

use std::collections::HashMap;

use serde::Serialize;

use crate::score::{FileScore, Protocol};

/// Bootstrap resamplings.
const DRAWS: usize = 10_000;
/// Fixed, so that the same files give the same interval.
const SEED: u64 = 2022;

/// The difference between two runs by one protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Files that both runs scored.
    pub files: usize,
    /// ExpRate of the first run, in percent.
    pub before: f64,
    /// ExpRate of the second run.
    pub after: f64,
    /// 95 % bootstrap interval of `after - before`, in points.
    pub interval: [f64; 2],
    /// Files that only the second run has right.
    pub gained: Vec<String>,
    /// Files that only the first run has right.
    pub lost: Vec<String>,
}

/// Compares two runs on the files that both have; none if there is no such file.
pub fn compare_runs(before: &[FileScore], after: &[FileScore], protocol: Protocol) -> Option<Comparison> {
    let is_right = |score: &FileScore| score.by(protocol).map(|mistakes| mistakes.errors == 0);
    let later: HashMap<&str, bool> =
        after.iter().filter_map(|score| Some((score.name.as_str(), is_right(score)?))).collect();
    let pairs: Vec<(&str, bool, bool)> = before
        .iter()
        .filter_map(|score| Some((score.name.as_str(), is_right(score)?, *later.get(score.name.as_str())?)))
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let names = |wanted: (bool, bool)| {
        let chosen = pairs.iter().filter(|(_, before, after)| (*before, *after) == wanted);
        chosen.map(|(name, ..)| name.to_string()).collect()
    };
    let rate = |right: usize| 100.0 * right as f64 / pairs.len() as f64;
    let differences: Vec<i8> =
        pairs.iter().map(|(_, before, after)| i8::from(*after) - i8::from(*before)).collect();
    Some(Comparison {
        files: pairs.len(),
        before: rate(pairs.iter().filter(|(_, before, _)| *before).count()),
        after: rate(pairs.iter().filter(|(.., after)| *after).count()),
        interval: interval(&differences),
        gained: names((false, true)),
        lost: names((true, false)),
    })
}

fn interval(differences: &[i8]) -> [f64; 2] {
    let mut random = SplitMix(SEED);
    let draw = |_| {
        let sum: i64 =
            (0..differences.len()).map(|_| i64::from(differences[random.below(differences.len())])).sum();
        100.0 * sum as f64 / differences.len() as f64
    };
    middle(&sorted((0..DRAWS).map(draw)))
}

fn sorted(draws: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut draws: Vec<f64> = draws.collect();
    draws.sort_by(f64::total_cmp);
    draws
}

/// The middle 95 % of sorted draws.
fn middle(draws: &[f64]) -> [f64; 2] {
    [0.025, 0.975].map(|place| draws[(place * (draws.len() - 1) as f64).round() as usize])
}

/// A small generator of random numbers (SplitMix64).
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * limit as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Mistakes;

    fn run(right: impl Fn(usize) -> bool, files: std::ops::Range<usize>) -> Vec<FileScore> {
        files
            .map(|number| FileScore {
                name: format!("f{number}"),
                caption: None,
                prediction: None,
                unreadable: None,
                mistakes: [
                    Some(Mistakes { errors: usize::from(!right(number)), same_structure: true }),
                    None,
                    None,
                ],
            })
            .collect()
    }

    #[test]
    fn flips_and_interval() {
        let before = run(|number| number < 50, 0..100);
        let after = run(|number| number < 60 && number != 3, 0..100);
        let comparison = compare_runs(&before, &after, Protocol::Official).unwrap();
        assert_eq!((comparison.files, comparison.before, comparison.after), (100, 50.0, 59.0));
        assert_eq!((comparison.gained.len(), comparison.lost), (10, vec!["f3".to_string()]));
        let [low, high] = comparison.interval;
        // Ten up and one down of a hundred: a standard deviation of 3.2 points around 9.
        assert!((2.0..4.0).contains(&low) && (14.0..17.0).contains(&high), "{low} {high}");
        assert_eq!(compare_runs(&before, &after, Protocol::Official).unwrap().interval, comparison.interval);
    }

    #[test]
    fn equal_runs_do_not_differ_and_strangers_are_not_compared() {
        let one = run(|_| true, 0..10);
        assert_eq!(compare_runs(&one, &one, Protocol::Official).unwrap().interval, [0.0, 0.0]);
        assert_eq!(compare_runs(&one, &run(|_| true, 20..30), Protocol::Official), None);
        assert_eq!(compare_runs(&one, &one, Protocol::Token), None);
        assert_eq!(compare_runs(&one, &run(|_| true, 5..30), Protocol::Official).unwrap().files, 5);
    }
}
