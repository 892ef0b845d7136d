//! The GRU decoder on the CPU against PyTorch (`crates/comer/tests/data/make_tiny_gru.py`) and against finite differences.

use comer::internal::config::{DecoderKind, Directions, ModelConfig};
use comer::internal::weights::{Tensor, Weights, tensor_specs};
use comer::internal::{ModelFile, TokenId, Vocab};
use comer_testing::{GruGolden, noise};
use comer_train::cpu::{EncoderFeatures, Grid, Network, StepOutput, TokenSequence};
use comer_train::initial::{presence_classifier, random_model, symbol_classifier};
use comer_train::optimizer::{OptimizerState, grad_norm};
use comer_train::recipe::Optimizer;
use comer_train::symbols::EMPTY_CELL;

fn network<'a>(config: &'a ModelConfig, weights: &'a Weights) -> Network<'a> {
    Network { config, weights, seed: 5, label_smoothing: 0.0, symbols: None, presence: 0.0 }
}

fn norm(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.shape, b.shape);
    norm(a.data.iter().zip(&b.data).map(|(a, b)| a - b))
}

#[test]
fn losses_and_weights_of_three_steps_and_gradients_equal_pytorch() {
    for name in ["gru", "gru-stacked"] {
        let GruGolden { golden, config, mut weights, sizes } = GruGolden::tiny(name);
        let sequences: Vec<TokenSequence> = (GruGolden::tiny(name).sequences().into_iter())
            .map(|[inputs, targets]| TokenSequence { inputs, targets })
            .collect();
        let rows = golden.get("input.features").data.clone();
        let features = EncoderFeatures { grid: Grid::new(sizes), rows };
        let expected = golden.under("train.grad.");
        let mut optimizer = OptimizerState::default();
        let recipe = Optimizer::default();
        for (number, &loss) in golden.get("train.losses").data.iter().enumerate() {
            let (step, _) = network(&config, &weights).decoder_step(&features, &sequences);
            assert!(
                (step.loss - f64::from(loss)).abs() <= 1e-5,
                "{name}: loss {}, expected {loss}",
                step.loss
            );
            if number == 0 {
                assert_eq!(step.gradients.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
                for (tensor, expected) in &expected {
                    let found = &step.gradients[tensor];
                    assert_eq!(found.shape, expected.shape, "{tensor}");
                    let off = distance(found, expected) / norm(expected.data.iter().copied());
                    assert!(off <= 1e-4, "{name}: gradient of {tensor} is off by {off}");
                }
            }
            let norm = grad_norm(&step.gradients);
            optimizer.step(&recipe, recipe.rate, &mut weights, &step.gradients, norm);
        }
        // Relative to the change of the weights, which is much smaller than they are.
        let (before, after) = (golden.under("weights."), golden.under("train.after3."));
        assert_eq!(weights.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        for (tensor, expected) in &after {
            let off = distance(&weights[tensor], expected) / distance(&before[tensor], expected);
            assert!(off <= 1e-4, "{name}: {tensor} is off by {off} after three steps");
        }
    }
}

/// A small random model with dropout, drop attention, two heads and two layers.
fn model() -> ModelFile {
    let config = ModelConfig {
        decoder: DecoderKind::Gru,
        d_model: 32,
        growth_rate: 6,
        layers_per_block: 2,
        heads: 2,
        decoder_layers: 2,
        coverage_channels: 8,
        attention_width: 24,
        dropout: 0.3,
        drop_attention: 0.3,
        ..Default::default()
    };
    let mut file = random_model(config, Vocab::crohme(), 3).unwrap();
    // Larger than initial weights are, so that every part matters.
    for (name, tensor) in &mut file.weights {
        if name.starts_with("decoder.attention") || name.starts_with("decoder.initial") {
            tensor.data.iter_mut().for_each(|x| *x *= 3.0);
        }
    }
    for classifier in [symbol_classifier, presence_classifier] {
        let weights = classifier(&file.config, &file.vocab, 1);
        file.weights.extend(weights);
    }
    file
}

/// Pictures and formulas of different sizes.
fn step(config: &ModelConfig, weights: &Weights) -> StepOutput {
    let sizes = vec![(33, 70), (20, 17), (48, 231)];
    let pixels = sizes.iter().map(|(height, width)| height * width).sum();
    let pixels: Vec<f32> = noise(pixels, 2).iter().map(|x| x.max(0.0)).collect();
    let formulas = [vec![5, 9, 7, 30], vec![8], vec![3, 60, 7, 7, 50, 11, 12]];
    let cells: usize = sizes.iter().map(|&(height, width)| height.div_ceil(16) * width.div_ceil(16)).sum();
    let symbols: Vec<TokenId> = (0..cells).map(|cell| [0, EMPTY_CELL, 7, 60][cell % 4]).collect();
    let symbols = Some((0.7, &symbols[..]));
    let network = Network { label_smoothing: 0.1, symbols, presence: 5.0, ..network(config, weights) };
    network.step(&pixels, Grid::new(sizes), &formulas)
}

#[test]
fn gradients_with_dropout_and_auxiliary_losses_equal_finite_differences() {
    let mut file = model();
    for directions in [Directions::Both, Directions::LeftToRight] {
        file.config.directions = directions;
        let StepOutput { gradients, targets, .. } = step(&file.config, &file.weights);
        assert_eq!(targets, if directions == Directions::Both { 30 } else { 15 });
        let mut checked = 0;
        // The slope of the loss along the normalised gradient of one tensor is the norm of the gradient.
        for (name, gradient) in &gradients {
            let norm = norm(gradient.data.iter().copied());
            let encoder = name.starts_with("encoder.") && !name.starts_with("encoder.projection");
            if encoder || norm < 1e-2 {
                continue; // the encoder has its own test; below, rounding only
            }
            let length = 1e-3;
            let moved = |sign: f64| {
                let mut weights = file.weights.clone();
                for (w, g) in weights.get_mut(name).unwrap().data.iter_mut().zip(&gradient.data) {
                    *w += (sign * length * f64::from(*g) / norm) as f32;
                }
                let step = step(&file.config, &weights);
                step.loss + 0.7 * step.symbol_loss + 5.0 * step.presence_loss
            };
            let slope = (moved(1.0) - moved(-1.0)) / (2.0 * length);
            assert!((slope - norm).abs() <= 0.03 * norm + 1e-3, "{name}: slope {slope}, gradient {norm}");
            checked += 1;
        }
        assert!(checked > 20, "{checked}");
    }
}

#[test]
fn every_trainable_tensor_has_a_gradient_and_threads_do_not_change_it() {
    let file = model();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| step(&file.config, &file.weights))
    };
    let one = run(1);
    for spec in tensor_specs(&file.config, file.vocab.len()).iter().filter(|spec| spec.trainable) {
        assert_eq!(one.gradients[&spec.name].shape, spec.shape, "{}", spec.name);
    }
    let several = run(3);
    assert_eq!(one.loss.to_bits(), several.loss.to_bits());
    assert!(one.gradients == several.gradients);
}
