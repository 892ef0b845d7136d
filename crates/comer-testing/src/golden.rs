//! Golden files: outputs of the authors' implementation, and of our PyTorch script for GRU decoders, for tiny random models.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use comer::internal::checkpoint::{Hints, Setting, StateDict};
use comer::internal::weights::{Tensor, Weights};
use comer::internal::{ModelConfig, ModelFile, TokenId, Vocab};
use safetensors::{Dtype, SafeTensors};

use crate::repository;

/// The tensors of a golden file; integers and bytes are widened to f32.
pub struct Golden {
    /// Tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
    /// Metadata of the file.
    pub metadata: HashMap<String, String>,
}

impl Golden {
    /// Reads a golden file.
    pub fn open(path: impl AsRef<Path>) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let widen = |dtype, data: &[u8]| -> Vec<f32> {
            let fours = || data.as_chunks().0.iter();
            match dtype {
                Dtype::F32 => fours().map(|&four| f32::from_le_bytes(four)).collect(),
                Dtype::I32 => fours().map(|&four| i32::from_le_bytes(four) as f32).collect(),
                Dtype::U8 => data.iter().map(|&byte| f32::from(byte)).collect(),
                other => panic!("{other:?}"),
            }
        };
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            (name, Tensor { shape: view.shape().to_vec(), data: widen(view.dtype(), view.data()) })
        });
        Self { tensors: tensors.collect(), metadata: header.metadata().clone().unwrap_or_default() }
    }

    /// The golden file of a tiny random model: `bttr`, `self`, `cross` or `fusion`.
    pub fn tiny(name: &str) -> Self {
        Self::open(repository().join(format!("crates/comer/tests/data/tiny-{name}.safetensors")))
    }

    /// A tensor by its name.
    pub fn get(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("the golden file has no {name}"))
    }

    /// The tensors whose names start with `prefix`, without it.
    pub fn under(&self, prefix: &str) -> Weights {
        let strip = |(name, tensor): (&String, &Tensor)| {
            Some((name.strip_prefix(prefix)?.to_string(), tensor.clone()))
        };
        self.tensors.iter().filter_map(strip).collect()
    }

    /// The model under `weights.`, with its tensors replaced by those under another prefix (`train.after3.`).
    pub fn model(&self, prefix: &str) -> ModelFile {
        let mut tensors = BTreeMap::new();
        for prefix in ["weights.", prefix] {
            tensors.extend(self.under(prefix));
        }
        let config: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&self.metadata["config"]).unwrap();
        let setting = |value: serde_json::Value| match value {
            serde_json::Value::Bool(flag) => Setting::Flag(flag),
            value => Setting::Number(value.as_f64().unwrap()),
        };
        let settings = config.into_iter().map(|(name, value)| (name, setting(value))).collect();
        let mut model =
            StateDict::new(tensors, settings).into_model(Vocab::crohme(), &Hints::default()).unwrap();
        model.config.encoder_dropout = 0.0;
        model
    }
}

/// A golden file of the GRU decoder, written by `crates/comer/tests/data/make_tiny_gru.py`.
pub struct GruGolden {
    /// Its tensors.
    pub golden: Golden,
    /// The shape of the network.
    pub config: ModelConfig,
    /// The tensors of the decoder and of the end of the encoder.
    pub weights: Weights,
    /// Height and width of the cells of each picture.
    pub sizes: Vec<(usize, usize)>,
}

impl GruGolden {
    /// `gru` (one head, one layer) or `gru-stacked` (two of each).
    pub fn tiny(name: &str) -> Self {
        let golden = Golden::tiny(name);
        let config = serde_json::from_str(&golden.metadata["config"]).unwrap();
        let weights = golden.under("weights.");
        let sizes = golden.get("input.sizes").data.chunks(2).map(|size| (size[0] as usize, size[1] as usize));
        Self { config, weights, sizes: sizes.collect(), golden }
    }

    /// The input and the target tokens of each sequence; the two of a picture follow each other.
    pub fn sequences(&self) -> Vec<[Vec<TokenId>; 2]> {
        let tokens = |kind: &str, index: usize| -> Vec<TokenId> {
            self.golden.get(&format!("input.{kind}.{index}")).data.iter().map(|&id| id as TokenId).collect()
        };
        (0..2 * self.sizes.len()).map(|index| ["tokens", "targets"].map(|kind| tokens(kind, index))).collect()
    }

    /// The size of the vocabulary.
    pub fn vocab(&self) -> usize {
        self.weights["decoder.embedding.weight"].shape[0]
    }
}

/// The tiny random model of a golden file.
pub fn golden_model(name: &str) -> ModelFile {
    Golden::tiny(name).model("weights.")
}
