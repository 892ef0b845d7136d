//! Burn as a backend of the trainer.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::prelude::*;
use comer::internal::config::ModelConfig;
use comer::internal::weights::{self, Weights, tensor_specs};
use comer::internal::{ModelFile, Vocab};

use comer_train::backend::{Backend, BatchOutput};
use comer_train::batches::Batch;
use comer_train::recipe::{Loss, Recipe};
use comer_train::{Error, Result};

use crate::model::symbols::SymbolClassifier;
use crate::model::targets::Targets;
use crate::model::{Comer, file_name, picture_tensors};
use crate::padded_batch::PaddedBatch;

/// The network on a device of Burn. Pads the pictures of a batch to the largest.
pub struct BurnBackend {
    config: ModelConfig,
    vocab: Vocab,
    label_smoothing: f64,
    symbols: f64,
    presence: f64,
    device: Device,
}

/// The model and, for the symbol loss, its classifier.
#[derive(Module, Debug)]
struct TrainableModel {
    model: Comer,
    classifier: Option<SymbolClassifier>,
}

impl BurnBackend {
    /// The network of a recipe on a device.
    pub fn new(recipe: &Recipe, vocab: Vocab, device: &Device) -> Self {
        let Loss { label_smoothing, symbols, presence } = recipe.loss;
        let device = device.clone().autodiff();
        Self { config: recipe.model.clone(), vocab, label_smoothing, symbols, presence, device }
    }

    fn network(&self, weights: &Weights) -> Result<TrainableModel> {
        if self.presence > 0.0 {
            let reason = "loss.presence is computed on the CPU only: expected 0 or the device cpu".into();
            return Err(Error::Data(reason));
        }
        let mut model_weights = weights.clone();
        model_weights.retain(|name, _| !name.starts_with("symbols."));
        let (config, vocab) = (self.config.clone(), self.vocab.clone());
        let file = ModelFile {
            config,
            vocab,
            provenance: Default::default(),
            weights: model_weights,
            language_model: None,
        };
        Ok(TrainableModel {
            model: Comer::new(&file, &self.device)?,
            classifier: (self.symbols > 0.0).then(|| SymbolClassifier::new(weights, &self.device)),
        })
    }
}

impl Backend for BurnBackend {
    fn batch(&mut self, weights: &Weights, batch: &Batch, seed: u64) -> Result<BatchOutput> {
        let network = self.network(weights)?;
        let model = &network.model;
        self.device.seed(seed);
        let (pictures, padding) = picture_tensors(&PaddedBatch::new(&batch.pictures), &self.device);
        let targets = Targets::new(&batch.formulas);
        let cells = model.encoder().cells(pictures);
        let symbol_term = network
            .classifier
            .as_ref()
            .map(|classifier| classifier.loss(cells.clone(), &batch.pictures, &batch.symbols));
        let (features, padding) = model.encoder().add_positions(cells, &padding);
        let decoded = model.decode(features, &padding, targets.inputs(&self.device));
        let correct = targets.correct(decoded.logits.clone());
        let loss = targets.smooth_loss(decoded.logits, self.label_smoothing);
        let (value, symbol_loss) = (scalar(&loss), symbol_term.as_ref().map_or(0.0, scalar));
        let total = match symbol_term {
            Some(term) => loss + term * self.symbols,
            None => loss,
        };
        let gradients = GradientsParams::from_grads(total.backward(), &network);
        let mut collector = Collector { gradients: &gradients, path: Vec::new(), found: Weights::new() };
        network.visit(&mut collector);
        let mut running = model.weights();
        let specs = tensor_specs(&self.config, self.vocab.len());
        let trainable: BTreeMap<&str, bool> =
            specs.iter().map(|spec| (spec.name.as_str(), spec.trainable)).collect();
        running.retain(|name, _| !trainable[name.as_str()]);
        let gradients = collector.found;
        let targets = targets.count();
        Ok(BatchOutput { loss: value, targets, correct, symbol_loss, presence_loss: 0.0, gradients, running })
    }
}

fn scalar(tensor: &Tensor<1>) -> f64 {
    f64::from(tensor.clone().into_data().try_to_vec::<f32>().expect("a loss is f32")[0])
}

/// Collects the gradients under the names of the tensors in the model file.
struct Collector<'a> {
    gradients: &'a GradientsParams,
    path: Vec<String>,
    found: Weights,
}

impl ModuleVisitor for Collector<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else { return };
        let shape = gradient.dims().to_vec();
        let data = gradient.into_data().try_to_vec().expect("gradients are f32");
        // The first part of the path is the field of `TrainableModel`.
        self.found.insert(file_name(&self.path[1..]), weights::Tensor { shape, data });
    }
}
