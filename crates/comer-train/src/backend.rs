//! Backends compute the gradients of a batch: the CPU, or a device that the program adds.

use comer::Image;
use comer::internal::config::ModelConfig;
use comer::internal::weights::{self, Weights};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::batches::Batch;
use crate::cpu::{self, Grid, NormStatistics};
use crate::error::{Error, Result};
use crate::recipe::{Loss, Recipe};

/// The momentum of the running statistics of batch norms, as in PyTorch.
pub const NORM_MOMENTUM: f64 = 0.1;

/// The loss and the gradients of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchOutput {
    /// Cross entropy, the mean over the target tokens.
    pub loss: f64,
    /// Number of target tokens.
    pub targets: usize,
    /// Target tokens with the highest probability.
    pub correct: usize,
    /// The auxiliary loss over the symbols of the cells; 0 without it.
    pub symbol_loss: f64,
    /// The auxiliary loss over the tokens that are present; 0 without it.
    pub presence_loss: f64,
    /// The gradient of each trainable tensor.
    pub gradients: Weights,
    /// The running statistics after the batch.
    pub running: Weights,
}

/// The outputs of the batches of a step, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutput {
    /// The losses of the batches.
    pub loss: f64,
    /// The auxiliary losses of the batches over the symbols of the cells.
    pub symbol_loss: f64,
    /// The auxiliary losses of the batches over the tokens that are present.
    pub presence_loss: f64,
    /// The losses of all target tokens.
    pub target_loss: f64,
    /// Number of target tokens.
    pub targets: usize,
    /// Target tokens with the highest probability.
    pub correct: usize,
    /// Number of pictures.
    pub pictures: usize,
    /// The gradients.
    pub gradients: Weights,
    /// The running statistics.
    pub running: Weights,
}

impl StepOutput {
    /// Adds up the outputs of batches, in their order.
    pub fn sum(outputs: Vec<BatchOutput>, batches: &[Batch]) -> Self {
        let mut total = Self::default();
        for (output, batch) in outputs.iter().zip(batches) {
            total.loss += output.loss;
            total.symbol_loss += output.symbol_loss;
            total.presence_loss += output.presence_loss;
            total.target_loss += output.loss * output.targets as f64;
            total.targets += output.targets;
            total.correct += output.correct;
            total.pictures += batch.pictures.len();
        }
        let mut outputs = outputs.into_iter();
        let Some(first) = outputs.next() else { return total };
        (total.gradients, total.running) = (first.gradients, first.running);
        let others: Vec<BatchOutput> = outputs.collect();
        let add = |sums: &mut Weights, parts: fn(&BatchOutput) -> &Weights| {
            sums.par_iter_mut().for_each(|(name, sum)| {
                for other in &others {
                    sum.data.iter_mut().zip(&parts(other)[name].data).for_each(|(sum, x)| *sum += x);
                }
            });
        };
        add(&mut total.gradients, |output| &output.gradients);
        add(&mut total.running, |output| &output.running);
        total
    }

    /// Turns the losses, gradients and statistics into means over `batches`; counts stay sums.
    pub fn mean(mut self, batches: usize) -> Self {
        let share = (batches as f32).recip();
        for weights in [&mut self.gradients, &mut self.running] {
            weights.par_iter_mut().for_each(|(_, tensor)| tensor.data.iter_mut().for_each(|x| *x *= share));
        }
        self.loss *= f64::from(share);
        self.symbol_loss *= f64::from(share);
        self.presence_loss *= f64::from(share);
        self
    }
}

/// One of several processes that share the batches of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its number, from 0.
    pub process: usize,
    /// How many there are.
    pub processes: usize,
}

impl Share {
    /// All of the work.
    pub const WHOLE: Self = Self { process: 0, processes: 1 };

    /// The part of `count` items that belongs to this process: a contiguous range.
    pub fn of(self, count: usize) -> std::ops::Range<usize> {
        self.process * count / self.processes..(self.process + 1) * count / self.processes
    }
}

/// Computes the loss and the gradients of batches.
pub trait Backend: Send {
    /// The loss and the gradients of a batch. Deterministic for a seed.
    fn batch(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<BatchOutput>;

    /// The outputs of several batches for the same weights, in order; batch `i` has the seed `seed + i`.
    fn batches(&mut self, weights: &Weights, batches: &[Batch], seed: u64) -> Result<Vec<BatchOutput>> {
        let numbered = batches.iter().zip(seed..);
        numbered.map(|(batch, seed)| self.batch(weights, batch, seed)).collect()
    }

    /// The sum of the outputs of the batches of a step, over all processes.
    fn step(&mut self, weights: &Weights, batches: &[Batch], seed: u64) -> Result<StepOutput> {
        Ok(StepOutput::sum(self.batches(weights, batches, seed)?, batches))
    }

    /// The share of this process in the batches of a step. Other batches need not be made.
    fn share(&self) -> Share {
        Share::WHOLE
    }

    /// Sums each number over all processes.
    fn add(&mut self, _: &mut [f64]) -> Result<()> {
        Ok(())
    }
}

/// The network on the CPU, with the kernels of this workspace. Pictures and formulas are not padded.
pub struct CpuBackend {
    config: ModelConfig,
    label_smoothing: f32,
    symbols: f32,
    presence: f32,
    threads: Option<ThreadPool>,
}

impl CpuBackend {
    /// The network of a recipe.
    pub fn new(recipe: &Recipe) -> Self {
        let Loss { label_smoothing, symbols, presence } = recipe.loss;
        Self {
            config: recipe.model.clone(),
            label_smoothing: label_smoothing as f32,
            symbols: symbols as f32,
            presence: presence as f32,
            threads: None,
        }
    }

    /// Uses its own thread pool, so that several backends on one machine do not wait for each other.
    pub fn with_threads(self, threads: usize) -> Result<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Error::Data(format!("cannot start threads: {error}")))?;
        Ok(Self { threads: Some(pool), ..self })
    }
}

impl Backend for CpuBackend {
    fn batch(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<BatchOutput> {
        let symbols = batch.symbols.concat();
        let network = cpu::Network {
            config: &self.config,
            weights,
            seed: (seed ^ (seed >> 32)) as u32,
            label_smoothing: self.label_smoothing,
            symbols: (self.symbols > 0.0).then_some((self.symbols, &symbols)),
            presence: self.presence,
        };
        let sizes = batch.pictures.iter().map(|picture| (picture.height(), picture.width())).collect();
        let pixels: Vec<f32> =
            batch.pictures.iter().flat_map(Image::pixels).map(|&pixel| f32::from(pixel) / 255.0).collect();
        let work = || network.step(&pixels, Grid::new(sizes), &batch.formulas);
        let step = match &self.threads {
            Some(pool) => pool.install(work),
            None => work(),
        };
        let mut running = Weights::new();
        for statistics in &step.statistics {
            update_running(statistics, weights, &mut running);
        }
        let cpu::StepOutput { loss, targets, correct, symbol_loss, presence_loss, gradients, .. } = step;
        Ok(BatchOutput { loss, targets, correct, symbol_loss, presence_loss, gradients, running })
    }
}

/// Updates the running statistics of a norm with those of a batch. As in PyTorch, the running variance is unbiased.
fn update_running(batch: &NormStatistics, weights: &Weights, running: &mut Weights) {
    let unbiased = batch.count as f32 / (batch.count as f32 - 1.0).max(1.0);
    for (leaf, new, factor) in [("mean", &batch.mean, 1.0), ("variance", &batch.variance, unbiased)] {
        let name = format!("{}.{leaf}", batch.path);
        // A norm that is used more than once in a batch is updated each time.
        let old = running.get(&name).unwrap_or(&weights[&name]);
        let share = NORM_MOMENTUM as f32;
        let mix = |(&old, &new): (&f32, &f32)| old * (1.0 - share) + new * factor * share;
        let data = old.data.iter().zip(new).map(mix).collect();
        let tensor = weights::Tensor { shape: old.shape.clone(), data };
        running.insert(name, tensor);
    }
}

/// Several backends that share the batches of a step. The results are those of one backend.
pub struct DataParallel(pub Vec<Box<dyn Backend>>);

impl Backend for DataParallel {
    fn batch(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<BatchOutput> {
        self.0[0].batch(weights, batch, seed)
    }

    fn batches(&mut self, weights: &Weights, batches: &[Batch], seed: u64) -> Result<Vec<BatchOutput>> {
        let count = self.0.len();
        let shares: Vec<Vec<Result<BatchOutput>>> = std::thread::scope(|scope| {
            let work = |(first, backend): (usize, &'_ mut Box<dyn Backend>)| {
                let own = batches.iter().zip(seed..).skip(first).step_by(count);
                own.map(|(batch, seed)| backend.batch(weights, batch, seed)).collect()
            };
            let threads: Vec<_> =
                self.0.iter_mut().enumerate().map(|backend| scope.spawn(move || work(backend))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a backend panicked")).collect()
        });
        let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
        (0..batches.len())
            .map(|index| shares[index % count].next().expect("an output for each batch"))
            .collect()
    }
}

/// The backend for a comma-separated list of devices. Several `cpu` entries share the threads of the machine. `other`
/// opens the devices of any other name.
pub fn by_name(
    names: &str,
    recipe: &Recipe,
    mut other: impl FnMut(&str) -> Result<Box<dyn Backend>>,
) -> Result<Box<dyn Backend>> {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let threads = (rayon::current_num_threads() / names.len()).max(1);
    let mut open = |name: &&str| -> Result<Box<dyn Backend>> {
        if *name != "cpu" {
            return other(name);
        }
        let cpu = CpuBackend::new(recipe);
        Ok(Box::new(if names.len() > 1 { cpu.with_threads(threads)? } else { cpu }))
    };
    Ok(Box::new(DataParallel(names.iter().map(&mut open).collect::<Result<_>>()?)))
}
