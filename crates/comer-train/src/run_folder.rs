//! The folder of a run: recipe, log, metrics, curves, models and checkpoint.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use comer::internal::model_file::Precision;
use comer::internal::weights::tensor_specs;
use comer::internal::{ModelFile, Vocab};
use comer_files::{Journal, Lock, limit, write_atomic};
use crc32fast::Hasher;

use crate::checkpoint::Checkpoint;
use crate::curves::{EpochMetrics, svg};
use crate::error::{Error, Result};
use crate::recipe::Recipe;

/// The files of a run. Only one process at a time can use a run folder.
pub struct RunFolder {
    path: PathBuf,
    log: CheckedJournal,
    metrics: CheckedJournal,
    rows: Vec<EpochMetrics>,
    /// The best model, as long as it could not be written.
    best: Option<ModelFile>,
    _lock: Lock,
}

/// A resumed run.
pub struct Resumed {
    /// Its folder.
    pub folder: RunFolder,
    /// Its state.
    pub state: Checkpoint,
    /// What is not as it was, for the user: values of the recipe, missing files.
    pub notes: Vec<String>,
}

const HEADER: &str = "epoch,step,size,rate,loss,tokens_found,exp_rate,pictures_per_second,hours\n";

impl RunFolder {
    /// Fails if another process trains in this folder, which need not exist.
    pub fn check_unused(path: &Path) -> Result<()> {
        match path.join(".lock").exists() {
            true => lock(path).map(drop),
            false => Ok(()),
        }
    }

    /// Creates the folder of a new run.
    pub fn create(path: &Path, recipe: &Recipe, recipe_text: &str) -> Result<Self> {
        fs::create_dir_all(path).map_err(failed(path))?;
        let lock = lock(path)?;
        if checkpoint(path).exists() {
            return Err(wrong(
                path,
                "already contains a run: continue it with --resume, or choose another folder",
            ));
        }
        write(&path.join("recipe.toml"), recipe_text.as_bytes())?;
        write(&path.join("resolved.toml"), recipe.to_toml().as_bytes())?;
        let mut folder = Self {
            path: path.into(),
            log: CheckedJournal::create(path.join("log.jsonl"))?,
            metrics: CheckedJournal::create(path.join("metrics.csv"))?,
            rows: Vec::new(),
            best: None,
            _lock: lock,
        };
        folder.metrics.write(HEADER);
        Ok(folder)
    }

    /// Opens the folder of a run to resume it. `start` is the state before the first step, whose vocabulary and shapes the
    /// checkpoint must have. The recipe may differ in everything that the checkpoint does not depend on.
    pub fn resume(path: &Path, recipe: &Recipe, start: &Checkpoint) -> Result<Resumed> {
        if !checkpoint(path).exists() {
            return Err(wrong(path, "contains no checkpoint to resume: start without --resume"));
        }
        let lock = lock(path)?;
        let (state, old) = Self::state(path, recipe, start)?;
        let mut notes = recipe.changes(&old);
        let [log, metrics] = [("log.jsonl", 0), ("metrics.csv", 1)].map(|(name, number)| {
            let length = state.progress.written[number];
            let checksum = state.progress.checksums.map(|checksums| checksums[number]);
            CheckedJournal::resume(path.join(name), length, checksum)
        });
        let (log, mut metrics) = (log?, metrics?);
        for journal in [&log, &metrics] {
            if journal.is_new {
                notes.push(format!("{} is missing: a new one begins", journal.journal.path().display()));
            }
        }
        let text =
            comer_files::read_text(&path.join("metrics.csv"), comer_files::limit::TEXT).unwrap_or_default();
        let rows = text.lines().skip(1).filter_map(parse_row).collect();
        if metrics.is_new {
            metrics.write(HEADER);
        }
        write(&path.join("resolved.toml"), recipe.to_toml().as_bytes())?;
        let folder = Self { path: path.into(), log, metrics, rows, best: None, _lock: lock };
        Ok(Resumed { folder, state, notes })
    }

    /// The state of a run that another process resumes, and the recipe that it was saved with. Arguments as for
    /// [`RunFolder::resume`].
    pub fn state(path: &Path, recipe: &Recipe, start: &Checkpoint) -> Result<(Checkpoint, Recipe)> {
        let place = checkpoint(path);
        let mut state = Checkpoint::open(&place)?;
        let old = Recipe::open_stored(&path.join("resolved.toml"))?;
        if let Some(reason) = incompatibility(&old, recipe, state.progress.epoch) {
            return Err(wrong(path, reason));
        }
        if state.vocabulary.is_none() {
            // Format 1 has none, but the model that was written with it has.
            state.vocabulary = Some(ModelFile::open(path.join("last.safetensors"))?.vocab.tokens().to_vec());
        }
        if state.vocabulary != start.vocabulary {
            let reason = "was started with another vocabulary: the tokens would change their meaning";
            return Err(wrong(path, reason));
        }
        state.check(start).map_err(|reason| wrong(&place, reason))?;
        Ok((state, old))
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
        [&self.log, &self.metrics].map(|journal| journal.journal.length())
    }

    /// CRC-32 of the log and the metrics, including lines that are not flushed yet.
    pub fn checksums(&self) -> [u32; 2] {
        [&self.log, &self.metrics].map(|journal| journal.hasher.clone().finalize())
    }

    /// Flushes log and metrics, writes the curves and the model, and last the checkpoint, which refers to them.
    pub fn save(&mut self, checkpoint_: &Checkpoint, model: &ModelFile) -> Result<()> {
        self.log.flush()?;
        self.metrics.flush()?;
        self.flush_best()?;
        write(&self.path.join("curves.svg"), svg(&self.path.display().to_string(), &self.rows).as_bytes())?;
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

/// A journal whose content is known by its checksum.
struct CheckedJournal {
    journal: Journal,
    hasher: Hasher,
    /// Whether it replaces a file that is missing.
    is_new: bool,
}

impl CheckedJournal {
    fn create(path: PathBuf) -> Result<Self> {
        let journal = Journal::open(&path, 0).map_err(failed(&path))?;
        Ok(Self { journal, hasher: Hasher::new(), is_new: false })
    }

    /// Opens a journal as a checkpoint knows it: its first `length` bytes. A missing file is begun again; one that is not as
    /// it was is an error.
    fn resume(path: PathBuf, length: u64, checksum: Option<u32>) -> Result<Self> {
        let text = match comer_files::read(&path, limit::LINES) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { is_new: true, ..Self::create(path)? });
            }
            text => text.map_err(failed(&path))?,
        };
        let changed = |found: String| {
            let hint = "restore it, or remove it and a new one begins";
            wrong(&path, format!("{found}: it is not the file of this checkpoint; {hint}"))
        };
        let known = usize::try_from(length).ok().and_then(|length| text.get(..length));
        let known = known.ok_or_else(|| changed(format!("has {} bytes, expected {length}", text.len())))?;
        let mut hasher = Hasher::new();
        hasher.update(known);
        let found = hasher.clone().finalize();
        if checksum.is_some_and(|checksum| checksum != found) {
            return Err(changed("was changed".into()));
        }
        Ok(Self { journal: Journal::open(&path, length).map_err(failed(&path))?, hasher, is_new: false })
    }

    fn write(&mut self, text: &str) {
        self.hasher.update(text.as_bytes());
        self.journal.write(text);
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = self.journal.flush();
        flushed.map_err(failed(self.journal.path()))
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |reason| Error::File { path: path.into(), reason }
}

fn wrong(path: &Path, reason: impl Into<String>) -> Error {
    Error::Run { path: path.into(), reason: reason.into() }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic(path, bytes).map_err(failed(path))
}

fn lock(path: &Path) -> Result<Lock> {
    Lock::acquire(&path.join(".lock")).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            wrong(path, "is in use by another training: wait for it, or choose another folder")
        }
        _ => failed(path)(error),
    })
}

/// Why a run cannot be resumed with another recipe, if it cannot.
fn incompatibility(old: &Recipe, new: &Recipe, epochs: usize) -> Option<String> {
    let other = |field: &str, why: &str| Some(format!("was started with another {field}: {why}"));
    if old.model != new.model {
        return other("[model]", "the weights do not fit this recipe");
    }
    if old.seed != new.seed {
        return other("seed", "the order of the samples and the hold-out would change");
    }
    if old.optimizer.kind != new.optimizer.kind {
        return other("optimizer.kind", "the optimiser state does not fit this recipe");
    }
    for (field, old, new) in [
        ("loss.symbols", old.loss.symbols, new.loss.symbols),
        ("loss.presence", old.loss.presence, new.loss.presence),
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
