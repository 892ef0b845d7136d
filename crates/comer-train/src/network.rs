//! A device that computes gradients: the network on Burn, or on plain slices where there is no GPU.

mod burn;

use comer::Vocab;
use comer::config::ModelConfig;
use comer::image::Picture;
use comer::weights::{self, Weights};
use rayon::{ThreadPool, ThreadPoolBuilder};

pub use self::burn::BurnNetwork;
use crate::batches::Batch;
use crate::cpu::{self, Grid, NormStatistics};
use crate::device::device;
use crate::error::{Error, Result};
use crate::model::layers::NORM_MOMENTUM;
use crate::recipe::{Optimizer, Recipe};

/// What a batch gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Cross entropy, the mean over the answers.
    pub loss: f64,
    /// Tokens that were asked for.
    pub answers: usize,
    /// Those of them that were found the likeliest.
    pub correct: usize,
    /// The second loss, that of the cells' symbols; 0 if the recipe does not ask for it.
    pub symbols: f64,
    /// The gradient of each trainable tensor.
    pub gradients: Weights,
    /// The running statistics after the batch.
    pub running: Weights,
}

/// Something that computes gradients.
pub trait Network: Send {
    /// The loss of a batch and its gradients. The same for the same seed.
    fn step(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<Step>;

    /// The steps of several batches from the same weights, in their order; batch `i` has the seed `seed + i`.
    fn steps(&mut self, weights: &Weights, batches: &[Batch], seed: u64) -> Result<Vec<Step>> {
        let numbered = batches.iter().zip(seed..);
        numbered.map(|(batch, seed)| self.step(weights, batch, seed)).collect()
    }
}

/// The network on this machine's processor, by our own kernels. Pictures and formulas keep their own sizes.
pub struct CpuNetwork {
    config: ModelConfig,
    label_smoothing: f32,
    symbols: f32,
    threads: Option<ThreadPool>,
}

impl CpuNetwork {
    /// The network of a recipe.
    pub fn new(recipe: &Recipe) -> Self {
        let Optimizer { label_smoothing, symbols, .. } = recipe.optimizer;
        Self {
            config: recipe.model.clone(),
            label_smoothing: label_smoothing as f32,
            symbols: symbols as f32,
            threads: None,
        }
    }

    /// The same with threads of its own, for one of several on this machine: none waits for another.
    pub fn with_threads(self, threads: usize) -> Result<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| Error::Data(format!("threads cannot be started: {error}")))?;
        Ok(Self { threads: Some(pool), ..self })
    }
}

impl Network for CpuNetwork {
    fn step(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<Step> {
        let symbols = batch.symbols.concat();
        let network = cpu::Network {
            config: &self.config,
            weights,
            seed: (seed ^ (seed >> 32)) as u32,
            label_smoothing: self.label_smoothing,
            symbols: (self.symbols > 0.0).then_some((self.symbols, &symbols)),
        };
        let sizes = batch.pictures.iter().map(|picture| (picture.height(), picture.width())).collect();
        let pixels: Vec<f32> =
            batch.pictures.iter().flat_map(Picture::pixels).map(|&pixel| f32::from(pixel) / 255.0).collect();
        let work = || network.step(&pixels, Grid::new(sizes), &batch.formulas);
        let step = match &self.threads {
            Some(pool) => pool.install(work),
            None => work(),
        };
        let mut running = Weights::new();
        for statistics in &step.statistics {
            follow(statistics, weights, &mut running);
        }
        let cpu::Step { loss, answers, correct, symbols, gradients, .. } = step;
        Ok(Step { loss, answers, correct, symbols, gradients, running })
    }
}

/// Moves a norm's running statistics towards those of a batch; the variance, as in PyTorch, towards the unbiased one.
fn follow(batch: &NormStatistics, weights: &Weights, running: &mut Weights) {
    let unbiased = batch.count as f32 / (batch.count as f32 - 1.0).max(1.0);
    for (leaf, new, factor) in [("mean", &batch.mean, 1.0), ("variance", &batch.variance, unbiased)] {
        let name = format!("{}.{leaf}", batch.path);
        // A norm that is used more than once in a batch follows each time.
        let old = running.get(&name).unwrap_or(&weights[&name]);
        let share = NORM_MOMENTUM as f32;
        let mix = |(&old, &new): (&f32, &f32)| old * (1.0 - share) + new * factor * share;
        let data = old.data.iter().zip(new).map(mix).collect();
        let tensor = weights::Tensor { shape: old.shape.clone(), data };
        running.insert(name, tensor);
    }
}

/// Several devices that share the batches of a step among them. The results are those of one device.
pub struct Several(pub Vec<Box<dyn Network>>);

impl Network for Several {
    fn step(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<Step> {
        self.0[0].step(weights, batch, seed)
    }

    fn steps(&mut self, weights: &Weights, batches: &[Batch], seed: u64) -> Result<Vec<Step>> {
        let devices = self.0.len();
        let shares: Vec<Vec<Result<Step>>> = std::thread::scope(|scope| {
            let work = |(first, network): (usize, &'_ mut Box<dyn Network>)| {
                let own = batches.iter().zip(seed..).skip(first).step_by(devices);
                own.map(|(batch, seed)| network.step(weights, batch, seed)).collect()
            };
            let threads: Vec<_> =
                self.0.iter_mut().enumerate().map(|device| scope.spawn(move || work(device))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a device has panicked")).collect()
        });
        let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
        (0..batches.len())
            .map(|index| shares[index % devices].next().expect("a step for each batch"))
            .collect()
    }
}

/// The network on the devices of a list of names: `cpu` for our own kernels, `cpu-burn` for Burn's, or GPUs, as in
/// `cuda:0,cuda:1`.
pub fn by_name(names: &str, recipe: &Recipe, vocab: &Vocab) -> Result<Box<dyn Network>> {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let networks: Vec<_> =
        names.iter().map(|name| one(name, names.len(), recipe, vocab)).collect::<Result<_>>()?;
    Ok(Box::new(Several(networks)))
}

/// One of `count` devices.
fn one(name: &str, count: usize, recipe: &Recipe, vocab: &Vocab) -> Result<Box<dyn Network>> {
    if name == "cpu" {
        let network = CpuNetwork::new(recipe);
        let threads = (rayon::current_num_threads() / count).max(1);
        return Ok(Box::new(if count > 1 { network.with_threads(threads)? } else { network }));
    }
    let device = device(if name == "cpu-burn" { "cpu" } else { name })?;
    Ok(Box::new(BurnNetwork::new(recipe, vocab.clone(), &device)))
}
