//! The encoder's gradients for pictures of different sizes, compared with finite differences.

use comer::internal::weights::Weights;
use comer_testing::{golden_model, noise};
use comer_train::cpu::{DenseNet, Grid};

#[test]
fn gradients_for_pictures_of_different_sizes_equal_finite_differences() {
    let mut file = golden_model("fusion");
    file.config.encoder_dropout = 0.2;
    let sizes = vec![(33, 70), (20, 17), (48, 31)];
    let pixels: Vec<f32> =
        noise(sizes.iter().map(|(h, w)| h * w).sum(), 2).iter().map(|x| x.max(0.0)).collect();
    let loss = |weights: &Weights| {
        let net = DenseNet { config: &file.config, weights, seed: 5 };
        let (features, tape) = net.forward(&pixels, Grid::new(sizes.clone()));
        let direction = noise(features.rows.len(), 3);
        let products = features.rows.iter().zip(&direction);
        let loss: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        (loss, tape, direction)
    };
    let (_, tape, gradient) = loss(&file.weights);
    let net = DenseNet { config: &file.config, weights: &file.weights, seed: 5 };
    let gradients = net.backward(&tape, &gradient);
    // The slope of the loss along the normalised gradient of one tensor is the norm of the gradient.
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
