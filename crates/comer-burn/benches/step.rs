//! Time of a training step on Burn's CPU backend, forward and backward: `cargo bench -p comer-burn --bench step`.
//!
//! The paper's model with random weights; the best CPU time of three rounds. `cargo bench -p comer-train --bench step`
//! measures the same batches on the CPU network.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::time::Duration;

use burn::prelude::*;
use comer::internal::{ModelConfig, TokenId, Vocab};
use comer_burn::model::Comer;
use comer_burn::model::position::Padding;
use comer_burn::model::targets::Targets;
use comer_testing::cpu_time;
use comer_train::initial::random_model;

/// Pictures, height, width, tokens.
const BATCHES: [[usize; 4]; 2] = [[8, 128, 384, 40], [16, 96, 200, 16]];

fn main() {
    let model = random_model(ModelConfig::default(), Vocab::crohme(), 1).expect("the paper's model");
    let device = Device::flex().autodiff();
    for [count, height, width, tokens] in BATCHES {
        let formulas = vec![(0..tokens).map(|token| 3 + (token % 110) as TokenId).collect(); count];
        let targets = Targets::new(&formulas);
        let area = count * height * width;
        let pixels: Vec<f32> = (0..area).map(|pixel| if pixel % 11 < 3 { 1.0 } else { 0.0 }).collect();
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = cpu_time();
            let plain = Comer::new(&model, &device).expect("a good model");
            let data = TensorData::new(pixels.clone(), [count, 1, height, width]);
            let padding = Padding { batch: count, height, width, values: vec![false; area] };
            let decoded = plain.forward(Tensor::from_data(data, &device), &padding, targets.inputs(&device));
            let _gradients = targets.loss(decoded.logits).backward();
            best = best.min(cpu_time() - start);
        }
        let milliseconds = best.as_secs_f64() * 1e3;
        println!("{count} pictures of {height} x {width} with {tokens} tokens: {milliseconds:.1} ms CPU");
    }
}
