//! The folder of a run: the recipe, the log, the metrics and their curves, the models and the checkpoint.

use std::fs;
use std::path::{Path, PathBuf};

use comer::internal::model_file::{Precision, write_atomic};
use comer::internal::weights::tensor_specs;
use comer::internal::{ModelFile, Vocab};
use comer_eval::Journal;

use crate::checkpoint::Checkpoint;
use crate::curves::{Row, svg};
use crate::error::{Error, Result};
use crate::recipe::Recipe;

/// A run's files.
pub struct RunFolder {
    path: PathBuf,
    log: Journal,
    metrics: Journal,
    rows: Vec<Row>,
    /// The best model, while it cannot be written.
    best: Option<ModelFile>,
}

const HEADER: &str = "epoch,step,size,rate,loss,tokens_found,exp_rate,pictures_per_second,hours\n";

impl RunFolder {
    /// Begins a run in a folder that holds none.
    pub fn create(path: &Path, recipe: &Recipe, recipe_text: &str) -> Result<Self> {
        fs::create_dir_all(path).map_err(|reason| Error::File { path: path.into(), reason })?;
        if checkpoint(path).exists() {
            let reason = "holds a run already: go on with --resume, or choose another folder".into();
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

    /// Goes on with the run of a folder. The recipe may have changed in all that the checkpoint does not depend on.
    pub fn resume(path: &Path, recipe: &Recipe, vocab: &Vocab) -> Result<(Self, Checkpoint)> {
        let place = checkpoint(path);
        if !place.exists() {
            let reason = "holds no checkpoint to go on from: begin without --resume".into();
            return Err(Error::Run { path: path.into(), reason });
        }
        let found = Checkpoint::open(&place)?;
        let old = Recipe::open_stored(&path.join("resolved.toml"))?;
        if let Some(reason) = obstacle(&old, recipe, found.place.epoch) {
            return Err(Error::Run { path: path.into(), reason });
        }
        if ModelFile::open(path.join("last.safetensors")).is_ok_and(|model| model.vocab != *vocab) {
            let reason = "was begun with another vocabulary: its tokens would change their meaning".into();
            return Err(Error::Run { path: path.into(), reason });
        }
        write_atomic(&path.join("resolved.toml"), recipe.to_toml().as_bytes())?;
        let [log, metrics] = found.place.written;
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

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line to the log.
    pub fn log(&mut self, line: &serde_json::Value) {
        self.log.write(&format!("{line}\n"));
    }

    /// Adds a row to the metrics, with what no curve shows.
    pub fn metrics(&mut self, row: Row, step: u64, size: f64, rate: f64, speed: f64, hours: f64) {
        let exp_rate = row.exp_rate.map(|rate| format!("{rate:.4}")).unwrap_or_default();
        let Row { epoch, loss, tokens, .. } = row;
        self.metrics.write(&format!(
            "{epoch},{step},{size},{rate:.3e},{loss:.4},{tokens:.4},{exp_rate},{speed:.2},{hours:.3}\n"
        ));
        self.rows.push(row);
    }

    /// How long the journals are, with all that waits to be written.
    pub fn written(&self) -> [u64; 2] {
        [self.log.length(), self.metrics.length()]
    }

    /// Writes what waits, the curves, the model and, last, the checkpoint that refers to them.
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

    /// Writes the best model so far; one that cannot be written waits for [`RunFolder::save`].
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

/// Why a run cannot go on by another recipe, if it cannot.
fn obstacle(old: &Recipe, new: &Recipe, epochs: usize) -> Option<String> {
    let other = |field: &str, why: &str| Some(format!("was begun with another {field}: {why}"));
    if old.model != new.model {
        return other("[model]", "its weights do not fit this recipe");
    }
    if old.optimizer.kind != new.optimizer.kind {
        return other("optimizer.kind", "what the optimiser remembers does not fit this recipe");
    }
    for (field, old, own) in [
        ("loss.symbols", old.loss.symbols, new.loss.symbols),
        ("optimizer.average", old.optimizer.average, new.optimizer.average),
    ] {
        if (old > 0.0) != (own > 0.0) {
            return other(field, "it may change, but neither to 0 nor from 0");
        }
    }
    (epochs > new.epochs).then(|| {
        format!("has done {epochs} epochs, more than the recipe's {}: choose another folder", new.epochs)
    })
}

fn checkpoint(path: &Path) -> PathBuf {
    path.join("checkpoint.safetensors")
}

fn parse_row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    Some(Row {
        epoch: cells.first()?.parse().ok()?,
        loss: cells.get(4)?.parse().ok()?,
        tokens: cells.get(5)?.parse().ok()?,
        exp_rate: cells.get(6)?.parse().ok(),
    })
}

/// The vocabulary and shape of a model with everything else a file needs.
pub fn model_file(
    recipe: &Recipe,
    vocab: &Vocab,
    checkpoint: &Checkpoint,
    provenance: comer::internal::model_file::Provenance,
) -> ModelFile {
    let memory = &checkpoint.memory;
    let weights = if memory.average.is_empty() { &checkpoint.weights } else { &memory.average };
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
