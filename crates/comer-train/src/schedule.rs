//! Learning rate schedules.

use serde::{Deserialize, Serialize};

use crate::recipe::{Schedule, ScheduleKind};

/// State of the plateau schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    /// The best ExpRate so far at the current picture size.
    pub best: Option<f64>,
    /// Epochs since the best.
    pub waited: usize,
    /// The current learning rate, relative to the initial one.
    pub factor: f64,
}

impl Default for Plateau {
    fn default() -> Self {
        Self { best: None, waited: 0, factor: 1.0 }
    }
}

impl Plateau {
    /// Clears the best ExpRate: rates at different picture sizes cannot be compared.
    pub fn reset(&mut self) {
        (self.best, self.waited) = (None, 0);
    }

    /// Records the ExpRate of a validation `epochs` epochs after the previous one. Returns whether it is the best so far.
    pub fn record(&mut self, recipe: &Schedule, rate: f64, epochs: usize) -> bool {
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
    /// The learning rate at step `step` (from 0) of `steps`, relative to the recipe's rate.
    pub fn rate_factor(&self, step: u64, steps: u64, plateau: &Plateau) -> f64 {
        let (at, steps) = (step as f64, steps.max(1) as f64);
        let warm_up = self.warm_up * steps;
        if at < warm_up {
            return (at + 1.0) / (warm_up + 1.0);
        }
        match self.kind {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::Plateau => plateau.factor,
            ScheduleKind::OneCycle => {
                let done = ((at - warm_up) / (steps - warm_up).max(1.0)).min(1.0);
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
        let factors: Vec<f64> =
            (0..100).map(|step| schedule.rate_factor(step, 100, &Plateau::default())).collect();
        assert!(factors[0] < 0.1 && (factors[10] - 1.0).abs() < 1e-9 && factors[99] < 0.02, "{factors:?}");
        assert!(factors[..10].is_sorted() && factors[10..].is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn plateau_lowers_the_rate_after_its_patience() {
        let schedule = Schedule { patience: 4, ..Schedule::default() };
        let mut plateau = Plateau::default();
        let rates = [0.1, 0.2, 0.2, 0.1, 0.2, 0.3, 0.1];
        let factors: Vec<f64> = rates
            .iter()
            .map(|&rate| {
                plateau.record(&schedule, rate, 2);
                schedule.rate_factor(5, 10, &plateau)
            })
            .collect();
        assert_eq!(factors, [1.0, 1.0, 1.0, 1.0, 0.25, 0.25, 0.25]);
        assert_eq!(plateau.best, Some(0.3));
        plateau.reset();
        assert!(plateau.record(&schedule, 0.1, 2) && plateau.factor == 0.25);
    }
}
