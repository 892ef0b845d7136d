//! The encoder: DenseNet features, projected to `d_model`, with positional encodings.

use burn::module::Module;
use burn::prelude::*;
use comer::internal::config::ModelConfig;

use super::densenet::DenseNetModule;
use super::layers::{Convolution, LayerNorm, Source};
use super::position::{Padding, cell_positions};

/// Everything under `encoder` in the model file.
#[derive(Module, Debug)]
pub struct EncoderModule {
    densenet: DenseNetModule,
    projection: Convolution,
    norm: LayerNorm,
}

impl EncoderModule {
    pub(super) fn new(source: &Source, config: &ModelConfig) -> Self {
        Self {
            densenet: DenseNetModule::new(source, config),
            projection: Convolution::new(source, "encoder.projection", 1),
            norm: LayerNorm::new(source, "encoder.norm"),
        }
    }

    /// Only the DenseNet: `[batch, 1, height, width]` to `[batch, channels, height / 16, width / 16]`
    pub fn densenet(&self, pictures: Tensor<4>) -> Tensor<4> {
        self.densenet.forward(pictures)
    }

    /// `[batch, 1, height, width]` to cells without positional encodings: `[batch, height / 16, width / 16, d_model]`
    pub fn cells(&self, pictures: Tensor<4>) -> Tensor<4> {
        self.projection.forward(self.densenet(pictures)).permute([0, 2, 3, 1])
    }

    /// Adds positional encodings to cells. Returns the features and their padding, from that of the pictures.
    pub fn add_positions(&self, cells: Tensor<4>, padding: &Padding) -> (Tensor<4>, Padding) {
        let padding = padding.halved().halved().halved().halved();
        let positions = cell_positions(&padding, cells.dims()[3], &cells.device());
        (self.norm.forward(cells + positions), padding)
    }

    /// `[batch, 1, height, width]` to features `[batch, height / 16, width / 16, d_model]` and their padding.
    pub fn forward(&self, pictures: Tensor<4>, padding: &Padding) -> (Tensor<4>, Padding) {
        self.add_positions(self.cells(pictures), padding)
    }
}
