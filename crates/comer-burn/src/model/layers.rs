//! The layers of the model, with the weight layout of the model file.
//!
//! The fields of a layer have the names of its tensors in the file, so that the path of a parameter in the module tree is
//! its name in the file.

use burn::module::{Module, Param, RunningState};
use burn::prelude::*;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Distribution, module};
use comer::internal::config::NORM_EPSILON;
use comer::internal::weights::Weights;
use comer_train::backend::NORM_MOMENTUM;

/// Provides the tensors of a model file by name.
pub(super) struct Source<'a> {
    pub weights: &'a Weights,
    pub device: &'a Device,
}

impl Source<'_> {
    fn tensor<const D: usize>(&self, name: &str) -> Tensor<D> {
        let tensor = self.weights.get(name).unwrap_or_else(|| panic!("the model has no {name}"));
        Tensor::from_data(TensorData::new(tensor.data.clone(), tensor.shape.clone()), self.device)
    }

    pub fn parameter<const D: usize>(&self, name: &str) -> Param<Tensor<D>> {
        Param::from_tensor(self.tensor(name))
    }
}

/// `y = x W^T + b`
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>, // [out, in]
    bias: Param<Tensor<1>>,
}

impl Linear {
    pub(super) fn new(source: &Source, path: &str) -> Self {
        Self {
            weight: source.parameter(&format!("{path}.weight")),
            bias: source.parameter(&format!("{path}.bias")),
        }
    }

    /// `[..., in]` to `[..., out]`
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        module::linear(x, self.weight.val().transpose(), Some(self.bias.val()))
    }

    /// [`Self::forward`] with only the rows `first..first + count` of the weights.
    pub(super) fn forward_rows<const D: usize>(&self, x: Tensor<D>, first: usize, count: usize) -> Tensor<D> {
        let weight = self.weight.val().narrow(0, first, count);
        let bias = self.bias.val().narrow(0, first, count);
        module::linear(x, weight.transpose(), Some(bias))
    }
}

/// A two-dimensional convolution with padding that keeps the size, up to the stride.
#[derive(Module, Debug)]
pub struct Convolution {
    weight: Param<Tensor<4>>, // [out, in, height, width]
    bias: Option<Param<Tensor<1>>>,
    stride: usize,
}

impl Convolution {
    pub(super) fn new(source: &Source, path: &str, stride: usize) -> Self {
        let bias = format!("{path}.bias");
        Self {
            weight: source.parameter(&format!("{path}.weight")),
            bias: source.weights.contains_key(&bias).then(|| source.parameter(&bias)),
            stride,
        }
    }

    /// Random weights of this shape, as PyTorch draws them, and a stride of 1.
    pub(super) fn random(shape: [usize; 4], bias: bool, device: &Device) -> Self {
        let limit = ((shape[1] * shape[2] * shape[3]) as f64).powf(-0.5);
        let uniform = Distribution::Uniform(-limit, limit);
        Self {
            weight: Param::from_tensor(Tensor::random(shape, uniform, device)),
            bias: bias.then(|| Param::from_tensor(Tensor::random([shape[0]], uniform, device))),
            stride: 1,
        }
    }

    /// `[batch, in, height, width]` to `[batch, out, height / stride, width / stride]`
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let [_, _, side, _] = self.weight.dims();
        let options = ConvOptions::new([self.stride; 2], [side / 2; 2], [1; 2], 1);
        module::conv2d(x, self.weight.val(), self.bias.as_ref().map(Param::val), options)
    }
}

/// Layer normalisation over the last dimension.
#[derive(Module, Debug)]
pub struct LayerNorm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
}

impl LayerNorm {
    pub(super) fn new(source: &Source, path: &str) -> Self {
        Self {
            weight: source.parameter(&format!("{path}.weight")),
            bias: source.parameter(&format!("{path}.bias")),
        }
    }

    /// `[..., width]` to the same.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        module::layer_norm(x, self.weight.val(), Some(self.bias.val()), NORM_EPSILON)
    }
}

/// Batch normalisation over all dimensions except channels, with batch statistics in training and running statistics
/// otherwise. As in PyTorch, and unlike Burn's own layer, the running variance is unbiased.
#[derive(Module, Debug)]
pub struct BatchNorm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    mean: RunningState<Tensor<1>>,
    variance: RunningState<Tensor<1>>,
}

impl BatchNorm {
    pub(super) fn new(source: &Source, path: &str) -> Self {
        Self {
            weight: source.parameter(&format!("{path}.weight")),
            bias: source.parameter(&format!("{path}.bias")),
            mean: RunningState::new(source.tensor(&format!("{path}.mean"))),
            variance: RunningState::new(source.tensor(&format!("{path}.variance"))),
        }
    }

    /// The norm that training begins with.
    pub(super) fn identity(channels: usize, device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(Tensor::ones([channels], device)),
            bias: Param::from_tensor(Tensor::zeros([channels], device)),
            mean: RunningState::new(Tensor::zeros([channels], device)),
            variance: RunningState::new(Tensor::ones([channels], device)),
        }
    }

    /// `[batch, channels, height, width]` to the same.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if !x.device().is_autodiff() {
            return module::batch_norm(
                x,
                weight,
                bias,
                self.mean.value(),
                self.variance.value(),
                NORM_EPSILON,
            );
        }
        let [batch, _, height, width] = x.dims();
        let result = module::batch_norm_train(x, weight, bias, NORM_EPSILON);
        self.update_running(result.mean, result.variance, (batch * height * width) as f32);
        result.output
    }

    /// [`Self::forward`] with the statistics of those cells where `present` is 1; other cells (0) are unchanged.
    /// `present`: `[batch, 1, height, width]`; `count` is its sum.
    pub fn forward_masked(&self, x: Tensor<4>, present: Tensor<4>, count: f32) -> Tensor<4> {
        let channels = x.dims()[1];
        let broadcast = |values: Tensor<1>| values.reshape([1, channels, 1, 1]);
        let (mean, variance) = if x.device().is_autodiff() {
            let total = |values: Tensor<4>| values.sum_dim(0).sum_dim(2).sum_dim(3).reshape([channels]);
            let mean = total(x.clone() * present.clone()) / count;
            let centred = (x.clone() - broadcast(mean.clone())) * present.clone();
            let variance = total(centred.clone() * centred) / count;
            self.update_running(mean.clone(), variance.clone(), count);
            (mean, variance)
        } else {
            (self.mean.value(), self.variance.value())
        };
        let scale = self.weight.val() / (variance + NORM_EPSILON).sqrt();
        let shift = self.bias.val() - mean * scale.clone();
        let normalised = x.clone() * broadcast(scale) + broadcast(shift);
        x.clone() + (normalised - x) * present
    }

    /// Updates the running statistics with those of a batch of `count` values per channel.
    fn update_running(&self, mean: Tensor<1>, variance: Tensor<1>, count: f32) {
        let unbiased = variance.detach() * (count / (count - 1.0).max(1.0));
        for (running, new) in [(&self.mean, mean.detach()), (&self.variance, unbiased)] {
            let old = running.value_sync();
            running.update((old * (1.0 - NORM_MOMENTUM) + new * NORM_MOMENTUM).detach());
            running.value_sync();
        }
    }
}
