//! The encoder: DenseNet features, projected to the decoder's width, with the places of the cells added.

use burn::module::Module;
use burn::prelude::*;
use comer::config::ModelConfig;

use super::densenet::DenseNet;
use super::layers::{Convolution, LayerNorm, Source};
use super::position::{Padding, cell_positions};

/// Everything under `encoder` in the model file but the DenseNet, which it holds too.
#[derive(Module, Debug)]
pub struct Encoder {
    densenet: DenseNet,
    projection: Convolution,
    norm: LayerNorm,
}

impl Encoder {
    pub(super) fn new(source: &Source, config: &ModelConfig) -> Self {
        Self {
            densenet: DenseNet::new(source, config),
            projection: Convolution::new(source, "encoder.projection", 1),
            norm: LayerNorm::new(source, "encoder.norm"),
        }
    }

    /// The DenseNet alone: `[batch, 1, height, width]` to `[batch, channels, height / 16, width / 16]`
    pub fn densenet(&self, pictures: Tensor<4>) -> Tensor<4> {
        self.densenet.forward(pictures)
    }

    /// `[batch, 1, height, width]` to features `[batch, height / 16, width / 16, d_model]` and their padding.
    pub fn forward(&self, pictures: Tensor<4>, padding: &Padding) -> (Tensor<4>, Padding) {
        let x = self.projection.forward(self.densenet(pictures));
        let x = x.permute([0, 2, 3, 1]);
        let padding = padding.halved().halved().halved().halved();
        let positions = cell_positions(&padding, x.dims()[3], &x.device());
        (self.norm.forward(x + positions), padding)
    }
}
