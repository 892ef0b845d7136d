//! The training loop, from the first step or from a checkpoint.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use comer::internal::model_file::Provenance;
use comer::internal::weights::tensor_specs;
use comer::internal::{ModelFile, Vocab};
use serde_json::json;

use crate::backend::Backend;
use crate::batches::{self, Batch};
use crate::checkpoint::{Checkpoint, EpochTotals};
use crate::curves::EpochMetrics;
use crate::error::{Error, Result};
use crate::initial::{presence_classifier, random_model, symbol_classifier};
use crate::optimizer;
use crate::recipe::{Recipe, ValidationSet};
use crate::run_folder::{RunFolder, model_file};
use crate::samples::{Sample, Samples};
use crate::validation::{ValidationResult, validate};

/// Training has diverged if the loss is this many times that of guessing (the logarithm of the vocabulary size).
const DIVERGED: f64 = 3.0;

/// The inputs of a training run.
pub struct Trainer<'a> {
    /// The configuration of the run.
    pub recipe: &'a Recipe,
    /// The vocabulary.
    pub vocab: &'a Vocab,
    /// Training and validation data.
    pub samples: &'a Samples,
    /// Computes gradients.
    pub backend: &'a mut dyn Backend,
    /// Where the output is written.
    /// None in a process that leaves the writing to another.
    pub folder: Option<RunFolder>,
    /// Set it to stop after the current step.
    pub stop: &'a AtomicBool,
    /// Provenance for the model files; the trainer adds its own entries.
    pub provenance: Provenance,
    /// CPU seconds that have been spent on this run, from any start.
    pub cpu_clock: &'a dyn Fn() -> f64,
}

/// Progress of a run, for callers that display it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A step is complete.
    Step {
        /// Completed epochs.
        epoch: usize,
        /// Completed and total batches of this epoch.
        batches: (usize, usize),
        /// Completed and total steps of the run.
        steps: (u64, u64),
        /// The mean loss of the epoch so far.
        loss: f64,
        /// The share of correct tokens in the epoch so far.
        tokens: f64,
        /// The learning rate.
        rate: f64,
        /// Pictures per second in this epoch.
        speed: f64,
    },
    /// An epoch is complete.
    Epoch {
        /// Its metrics.
        row: EpochMetrics,
        /// Pictures per second.
        speed: f64,
        /// Whether its ExpRate is the best so far.
        best: bool,
    },
    /// Something failed that will be tried again.
    Warning(String),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// True if all epochs are complete, false if the run was stopped.
    pub finished: bool,
    /// Completed epochs.
    pub epochs: usize,
    /// Completed steps.
    pub steps: u64,
    /// The best ExpRate (token match) of the validations at the last picture size.
    pub best: Option<f64>,
}

impl Trainer<'_> {
    /// The state before the first step.
    pub fn start(recipe: &Recipe, vocab: &Vocab) -> Result<Checkpoint> {
        let model = random_model(recipe.model.clone(), vocab.clone(), recipe.seed)?;
        let mut weights = model.weights;
        if recipe.loss.symbols > 0.0 {
            weights.extend(symbol_classifier(&recipe.model, vocab, recipe.seed));
        }
        if recipe.loss.presence > 0.0 {
            weights.extend(presence_classifier(&recipe.model, vocab, recipe.seed));
        }
        Ok(Checkpoint { weights, vocabulary: Some(vocab.tokens().to_vec()), ..Checkpoint::default() })
    }

    /// The state before the first step of a run that starts with the weights of a model instead of random ones.
    pub fn start_from(recipe: &Recipe, vocab: &Vocab, model: ModelFile) -> Result<Checkpoint, String> {
        if model.vocab != *vocab {
            return Err("has another vocabulary: the tokens would change their meaning".into());
        }
        let mut state = Self::start(recipe, vocab).map_err(|error| error.to_string())?;
        for spec in tensor_specs(&recipe.model, vocab.len()) {
            let tensor = model.weights.get(&spec.name);
            let tensor = tensor.filter(|tensor| tensor.shape == spec.shape).ok_or_else(|| {
                let found = tensor.map_or("no such tensor".into(), |tensor| format!("{:?}", tensor.shape));
                format!("{}: {found}, but [model] of the recipe needs {:?}", spec.name, spec.shape)
            })?;
            state.weights.insert(spec.name, tensor.clone());
        }
        Ok(state)
    }

    /// Trains from `state` to the last epoch of the recipe.
    pub fn run(mut self, mut state: Checkpoint, on_event: &mut dyn FnMut(Event)) -> Result<Outcome> {
        let lengths: Vec<usize> = (0..self.recipe.epochs)
            .map(|epoch| batches::plan(self.samples, self.recipe, epoch).len())
            .collect();
        let progress = &state.progress;
        if let Some(&length) = lengths.get(progress.epoch).filter(|&&length| progress.batch > length) {
            let reason = format!(
                "stopped after batch {} of an epoch that now has only {length}: the data or [batches] have changed",
                progress.batch
            );
            return Err(Error::Run { path: self.path(), reason });
        }
        self.check_start(state.progress.step)?;
        let accumulate = self.recipe.batches.accumulate;
        let steps = lengths.iter().map(|&length| length.div_ceil(accumulate) as u64).sum();
        let mut saved = Instant::now();
        self.save(&mut state)?;
        while state.progress.epoch < self.recipe.epochs && !self.stopped()? {
            let length = lengths[state.progress.epoch];
            self.epoch(&mut state, length, steps, &mut saved, on_event)?;
            if state.progress.batch == length {
                self.end_epoch(&mut state, steps, on_event)?;
                self.save_or_warn(&mut state, &mut saved, on_event);
            }
        }
        self.save(&mut state)?;
        Ok(Outcome {
            finished: state.progress.epoch == self.recipe.epochs,
            epochs: state.progress.epoch,
            steps: state.progress.step,
            best: state.progress.plateau.best,
        })
    }

    /// The run folder in messages.
    fn path(&self) -> PathBuf {
        self.folder.as_ref().map_or("the run folder".into(), |folder| folder.path().into())
    }

    /// Whether this or another process was told to stop.
    fn stopped(&mut self) -> Result<bool> {
        let mut told = [f64::from(self.stop.load(Ordering::Relaxed))];
        self.backend.add(&mut told)?;
        Ok(told[0] > 0.0)
    }

    /// Refuses to begin if another process begins elsewhere.
    fn check_start(&mut self, step: u64) -> Result<()> {
        let mut sum = [step as f64];
        self.backend.add(&mut sum)?;
        let processes = self.backend.share().processes;
        if sum[0] != step as f64 * processes as f64 {
            let reason = format!(
                "this process begins at step {step}, others elsewhere: the folder has to be on a file system that all of \
                 the {processes} processes share"
            );
            return Err(Error::Run { path: self.path(), reason });
        }
        Ok(())
    }

    /// Trains to the end of the current epoch, or until the run is stopped.
    fn epoch(
        &mut self,
        state: &mut Checkpoint,
        length: usize,
        steps: u64,
        saved: &mut Instant,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<()> {
        let (samples, recipe) = (self.samples, self.recipe);
        let mut group: Vec<Batch> = Vec::new();
        let (mut started, mut spent) = (Instant::now(), (self.cpu_clock)());
        let (first, accumulate, share) =
            (state.progress.batch, recipe.batches.accumulate, self.backend.share());
        let wanted = move |index: usize| {
            let number = (index - first) % accumulate;
            share.of(accumulate.min(length - (index - number))).contains(&number)
        };
        batches::for_each_batch(samples, recipe, state.progress.epoch, first, wanted, |index, batch| {
            group.push(batch);
            if group.len() < accumulate && index + 1 < length {
                return Ok(true);
            }
            let rate = recipe.schedule.rate_factor(state.progress.step, steps, &state.progress.plateau)
                * recipe.optimizer.rate;
            let [loss, symbol_loss, presence_loss] = self.step(state, &std::mem::take(&mut group), rate)?;
            state.progress.batch = index + 1;
            let seconds = started.elapsed().as_secs_f64();
            started = Instant::now();
            state.progress.totals.seconds += seconds;
            state.progress.seconds += seconds;
            let before = std::mem::replace(&mut spent, (self.cpu_clock)());
            state.progress.totals.cpu_seconds += spent - before;
            let progress = &state.progress;
            let mut line = json!({
                "step": progress.step, "epoch": progress.epoch, "loss": loss, "symbols": symbol_loss, "rate": rate,
                "pictures": progress.totals.pictures,
            });
            if recipe.loss.presence > 0.0 {
                line["presence"] = presence_loss.into();
            }
            if let Some(folder) = &mut self.folder {
                folder.log(&line);
            }
            on_event(Event::Step {
                epoch: progress.epoch,
                batches: (progress.batch, length),
                steps: (progress.step, steps),
                loss: progress.totals.loss / progress.totals.targets.max(1) as f64,
                tokens: progress.totals.correct as f64 / progress.totals.targets.max(1) as f64,
                rate,
                speed: progress.totals.pictures as f64 / progress.totals.seconds.max(1e-9),
            });
            if saved.elapsed().as_secs_f64() > 60.0 * recipe.checkpoint.minutes {
                self.save_or_warn(state, saved, on_event);
                started = Instant::now();
            }
            Ok(!self.stopped()?)
        })
    }

    /// One optimiser step with the mean gradient of a group of batches. Returns the mean loss, symbol loss and
    /// presence loss.
    fn step(&mut self, state: &mut Checkpoint, group: &[Batch], rate: f64) -> Result<[f64; 3]> {
        let first = state.progress.step * self.recipe.batches.accumulate as u64;
        let seed = self.recipe.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(first);
        let total = self.backend.step(&state.weights, group, seed)?.mean(group.len());
        let totals = &mut state.progress.totals;
        totals.loss += total.target_loss;
        totals.targets += total.targets;
        totals.correct += total.correct;
        totals.pictures += total.pictures;
        let loss = total.loss;
        let norm = optimizer::grad_norm(&total.gradients);
        self.check(state, loss, norm)?;
        state.weights.extend(total.running);
        state.optimizer.step(&self.recipe.optimizer, rate, &mut state.weights, &total.gradients, norm);
        state.optimizer.update_average(&self.recipe.optimizer, &state.weights);
        state.progress.step += 1;
        state.progress.exp_rate = None;
        Ok([loss, total.symbol_loss, total.presence_loss])
    }

    /// Fails if training has diverged, before the weights are updated.
    fn check(&self, state: &Checkpoint, loss: f64, norm: f64) -> Result<()> {
        let limit = DIVERGED * (self.vocab.len() as f64).ln();
        let reason = if !loss.is_finite() {
            format!("the loss is {loss}")
        } else if !norm.is_finite() {
            format!("the norm of the gradients is {norm}")
        } else if loss > limit {
            format!("the loss is {loss:.2}, above {limit:.2}")
        } else {
            return Ok(());
        };
        let kept = format!(
            "the last good state is in {}; try a lower rate, a longer warm-up or optimizer.clip",
            self.path().display()
        );
        Err(Error::Diverged { step: state.progress.step + 1, reason, kept })
    }

    fn end_epoch(
        &mut self,
        state: &mut Checkpoint,
        steps: u64,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<()> {
        let (started, spent) = (Instant::now(), (self.cpu_clock)());
        let recipe = self.recipe;
        let EpochTotals { loss, targets, correct, pictures, seconds, cpu_seconds } =
            std::mem::take(&mut state.progress.totals);
        let (epoch, size) = (state.progress.epoch + 1, recipe.size(state.progress.epoch));
        let last = epoch == recipe.epochs;
        let validated = match epoch.is_multiple_of(recipe.validation.every) || last {
            true => self.validate(state)?,
            false => None,
        };
        let exp_rate = validated.map(|validated| validated.exp_rate());
        (state.progress.epoch, state.progress.batch, state.progress.exp_rate) = (epoch, 0, exp_rate);
        if epoch > 1 && size != recipe.size(epoch - 2) {
            state.progress.plateau.reset();
        }
        let mut best = false;
        if let Some(rate) = exp_rate {
            best = state.progress.plateau.record(&recipe.schedule, rate, recipe.validation.every);
            let model = self.model(state);
            if best
                && let Some(folder) = &mut self.folder
                && let Err(error) = folder.save_best(model)
            {
                on_event(Event::Warning(format!(
                    "{error}: the best model will be written with the next checkpoint"
                )));
            }
        }
        state.progress.seconds += started.elapsed().as_secs_f64();
        let mut cpu_seconds = [cpu_seconds + (self.cpu_clock)() - spent];
        self.backend.add(&mut cpu_seconds)?;
        state.progress.cpu_seconds += cpu_seconds[0];
        let targets = targets.max(1) as f64;
        let row = EpochMetrics { epoch, loss: loss / targets, tokens: correct as f64 / targets, exp_rate };
        let rate = recipe.schedule.rate_factor(state.progress.step, steps, &state.progress.plateau)
            * recipe.optimizer.rate;
        let speed = pictures as f64 / seconds.max(1e-9);
        if let Some(folder) = &mut self.folder {
            folder.metrics(row, state.progress.step, size, rate, speed, state.progress.seconds / 3600.0);
        }
        on_event(Event::Epoch { row, speed, best });
        Ok(())
    }

    /// Reads the validation samples; several processes share them.
    fn validate(&mut self, state: &Checkpoint) -> Result<Option<ValidationResult>> {
        let recipe = self.recipe;
        let samples = match recipe.validation.on {
            ValidationSet::Training if recipe.validation.set.is_none() => &self.samples.training,
            _ => &self.samples.hold_out,
        };
        let count = match recipe.validation.pictures {
            0 => samples.len(),
            most => most.min(samples.len()),
        };
        if count == 0 {
            return Ok(None);
        }
        let model = self.model(state);
        let size = recipe.size(state.progress.epoch);
        let own = self.backend.share().of(count);
        let chosen: Vec<&Sample> = own.map(|index| &samples[index * samples.len() / count]).collect();
        let found = validate(model, &chosen, &recipe.search(), size)?;
        let mut counts = [found.pictures as f64, found.correct as f64];
        self.backend.add(&mut counts)?;
        Ok(Some(ValidationResult { pictures: counts[0] as usize, correct: counts[1] as usize }))
    }

    /// The model file of a state.
    fn model(&self, state: &Checkpoint) -> ModelFile {
        let mut provenance = self.provenance.clone();
        let progress = &state.progress;
        let sets: BTreeMap<&str, usize> =
            self.samples.sets.iter().map(|set| (&set.name[..], set.samples.len())).collect();
        for (key, value) in [
            ("epochs", json!(progress.epoch)),
            ("steps", json!(progress.step)),
            ("hours", json!((progress.seconds / 36.0).round() / 100.0)),
            ("cpu_hours", json!((progress.cpu_seconds / 36.0).round() / 100.0)),
            ("training_pictures", json!(self.samples.training.len())),
            ("training_sets", json!(sets)),
            ("hold_out_pictures", json!(self.samples.hold_out.len())),
            (self.recipe.validation.names().1, json!(progress.exp_rate)),
            ("recipe", json!(self.recipe)),
        ] {
            provenance.insert(key.into(), value);
        }
        model_file(self.recipe, self.vocab, state, provenance)
    }

    fn save(&mut self, state: &mut Checkpoint) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        state.progress.written = folder.written();
        state.progress.checksums = Some(folder.checksums());
        let model = self.model(state);
        self.folder.as_mut().map_or(Ok(()), |folder| folder.save(state, &model))
    }

    fn save_or_warn(&mut self, state: &mut Checkpoint, saved: &mut Instant, on_event: &mut dyn FnMut(Event)) {
        if let Err(error) = self.save(state) {
            on_event(Event::Warning(format!(
                "{error}: keeping the previous checkpoint, will try again later"
            )));
        }
        *saved = Instant::now();
    }
}
