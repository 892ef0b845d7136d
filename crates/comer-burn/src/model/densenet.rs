//! The DenseNet (section 3.2 of the paper): three blocks whose layers append channels to their input.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig};
use burn::prelude::*;
use burn::tensor::activation::relu;
use burn::tensor::module::{avg_pool2d, max_pool2d};
use burn::tensor::ops::{AvgPoolOptions, MaxPoolOptions};
use comer::internal::config::{BLOCKS, ModelConfig};

use super::layers::{BatchNorm, Convolution, Source};

/// Convolution, batch norm, ReLU.
#[derive(Module, Debug)]
pub struct Unit {
    conv: Convolution,
    norm: BatchNorm,
}

impl Unit {
    fn new(source: &Source, path: &str, stride: usize) -> Self {
        Self {
            conv: Convolution::new(source, &format!("{path}.conv"), stride),
            norm: BatchNorm::new(source, &format!("{path}.norm")),
        }
    }

    /// `[batch, in, height, width]` to `[batch, out, height / stride, width / stride]`
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        relu(self.norm.forward(self.conv.forward(x)))
    }
}

/// A dense layer: a 1x1 convolution that reduces to four times the growth rate, a 3x3 convolution that computes the new channels.
#[derive(Module, Debug)]
pub struct DenseLayer {
    reduce: Unit,
    grow: Unit,
}

/// `encoder.stem`, `encoder.blocks`, `encoder.transitions` and `encoder.last_norm` of the model file.
#[derive(Module, Debug)]
pub struct DenseNetModule {
    stem: Unit,
    blocks: Vec<Vec<DenseLayer>>,
    transitions: Vec<Unit>,
    last_norm: BatchNorm,
    dropout: Dropout,
}

impl DenseNetModule {
    pub(super) fn new(source: &Source, config: &ModelConfig) -> Self {
        let layer = |path: String| DenseLayer {
            reduce: Unit::new(source, &format!("{path}.reduce"), 1),
            grow: Unit::new(source, &format!("{path}.grow"), 1),
        };
        let layers =
            |block| (0..config.layers_per_block).map(move |i| layer(format!("encoder.blocks.{block}.{i}")));
        Self {
            stem: Unit::new(source, "encoder.stem", 2),
            blocks: (0..BLOCKS).map(|block| layers(block).collect()).collect(),
            transitions: (0..BLOCKS - 1)
                .map(|block| Unit::new(source, &format!("encoder.transitions.{block}"), 1))
                .collect(),
            last_norm: BatchNorm::new(source, "encoder.last_norm"),
            dropout: DropoutConfig::new(config.encoder_dropout).init(),
        }
    }

    /// `[batch, 1, height, width]` to `[batch, channels, height / 16, width / 16]`; each halving rounds up.
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<4> {
        let x = self.stem.forward(pictures);
        let mut x = max_pool2d(x, MaxPoolOptions::new([2, 2]).with_ceil_mode(true));
        for (index, block) in self.blocks.iter().enumerate() {
            for layer in block {
                let new = self.dropout.forward(layer.reduce.forward(x.clone()));
                let new = self.dropout.forward(layer.grow.forward(new));
                x = Tensor::cat(vec![x, new], 1);
            }
            if let Some(transition) = self.transitions.get(index) {
                let halved = self.dropout.forward(transition.forward(x));
                // The mean of a partial window at the border is over its pixels only.
                let options = AvgPoolOptions::new([2, 2]).with_count_include_pad(false).with_ceil_mode(true);
                x = avg_pool2d(halved, options);
            }
        }
        self.last_norm.forward(x)
    }
}
