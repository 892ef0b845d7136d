//! How the rate changes while training goes on.

use serde::{Deserialize, Serialize};

use crate::recipe::{Schedule, ScheduleKind};

/// What a plateau remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    /// The best ExpRate so far on pictures of this size.
    pub best: Option<f64>,
    /// Epochs since then.
    pub waited: usize,
    /// What the rate has fallen to, as a share of the first one.
    pub factor: f64,
}

impl Default for Plateau {
    fn default() -> Self {
        Self { best: None, waited: 0, factor: 1.0 }
    }
}

impl Plateau {
    /// Forgets the best: pictures of another size come, whose figures say nothing about the others.
    pub fn forget(&mut self) {
        (self.best, self.waited) = (None, 0);
    }

    /// Takes note of a validation that comes `epochs` after the one before; answers whether it was the best.
    pub fn note(&mut self, recipe: &Schedule, rate: f64, epochs: usize) -> bool {
        if self.best.is_none_or(|best| rate > best) {
            (self.best, self.waited) = (Some(rate), 0);
            return true;
        }
        self.waited += epochs;
        if self.waited > recipe.patience {
            self.factor *= recipe.factor;
            self.waited = 0;
        }
        false
    }
}

impl Schedule {
    /// The share of the recipe's rate at step `step` of `steps`, both from 0.
    pub fn share(&self, step: u64, steps: u64, plateau: &Plateau) -> f64 {
        let (at, steps) = (step as f64, steps.max(1) as f64);
        let rising = self.warm_up * steps;
        if at < rising {
            return (at + 1.0) / (rising + 1.0);
        }
        match self.kind {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::Plateau => plateau.factor,
            ScheduleKind::OneCycle => {
                let done = ((at - rising) / (steps - rising).max(1.0)).min(1.0);
                self.last + (1.0 - self.last) * (1.0 + (done * std::f64::consts::PI).cos()) / 2.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cycle_rises_and_falls() {
        let schedule =
            Schedule { kind: ScheduleKind::OneCycle, warm_up: 0.1, last: 0.01, ..Schedule::default() };
        let shares: Vec<f64> = (0..100).map(|step| schedule.share(step, 100, &Plateau::default())).collect();
        assert!(shares[0] < 0.1 && (shares[10] - 1.0).abs() < 1e-9 && shares[99] < 0.02, "{shares:?}");
        assert!(shares[..10].is_sorted() && shares[10..].is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn a_plateau_lowers_the_rate_after_its_patience() {
        let schedule = Schedule { patience: 4, ..Schedule::default() };
        let mut plateau = Plateau::default();
        let rates = [0.1, 0.2, 0.2, 0.1, 0.2, 0.3, 0.1];
        let factors: Vec<f64> = rates
            .iter()
            .map(|&rate| {
                plateau.note(&schedule, rate, 2);
                schedule.share(5, 10, &plateau)
            })
            .collect();
        assert_eq!(factors, [1.0, 1.0, 1.0, 1.0, 0.25, 0.25, 0.25]);
        assert_eq!(plateau.best, Some(0.3));
        plateau.forget();
        assert!(plateau.note(&schedule, 0.1, 2) && plateau.factor == 0.25);
    }
}
