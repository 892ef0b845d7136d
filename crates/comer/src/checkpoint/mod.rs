//! Reads what the authors' implementation saves (a Lightning `.ckpt`, a plain `.pt`, a `.safetensors`) and turns it
//! into a model of ours.
//!
//! Nothing of a pickle is ever executed, and a damaged or hostile file costs no more memory than a few times its size.

mod names;
mod pickle;
mod state_dict;

use std::path::Path;

use serde_json::json;

pub use state_dict::{Setting, StateDict};

use crate::config::{Coverage, ModelConfig};
use crate::error::{Error, Result};
use crate::model_file::ModelFile;
use crate::vocab::Vocab;
use crate::weights::{Weights, tensor_specs};

/// What a checkpoint may not say of itself.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// The number of attention heads, if the file does not say.
    pub heads: Option<usize>,
    /// The input of the refinement module, if the file does not say.
    pub coverage: Option<Coverage>,
}

/// Imports a checkpoint file.
pub fn import(path: impl AsRef<Path>, vocab: Vocab, hints: &Hints) -> Result<ModelFile> {
    let path = path.as_ref();
    let bytes = comer_files::read(path, comer_files::limit::MODEL).map_err(Error::reading(path))?;
    let name = path.display().to_string();
    let wrong = |reason| Error::Checkpoint { name: name.clone(), reason };
    let state = StateDict::from_bytes(&bytes).map_err(wrong)?;
    let mut model = state.into_model(vocab, hints).map_err(wrong)?;
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
    model.provenance.insert("source".into(), json!({ "imported from": file }));
    Ok(model)
}

impl StateDict {
    /// The model whose weights these are.
    pub fn into_model(mut self, vocab: Vocab, hints: &Hints) -> Result<ModelFile, String> {
        let config = self.config(hints)?;
        config.validate().map_err(|error| error.to_string())?;
        let rows = self.shape("decoder.word_embed.0.weight")?[0];
        if rows != vocab.len() {
            return Err(format!(
                "it was trained on {rows} tokens, but the vocabulary given has {}",
                vocab.len()
            ));
        }
        let mut weights = Weights::new();
        for spec in tensor_specs(&config, vocab.len()) {
            let theirs = names::checkpoint_name(&spec.name);
            let tensor = self.take(&theirs)?;
            if tensor.shape != spec.shape {
                return Err(format!(
                    "tensor {theirs} has shape {:?}, expected {:?}",
                    tensor.shape, spec.shape
                ));
            }
            weights.insert(spec.name, tensor);
        }
        if let Some(extra) = self.names().find(|name| !names::is_derived(name)) {
            return Err(format!("tensor {extra} is not part of a CoMER model"));
        }
        Ok(ModelFile { config, vocab, provenance: Default::default(), weights, language_model: None })
    }

    /// The config from the settings, or else from the shapes of the tensors.
    fn config(&self, hints: &Hints) -> Result<ModelConfig, String> {
        let layers = |prefix: &str| (0..).take_while(|i| self.has_prefix(&format!("{prefix}{i}."))).count();
        let first = |name: &str| self.shape(name).map(|shape| shape[0]);
        let mut config = ModelConfig {
            d_model: first("encoder.feature_proj.weight")?,
            growth_rate: first("encoder.model.conv1.weight")? / 2,
            layers_per_block: layers("encoder.model.dense1."),
            decoder_layers: layers("decoder.model.layers."),
            feed_forward: first("decoder.model.layers.0.linear1.weight")?,
            ..ModelConfig::default()
        };
        let mut coverage = hints.coverage.or_else(|| {
            let flag = |name| self.settings.get(name).and_then(Setting::flag);
            Some(match (flag("cross_coverage")?, flag("self_coverage")?) {
                (true, true) => Coverage::Fusion,
                (true, false) => Coverage::Cross,
                (false, true) => Coverage::SelfOnly,
                (false, false) => Coverage::None,
            })
        });
        let mut heads =
            hints.heads.or_else(|| self.settings.get("nhead").and_then(Setting::number).map(|n| n as usize));
        if let (Ok(conv), Ok(projection)) =
            (self.shape("decoder.model.arm.conv.weight"), self.shape("decoder.model.arm.proj.weight"))
        {
            config.coverage_channels = conv[0];
            heads = heads.or(Some(projection[0]));
            if conv.get(1).copied() == projection[0].checked_mul(2) {
                coverage = coverage.or(Some(Coverage::Fusion));
            }
        } else {
            coverage = coverage.or(Some(Coverage::None));
        }
        if let Some(dropout) = self.settings.get("dropout").and_then(Setting::number) {
            config.dropout = dropout;
        }
        config.heads = heads.ok_or("it does not tell its number of attention heads; give it (--heads)")?;
        config.coverage = coverage
            .ok_or("it does not tell self from cross coverage; give it (--coverage self or cross)")?;
        Ok(config)
    }
}
