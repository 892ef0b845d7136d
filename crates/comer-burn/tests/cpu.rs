//! Compares the CPU network of `comer-train` with the reference model on Burn.

mod plain;

use burn::prelude::*;
use comer::internal::weights::Weights;
use comer::internal::{ModelFile, TokenId};
use comer_burn::model::Comer;
use comer_burn::model::position::Padding;
use comer_burn::model::targets::Targets;
use comer_testing::{Golden, golden_model, noise};
use comer_train::cpu::{DenseNet, Grid, Network};
use plain::by_name;

const TINY: [&str; 4] = ["bttr", "self", "cross", "fusion"];

#[test]
fn features_gradients_and_statistics_equal_those_of_the_reference() {
    let golden = Golden::tiny("fusion");
    let file = golden.model("weights.");
    let images = golden.get("input.images");
    let [count, _, height, width] = images.shape[..] else { panic!("four dimensions") };

    let device = Device::flex().autodiff();
    let plain = Comer::new(&file, &device).unwrap();
    let pictures =
        Tensor::<4>::from_data(TensorData::new(images.data.clone(), images.shape.clone()), &device);
    let expected = plain.encoder().densenet(pictures);
    let [_, channels, cells_high, cells_wide] = expected.dims();
    let cells = cells_high * cells_wide;
    let direction = noise(count * channels * cells, 1);
    let shape = [count, channels, cells_high, cells_wide];
    let weighted = expected.clone() * Tensor::from_data(TensorData::new(direction.clone(), shape), &device);
    let gradients = by_name(&plain, &weighted.sum().backward());

    let net = DenseNet { config: &file.config, weights: &file.weights, seed: 0 };
    let (features, tape) = net.forward(&images.data, Grid::new(vec![(height, width); count]));
    // [count, channels, cells] as pixels of channels, and back.
    let offset = |picture: usize, channel: usize, cell: usize| (picture * cells + cell) * channels + channel;
    let mut rows = vec![0.0; count * cells * channels];
    let expected: Vec<f32> = expected.into_data().try_to_vec().unwrap();
    let mut worst = 0f32;
    for picture in 0..count {
        for channel in 0..channels {
            for cell in 0..cells {
                let index = (picture * channels + channel) * cells + cell;
                rows[offset(picture, channel, cell)] = direction[index];
                worst = worst.max((features.rows[offset(picture, channel, cell)] - expected[index]).abs());
            }
        }
    }
    eprintln!("largest difference of the features {worst:.1e}");
    assert!(worst <= 1e-4, "features are off by {worst}");

    for norm in net.statistics(&tape) {
        assert!(file.weights.contains_key(&format!("{}.mean", norm.path)), "{}", norm.path);
        assert_eq!(norm.mean.len(), file.weights[&format!("{}.mean", norm.path)].data.len());
        let weight = |old: f32, new: f32| 0.9 * old + 0.1 * new;
        let after = plain.weights();
        let unbias = norm.count as f32 / (norm.count as f32 - 1.0);
        for (index, (&mean, &variance)) in norm.mean.iter().zip(&norm.variance).enumerate() {
            for (leaf, new) in [("mean", mean), ("variance", variance * unbias)] {
                let name = format!("{}.{leaf}", norm.path);
                let (old, found) = (file.weights[&name].data[index], after[&name].data[index]);
                assert!((weight(old, new) - found).abs() <= 1e-4, "{name}[{index}]: {new} gave {found}");
            }
        }
    }

    let found = net.backward(&tape, &rows);
    let names: Vec<&String> = gradients.keys().filter(|name| name.starts_with("encoder.")).collect();
    let names: Vec<&String> = names
        .into_iter()
        .filter(|name| !name.starts_with("encoder.norm") && !name.contains("projection"))
        .collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), names);
    let mut worst = (0f32, String::new());
    for name in names {
        let (a, b) = (&found[name], &gradients[name]);
        assert_eq!(a.shape, b.shape, "{name}");
        let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
        let off =
            norm(&mut a.data.iter().zip(&b.data).map(|(a, b)| a - b)) / norm(&mut b.data.iter().copied());
        if off > worst.0 {
            worst = (off, name.clone());
        }
    }
    eprintln!("largest relative difference of a gradient {:.1e} ({})", worst.0, worst.1);
    assert!(worst.0 <= 1e-3, "{worst:?}");
}

#[test]
fn a_step_equals_that_of_the_reference_for_pictures_of_one_size() {
    let formulas: [Vec<TokenId>; 3] = [vec![5, 9, 7, 30], vec![8, 8, 40, 112], vec![3, 60, 7, 7]];
    let sizes = [(50, 83), (20, 30)];
    for (name, (height, width)) in TINY.into_iter().flat_map(|name| sizes.map(|size| (name, size))) {
        let file = golden_model(name);
        let pixels: Vec<f32> = noise(3 * height * width, 4).iter().map(|x| x.max(0.0)).collect();

        let device = Device::flex().autodiff();
        let plain = Comer::new(&file, &device).unwrap();
        let targets = Targets::new(&formulas);
        let pictures = Tensor::from_data(TensorData::new(pixels.clone(), [3, 1, height, width]), &device);
        let padding = Padding { batch: 3, height, width, values: vec![false; 3 * height * width] };
        let logits = plain.forward(pictures, &padding, targets.inputs(&device)).logits;
        let loss = targets.loss(logits);
        let expected: Vec<f32> = loss.clone().into_data().try_to_vec().unwrap();
        let gradients = by_name(&plain, &loss.backward());

        let network = network(&file, 3);
        let step = network.step(&pixels, Grid::new(vec![(height, width); 3]), &formulas);
        assert!((step.loss - f64::from(expected[0])).abs() <= 1e-5, "{name}: {} {expected:?}", step.loss);
        assert_eq!(step.targets, 30);
        compare(name, &step.gradients, &gradients, 1e-4);

        // The running statistics are updated with those of the step; those of the refinement more than once.
        let mut running = file.weights.clone();
        for norm in &step.statistics {
            let unbias = norm.count as f32 / (norm.count as f32 - 1.0);
            let variance: Vec<f32> = norm.variance.iter().map(|x| x * unbias).collect();
            for (leaf, new) in [("mean", &norm.mean), ("variance", &variance)] {
                let old = &mut running.get_mut(&format!("{}.{leaf}", norm.path)).unwrap().data;
                old.iter_mut().zip(new).for_each(|(old, new)| *old = 0.9 * *old + 0.1 * new);
            }
        }
        for (tensor, expected) in plain.weights() {
            for (a, b) in running[&tensor].data.iter().zip(&expected.data) {
                assert!((a - b).abs() <= 1e-4, "{name}: {tensor} {a}, expected {b}");
            }
        }
        let uses = step.statistics.iter().filter(|norm| norm.path == "decoder.refinement.norm").count();
        assert_eq!(uses, if name == "bttr" { 0 } else { file.config.decoder_layers - 1 });
    }
}

/// The network of a model file, without label smoothing and symbol loss.
fn network(file: &ModelFile, seed: u32) -> Network<'_> {
    let (config, weights) = (&file.config, &file.weights);
    Network { config, weights, seed, label_smoothing: 0.0, symbols: None, presence: 0.0 }
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
