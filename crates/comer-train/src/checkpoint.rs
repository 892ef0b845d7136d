//! A checkpoint: all that a run needs to go on exactly, in one file that is written beside and renamed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use comer::internal::model_file::write_atomic;
use comer::internal::weights::{Tensor, Weights};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::optimizer::Memory;
use crate::schedule::Plateau;

/// Where a run is. Everything random depends on the seed and on this place, so that there are no generators to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Epochs done.
    pub epoch: usize,
    /// Batches of the epoch done.
    pub batch: usize,
    /// Steps done in all.
    pub step: u64,
    /// Seconds of training in all.
    pub seconds: f64,
    /// The ExpRate of these very weights, if they were validated.
    #[serde(default)]
    pub exp_rate: Option<f64>,
    /// Of the schedule.
    pub plateau: Plateau,
    /// Of the epoch so far.
    pub tally: Tally,
    /// Lengths of the log and of the metrics: what stands behind them was written by steps that are done again.
    pub written: [u64; 2],
}

/// Sums over an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Of the loss over all answers.
    pub loss: f64,
    /// Tokens that were asked for.
    pub answers: usize,
    /// Those that were found.
    pub correct: usize,
    /// Pictures seen.
    pub pictures: usize,
    /// Seconds spent.
    pub seconds: f64,
}

/// All that a run needs to go on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Where the run is.
    pub place: Place,
    /// The weights, the running statistics included.
    pub weights: Weights,
    /// What the optimiser remembers.
    pub memory: Memory,
}

const FORMAT: &str = "comer checkpoint 1";
const GROUPS: [&str; 4] = ["weights", "first", "second", "average"];

impl Checkpoint {
    fn groups(&self) -> [&Weights; 4] {
        [&self.weights, &self.memory.first, &self.memory.second, &self.memory.average]
    }

    /// Writes the checkpoint; an old one stays whole until the new one is.
    pub fn save(&self, path: &Path) -> Result<()> {
        let wrong = |reason: String| Error::Run { path: path.into(), reason };
        let mut tensors: BTreeMap<String, (&[usize], Vec<u8>)> = BTreeMap::new();
        for (group, weights) in GROUPS.iter().zip(self.groups()) {
            for (name, Tensor { shape, data }) in weights {
                let bytes = data.iter().flat_map(|value| value.to_le_bytes()).collect();
                tensors.insert(format!("{group}/{name}"), (shape, bytes));
            }
        }
        let place =
            serde_json::to_string(&(&self.place, self.memory.steps)).map_err(|e| wrong(e.to_string()))?;
        let checksum = checksum(&place, tensors.values().map(|(_, bytes)| &bytes[..]));
        let metadata = [("format", FORMAT.to_string()), ("place", place), ("checksum", checksum)];
        let metadata = metadata.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let views: Vec<(&String, TensorView)> = tensors
            .iter()
            .map(|(name, (shape, bytes))| Ok((name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?)))
            .collect::<Result<_, safetensors::SafeTensorError>>()
            .map_err(|error| wrong(error.to_string()))?;
        let bytes =
            safetensors::serialize(views, Some(metadata)).map_err(|error| wrong(error.to_string()))?;
        Ok(write_atomic(path, &bytes)?)
    }

    /// Reads a checkpoint and checks that it is whole.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|reason| Error::File { path: path.into(), reason })?;
        read(&bytes).map_err(|reason| Error::Run { path: path.into(), reason })
    }
}

fn read(bytes: &[u8]) -> Result<Checkpoint, String> {
    let damaged = |error: safetensors::SafeTensorError| format!("is not a checkpoint of comer: {error}");
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let metadata: HashMap<String, String> = header.metadata().clone().unwrap_or_default();
    let entry = |key: &str| metadata.get(key).map(String::as_str).unwrap_or_default();
    if entry("format") != FORMAT {
        return Err(format!("has the format {:?}, expected {FORMAT:?}", entry("format")));
    }
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let tensors: BTreeMap<String, TensorView> = file.tensors().into_iter().collect();
    if checksum(entry("place"), tensors.values().map(|view| view.data())) != entry("checksum") {
        return Err("its checksum is wrong: the file is damaged".into());
    }
    let (place, steps) = serde_json::from_str(entry("place")).map_err(|error| error.to_string())?;
    let mut checkpoint = Checkpoint { place, ..Checkpoint::default() };
    checkpoint.memory.steps = steps;
    for (name, view) in tensors {
        let (group, name) = name.split_once('/').ok_or_else(|| format!("has a tensor {name} of no group"))?;
        if view.dtype() != Dtype::F32 {
            return Err(format!("tensor {name} is {:?}, expected F32", view.dtype()));
        }
        let numbers = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let tensor = Tensor { shape: view.shape().to_vec(), data: numbers.collect() };
        let weights = match group {
            "weights" => &mut checkpoint.weights,
            "first" => &mut checkpoint.memory.first,
            "second" => &mut checkpoint.memory.second,
            "average" => &mut checkpoint.memory.average,
            _ => return Err(format!("has a tensor of the group {group:?}, expected one of {GROUPS:?}")),
        };
        weights.insert(name.to_string(), tensor);
    }
    Ok(checkpoint)
}

fn checksum<'a>(place: &str, tensors: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(place.as_bytes());
    tensors.for_each(|bytes| hasher.update(bytes));
    format!("{:08x}", hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_comes_back_as_it_was_and_damage_is_seen() {
        let tensors = |value: f32| {
            Weights::from([(
                "a.weight".into(),
                Tensor { shape: vec![2], data: vec![value, f32::MIN_POSITIVE] },
            )])
        };
        let place =
            Place { epoch: 3, batch: 17, step: 999, seconds: 1.5, written: [5, 6], ..Place::default() };
        let memory =
            Memory { steps: 999, first: tensors(2.0), second: tensors(3.0), average: Weights::new() };
        let checkpoint = Checkpoint { place, weights: tensors(1.0), memory };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        checkpoint.save(&path).unwrap();
        assert_eq!(Checkpoint::open(&path).unwrap(), checkpoint);

        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(read(&bytes).unwrap_err().contains("damaged"));
        assert!(read(&bytes[..last]).is_err());
        assert!(read(b"").is_err());
    }
}
