//! Time of a training step: `cargo bench -p comer-train --bench step`; for Burn, `-p comer-burn`.
//!
//! The paper's model with random weights: forward, backward, and for a whole step the optimiser. Prints the best of
//! several rounds. GFLOP/s are by CPU time for one thread and by wall-clock time for several.
//!
//! - `--batches FILE`: the sizes of real batches, written by `benches/pytorch_step.py`, each once
//! - `--threads N`, `--rounds N`
//! - `--isa avx2`: the instruction set of the convolutions
//! - `--layers 8`: layers per block, with batches of the bundled model's recipe
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::time::{Duration, Instant};

use comer::internal::config::BLOCKS;
use comer::internal::engine::kernels::Isa;
use comer::internal::weights::Weights;
use comer::internal::{ModelConfig, ModelFile, TokenId, Vocab};
use comer_testing::cpu_time;
use comer_train::cpu::{Grid, Network, TokenSequence};
use comer_train::initial::random_model;
use comer_train::optimizer::OptimizerState;
use comer_train::recipe::Optimizer;

/// Pictures, height, width, tokens.
const BATCHES: [[usize; 4]; 2] = [[8, 128, 384, 40], [16, 96, 200, 16]];

/// Batches of a recipe that starts with pictures of half size.
const GROWING: [[usize; 4]; 3] = [[8, 56, 165, 18], [8, 80, 230, 18], [8, 112, 330, 18]];

struct Batch {
    sizes: Vec<(usize, usize)>,
    pixels: Vec<f32>,
    formulas: Vec<Vec<TokenId>>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|i| arguments.get(i + 1)).cloned()
    };
    let number =
        |name: &str| option(name).map(|text| text.parse::<usize>().expect("a whole number after the option"));
    let rounds = number("--rounds").unwrap_or(3);
    if let Some(name) = option("--isa") {
        let isa = Isa::from_name(&name).unwrap_or_else(|| panic!("no instruction set {name} here"));
        assert!(isa.choose(), "the first choice");
    }
    let mut config = ModelConfig::default();
    let batches: &[[usize; 4]] = match number("--layers") {
        Some(layers) => {
            config.layers_per_block = layers;
            &GROWING
        }
        None => &BATCHES,
    };
    let model = random_model(config, Vocab::crohme(), 1).expect("a valid shape");
    if let Some(path) = option("--batches") {
        let text = std::fs::read_to_string(&path).expect("a file of batches");
        let batches: Vec<Vec<[usize; 3]>> = serde_json::from_str(&text).expect("[[[height, width, tokens]]]");
        for threads in number("--threads").map_or(vec![1, 2], |threads| vec![threads]) {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| measure_batches(&model, &batches, threads));
        }
        return;
    }
    for threads in number("--threads").map_or(vec![1, 2], |threads| vec![threads]) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for &shape in batches {
            pool.install(|| measure(&model, shape, threads, rounds));
        }
    }
    println!("peak memory {} MB", peak_memory());
}

/// Steps over batches of pictures in their own sizes, as in training.
fn measure_batches(model: &ModelFile, batches: &[Vec<[usize; 3]>], threads: usize) {
    let (mut weights, mut optimizer) = (model.weights.clone(), OptimizerState::default());
    let pictures: usize = batches.iter().map(Vec::len).sum();
    let mut spent = (Duration::ZERO, Duration::ZERO);
    for sizes in batches {
        let batch = batch(sizes);
        let clock = Clock::start();
        step(&model.config, &mut weights, &mut optimizer, &batch);
        spent = (spent.0 + cpu_time() - clock.cpu, spent.1 + clock.wall.elapsed());
    }
    let each = |time: Duration| time.as_secs_f64() * 1e3 / pictures as f64;
    println!(
        "{} batches, {pictures} pictures, {threads} thread(s): {:.1} ms CPU, {:.1} ms wall per picture; peak memory {} MB",
        batches.len(),
        each(spent.0),
        each(spent.1),
        peak_memory()
    );
}

/// A whole training step.
fn step(config: &ModelConfig, weights: &mut Weights, optimizer: &mut OptimizerState, batch: &Batch) {
    let network = Network { config, weights, seed: 1, label_smoothing: 0.0, symbols: None, presence: 0.0 };
    let step = network.step(&batch.pixels, Grid::new(batch.sizes.clone()), &batch.formulas);
    // A rate of 0: the weights should not change.
    optimizer.step(&Optimizer { rate: 0.0, ..Optimizer::default() }, 0.0, weights, &step.gradients, 1.0);
}

/// Peak memory of this process in MB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn measure(model: &ModelFile, shape: [usize; 4], threads: usize, rounds: usize) {
    let [count, height, width, tokens] = shape;
    let batch = batch(&vec![[height, width, tokens]; count]);
    let (mut weights, mut optimizer) = (model.weights.clone(), OptimizerState::default());
    println!("{count} pictures of {height} x {width} with {tokens} tokens, {threads} thread(s):");
    let names = ["DenseNet forward", "decoder", "DenseNet backward", "a whole step"];
    let mut best = [(Duration::MAX, Duration::MAX); 4];
    for _ in 0..rounds {
        let mut clock = Clock::start();
        let mut lap = |index: usize| clock.lap(&mut best[index]);
        let network = Network {
            config: &model.config,
            weights: &model.weights,
            seed: 1,
            label_smoothing: 0.0,
            symbols: None,
            presence: 0.0,
        };
        let net = network.densenet();
        let sequences: Vec<TokenSequence> =
            batch.formulas.iter().flat_map(|formula| TokenSequence::both_directions(formula)).collect();
        let (features, tape) = net.forward(&batch.pixels, Grid::new(batch.sizes.clone()));
        lap(0);
        let (_, gradient) = network.decoder_step(&features, &sequences);
        lap(1);
        net.backward(&tape, &gradient);
        lap(2);
        drop(tape);
        step(&model.config, &mut weights, &mut optimizer, &batch);
        lap(3);
    }
    let operations = 3.0 * densenet_operations(&model.config, &batch) as f64;
    for (index, (name, (cpu, wall))) in names.iter().zip(best).enumerate() {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let share = [operations / 3.0, 0.0, operations * 2.0 / 3.0, 0.0][index];
        let speed = match share {
            0.0 => String::new(),
            share => {
                let time = if threads == 1 { cpu } else { wall };
                format!(", {:.1} GFLOP/s", share / time.as_secs_f64() / 1e9)
            }
        };
        println!("  {name:24} {:8.1} ms CPU {:8.1} ms{speed}", milliseconds(cpu), milliseconds(wall));
        if index == 3 {
            println!("  {:24} {:8.2} ", "pictures per CPU second", count as f64 / cpu.as_secs_f64());
        }
    }
}

/// The operations of the DenseNet's forward pass: two for each weight and pixel of its convolutions.
fn densenet_operations(config: &ModelConfig, batch: &Batch) -> usize {
    let mut grid = Grid::new(batch.sizes.clone()).halved();
    let mut sum = 49 * config.stem_channels() * grid.pixels;
    for block in 0..BLOCKS {
        grid = grid.halved();
        for layer in 0..config.layers_per_block {
            let inputs = config.block_input_channels(block) + layer * config.growth_rate;
            sum += config.bottleneck_channels() * (inputs + 9 * config.growth_rate) * grid.pixels;
        }
        if block + 1 < BLOCKS {
            sum += config.block_output_channels(block) * config.block_input_channels(block + 1) * grid.pixels;
        }
    }
    2 * sum
}

/// Random pixels and formulas.
fn batch(sizes: &[[usize; 3]]) -> Batch {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let area: usize = sizes.iter().map(|[height, width, _]| height * width).sum();
    let pixels = (0..area).map(|_| (next() as f32 / (1 << 23) as f32 - 1.0).max(0.0)).collect();
    let mut formula = |tokens: usize| (0..tokens).map(|_| 3 + (next() % 110) as TokenId).collect();
    let formulas = sizes.iter().map(|&[_, _, tokens]| formula(tokens)).collect();
    Batch { sizes: sizes.iter().map(|&[height, width, _]| (height, width)).collect(), pixels, formulas }
}

struct Clock {
    cpu: Duration,
    wall: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Records the time since the last lap if it is the best so far.
    fn lap(&mut self, best: &mut (Duration, Duration)) {
        let (cpu, wall) = (cpu_time() - self.cpu, self.wall.elapsed());
        *best = (best.0.min(cpu), best.1.min(wall));
        *self = Self::start();
    }
}
