//! The layers that both graphs are built of, with batch norms folded into the convolutions before them.

use std::ops::Range;

use comer::internal::config::NORM_EPSILON;
use comer::internal::weights::{Tensor, Weights};

use super::onnx::{Attribute, Graph};

/// A graph, and the weights that its layers take.
pub struct Layers<'a> {
    pub graph: Graph,
    pub weights: &'a Weights,
}

impl Layers<'_> {
    /// Convolution, batch norm and ReLU. The padding keeps the size except for the stride.
    pub fn unit(&mut self, x: &str, path: &str, stride: i64) -> String {
        let conv = &self.weights[&format!("{path}.conv.weight")];
        let (scale, shift) = self.folded_norm(&format!("{path}.norm"));
        let (weight, bias) = (scale_rows(conv, &scale), shift);
        let x = self.convolution(x, &weight, &bias, stride);
        self.graph.node("Relu", &[&x], &[])
    }

    /// A convolution whose padding keeps the size except for the stride.
    pub fn convolution(&mut self, x: &str, weight: &Tensor, bias: &[f32], stride: i64) -> String {
        let side = weight.shape[2] as i64;
        let (weight, bias) = (self.graph.constant(weight), self.graph.floats(bias));
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[side, side])),
            ("pads", Attribute::Ints(&[side / 2; 4])),
            ("strides", Attribute::Ints(&[stride, stride])),
        ];
        self.graph.node("Conv", &[x, &weight, &bias], &attributes)
    }

    /// `MaxPool` or `AveragePool` over 2 x 2 pixels. Windows that the border cuts count their real pixels only.
    pub fn pool(&mut self, kind: &str, x: &str) -> String {
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[2, 2])),
            ("strides", Attribute::Ints(&[2, 2])),
            ("ceil_mode", Attribute::Int(1)),
        ];
        self.graph.node(kind, &[x], &attributes)
    }

    /// The scale and the shift that a batch norm amounts to once its statistics are fixed.
    pub fn folded_norm(&self, path: &str) -> (Vec<f32>, Vec<f32>) {
        let tensor = |leaf: &str| &self.weights[&format!("{path}.{leaf}")].data;
        let factor = |(weight, variance): (&f32, &f32)| weight / (variance + NORM_EPSILON as f32).sqrt();
        let scale: Vec<f32> = tensor("weight").iter().zip(tensor("variance")).map(factor).collect();
        let parts = tensor("bias").iter().zip(tensor("mean")).zip(&scale);
        let shift = parts.map(|((bias, mean), scale)| bias - mean * scale).collect();
        (scale, shift)
    }

    /// Layer normalisation over the last dimension.
    pub fn layer_norm(&mut self, x: &str, path: &str) -> String {
        let [weight, bias] =
            ["weight", "bias"].map(|leaf| self.graph.constant(&self.weights[&format!("{path}.{leaf}")]));
        let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(NORM_EPSILON as f32))];
        self.graph.node("LayerNormalization", &[x, &weight, &bias], &attributes)
    }

    /// `[n, in]` to `[n, out]`
    pub fn linear(&mut self, x: &str, path: &str) -> String {
        let rows = self.weights[&format!("{path}.bias")].data.len();
        self.linear_rows(x, path, 0..rows, 1.0)
    }

    /// As [`Self::linear`] with some rows of the weights alone, their results multiplied by `factor`.
    pub fn linear_rows(&mut self, x: &str, path: &str, rows: Range<usize>, factor: f32) -> String {
        let weight = &self.weights[&format!("{path}.weight")];
        let inputs = weight.shape[1];
        let scaled = |values: &[f32]| values.iter().map(|value| value * factor).collect::<Vec<f32>>();
        let data = scaled(&weight.data[rows.start * inputs..rows.end * inputs]);
        let weight = self.graph.constant(&Tensor { shape: vec![rows.len(), inputs], data });
        let bias = self.graph.floats(&scaled(&self.weights[&format!("{path}.bias")].data[rows]));
        self.graph.node("Gemm", &[x, &weight, &bias], &[("transB", Attribute::Int(1))])
    }
}

/// Multiplies the weights of each output channel by a factor.
pub fn scale_rows(weight: &Tensor, factors: &[f32]) -> Tensor {
    let mut scaled = weight.clone();
    let row = weight.data.len() / factors.len();
    for (row, factor) in scaled.data.chunks_exact_mut(row).zip(factors) {
        row.iter_mut().for_each(|value| *value *= factor);
    }
    scaled
}
