//! The trainable network: from padded pictures and the tokens so far to the logits of the next tokens.
//!
//! In the order of the computation: [`densenet`], [`encoder`] and [`position`], [`decoder`] with
//! [`attention`] and [`refinement`], [`targets`] with the loss. Weights come from a model file and go back into one.

pub mod attention;
pub mod decoder;
pub mod densenet;
pub mod encoder;
pub mod layers;
pub mod position;
pub mod refinement;
pub mod symbols;
pub mod targets;

use burn::module::{Module, ModuleVisitor, Param};
use burn::prelude::*;
use comer::internal::ModelFile;
use comer::internal::config::DecoderKind;
use comer::internal::weights::{self, Weights};

use self::decoder::{DecoderModule, DecoderOutput};
use self::encoder::EncoderModule;
use self::layers::Source;
use self::position::Padding;
use crate::padded_batch::PaddedBatch;

/// The whole network.
#[derive(Module, Debug)]
pub struct Comer {
    encoder: EncoderModule,
    decoder: DecoderModule,
}

impl Comer {
    /// The network of a model file. For training, the device must support automatic differentiation.
    pub fn new(model: &ModelFile, device: &Device) -> comer::Result<Self> {
        model.validate()?;
        // A GRU decoder is trained on the CPU only.
        model.config.require_decoder(DecoderKind::Transformer)?;
        let source = Source { weights: &model.weights, device };
        Ok(Self {
            encoder: EncoderModule::new(&source, &model.config),
            decoder: DecoderModule::new(&source, &model.config),
        })
    }

    /// The tensors of the network under the names of the model file, including running statistics.
    pub fn weights(&self) -> Weights {
        let mut collector = Collector::default();
        self.visit(&mut collector);
        collector.weights
    }

    /// The encoder.
    pub fn encoder(&self) -> &EncoderModule {
        &self.encoder
    }

    /// The decoder.
    pub fn decoder(&self) -> &DecoderModule {
        &self.decoder
    }

    /// The forward pass in both directions: `tokens` has two rows for each picture, `[2 * batch, steps]`, first all
    /// formulas from left to right, then all from right to left.
    pub fn forward(&self, pictures: Tensor<4>, padding: &Padding, tokens: Tensor<2, Int>) -> DecoderOutput {
        let (features, padding) = self.encoder.forward(pictures, padding);
        self.decode(features, &padding, tokens)
    }

    /// The part of [`Self::forward`] after the encoder.
    pub fn decode(&self, features: Tensor<4>, padding: &Padding, tokens: Tensor<2, Int>) -> DecoderOutput {
        self.decoder.forward(features.repeat(&[2, 1, 1, 1]), padding, tokens)
    }
}

/// A batch of pictures as tensors: `[count, 1, height, width]` and the padding.
pub fn picture_tensors(batch: &PaddedBatch, device: &Device) -> (Tensor<4>, Padding) {
    let data = TensorData::new(batch.pixels.clone(), [batch.count, 1, batch.height, batch.width]);
    let padding = Padding {
        batch: batch.count,
        height: batch.height,
        width: batch.width,
        values: batch.padding.clone(),
    };
    (Tensor::from_data(data, device), padding)
}

/// Collects every tensor under its path in the module tree.
#[derive(Default)]
struct Collector {
    path: Vec<String>,
    weights: Weights,
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let data = param.val().into_data();
        let shape = param.dims().to_vec();
        let data = data.try_to_vec::<f32>().expect("weights are f32");
        self.weights.insert(file_name(&self.path), weights::Tensor { shape, data });
    }
}

/// The name in the model file of a path in the module tree: the tensors of the DenseNet are directly under the encoder.
pub(crate) fn file_name(path: &[String]) -> String {
    let parts: Vec<&str> = path.iter().map(String::as_str).filter(|&part| part != "densenet").collect();
    parts.join(".")
}
