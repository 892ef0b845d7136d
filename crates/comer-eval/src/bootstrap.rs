//! Compares runs: which files only one has right, and bootstrap intervals over files and repetitions.

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

/// Which files are right in each repetition of an experiment, such as training with several seeds.
#[derive(Clone, Debug)]
pub struct Repetitions {
    names: Vec<String>,
    /// `[repetition][file]`.
    right: Vec<Vec<bool>>,
}

/// How much more often one experiment is right than another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// In points of ExpRate.
    pub points: f64,
    /// 95 % bootstrap interval over files and repetitions.
    pub interval: [f64; 2],
    /// Two-sided: how often a resampling shows no difference, or the opposite one. At least one in 10 000.
    pub p: f64,
}

impl Repetitions {
    /// The repetitions of an experiment on one set of files; none if there is no file with a score, or if the files differ.
    pub fn new<'a>(runs: impl IntoIterator<Item = &'a [FileScore]>, protocol: Protocol) -> Option<Self> {
        let mut found: Option<Self> = None;
        for run in runs {
            let scored = run.iter().filter_map(|score| Some((&score.name, score.by(protocol)?.errors == 0)));
            let (names, right): (Vec<String>, Vec<bool>) =
                scored.map(|(name, right)| (name.clone(), right)).unzip();
            match &mut found {
                _ if names.is_empty() => return None,
                None => found = Some(Self { names, right: vec![right] }),
                Some(found) if found.names == names => found.right.push(right),
                Some(_) => return None,
            }
        }
        found
    }

    /// Repetitions `[repetition][file]` whose outcomes are known; none if there are none, or if their lengths differ.
    pub fn from_outcomes(names: Vec<String>, right: Vec<Vec<bool>>) -> Option<Self> {
        let whole =
            !right.is_empty() && !names.is_empty() && right.iter().all(|own| own.len() == names.len());
        whole.then_some(Self { names, right })
    }

    /// Mean ExpRate in percent.
    pub fn rate(&self) -> f64 {
        let right = self.right.iter().flatten().filter(|right| **right).count();
        100.0 * right as f64 / (self.names.len() * self.right.len()) as f64
    }

    /// 95 % bootstrap interval of the rate: files and repetitions are drawn with replacement.
    pub fn interval(&self) -> [f64; 2] {
        let mut random = SplitMix(SEED);
        middle(&sorted((0..DRAWS).map(|_| {
            let repetitions = self.draw(&mut random);
            let files = (0..self.names.len()).map(|_| random.below(self.names.len()));
            self.mean(&repetitions, files)
        })))
    }

    /// This experiment less another one on the same files; none if the files differ.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if self.names != other.names {
            return None;
        }
        let mut random = SplitMix(SEED);
        let draws = sorted((0..DRAWS).map(|_| {
            let (own, others) = (self.draw(&mut random), other.draw(&mut random));
            // The same files for both: how hard a file is cancels out.
            let files: Vec<usize> = (0..self.names.len()).map(|_| random.below(self.names.len())).collect();
            self.mean(&own, files.iter().copied()) - other.mean(&others, files.iter().copied())
        }));
        let share =
            |is: fn(f64) -> bool| draws.iter().filter(|&&draw| is(draw)).count() as f64 / DRAWS as f64;
        let p = 2.0 * share(|draw| draw <= 0.0).min(share(|draw| draw >= 0.0));
        Some(Difference {
            points: self.rate() - other.rate(),
            interval: middle(&draws),
            p: p.clamp(1.0 / DRAWS as f64, 1.0),
        })
    }

    fn draw(&self, random: &mut SplitMix) -> Vec<usize> {
        (0..self.right.len()).map(|_| random.below(self.right.len())).collect()
    }

    fn mean(&self, repetitions: &[usize], files: impl Iterator<Item = usize>) -> f64 {
        let right: usize =
            files.map(|file| repetitions.iter().filter(|&&own| self.right[own][file]).count()).sum();
        100.0 * right as f64 / (repetitions.len() * self.names.len()) as f64
    }
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

    #[test]
    fn intervals_over_seeds_are_wider_and_pairs_cancel_the_files() {
        let repetitions = |runs: &[Vec<FileScore>]| {
            Repetitions::new(runs.iter().map(Vec::as_slice), Protocol::Official).unwrap()
        };
        let one = repetitions(&[run(|number| number < 100, 0..200)]);
        let [low, high] = one.interval();
        // A standard deviation of 3.5 points around 50.
        assert!((41.0..45.0).contains(&low) && (55.0..59.0).contains(&high), "{low} {high}");
        let seeds = repetitions(&[run(|number| number < 70, 0..200), run(|number| number < 130, 0..200)]);
        assert_eq!(seeds.rate(), 50.0);
        let [low, high] = seeds.interval();
        assert!(low < 37.0 && high > 63.0, "{low} {high}");
        // Six files more are right, none fewer: a small difference, but a sure one.
        let better = repetitions(&[run(|number| number < 106, 0..200)]);
        let difference = better.difference(&one).unwrap();
        assert_eq!(difference.points, 3.0);
        assert!(difference.interval[0] > 0.5 && difference.p < 0.01, "{difference:?}");
        assert_eq!(one.difference(&one).unwrap(), Difference { points: 0.0, interval: [0.0; 2], p: 1.0 });
        assert_eq!(one.difference(&repetitions(&[run(|_| true, 0..10)])), None);
    }
}
