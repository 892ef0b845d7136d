//! Training in several processes, on one machine or many, by MPI: each computes its share of the batches of every step.
//!
//! All processes hold the same weights and take the same steps: gradients, running statistics and losses are added up by an
//! all-reduce, whose result has the same bits everywhere. The first process writes the run folder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use comer::internal::weights::{Tensor, Weights};
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use crate::backend::{Backend, BatchOutput, Share, StepOutput};
use crate::batches::Batch;
use crate::error::{Error, Result};

/// The processes that mpirun started, until it is dropped.
pub struct World {
    _universe: Universe,
    share: Share,
    waited: Arc<AtomicU64>,
}

impl World {
    /// Joins the other processes. None if MPI could not be initialised.
    pub fn join() -> Option<Self> {
        // Only the main thread communicates.
        let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)?;
        let world = universe.world();
        let share = Share { process: world.rank() as usize, processes: world.size() as usize };
        Some(Self { _universe: universe, share, waited: Arc::default() })
    }

    /// Which of the processes this is.
    pub fn share(&self) -> Share {
        self.share
    }

    /// The time spent with waiting for other processes and adding up their results.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// Shares the batches of each step among the processes; `own` computes those of this one.
    pub fn backend(&self, own: Box<dyn Backend>) -> MpiBackend {
        MpiBackend { own, share: self.share, waited: self.waited.clone() }
    }

    /// Ends all processes.
    pub fn abort(&self, code: i32) -> ! {
        SimpleCommunicator::world().abort(code)
    }
}

/// One of several processes that share the batches of each step.
pub struct MpiBackend {
    own: Box<dyn Backend>,
    share: Share,
    waited: Arc<AtomicU64>,
}

impl MpiBackend {
    fn timed(&self, work: impl FnOnce(&SimpleCommunicator)) {
        let start = Instant::now();
        work(&SimpleCommunicator::world());
        self.waited.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Backend for MpiBackend {
    fn batch(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<BatchOutput> {
        self.own.batch(weights, batch, seed)
    }

    fn step(&mut self, weights: &Weights, batches: &[Batch], seed: u64) -> Result<StepOutput> {
        let own = self.share.of(batches.len());
        let first = seed.wrapping_add(own.start as u64);
        let own = &batches[own];
        let mut output = StepOutput::sum(self.own.batches(weights, own, first)?, own);
        if !own.is_empty() {
            check_names(weights, &output)?;
        }
        let part = flat(weights, &output);
        let mut whole = vec![0.0f32; part.len()];
        self.timed(|world| world.all_reduce_into(&part[..], &mut whole[..], SystemOperation::sum()));
        (output.gradients, output.running) = split(weights, &whole);
        let StepOutput { loss, symbol_loss, presence_loss, target_loss, targets, correct, pictures, .. } =
            &mut output;
        let counts = [*targets, *correct, *pictures].map(|count| count as f64);
        let mut sums = [*loss, *symbol_loss, *presence_loss, *target_loss, counts[0], counts[1], counts[2]];
        self.add(&mut sums)?;
        [*loss, *symbol_loss, *presence_loss, *target_loss] = [sums[0], sums[1], sums[2], sums[3]];
        [*targets, *correct, *pictures] = [sums[4], sums[5], sums[6]].map(|sum| sum as usize);
        Ok(output)
    }

    fn share(&self) -> Share {
        self.share
    }

    fn add(&mut self, numbers: &mut [f64]) -> Result<()> {
        let part = numbers.to_vec();
        self.timed(|world| world.all_reduce_into(&part[..], numbers, SystemOperation::sum()));
        Ok(())
    }
}

/// Whether a tensor holds running statistics; all others have gradients.
fn is_statistic(name: &str) -> bool {
    name.ends_with(".mean") || name.ends_with(".variance")
}

/// A process without batches adds zeros for every tensor: the others must have a number for each.
fn check_names(weights: &Weights, output: &StepOutput) -> Result<()> {
    let missing = weights.keys().find(|name| {
        let expected = if is_statistic(name) { &output.running } else { &output.gradients };
        !expected.contains_key(*name)
    });
    match missing {
        None => Ok(()),
        Some(name) => {
            let reason = format!("it computes nothing for {name}, which the other processes expect");
            Err(Error::Device { name: "mpi".into(), reason })
        }
    }
}

/// The numbers of all tensors in the order of their names, zeros where there are none.
fn flat(weights: &Weights, output: &StepOutput) -> Vec<f32> {
    let mut numbers = Vec::with_capacity(weights.values().map(|tensor| tensor.data.len()).sum());
    for (name, tensor) in weights {
        match output.gradients.get(name).or_else(|| output.running.get(name)) {
            Some(own) => numbers.extend_from_slice(&own.data),
            None => numbers.resize(numbers.len() + tensor.data.len(), 0.0),
        }
    }
    numbers
}

/// Gradients and running statistics of what [`flat`] made.
fn split(weights: &Weights, mut numbers: &[f32]) -> (Weights, Weights) {
    let (mut gradients, mut running) = (Weights::new(), Weights::new());
    for (name, tensor) in weights {
        let (own, rest) = numbers.split_at(tensor.data.len());
        numbers = rest;
        let sum = Tensor { shape: tensor.shape.clone(), data: own.to_vec() };
        if is_statistic(name) { &mut running } else { &mut gradients }.insert(name.clone(), sum);
    }
    (gradients, running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_their_tensors() {
        let tensor = |data: &[f32]| Tensor { shape: vec![data.len()], data: data.to_vec() };
        let weights = Weights::from([
            ("a.norm.mean".into(), tensor(&[9.0])),
            ("a.weight".into(), tensor(&[9.0, 9.0])),
            ("b.weight".into(), tensor(&[9.0])),
        ]);
        let mut output = StepOutput {
            gradients: Weights::from([
                ("a.weight".into(), tensor(&[1.0, 2.0])),
                ("b.weight".into(), tensor(&[3.0])),
            ]),
            running: Weights::from([("a.norm.mean".into(), tensor(&[4.0]))]),
            ..StepOutput::default()
        };
        check_names(&weights, &output).unwrap();
        let numbers = flat(&weights, &output);
        assert_eq!(numbers, [4.0, 1.0, 2.0, 3.0]);
        assert_eq!(split(&weights, &numbers), (output.gradients.clone(), output.running.clone()));
        output.gradients.remove("b.weight");
        assert!(check_names(&weights, &output).unwrap_err().to_string().contains("b.weight"));
        assert_eq!(flat(&weights, &StepOutput::default()), [0.0; 4]);
    }
}
