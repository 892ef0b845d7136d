//! Compares experiments that were repeated, such as trainings with several seeds: intervals over files and repetitions.
//!
//! A rate differs by chance for two reasons: other files would have been read, and another repetition would have read them. The
//! first variance comes from the files themselves. Few repetitions say little of the second, so it is pooled over all
//! experiments that have several ([`RepetitionVariance`]) and counts for those with one as well. Intervals and p values are
//! Student's, with Welch's degrees of freedom.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::score::{FileScore, Protocol};

/// Which files are right in each repetition of an experiment.
#[derive(Clone, Debug)]
pub struct Repetitions {
    names: Vec<String>,
    /// `[repetition][file]`.
    right: Vec<Vec<bool>>,
}

/// The variance of the rates of repetitions, in percent, within each of several experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepetitionVariance {
    variance: f64,
    freedom: f64,
}

/// How much more often one experiment is right than another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// In points of ExpRate.
    pub points: f64,
    /// 95 % interval over files and, if their variance is known, repetitions.
    pub interval: [f64; 2],
    /// Two-sided: how often chance alone makes at least this difference.
    pub p: f64,
}

impl RepetitionVariance {
    /// Pooled over the experiments that have several repetitions; none if there is none.
    pub fn pooled<'a>(experiments: impl IntoIterator<Item = &'a Repetitions>) -> Option<Self> {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for experiment in experiments {
            let rate = experiment.rate();
            squares += experiment.rates().map(|own| (own - rate).powi(2)).sum::<f64>();
            freedom += experiment.right.len() as f64 - 1.0;
        }
        (freedom > 0.0).then(|| Self { variance: squares / freedom, freedom })
    }

    /// The standard deviation in points.
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }
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

    /// ExpRate of each repetition in percent.
    pub fn rates(&self) -> impl Iterator<Item = f64> {
        let percent = |own: &Vec<bool>| 100.0 * count(own) as f64 / own.len() as f64;
        self.right.iter().map(percent)
    }

    /// Mean ExpRate in percent.
    pub fn rate(&self) -> f64 {
        let right: usize = self.right.iter().map(|own| count(own)).sum();
        100.0 * right as f64 / (self.names.len() * self.right.len()) as f64
    }

    /// 95 % interval of the rate, over files alone if no variance of repetitions is given.
    pub fn interval(&self, repetitions: Option<RepetitionVariance>) -> [f64; 2] {
        let shares: Vec<f64> = (0..self.names.len()).map(|file| self.share(file)).collect();
        let error = Error::of(&shares, repetitions, 1.0 / self.right.len() as f64);
        error.interval(self.rate()).map(|bound| bound.clamp(0.0, 100.0))
    }

    /// This experiment less another one on the same files, paired by file; none if the files differ. Over files alone if no
    /// variance of repetitions is given.
    pub fn difference(&self, other: &Self, repetitions: Option<RepetitionVariance>) -> Option<Difference> {
        if self.names != other.names {
            return None;
        }
        let differences: Vec<f64> =
            (0..self.names.len()).map(|file| self.share(file) - other.share(file)).collect();
        let share = 1.0 / self.right.len() as f64 + 1.0 / other.right.len() as f64;
        let error = Error::of(&differences, repetitions, share);
        let points = self.rate() - other.rate();
        Some(Difference { points, interval: error.interval(points), p: error.p(points) })
    }

    /// The share of the repetitions in which a file is right.
    fn share(&self, file: usize) -> f64 {
        self.right.iter().filter(|own| own[file]).count() as f64 / self.right.len() as f64
    }
}

fn count(right: &[bool]) -> usize {
    right.iter().filter(|right| **right).count()
}

/// The standard error of a mean in points, and how well it is known.
struct Error {
    error: f64,
    freedom: f64,
}

impl Error {
    /// Of the mean of a number for each file, and of means over repetitions with so much of the variance of one.
    fn of(files: &[f64], repetitions: Option<RepetitionVariance>, share: f64) -> Self {
        let count = files.len() as f64;
        let mean = files.iter().sum::<f64>() / count;
        let squares: f64 = files.iter().map(|own| (own - mean).powi(2)).sum();
        let freedom = (count - 1.0).max(1.0);
        let own = 1e4 * squares / freedom / count;
        let chance = repetitions.map_or(0.0, |known| known.variance * share);
        let parts = own * own / freedom + repetitions.map_or(0.0, |known| chance * chance / known.freedom);
        let variance = own + chance;
        // Without any variance, any number of degrees will do.
        let freedom = if parts > 0.0 { variance * variance / parts } else { freedom };
        Self { error: variance.sqrt(), freedom }
    }

    fn student(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.freedom).expect("a positive number of degrees of freedom")
    }

    fn interval(&self, points: f64) -> [f64; 2] {
        let reach = self.error * self.student().inverse_cdf(0.975);
        [points - reach, points + reach]
    }

    fn p(&self, points: f64) -> f64 {
        match (points == 0.0, self.error > 0.0) {
            (true, _) => 1.0,
            (false, true) => 2.0 * self.student().cdf(-(points / self.error).abs()),
            (false, false) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: usize = 200;

    /// Repetitions that have the first so many files right.
    fn experiment(right: &[usize]) -> Repetitions {
        let names = (0..FILES).map(|file| file.to_string()).collect();
        let right = right.iter().map(|&right| (0..FILES).map(|file| file < right).collect());
        Repetitions::from_outcomes(names, right.collect()).unwrap()
    }

    fn close(found: [f64; 2], expected: [f64; 2]) {
        let off = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
        assert!(off.fold(0.0, f64::max) < 0.01, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn one_repetition_has_the_interval_of_its_files() {
        // A standard error of 100 * sqrt(0.25 / 199) = 3.54 points, and t(199) = 1.972.
        close(experiment(&[100]).interval(None), [43.01, 56.99]);
        close(experiment(&[0]).interval(None), [0.0, 0.0]);
        assert_eq!(RepetitionVariance::pooled([&experiment(&[100]), &experiment(&[3])]), None);
    }

    #[test]
    fn the_variance_of_repetitions_is_pooled_and_counts_for_single_ones() {
        // Rates of 45 and 55, and of 49, 50 and 51: squares of 50 and 2 over 1 + 2 degrees of freedom.
        let [two, three, one] = [&[90, 110][..], &[98, 100, 102], &[100]].map(experiment);
        let pooled = RepetitionVariance::pooled([&two, &three, &one]).unwrap();
        assert_eq!((pooled.variance, pooled.freedom), (52.0 / 3.0, 3.0));
        assert_eq!(two.rates().collect::<Vec<_>>(), [45.0, 55.0]);
        // 12.5628 + 17.3333 with 8.85 degrees by Welch: t = 2.2678.
        close(one.interval(Some(pooled)), [37.60, 62.40]);
        // The mean of two has half of it, and its files in between are half right: 11.3065 + 8.6667, 15.5 degrees.
        close(two.interval(Some(pooled)), [40.503, 59.497]);
    }

    #[test]
    fn pairs_cancel_the_files_and_seeds_make_differences_less_sure() {
        // Six files more are right, none fewer: small, but sure.
        let [one, better] = [&[100][..], &[106]].map(experiment);
        let difference = better.difference(&one, None).unwrap();
        assert_eq!(difference.points, 3.0);
        assert!(difference.interval[0] > 0.5 && difference.p < 0.02, "{difference:?}");
        let pooled = RepetitionVariance::pooled([&experiment(&[95, 105])]).unwrap();
        let unsure = better.difference(&one, Some(pooled)).unwrap();
        assert!(unsure.interval[0] < -20.0 && unsure.p > 0.3, "{unsure:?}");
        // Against two repetitions the variance is less, against one with itself there is none of the files.
        let less = better.difference(&experiment(&[95, 105]), Some(pooled)).unwrap();
        assert!(less.p < unsure.p && less.points == 3.0, "{less:?}");
        let none = one.difference(&one, None).unwrap();
        assert_eq!(none, Difference { points: 0.0, interval: [0.0; 2], p: 1.0 });
        let other = Repetitions::from_outcomes(vec!["x".into()], vec![vec![true]]).unwrap();
        assert_eq!(one.difference(&other, None), None);
    }
}
