//! The folder of a run: recipe, log, metrics, curves, models and checkpoint.

use std::fs;
use std::path::{Path, PathBuf};

use comer::internal::model_file::{Precision, write_atomic};
use comer::internal::weights::tensor_specs;
use comer::internal::{ModelFile, Vocab};
use comer_eval::Journal;

use crate::checkpoint::Checkpoint;
use crate::curves::{EpochMetrics, svg};
use crate::error::{Error, Result};
use crate::recipe::Recipe;

/// The files of a run.
pub struct RunFolder {
    path: PathBuf,
    log: Journal,
    metrics: Journal,
    rows: Vec<EpochMetrics>,
    /// The best model, as long as it could not be written.
    best: Option<ModelFile>,
}

const HEADER: &str = "epoch,step,size,rate,loss,tokens_found,exp_rate,pictures_per_second,hours\n";

impl RunFolder {
    /// Creates the folder of a new run.
    pub fn create(path: &Path, recipe: &Recipe, recipe_text: &str) -> Result<Self> {
        fs::create_dir_all(path).map_err(|reason| Error::File { path: path.into(), reason })?;
        if checkpoint(path).exists() {
            let reason = "already contains a run: continue it with --resume, or choose another folder".into();
            return Err(Error::Run { path: path.into(), reason });
        }
        write_atomic(&path.join("recipe.toml"), recipe_text.as_bytes())?;
        write_atomic(&path.join("resolved.toml"), recipe.to_toml().as_bytes())?;
        let mut folder = Self {
            path: path.into(),
            log: Journal::open(path.join("log.jsonl"), 0)?,
            metrics: Journal::open(path.join("metrics.csv"), 0)?,
            rows: Vec::new(),
            best: None,
        };
        folder.metrics.write(HEADER);
        Ok(folder)
    }

    /// Opens the folder of a run to resume it. The recipe may differ in everything that the checkpoint does not depend on.
    pub fn resume(path: &Path, recipe: &Recipe, vocab: &Vocab) -> Result<(Self, Checkpoint)> {
        let file = checkpoint(path);
        if !file.exists() {
            let reason = "contains no checkpoint to resume: start without --resume".into();
            return Err(Error::Run { path: path.into(), reason });
        }
        let found = Checkpoint::open(&file)?;
        let old = Recipe::open_stored(&path.join("resolved.toml"))?;
        if let Some(reason) = incompatibility(&old, recipe, found.progress.epoch) {
            return Err(Error::Run { path: path.into(), reason });
        }
        if ModelFile::open(path.join("last.safetensors")).is_ok_and(|model| model.vocab != *vocab) {
            let reason = "was started with another vocabulary: the tokens would change their meaning".into();
            return Err(Error::Run { path: path.into(), reason });
        }
        write_atomic(&path.join("resolved.toml"), recipe.to_toml().as_bytes())?;
        let [log, metrics] = found.progress.written;
        let mut folder = Self {
            path: path.into(),
            log: Journal::open(path.join("log.jsonl"), log)?,
            metrics: Journal::open(path.join("metrics.csv"), metrics)?,
            rows: Vec::new(),
            best: None,
        };
        let text = fs::read_to_string(path.join("metrics.csv")).unwrap_or_default();
        folder.rows = text.lines().skip(1).filter_map(parse_row).collect();
        Ok((folder, found))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line to the log.
    pub fn log(&mut self, line: &serde_json::Value) {
        self.log.write(&format!("{line}\n"));
    }

    /// Adds a row to the metrics, with columns that are not drawn as curves.
    pub fn metrics(&mut self, row: EpochMetrics, step: u64, size: f64, rate: f64, speed: f64, hours: f64) {
        let exp_rate = row.exp_rate.map(|rate| format!("{rate:.4}")).unwrap_or_default();
        let EpochMetrics { epoch, loss, tokens, .. } = row;
        self.metrics.write(&format!(
            "{epoch},{step},{size},{rate:.3e},{loss:.4},{tokens:.4},{exp_rate},{speed:.2},{hours:.3}\n"
        ));
        self.rows.push(row);
    }

    /// Lengths of the log and the metrics, including lines that are not flushed yet.
    pub fn written(&self) -> [u64; 2] {
        [self.log.length(), self.metrics.length()]
    }

    /// Flushes log and metrics, writes the curves and the model, and last the checkpoint, which refers to them.
    pub fn save(&mut self, checkpoint_: &Checkpoint, model: &ModelFile) -> Result<()> {
        self.log.flush()?;
        self.metrics.flush()?;
        self.flush_best()?;
        write_atomic(
            &self.path.join("curves.svg"),
            svg(&self.path.display().to_string(), &self.rows).as_bytes(),
        )?;
        model.save(self.path.join("last.safetensors"), Precision::F32)?;
        checkpoint_.save(&checkpoint(&self.path))
    }

    /// Writes the best model so far; after a failure, [`RunFolder::save`] tries again.
    pub fn save_best(&mut self, model: ModelFile) -> Result<()> {
        self.best = Some(model);
        self.flush_best()
    }

    fn flush_best(&mut self) -> Result<()> {
        if let Some(model) = &self.best {
            model.save(self.path.join("best.safetensors"), Precision::F32)?;
        }
        self.best = None;
        Ok(())
    }
}

/// Why a run cannot be resumed with another recipe, if it cannot.
fn incompatibility(old: &Recipe, new: &Recipe, epochs: usize) -> Option<String> {
    let other = |field: &str, why: &str| Some(format!("was started with another {field}: {why}"));
    if old.model != new.model {
        return other("[model]", "the weights do not fit this recipe");
    }
    if old.optimizer.kind != new.optimizer.kind {
        return other("optimizer.kind", "the optimiser state does not fit this recipe");
    }
    for (field, old, new) in [
        ("loss.symbols", old.loss.symbols, new.loss.symbols),
        ("optimizer.average", old.optimizer.average, new.optimizer.average),
    ] {
        if (old > 0.0) != (new > 0.0) {
            return other(field, "it may change, but neither to 0 nor from 0");
        }
    }
    (epochs > new.epochs).then(|| {
        format!(
            "has completed {epochs} epochs, more than the {} of the recipe: choose another folder",
            new.epochs
        )
    })
}

fn checkpoint(path: &Path) -> PathBuf {
    path.join("checkpoint.safetensors")
}

fn parse_row(line: &str) -> Option<EpochMetrics> {
    let cells: Vec<&str> = line.split(',').collect();
    Some(EpochMetrics {
        epoch: cells.first()?.parse().ok()?,
        loss: cells.get(4)?.parse().ok()?,
        tokens: cells.get(5)?.parse().ok()?,
        exp_rate: cells.get(6)?.parse().ok(),
    })
}

/// The model file of a checkpoint, with the averaged weights if there are any.
pub fn model_file(
    recipe: &Recipe,
    vocab: &Vocab,
    checkpoint: &Checkpoint,
    provenance: comer::internal::model_file::Provenance,
) -> ModelFile {
    let average = &checkpoint.optimizer.average;
    let weights = if average.is_empty() { &checkpoint.weights } else { average };
    let specs = tensor_specs(&recipe.model, vocab.len());
    let own = specs.into_iter().map(|spec| {
        let tensor = weights[&spec.name].clone();
        (spec.name, tensor)
    });
    let weights = own.collect();
    ModelFile {
        config: recipe.model.clone(),
        vocab: vocab.clone(),
        provenance,
        weights,
        language_model: None,
    }
}
