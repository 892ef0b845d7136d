//! The CPU time of runs that share a process: they have as many threads each, so whatever is spent is shared equally by those
//! that go on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::cpu_time;

/// The clocks of some jobs.
pub struct CpuShare(Mutex<State>);

struct State {
    /// CPU time of the process at the last reading.
    last: Duration,
    /// For each job what it has spent, and whether it goes on.
    jobs: Vec<(Duration, bool)>,
}

impl CpuShare {
    /// Clocks of jobs that all go on.
    pub fn new(jobs: usize) -> Self {
        Self(Mutex::new(State { last: cpu_time(), jobs: vec![(Duration::ZERO, true); jobs] }))
    }

    /// CPU seconds that a job has spent.
    pub fn seconds(&self, job: usize) -> f64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.divide(cpu_time());
        state.jobs[job].0.as_secs_f64()
    }

    /// A job spends nothing from now on.
    pub fn end(&self, job: usize) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.divide(cpu_time());
        state.jobs[job].1 = false;
    }
}

impl State {
    fn divide(&mut self, now: Duration) {
        let spent = now.saturating_sub(std::mem::replace(&mut self.last, now));
        let count = self.jobs.iter().filter(|(_, goes_on)| *goes_on).count().max(1) as u32;
        for (own, _) in self.jobs.iter_mut().filter(|(_, goes_on)| *goes_on) {
            *own += spent / count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_divided_by_those_that_go_on() {
        let seconds = Duration::from_secs;
        let mut state = State { last: seconds(10), jobs: vec![(Duration::ZERO, true); 2] };
        state.divide(seconds(16));
        state.jobs[0].1 = false;
        state.divide(seconds(20));
        assert_eq!(state.jobs, [(seconds(3), false), (seconds(7), true)]);
    }
}
