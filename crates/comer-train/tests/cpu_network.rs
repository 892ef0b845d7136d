//! The training step on the CPU against the authors' gradients and against finite differences.

use comer::internal::vocab::PAD;
use comer::internal::weights::{Weights, tensor_specs};
use comer::internal::{ModelFile, TokenId};
use comer_testing::{Golden, golden_model, noise};
use comer_train::cpu::{EncoderFeatures, Grid, Network, StepOutput, TokenSequence};
use comer_train::initial::symbol_classifier;
use comer_train::symbols::EMPTY_CELL;

const TINY: [&str; 4] = ["bttr", "self", "cross", "fusion"];

#[test]
fn loss_and_gradients_of_tiny_models_equal_the_authors() {
    for name in TINY {
        let golden = Golden::tiny(name);
        let file = golden.model("weights.");
        let images = golden.get("input.images");
        let [count, _, height, width] = images.shape[..] else { panic!("four dimensions") };
        let network = network(&file, 0);
        let net = network.densenet();

        // The authors pad pictures. Here the DenseNet gets padded pictures too, but the decoder only the real cells.
        let (features, tape) = net.forward(&images.data, Grid::new(vec![(height, width); count]));
        let padding = golden.get("eval.feature_padding");
        let [_, cells_high, cells_wide] = padding.shape[..] else { panic!("three dimensions") };
        let size = |cells: &[f32]| {
            let rows = cells.chunks(cells_wide).filter(|row| row[0] == 0.0).count();
            (rows, cells[..cells_wide].iter().filter(|&&padded| padded == 0.0).count())
        };
        let real = Grid::new(padding.data.chunks(cells_high * cells_wide).map(size).collect());
        assert!(real.pixels < features.grid.pixels, "some cells are padding");
        let channels = features.rows.len() / features.grid.pixels;
        let mut rows = vec![0.0; channels * real.pixels];
        each_cell(&real, &features.grid, channels, |own, padded| rows[own] = features.rows[padded]);
        let (mut step, gradient) =
            network.decoder_step(&EncoderFeatures { grid: real.clone(), rows }, &token_sequences(&golden));
        let mut padded_gradient = vec![0.0; features.rows.len()];
        each_cell(&real, &features.grid, channels, |own, padded| padded_gradient[padded] = gradient[own]);
        step.gradients.append(&mut net.backward(&tape, &padded_gradient));

        let loss = f64::from(golden.get("train.losses").data[0]);
        assert!((step.loss - loss).abs() <= 1e-5, "{name}: loss {}, expected {loss}", step.loss);
        let expected = golden.model("train.grad.").weights;
        let trainable =
            tensor_specs(&file.config, file.vocab.len()).into_iter().filter(|spec| spec.trainable);
        let expected: Weights =
            trainable.map(|spec| (spec.name.clone(), expected[&spec.name].clone())).collect();
        compare(name, &step.gradients, &expected, 1e-4);
    }
}

#[test]
fn gradients_with_dropout_smoothing_and_symbols_equal_finite_differences() {
    let (sizes, pixels, formulas) = uneven_batch();
    let cells: usize = sizes.iter().map(|&(height, width)| height.div_ceil(16) * width.div_ceil(16)).sum();
    let symbols: Vec<TokenId> = (0..cells).map(|cell| [PAD, EMPTY_CELL, 7, 60][cell % 4]).collect();
    for name in TINY {
        let mut file = golden_model(name);
        (file.config.encoder_dropout, file.config.dropout) = (0.2, 0.3);
        let symbol_classifier = symbol_classifier(&file.config, &file.vocab, 1);
        file.weights.extend(symbol_classifier);
        let step = |weights: &Weights| {
            let (config, symbols) = (&file.config, Some((0.7, &symbols[..])));
            let network = Network { config, weights, seed: 5, label_smoothing: 0.1, symbols, presence: 0.0 };
            network.step(&pixels, Grid::new(sizes.clone()), &formulas)
        };
        let StepOutput { gradients, .. } = step(&file.weights);
        let names = gradients.keys().filter(|tensor| {
            tensor.starts_with("decoder.")
                || tensor.starts_with("symbols.")
                || tensor.starts_with("encoder.projection")
                || *tensor == "encoder.norm.weight"
        });
        // The slope of the loss along the normalised gradient of one tensor is the norm of the gradient.
        for tensor in names {
            let norm: f64 = gradients[tensor].data.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            if norm < 1e-2 {
                continue; // rounding only
            }
            // Short, because the ReLU of the refinement has a kink close by; so short that rounding of the loss shows.
            let length = 3e-4;
            let moved = |sign: f64| {
                let mut weights = file.weights.clone();
                for (w, g) in weights.get_mut(tensor).unwrap().data.iter_mut().zip(&gradients[tensor].data) {
                    *w += (sign * length * f64::from(*g) / norm) as f32;
                }
                let step = step(&weights);
                step.loss + 0.7 * step.symbol_loss
            };
            let slope = (moved(1.0) - moved(-1.0)) / (2.0 * length);
            assert!(
                (slope - norm).abs() <= 0.03 * norm + 1e-3,
                "{name}: {tensor}: slope {slope}, gradient {norm}"
            );
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (sizes, pixels, formulas) = uneven_batch();
    let mut file = golden_model("fusion");
    (file.config.encoder_dropout, file.config.dropout) = (0.2, 0.3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let network = Network { label_smoothing: 0.1, ..network(&file, 5) };
        pool.install(|| network.step(&pixels, Grid::new(sizes.clone()), &formulas))
    };
    let one = run(1);
    for threads in [2, 3] {
        let several = run(threads);
        assert_eq!(one.loss.to_bits(), several.loss.to_bits());
        assert!(one.gradients == several.gradients, "{threads} threads");
    }
}

#[test]
fn padding_after_a_sequence_changes_neither_loss_nor_gradients() {
    let file = golden_model("bttr");
    let network = network(&file, 0);
    let grid = Grid::new(vec![(2, 5)]);
    let channels = file.config.encoder_channels();
    let features = EncoderFeatures { rows: noise(channels * grid.pixels, 1), grid };
    // Without refinement, whose batch norm includes padding.
    let sequences = TokenSequence::both_directions(&[7, 8, 9]);
    let padded = sequences.clone().map(|mut sequence| {
        sequence.inputs.extend([0, 0]);
        sequence.targets.extend([0, 0]);
        sequence
    });
    let (plain, _) = network.decoder_step(&features, &sequences);
    let (other, _) = network.decoder_step(&features, &padded);
    assert_eq!((plain.targets, other.targets), (8, 8));
    assert!((plain.loss - other.loss).abs() < 1e-6);
    compare("bttr", &other.gradients, &plain.gradients, 1e-4);
}

/// The network of a model file, without label smoothing and symbol loss.
fn network(file: &ModelFile, seed: u32) -> Network<'_> {
    let (config, weights) = (&file.config, &file.weights);
    Network { config, weights, seed, label_smoothing: 0.0, symbols: None, presence: 0.0 }
}

/// Pictures and formulas.
type Batch = (Vec<(usize, usize)>, Vec<f32>, Vec<Vec<TokenId>>);

/// Pictures and formulas of different sizes.
fn uneven_batch() -> Batch {
    let sizes = vec![(33, 70), (20, 17), (48, 131)];
    let pixels = sizes.iter().map(|(height, width)| height * width).sum();
    let pixels = noise(pixels, 2).iter().map(|x| x.max(0.0)).collect();
    (sizes, pixels, vec![vec![5, 9, 7, 30], vec![8], vec![3, 60, 7, 7, 50, 11, 12]])
}

/// The token sequences of a golden file, including padding, the two of a picture next to each other.
fn token_sequences(golden: &Golden) -> Vec<TokenSequence> {
    let rows = |name: &str| -> Vec<Vec<TokenId>> {
        let tensor = golden.get(name);
        tensor.data.chunks(tensor.shape[1]).map(|row| row.iter().map(|&id| id as TokenId).collect()).collect()
    };
    let (inputs, targets) = (rows("input.tokens"), rows("input.targets"));
    assert!(inputs.iter().flatten().any(|&token| token == 0), "some tokens are padding");
    let count = inputs.len() / 2;
    let order = (0..count).flat_map(|picture| [picture, count + picture]);
    order.map(|row| TokenSequence { inputs: inputs[row].clone(), targets: targets[row].clone() }).collect()
}

/// Calls `each` with the offset of every channel of every cell in a grid of real sizes and in a padded one.
fn each_cell(real: &Grid, padded: &Grid, channels: usize, mut each: impl FnMut(usize, usize)) {
    let (mut own, mut other) = (0, 0);
    for (&(height, width), &(padded_height, padded_width)) in real.sizes.iter().zip(&padded.sizes) {
        for cell in 0..height * width {
            let padded_cell = other + cell / width * padded_width + cell % width;
            for channel in 0..channels {
                each((own + cell) * channels + channel, padded_cell * channels + channel);
            }
        }
        own += height * width;
        other += padded_height * padded_width;
    }
}

/// Compares each tensor by the norm of the difference relative to its norm. The bias of the refinement's norm shifts all
/// cells equally, which softmax ignores: its gradient is rounding only and is compared with 1e-4.
fn compare(name: &str, found: &Weights, expected: &Weights, most: f32) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
    let mut worst = (0f32, "");
    for (tensor, expected) in expected {
        assert_eq!(found[tensor].shape, expected.shape, "{name}: {tensor}");
        let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
        let difference = norm(&mut found[tensor].data.iter().zip(&expected.data).map(|(a, b)| a - b));
        let least = if tensor == "decoder.refinement.norm.bias" { 1e-4 } else { 0.0 };
        let off = difference / norm(&mut expected.data.iter().copied()).max(least);
        assert!(off <= most, "{name}: {tensor} is off by {off}");
        if off > worst.0 {
            worst = (off, tensor);
        }
    }
    eprintln!("{name}: largest relative difference of a gradient {:.1e} ({})", worst.0, worst.1);
}
