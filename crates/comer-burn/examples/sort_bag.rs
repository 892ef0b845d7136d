//! Attention refinement outside of handwriting: sorting a bag of digits, with and without it.
//!
//! The memory is a bag: digits without positions, many of them several times, in bags of many sizes. The decoder writes them in
//! order, so at each step it has to know which of them it has written. Attention gives the share of a digit, not its number, so a
//! decoder without coverage has to infer the size of the bag as well. Both decoders are the same but for the refinement of the
//! second layer.
//!
//! ```sh
//! cargo run --release -p comer-burn --example sort_bag
//! ```
//!
//! Prints how many of the bags of a test set are sorted without error, for each seed, and the difference with its 95 % interval
//! (over bags, paired, and seeds).
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation::{relu, softmax};
use comer_burn::model::position::token_positions;
use comer_burn::{AttentionRefinement, Coverage, Padding, device};
use comer_eval::repetitions::{RepetitionVariance, Repetitions};

const DIGITS: usize = 6;
/// The token before the first digit, which is also the one after the last.
const EDGE: i32 = DIGITS as i32;
/// The digits of a bag: from `SHORTEST` to `LENGTH`.
const SHORTEST: usize = 6;
const LENGTH: usize = 24;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const BATCH: usize = 32;
const STEPS: usize = 500;
const TEST_BAGS: usize = 500;
const SEEDS: [u64; 3] = [1, 2, 3];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = device("cpu-burn")?;
    let test = Bags::new(TEST_BAGS, &mut Random(2022));
    println!(
        "{SHORTEST} to {LENGTH} digits of {DIGITS} kinds, {STEPS} steps of {BATCH} bags; {TEST_BAGS} bags to test with"
    );
    let mut outcomes = [Vec::new(), Vec::new()];
    for seed in SEEDS {
        for (refined, outcomes) in outcomes.iter_mut().enumerate() {
            let model = train(seed, refined == 1, &device);
            let right = model.sorts(&test, &device);
            let name = if refined == 1 { "with refinement" } else { "without" };
            let count = right.iter().filter(|right| **right).count();
            println!("seed {seed}, {name:<16} {:5.1} % sorted", 100.0 * count as f64 / right.len() as f64);
            outcomes.push(right);
        }
    }
    let names: Vec<String> = (0..TEST_BAGS).map(|bag| bag.to_string()).collect();
    let [without, with] = outcomes.map(|right| Repetitions::from_outcomes(names.clone(), right));
    let seeds = RepetitionVariance::pooled([&with, &without].into_iter().flatten());
    let difference = with.zip(without).and_then(|(with, without)| with.difference(&without, seeds));
    let difference = difference.ok_or("no bags")?;
    let [low, high] = difference.interval;
    println!("difference {:+.1} points, 95 % interval {low:+.1} to {high:+.1}", difference.points);
    Ok(())
}

fn train(seed: u64, refined: bool, device: &Device) -> Decoder {
    let device = device.clone().autodiff();
    device.seed(seed);
    let mut random = Random(seed);
    let mut model = Decoder::new(refined, &device);
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    for step in 0..STEPS {
        let bags = Bags::new(BATCH, &mut random);
        let logits = model.forward(&bags, &device).reshape([BATCH * (LENGTH + 1), DIGITS + 1]);
        let targets =
            Tensor::<1, Int>::from_data(TensorData::new(bags.targets(), [BATCH * (LENGTH + 1)]), &device);
        let gradients = GradientsParams::from_grads(loss.forward(logits, targets).backward(), &model);
        // Rising for a tenth of the steps, then falling to zero.
        let place = step as f64 / STEPS as f64;
        let rate = 2e-3 * (place / 0.1).min((1.0 - place) / 0.9);
        model = optimizer.step(rate, model, gradients);
    }
    model
}

/// Bags of digits.
struct Bags(Vec<Vec<i32>>);

impl Bags {
    fn new(count: usize, random: &mut Random) -> Self {
        let bag = |_| {
            let length = SHORTEST + random.below(LENGTH - SHORTEST + 1);
            (0..length).map(|_| random.below(DIGITS) as i32).collect()
        };
        Self((0..count).map(bag).collect())
    }

    /// The digits as they lie in the memory, padded.
    fn memory(&self) -> Vec<i32> {
        self.0
            .iter()
            .flat_map(|bag| (0..LENGTH).map(|place| bag.get(place).copied().unwrap_or(EDGE)))
            .collect()
    }

    fn padding(&self) -> Padding {
        let mut padding = Padding::none(self.0.len(), 1, LENGTH);
        padding.values = self.0.iter().flat_map(|bag| (0..LENGTH).map(|place| place >= bag.len())).collect();
        padding
    }

    /// In order, then only edges.
    fn sorted(&self) -> impl Iterator<Item = Vec<i32>> {
        self.0.iter().map(|bag| {
            let mut bag = bag.clone();
            bag.sort_unstable();
            bag.resize(LENGTH, EDGE);
            bag
        })
    }

    /// What the decoder has written before each step.
    fn inputs(&self) -> Vec<i32> {
        self.sorted().flat_map(|bag| std::iter::once(EDGE).chain(bag)).collect()
    }

    /// What it has to write.
    fn targets(&self) -> Vec<i32> {
        self.sorted().flat_map(|bag| bag.into_iter().chain(std::iter::once(EDGE))).collect()
    }
}

#[derive(Module, Debug)]
struct Decoder {
    memory: Embedding,
    written: Embedding,
    layers: Vec<Layer>,
    refinement: Option<AttentionRefinement>,
    output: Linear,
}

impl Decoder {
    fn new(refined: bool, device: &Device) -> Self {
        let embedding = || EmbeddingConfig::new(DIGITS + 1, WIDTH).init(device);
        Self {
            memory: embedding(),
            written: embedding(),
            layers: (0..2).map(|_| Layer::new(device)).collect(),
            refinement: refined.then(|| AttentionRefinement::new(HEADS, 16, Coverage::Fusion, device)),
            output: LinearConfig::new(WIDTH, DIGITS + 1).init(device),
        }
    }

    /// The logits of every step: `[bags, LENGTH + 1, DIGITS + 1]`
    fn forward(&self, bags: &Bags, device: &Device) -> Tensor<3> {
        let (count, steps) = (bags.0.len(), LENGTH + 1);
        let tokens = |values: Vec<i32>, length| {
            Tensor::<2, Int>::from_data(TensorData::new(values, [count, length]), device)
        };
        let memory = self.memory.forward(tokens(bags.memory(), LENGTH));
        let positions = token_positions(steps, WIDTH, device).unsqueeze::<3>();
        let mut x = self.written.forward(tokens(bags.inputs(), steps)) + positions;
        // No step sees later ones.
        let future = Tensor::<2>::ones([steps, steps], device).triu(1).bool().unsqueeze::<4>();
        let padding = bags.padding();
        let outside = TensorData::new(padding.values.clone(), [count, 1, 1, LENGTH]);
        let outside = Tensor::<4, Bool>::from_data(outside, device);
        let mut previous = None;
        for layer in &self.layers {
            let refinement = self.refinement.as_ref().zip(previous);
            let weights;
            (x, weights) = layer.forward(x, memory.clone(), [future.clone(), outside.clone()], |own| {
                refinement.map(|(refinement, previous)| refinement.forward(previous, own, &padding))
            });
            previous = Some(weights);
        }
        self.output.forward(x)
    }

    /// Whether each bag is sorted without error: the likeliest token is right at every step after a right beginning.
    fn sorts(&self, bags: &Bags, device: &Device) -> Vec<bool> {
        let found = self.clone().valid().forward(bags, device).argmax(2).into_data();
        let found: Vec<i64> = found.iter::<i64>().collect();
        let expected = bags.targets();
        let steps = LENGTH + 1;
        let is_right = |(found, expected): (&[i64], &[i32])| {
            found.iter().zip(expected).all(|(a, b)| *a == i64::from(*b))
        };
        found.chunks(steps).zip(expected.chunks(steps)).map(is_right).collect()
    }
}

#[derive(Module, Debug)]
struct Layer {
    own: Attention,
    cross: Attention,
    expand: Linear,
    contract: Linear,
    norms: Vec<LayerNorm>,
}

impl Layer {
    fn new(device: &Device) -> Self {
        Self {
            own: Attention::new(device),
            cross: Attention::new(device),
            expand: LinearConfig::new(WIDTH, 4 * WIDTH).init(device),
            contract: LinearConfig::new(4 * WIDTH, WIDTH).init(device),
            norms: (0..3).map(|_| LayerNormConfig::new(WIDTH).init(device)).collect(),
        }
    }

    /// The output, and the attention to the memory. Later steps, and what is outside of the bag, are masked.
    fn forward(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        [future, outside]: [Tensor<4, Bool>; 2],
        refine: impl FnOnce(Tensor<4>) -> Option<Tensor<4>>,
    ) -> (Tensor<3>, Tensor<4>) {
        let (own, _) = self.own.forward(x.clone(), x.clone(), future, |_| None);
        let x = self.norms[0].forward(x + own);
        let (cross, weights) = self.cross.forward(x.clone(), memory, outside, refine);
        let x = self.norms[1].forward(x + cross);
        let wide = self.contract.forward(relu(self.expand.forward(x.clone())));
        (self.norms[2].forward(x + wide), weights)
    }
}

#[derive(Module, Debug)]
struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
}

impl Attention {
    fn new(device: &Device) -> Self {
        let linear = || LinearConfig::new(WIDTH, WIDTH).init(device);
        Self { query: linear(), key: linear(), value: linear(), output: linear() }
    }

    fn forward(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        mask: Tensor<4, Bool>,
        refine: impl FnOnce(Tensor<4>) -> Option<Tensor<4>>,
    ) -> (Tensor<3>, Tensor<4>) {
        let [batch, steps, _] = x.dims();
        let heads = |x: Tensor<3>| {
            let length = x.dims()[1];
            x.reshape([batch, length, HEADS, WIDTH / HEADS]).swap_dims(1, 2)
        };
        let (query, key) = (heads(self.query.forward(x)), heads(self.key.forward(memory.clone())));
        let energies = query.matmul(key.swap_dims(2, 3)) / ((WIDTH / HEADS) as f64).sqrt();
        let mask = mask.expand(energies.dims());
        let energies = energies.mask_fill(mask, f32::NEG_INFINITY);
        let mut weights = softmax(energies.clone(), 3);
        // The attention without refinement says where this layer would look; the term moves it to what is left.
        if let Some(term) = refine(weights.clone()) {
            weights = softmax(energies - term, 3);
        }
        let mixed = weights.clone().matmul(heads(self.value.forward(memory)));
        (self.output.forward(mixed.swap_dims(1, 2).reshape([batch, steps, WIDTH])), weights)
    }
}

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * limit as u128) >> 64) as usize
    }
}
