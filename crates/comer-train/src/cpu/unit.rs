//! The unit of the DenseNet: a convolution, then batch norm, ReLU and dropout.

use comer::internal::engine::kernels::{
    Activation, Algorithm, Kernels, NonzeroMask, PackedConv, PackedMatrix, SparseMatrix, SparseRows,
};
use comer::internal::weights::{Tensor, Weights};

use super::batch_norm::{BatchNorm, statistics};
use super::buffer::Buffer;
use super::grid::Grid;
use super::norm::{Dropout, Statistics};

/// The weights of a convolution and of the norm after it, by their names in the model file.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    pub path: &'a str,
    pub weights: &'a Weights,
    pub relu: bool,
    pub dropout: Option<Dropout>,
}

/// What the backward pass needs of a unit: the values before its norm, and their statistics.
pub(super) struct UnitTape {
    values: Buffer, // [pixels][channels]
    pub statistics: Vec<Statistics>,
}

impl<'a> Unit<'a> {
    /// The convolution's weights: `[out, in, side, side]`
    pub fn convolution(&self) -> &'a Tensor {
        &self.weights[&format!("{}.conv.weight", self.path)]
    }

    /// The name of a part of the norm in the model file.
    fn norm(&self, leaf: &str) -> String {
        match self.path.strip_suffix("last_norm") {
            Some(_) => format!("{}.{leaf}", self.path),
            None => format!("{}.norm.{leaf}", self.path),
        }
    }

    fn batch_norm(&self) -> BatchNorm<'a> {
        let (weight, bias) = (&self.weights[&self.norm("weight")], &self.weights[&self.norm("bias")]);
        BatchNorm { weight: &weight.data, bias: &bias.data, relu: self.relu, dropout: self.dropout }
    }

    /// Normalises `values` (`[pixels][channels]`) into pixels that lie `stride` apart.
    pub fn normalise(&self, values: Buffer, output: &mut [f32], stride: usize) -> UnitTape {
        let norm = self.batch_norm();
        let statistics = statistics(&values, norm.weight.len());
        norm.forward(&statistics, &values, output, stride);
        UnitTape { values, statistics }
    }

    /// Turns the gradient of the output (`[pixels][channels]`) into that of the values before the norm, in place, and
    /// adds the gradients of the norm's weights to `gradients`. `output` and its stride are those of [`Self::normalise`].
    pub fn normalise_backward(
        &self,
        tape: &UnitTape,
        output: (&[f32], usize),
        gradient: &mut [f32],
        gradients: &mut Weights,
    ) {
        let (weight, bias) = self.batch_norm().backward(&tape.statistics, &tape.values, output, gradient);
        for (leaf, data) in [("weight", weight), ("bias", bias)] {
            gradients.insert(self.norm(leaf), Tensor { shape: vec![data.len()], data });
        }
    }

    /// Adds the gradient of the convolution's weights to `gradients`.
    pub fn insert_grad(&self, data: Vec<f32>, gradients: &mut Weights) {
        let shape = self.convolution().shape.clone();
        gradients.insert(format!("{}.conv.weight", self.path), Tensor { shape, data });
    }
}

/// Pixels that lie `stride` apart, of which the first channels are used.
#[derive(Clone, Copy)]
pub(super) struct Pixels<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    pub count: usize,
    /// The channels from this one on are mostly zeros, because of ReLU and dropout; and where they are not.
    pub sparse: Option<(usize, &'a NonzeroMask)>,
}

impl<'a> Pixels<'a> {
    /// The channels that are mostly zeros.
    fn sparse_rows(&self) -> Option<SparseRows<'a>> {
        let &Self { values, stride, sparse, .. } = self;
        sparse.map(|(first, mask)| SparseRows { values: &values[first..], stride, mask, first })
    }
}

/// A convolution over single pixels, `[out, in, 1, 1]` or a matrix: to `[pixels][out]`
pub(super) fn conv1x1(weights: &Tensor, input: Pixels) -> Buffer {
    let kernels = Kernels::detect();
    let (outputs, inputs, dense) = widths(weights, &input);
    let weight = |output: usize, input: usize| weights.data[output * inputs + input];
    let packed = PackedMatrix::new(&kernels, &vec![0.0; outputs], dense, weight);
    let mut output = Buffer::new(outputs * input.count);
    kernels.matmul(
        &packed,
        (input.values, input.stride),
        input.count,
        Activation::None,
        (&mut output, outputs),
    );
    if let Some(sparse) = input.sparse_rows().filter(|_| dense < inputs) {
        let packed = SparseMatrix::new(&kernels, &vec![0.0; outputs], inputs - dense, |output, k| {
            weight(output, dense + k)
        });
        kernels.sparse_matmul_add(&packed, sparse, input.count, (&mut output, outputs));
    }
    output
}

/// The gradient of the weights of [`conv1x1`], from that of its output.
pub(super) fn conv1x1_weight_grad(weights: &Tensor, input: Pixels, gradient: &[f32]) -> Vec<f32> {
    let kernels = Kernels::detect();
    let (outputs, inputs, dense) = widths(weights, &input);
    let gradient = (gradient, outputs);
    let left =
        kernels.matmul_weight_grad((input.values, input.stride), dense, gradient, outputs, input.count);
    let Some(sparse) = input.sparse_rows().filter(|_| dense < inputs) else {
        return left;
    };
    let right = kernels.sparse_weight_grad(sparse, inputs - dense, gradient, outputs, input.count);
    let rows = (0..outputs).flat_map(|output| {
        let (left, right) = (&left[output * dense..][..dense], &right[output * (inputs - dense)..]);
        left.iter().chain(&right[..inputs - dense])
    });
    rows.copied().collect()
}

/// Adds the gradient of the input of [`conv1x1`] to pixels of the same layout. Where a channel that is mostly zeros
/// is zero, its gradient means nothing: ReLU or dropout stop it.
pub(super) fn conv1x1_backward(weights: &Tensor, input: Pixels, gradient: &[f32], sum: &mut [f32]) {
    let kernels = Kernels::detect();
    let (outputs, inputs, dense) = widths(weights, &input);
    let weight = |output: usize, input: usize| weights.data[output * inputs + input];
    let transposed = PackedMatrix::new(&kernels, &vec![0.0; dense], outputs, |input, k| weight(k, input));
    let gradient = (gradient, outputs);
    kernels.matmul_add(&transposed, gradient, input.count, (sum, input.stride));
    if let Some(sparse) = input.sparse_rows().filter(|_| dense < inputs) {
        let packed = SparseMatrix::new(&kernels, &vec![0.0; outputs], inputs - dense, |output, k| {
            weight(output, dense + k)
        });
        kernels.sparse_input_grad_add(&packed, sparse, gradient, input.count, &mut sum[dense..]);
    }
}

/// Output and input channels of a convolution over single pixels, and how many of the input channels are not mostly zeros.
fn widths(weights: &Tensor, input: &Pixels) -> (usize, usize, usize) {
    let outputs = weights.shape[0];
    let inputs = weights.data.len() / outputs;
    (outputs, inputs, input.sparse.map_or(inputs, |(first, _)| first.min(inputs)))
}

/// A 3 x 3 convolution: `[pixels][in]` to `[pixels][out]`
pub(super) fn conv3x3(weights: &Tensor, input: &[f32], grid: &Grid) -> Buffer {
    let kernels = Kernels::detect();
    let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
    let bias = vec![0.0; outputs];
    let packed = PackedConv::from_rows(&kernels, Algorithm::Winograd, &weights.data, &bias);
    let mut output = Buffer::new(grid.pixels * outputs);
    kernels.conv3x3(&packed, (input, inputs), &grid.sizes, Activation::None, (&mut output, outputs));
    output
}

/// The gradient of the input of [`conv3x3`], from that of its output: the same convolution with its taps reversed.
pub(super) fn conv3x3_backward(weights: &Tensor, gradient: &[f32], grid: &Grid) -> Buffer {
    let kernels = Kernels::detect();
    let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
    let taps = weights.data.as_chunks::<9>().0;
    let reversed = |input: usize, output: usize| {
        let mut taps = taps[output * inputs + input];
        taps.reverse();
        taps
    };
    let packed = PackedConv::new(&kernels, Algorithm::Winograd, &vec![0.0; inputs], outputs, reversed);
    let mut result = Buffer::new(grid.pixels * inputs);
    kernels.conv3x3(&packed, (gradient, outputs), &grid.sizes, Activation::None, (&mut result, inputs));
    result
}

/// The gradient of the weights of [`conv3x3`], from that of its output.
pub(super) fn conv3x3_weight_grad(
    weights: &Tensor,
    input: &[f32],
    grid: &Grid,
    gradient: &[f32],
) -> Vec<f32> {
    let (outputs, inputs) = (weights.shape[0], weights.shape[1]);
    let (input, gradient) = ((input, inputs), (gradient, outputs));
    Kernels::detect().conv3x3_weight_grad(input, inputs, gradient, outputs, &grid.sizes)
}
