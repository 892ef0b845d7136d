//! Checkpoints: everything that a run needs to resume exactly, in one file that is written atomically.

use std::collections::BTreeMap;
use std::path::Path;

use comer::internal::safetensors::{self, View};
use comer::internal::weights::{Tensor, Weights};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::optimizer::OptimizerState;
use crate::schedule::Plateau;

/// How far a run is. Random numbers depend only on the seed and on this, so no generator state is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingProgress {
    /// Completed epochs.
    pub epoch: usize,
    /// Completed batches of the current epoch.
    pub batch: usize,
    /// Completed steps of the run.
    pub step: u64,
    /// Seconds of training so far.
    pub seconds: f64,
    /// CPU seconds of all processes in completed epochs.
    #[serde(default)]
    pub cpu_seconds: f64,
    /// The ExpRate of exactly these weights, if they were validated.
    #[serde(default)]
    pub exp_rate: Option<f64>,
    /// State of the learning rate schedule.
    pub plateau: Plateau,
    /// Sums over the current epoch.
    #[serde(rename = "tally")]
    pub totals: EpochTotals,
    /// Lengths of the log and the metrics. Anything after them was written by steps that a resumed run repeats.
    pub written: [u64; 2],
    /// CRC-32 of the log and the metrics up to these lengths; none in checkpoints of format 1.
    #[serde(default)]
    pub checksums: Option<[u32; 2]>,
}

/// Sums over an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochTotals {
    /// Sum of the loss over all target tokens.
    pub loss: f64,
    /// Target tokens.
    #[serde(rename = "answers")]
    pub targets: usize,
    /// Target tokens that were predicted correctly.
    pub correct: usize,
    /// Training pictures.
    pub pictures: usize,
    /// Elapsed seconds.
    pub seconds: f64,
    /// CPU seconds of this process.
    #[serde(default)]
    pub cpu_seconds: f64,
}

/// Everything that a run needs to resume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// How far the run is.
    pub progress: TrainingProgress,
    /// The weights, including running statistics.
    pub weights: Weights,
    /// Moments and averaged weights.
    pub optimizer: OptimizerState,
    /// The tokens that the weights stand for; none in checkpoints of format 1.
    pub vocabulary: Option<Vec<String>>,
}

const FORMAT: &str = "comer checkpoint 2";
/// Without the vocabulary, and with a checksum that leaves out names and shapes.
const FORMAT_1: &str = "comer checkpoint 1";
const GROUPS: [&str; 4] = ["weights", "first", "second", "average"];

impl Checkpoint {
    fn groups(&self) -> [&Weights; 4] {
        [&self.weights, &self.optimizer.first, &self.optimizer.second, &self.optimizer.average]
    }

    /// Writes the checkpoint atomically: an existing file stays intact until the new one is complete.
    pub fn save(&self, path: &Path) -> Result<()> {
        let invalid = |reason: String| Error::Run { path: path.into(), reason };
        let mut tensors: BTreeMap<String, (&[usize], Vec<u8>)> = BTreeMap::new();
        for (group, weights) in GROUPS.iter().zip(self.groups()) {
            for (name, Tensor { shape, data }) in weights {
                let bytes = data.iter().flat_map(|value| value.to_le_bytes()).collect();
                tensors.insert(format!("{group}/{name}"), (shape, bytes));
            }
        }
        let progress = serde_json::to_string(&(&self.progress, self.optimizer.steps))
            .map_err(|e| invalid(e.to_string()))?;
        let vocabulary = serde_json::to_string(&self.vocabulary).map_err(|e| invalid(e.to_string()))?;
        let parts = tensors.iter().map(|(name, (shape, bytes))| (&name[..], *shape, &bytes[..]));
        let checksum = checksum(&progress, &vocabulary, parts);
        let metadata = [
            ("format", FORMAT.to_string()),
            ("place", progress),
            ("vocabulary", vocabulary),
            ("checksum", checksum),
        ];
        let metadata = metadata.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let views = tensors.iter().map(|(name, (shape, bytes))| {
            (name.as_str(), View { dtype: "F32".into(), shape: shape.to_vec(), bytes })
        });
        let views = views.collect();
        let bytes = safetensors::write(metadata, &views).map_err(invalid)?;
        comer_files::write_atomic(path, &bytes).map_err(|reason| Error::File { path: path.into(), reason })
    }

    /// Checks that there are the weights of `start`, the state before the first step, and moments of no others.
    pub fn check(&self, start: &Checkpoint) -> Result<(), String> {
        let expected = &start.weights;
        if let Some(name) = expected.keys().find(|name| !self.weights.contains_key(*name)) {
            return Err(format!("has no tensor weights/{name}, expected one"));
        }
        for (group, weights) in GROUPS.iter().zip(self.groups()) {
            for (name, tensor) in weights {
                let shape = expected.get(name).map(|tensor| &tensor.shape);
                if shape != Some(&tensor.shape) {
                    let expected = shape.map_or("no such tensor".into(), |shape| format!("{shape:?}"));
                    return Err(format!(
                        "has a tensor {group}/{name} of shape {:?}, expected {expected}",
                        tensor.shape
                    ));
                }
            }
        }
        let average = &self.optimizer.average;
        if !average.is_empty() && average.len() != expected.len() {
            return Err(format!("has {} averaged tensors, expected {}", average.len(), expected.len()));
        }
        Ok(())
    }

    /// Reads a checkpoint and verifies its checksum.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = comer_files::read(path, comer_files::limit::MODEL)
            .map_err(|reason| Error::File { path: path.into(), reason })?;
        read(&bytes).map_err(|reason| Error::Run { path: path.into(), reason })
    }
}

/// Reads the bytes of a checkpoint and verifies their checksum.
pub fn read(bytes: &[u8]) -> Result<Checkpoint, String> {
    let file =
        safetensors::read(bytes).map_err(|reason| format!("is not a checkpoint of comer: {reason}"))?;
    let entry = |key: &str| file.metadata.get(key).map(String::as_str).unwrap_or_default();
    if ![FORMAT, FORMAT_1].contains(&entry("format")) {
        return Err(format!("has the format {:?}, expected {FORMAT:?} or {FORMAT_1:?}", entry("format")));
    }
    let parts = file.tensors.iter().map(|(name, view)| (&name[..], &view.shape[..], view.bytes));
    let found = match entry("format") {
        FORMAT_1 => checksum_1(entry("place"), parts),
        _ => checksum(entry("place"), entry("vocabulary"), parts),
    };
    if found != entry("checksum") {
        return Err("its checksum is wrong: the file is damaged".into());
    }
    let (progress, steps) = serde_json::from_str(entry("place")).map_err(|error| error.to_string())?;
    let mut checkpoint = Checkpoint { progress, ..Checkpoint::default() };
    checkpoint.optimizer.steps = steps;
    if entry("format") == FORMAT {
        checkpoint.vocabulary =
            serde_json::from_str(entry("vocabulary")).map_err(|error| format!("vocabulary: {error}"))?;
    }
    for (name, view) in file.tensors {
        let (group, name) =
            name.split_once('/').ok_or_else(|| format!("has a tensor {name:?} without a group"))?;
        if view.dtype != "F32" {
            return Err(format!("tensor {name} is {}, expected F32", view.dtype));
        }
        let numbers = view.bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four));
        let tensor = Tensor { shape: view.shape, data: numbers.collect() };
        if let Some(number) = tensor.data.iter().find(|number| !number.is_finite()) {
            return Err(format!("tensor {group}/{name} has the value {number}, expected finite numbers"));
        }
        let weights = match group {
            "weights" => &mut checkpoint.weights,
            "first" => &mut checkpoint.optimizer.first,
            "second" => &mut checkpoint.optimizer.second,
            "average" => &mut checkpoint.optimizer.average,
            _ => return Err(format!("has a tensor of the group {group:?}, expected one of {GROUPS:?}")),
        };
        weights.insert(name.to_string(), tensor);
    }
    Ok(checkpoint)
}

/// CRC-32 over the progress, the vocabulary and every tensor's name, shape and numbers.
fn checksum<'a>(
    progress: &str,
    vocabulary: &str,
    tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>,
) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(format!("{progress}\0{vocabulary}\0").as_bytes());
    for (name, shape, bytes) in tensors {
        hasher.update(format!("{name} {shape:?}\0").as_bytes());
        hasher.update(bytes);
    }
    format!("{:08x}", hasher.finalize())
}

/// The checksum of format 1.
fn checksum_1<'a>(progress: &str, tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(progress.as_bytes());
    tensors.for_each(|(_, _, bytes)| hasher.update(bytes));
    format!("{:08x}", hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_round_trip_and_damage_is_detected() {
        let tensors = |value: f32| {
            Weights::from([(
                "a.weight".into(),
                Tensor { shape: vec![2], data: vec![value, f32::MIN_POSITIVE] },
            )])
        };
        let progress = TrainingProgress {
            epoch: 3,
            batch: 17,
            step: 999,
            seconds: 1.5,
            cpu_seconds: 2.5,
            written: [5, 6],
            ..TrainingProgress::default()
        };
        let optimizer =
            OptimizerState { steps: 999, first: tensors(2.0), second: tensors(3.0), average: Weights::new() };
        let vocabulary = Some(vec!["x".to_string()]);
        let checkpoint = Checkpoint { progress, weights: tensors(1.0), optimizer, vocabulary };
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

        let optimizer = OptimizerState { second: tensors(f32::NAN), ..checkpoint.optimizer.clone() };
        Checkpoint { optimizer, ..checkpoint }.save(&path).unwrap();
        let message = Checkpoint::open(&path).unwrap_err().to_string();
        assert!(message.contains("tensor second/a.weight has the value NaN"), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }

    /// A tensor of one number under a name, as a file of one of the formats.
    fn file(format: &str, name: &str, checksum: &str) -> Vec<u8> {
        let progress = serde_json::to_string(&(TrainingProgress::default(), 0)).unwrap();
        let metadata =
            [("format", format), ("place", &progress), ("vocabulary", "null"), ("checksum", checksum)];
        let metadata = metadata.map(|(key, value)| (key.to_string(), value.to_string())).into();
        let view = View { dtype: "F32".into(), shape: vec![1], bytes: &[0; 4] };
        safetensors::write(metadata, &[(name, view)].into()).unwrap()
    }

    #[test]
    fn names_are_part_of_the_checksum_and_format_1_is_still_read() {
        let progress = serde_json::to_string(&(TrainingProgress::default(), 0)).unwrap();
        let part = |name: &'static str| std::iter::once((name, &[1][..], &[0; 4][..]));
        let own = checksum(&progress, "null", part("weights/a"));
        assert!(read(&file(FORMAT, "weights/a", &own)).is_ok());
        assert!(read(&file(FORMAT, "weights/b", &own)).unwrap_err().contains("damaged"));
        let old = read(&file(FORMAT_1, "weights/b", &checksum_1(&progress, part("weights/b")))).unwrap();
        assert!(old.vocabulary.is_none() && old.progress.checksums.is_none());
        assert!(read(&file("comer checkpoint 3", "weights/a", &own)).unwrap_err().contains("format"));
    }

    #[test]
    fn tensors_that_do_not_belong_to_the_model_are_refused() {
        let tensor =
            |shape: &[usize]| Tensor { shape: shape.to_vec(), data: vec![0.0; shape.iter().product()] };
        let named = |name: &str, shape: &[usize]| Weights::from([(name.to_string(), tensor(shape))]);
        let start = Checkpoint { weights: named("a", &[2]), ..Checkpoint::default() };
        start.check(&start).unwrap();
        let renamed = Checkpoint { weights: named("b", &[2]), ..Checkpoint::default() };
        assert!(renamed.check(&start).unwrap_err().contains("weights/a"));
        let reshaped = Checkpoint { weights: named("a", &[1, 2]), ..Checkpoint::default() };
        assert!(reshaped.check(&start).unwrap_err().contains("expected [2]"));
        let optimizer = OptimizerState { first: named("c", &[2]), ..OptimizerState::default() };
        let foreign = Checkpoint { optimizer, ..start.clone() };
        assert!(foreign.check(&start).unwrap_err().contains("first/c"));
    }
}
