//! The encoder written out for the CPU against the plain one on Burn, and against its own finite differences.

#[path = "../../comer/tests/common/mod.rs"]
mod common;
mod plain;

use burn::prelude::*;
use comer::weights::Weights;
use comer_train::cpu::{DenseNet, Grid};
use comer_train::model::Comer;
use common::Golden;
use plain::{by_name, noise};

#[test]
fn features_gradients_and_statistics_equal_those_of_the_plain_model() {
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
    let stride = features.grid.stride;
    // [count, channels, cells] as rows of channels, and back.
    let place = |picture: usize, channel: usize, cell: usize| channel * stride + picture * cells + cell;
    let mut rows = vec![0.0; channels * stride];
    let expected: Vec<f32> = expected.into_data().try_to_vec().unwrap();
    let mut worst = 0f32;
    for picture in 0..count {
        for channel in 0..channels {
            for cell in 0..cells {
                let index = (picture * channels + channel) * cells + cell;
                rows[place(picture, channel, cell)] = direction[index];
                worst = worst.max((features.rows[place(picture, channel, cell)] - expected[index]).abs());
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

    let found = net.backward(tape, &images.data, rows);
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
fn pictures_of_their_own_sizes_have_the_gradient_that_finite_differences_show() {
    let mut file = common::golden_model("fusion");
    file.config.encoder_dropout = 0.2;
    let sizes = vec![(33, 70), (20, 17), (48, 31)];
    let pixels: Vec<f32> =
        noise(sizes.iter().map(|(h, w)| h * w).sum(), 2).iter().map(|x| x.max(0.0)).collect();
    let loss = |weights: &Weights| {
        let net = DenseNet { config: &file.config, weights, seed: 5 };
        let (features, tape) = net.forward(&pixels, Grid::new(sizes.clone()));
        let direction = noise(features.rows.len(), 3);
        let stride = features.grid.stride;
        let inside = |i: usize| i % stride < features.grid.pixels;
        let products = features.rows.iter().zip(&direction).enumerate();
        let loss: f64 =
            products.filter(|(i, _)| inside(*i)).map(|(_, (a, b))| f64::from(*a) * f64::from(*b)).sum();
        let gradient: Vec<f32> =
            direction.iter().enumerate().map(|(i, &x)| if inside(i) { x } else { 0.0 }).collect();
        (loss, tape, gradient)
    };
    let (_, tape, gradient) = loss(&file.weights);
    let net = DenseNet { config: &file.config, weights: &file.weights, seed: 5 };
    let gradients = net.backward(tape, &pixels, gradient);
    // Along the gradient of one tensor the loss rises by the square of its norm.
    for name in [
        "encoder.blocks.2.1.grow.conv.weight",
        "encoder.blocks.1.0.reduce.conv.weight",
        "encoder.last_norm.weight",
    ] {
        let norm: f64 = gradients[name].data.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let step = 3e-4;
        let moved = |sign: f64| {
            let mut weights = file.weights.clone();
            for (w, g) in weights.get_mut(name).unwrap().data.iter_mut().zip(&gradients[name].data) {
                *w += (sign * step * f64::from(*g) / norm) as f32;
            }
            loss(&weights).0
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * step);
        eprintln!("{name}: slope {slope:.4}, gradient {norm:.4}");
        assert!((slope - norm).abs() <= 0.03 * norm, "{name}: slope {slope}, gradient {norm}");
    }
}
