//! Convolutions with the batch norm beside them folded in.

use crate::config::NORM_EPSILON;
use crate::weights::Weights;

/// A convolution as a matrix with one row per output channel, and its bias.
pub(super) struct Folded {
    pub(super) matrix: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Folded {
    /// A convolution without bias, then a batch norm.
    pub(super) fn new(weights: &Weights, conv: &str, norm: &str) -> Self {
        let mut matrix = tensor(weights, &format!("{conv}.weight")).to_vec();
        let (scale, shift) = scale_and_shift(weights, norm);
        let depth = matrix.len() / scale.len();
        for (row, scale) in matrix.chunks_exact_mut(depth).zip(&scale) {
            for weight in row {
                *weight = (f64::from(*weight) * scale) as f32;
            }
        }
        Self { matrix, bias: shift.iter().map(|&shift| shift as f32).collect() }
    }

    /// The encoder's last batch norm, which no activation follows, then the projection with its bias.
    pub(super) fn projection(weights: &Weights) -> Self {
        let mut matrix = tensor(weights, "encoder.projection.weight").to_vec();
        let mut bias = tensor(weights, "encoder.projection.bias").to_vec();
        let (scale, shift) = scale_and_shift(weights, "encoder.last_norm");
        for (row, bias) in matrix.chunks_exact_mut(scale.len()).zip(&mut bias) {
            let mut sum = f64::from(*bias);
            for ((weight, scale), shift) in row.iter_mut().zip(&scale).zip(&shift) {
                sum += f64::from(*weight) * shift;
                *weight = (f64::from(*weight) * scale) as f32;
            }
            *bias = sum as f32;
        }
        Self { matrix, bias }
    }
}

/// A batch norm as it is after training: `scale * x + shift` for each channel.
fn scale_and_shift(weights: &Weights, norm: &str) -> (Vec<f64>, Vec<f64>) {
    let part = |name: &str| tensor(weights, &format!("{norm}.{name}")).iter().map(|&x| f64::from(x));
    let scale: Vec<f64> = part("weight")
        .zip(part("variance"))
        .map(|(weight, variance)| weight / (variance + NORM_EPSILON).sqrt())
        .collect();
    let shift = part("bias").zip(part("mean")).zip(&scale).map(|((bias, mean), scale)| bias - mean * scale);
    let shift = shift.collect();
    (scale, shift)
}

/// A tensor's numbers.
///
/// # Panics
/// If there is no such tensor, which validating the model rules out.
pub(super) fn tensor<'a>(weights: &'a Weights, name: &str) -> &'a [f32] {
    &weights.get(name).unwrap_or_else(|| panic!("the model lacks tensor {name}")).data
}
