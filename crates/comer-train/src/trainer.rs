//! The training loop, from the first step to the last, and from any checkpoint on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use comer::internal::model_file::Provenance;
use comer::internal::weights::{Weights, tensor_specs};
use comer::internal::{ModelFile, Vocab};
use rayon::prelude::*;
use serde_json::json;

use crate::backend::{Backend, BatchOutput};
use crate::batches::{self, Batch};
use crate::checkpoint::{Checkpoint, Tally};
use crate::curves::Row;
use crate::error::{Error, Result};
use crate::initial::{random_model, symbol_map};
use crate::optimizer;
use crate::recipe::{Recipe, ValidationSet};
use crate::run_folder::{RunFolder, model_file};
use crate::samples::{Sample, Samples};
use crate::validation::{Validated, validate};

/// A loss so far above that of guessing (the logarithm of the vocabulary) has exploded.
const EXPLODED: f64 = 3.0;

/// All that a training needs.
pub struct Trainer<'a> {
    /// What to do.
    pub recipe: &'a Recipe,
    /// The tokens.
    pub vocab: &'a Vocab,
    /// What to learn from.
    pub samples: &'a Samples,
    /// What computes gradients.
    pub backend: &'a mut dyn Backend,
    /// Where everything is written.
    pub folder: RunFolder,
    /// Set from outside to stop after the step that is under way.
    pub stop: &'a AtomicBool,
    /// What the model file tells about its making, besides what the trainer adds.
    pub provenance: Provenance,
}

/// What happens while training, for those who watch.
#[derive(Clone, Debug)]
pub enum Event {
    /// A step was taken.
    Step {
        /// Epochs done before.
        epoch: usize,
        /// Batches of this epoch done, and how many there are.
        batches: (usize, usize),
        /// Steps done in all, and how many there will be.
        steps: (u64, u64),
        /// The mean loss of the epoch so far.
        loss: f64,
        /// The share of tokens found in the epoch so far.
        tokens: f64,
        /// The rate.
        rate: f64,
        /// Pictures a second in this epoch.
        speed: f64,
    },
    /// An epoch has ended.
    Epoch {
        /// Its metrics.
        row: Row,
        /// Pictures a second.
        speed: f64,
        /// Whether its ExpRate is the best so far.
        best: bool,
    },
    /// Something that could not be done and will be tried again.
    Warning(String),
}

/// How a training ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether all epochs were done, or it was stopped from outside.
    pub finished: bool,
    /// Epochs done.
    pub epochs: usize,
    /// Steps done.
    pub steps: u64,
    /// The best ExpRate by token match on what is validated with, of those at the last size of the pictures.
    pub best: Option<f64>,
}

impl Trainer<'_> {
    /// The state before the first step.
    pub fn start(recipe: &Recipe, vocab: &Vocab) -> Result<Checkpoint> {
        let model = random_model(recipe.model.clone(), vocab.clone(), recipe.seed)?;
        let mut weights = model.weights;
        if recipe.loss.symbols > 0.0 {
            weights.extend(symbol_map(&recipe.model, vocab, recipe.seed));
        }
        Ok(Checkpoint { weights, ..Checkpoint::default() })
    }

    /// The state before the first step of a run that begins with the weights of a model instead of random ones.
    pub fn start_from(recipe: &Recipe, vocab: &Vocab, model: ModelFile) -> Result<Checkpoint, String> {
        if model.vocab != *vocab {
            return Err("has another vocabulary: its tokens would change their meaning".into());
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

    /// Trains from `state` to the recipe's last epoch.
    pub fn run(mut self, mut state: Checkpoint, watch: &mut dyn FnMut(Event)) -> Result<Outcome> {
        let lengths: Vec<usize> = (0..self.recipe.epochs)
            .map(|epoch| batches::plan(self.samples, self.recipe, epoch).len())
            .collect();
        let place = &state.place;
        if let Some(&length) = lengths.get(place.epoch).filter(|&&length| place.batch > length) {
            let reason = format!(
                "stopped after batch {} of an epoch that has only {length} now: the data or [batches] are others",
                place.batch
            );
            return Err(Error::Run { path: self.folder.path().into(), reason });
        }
        let accumulate = self.recipe.batches.accumulate;
        let steps = lengths.iter().map(|&length| length.div_ceil(accumulate) as u64).sum();
        let mut saved = Instant::now();
        self.save(&mut state)?;
        while state.place.epoch < self.recipe.epochs && !self.stopped() {
            let length = lengths[state.place.epoch];
            self.epoch(&mut state, length, steps, &mut saved, watch)?;
            if state.place.batch == length {
                self.end_epoch(&mut state, steps, watch)?;
                self.save_or_warn(&mut state, &mut saved, watch);
            }
        }
        self.save(&mut state)?;
        Ok(Outcome {
            finished: state.place.epoch == self.recipe.epochs,
            epochs: state.place.epoch,
            steps: state.place.step,
            best: state.place.plateau.best,
        })
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The rest of an epoch, or up to where the training was stopped.
    fn epoch(
        &mut self,
        state: &mut Checkpoint,
        length: usize,
        steps: u64,
        saved: &mut Instant,
        watch: &mut dyn FnMut(Event),
    ) -> Result<()> {
        let (samples, recipe) = (self.samples, self.recipe);
        let mut group: Vec<Batch> = Vec::new();
        let mut began = Instant::now();
        batches::each(samples, recipe, state.place.epoch, state.place.batch, |place, batch| {
            group.push(batch);
            if group.len() < recipe.batches.accumulate && place + 1 < length {
                return Ok(true);
            }
            let rate =
                recipe.schedule.share(state.place.step, steps, &state.place.plateau) * recipe.optimizer.rate;
            let (loss, symbols) = self.step(state, &std::mem::take(&mut group), rate)?;
            state.place.batch = place + 1;
            let seconds = began.elapsed().as_secs_f64();
            began = Instant::now();
            state.place.tally.seconds += seconds;
            state.place.seconds += seconds;
            let place = &state.place;
            self.folder.log(&json!({
                "step": place.step, "epoch": place.epoch, "loss": loss, "symbols": symbols, "rate": rate,
                "pictures": place.tally.pictures,
            }));
            watch(Event::Step {
                epoch: place.epoch,
                batches: (place.batch, length),
                steps: (place.step, steps),
                loss: place.tally.loss / place.tally.answers.max(1) as f64,
                tokens: place.tally.correct as f64 / place.tally.answers.max(1) as f64,
                rate,
                speed: place.tally.pictures as f64 / place.tally.seconds.max(1e-9),
            });
            if saved.elapsed().as_secs_f64() > 60.0 * recipe.checkpoint.minutes {
                self.save_or_warn(state, saved, watch);
                began = Instant::now();
            }
            Ok(!self.stopped())
        })
    }

    /// One step: the mean gradient of a group of batches. Answers their mean losses, the second one that of the symbols.
    fn step(&mut self, state: &mut Checkpoint, group: &[Batch], rate: f64) -> Result<(f64, f64)> {
        let first = state.place.step * self.recipe.batches.accumulate as u64;
        let seed = self.recipe.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(first);
        let steps = self.backend.batches(&state.weights, group, seed)?;
        let tally = &mut state.place.tally;
        for (step, batch) in steps.iter().zip(group) {
            tally.loss += step.loss * step.answers as f64;
            tally.answers += step.answers;
            tally.correct += step.correct;
            tally.pictures += batch.pictures.len();
        }
        let total = mean(steps);
        let loss = total.loss;
        let length = optimizer::length(&total.gradients);
        self.check(state, loss, length)?;
        state.weights.extend(total.running);
        state.memory.step(&self.recipe.optimizer, rate, &mut state.weights, &total.gradients, length);
        state.memory.follow(&self.recipe.optimizer, &state.weights);
        state.place.step += 1;
        state.place.exp_rate = None;
        Ok((loss, total.symbols))
    }

    /// Refuses a step that would spoil the weights.
    fn check(&self, state: &Checkpoint, loss: f64, length: f64) -> Result<()> {
        let limit = EXPLODED * (self.vocab.len() as f64).ln();
        let reason = if !loss.is_finite() {
            format!("the loss is {loss}")
        } else if !length.is_finite() {
            format!("the gradients' length is {length}")
        } else if loss > limit {
            format!("the loss is {loss:.2}, above {limit:.2}: it has exploded")
        } else {
            return Ok(());
        };
        let kept = format!(
            "the last good state is in {}; try a lower rate, a longer warm-up or optimizer.clip",
            self.folder.path().display()
        );
        Err(Error::Diverged { step: state.place.step + 1, reason, kept })
    }

    fn end_epoch(&mut self, state: &mut Checkpoint, steps: u64, watch: &mut dyn FnMut(Event)) -> Result<()> {
        let began = Instant::now();
        let recipe = self.recipe;
        let Tally { loss, answers, correct, pictures, seconds } = std::mem::take(&mut state.place.tally);
        let (epoch, size) = (state.place.epoch + 1, recipe.size(state.place.epoch));
        let last = epoch == recipe.epochs;
        let validated = match epoch.is_multiple_of(recipe.validation.every) || last {
            true => self.validate(state)?,
            false => None,
        };
        let exp_rate = validated.map(|validated| validated.exp_rate());
        (state.place.epoch, state.place.batch, state.place.exp_rate) = (epoch, 0, exp_rate);
        if epoch > 1 && size != recipe.size(epoch - 2) {
            state.place.plateau.forget();
        }
        let mut best = false;
        if let Some(rate) = exp_rate {
            best = state.place.plateau.note(&recipe.schedule, rate, recipe.validation.every);
            if best && let Err(error) = self.folder.save_best(self.model(state)) {
                watch(Event::Warning(format!("{error}: the best model waits for the next checkpoint")));
            }
        }
        state.place.seconds += began.elapsed().as_secs_f64();
        let answers = answers.max(1) as f64;
        let row = Row { epoch, loss: loss / answers, tokens: correct as f64 / answers, exp_rate };
        let rate =
            recipe.schedule.share(state.place.step, steps, &state.place.plateau) * recipe.optimizer.rate;
        let speed = pictures as f64 / seconds.max(1e-9);
        self.folder.metrics(row, state.place.step, size, rate, speed, state.place.seconds / 3600.0);
        watch(Event::Epoch { row, speed, best });
        Ok(())
    }

    fn validate(&self, state: &Checkpoint) -> Result<Option<Validated>> {
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
        let size = recipe.size(state.place.epoch);
        let chosen: Vec<&Sample> = (0..count).map(|index| &samples[index * samples.len() / count]).collect();
        Ok(Some(validate(model, &chosen, &recipe.search(), size)?))
    }

    /// The model as it would be used.
    fn model(&self, state: &Checkpoint) -> ModelFile {
        let mut provenance = self.provenance.clone();
        let place = &state.place;
        let sets: BTreeMap<&str, usize> =
            self.samples.sets.iter().map(|set| (&set.name[..], set.samples.len())).collect();
        for (key, value) in [
            ("epochs", json!(place.epoch)),
            ("steps", json!(place.step)),
            ("hours", json!((place.seconds / 36.0).round() / 100.0)),
            ("training_pictures", json!(self.samples.training.len())),
            ("training_sets", json!(sets)),
            ("hold_out_pictures", json!(self.samples.hold_out.len())),
            (self.recipe.validation.names().1, json!(place.exp_rate)),
            ("recipe", json!(self.recipe)),
        ] {
            provenance.insert(key.into(), value);
        }
        model_file(self.recipe, self.vocab, state, provenance)
    }

    fn save(&mut self, state: &mut Checkpoint) -> Result<()> {
        state.place.written = self.folder.written();
        let model = self.model(state);
        self.folder.save(state, &model)
    }

    fn save_or_warn(&mut self, state: &mut Checkpoint, saved: &mut Instant, watch: &mut dyn FnMut(Event)) {
        if let Err(error) = self.save(state) {
            watch(Event::Warning(format!("{error}: the last checkpoint stays, the next one is tried later")));
        }
        *saved = Instant::now();
    }
}

/// The mean of the losses, gradients and running statistics of the batches of a step, of which there is at least one.
fn mean(mut steps: Vec<BatchOutput>) -> BatchOutput {
    let share = (steps.len() as f32).recip();
    let mut total = steps.remove(0);
    let add = |sums: &mut Weights, parts: fn(&BatchOutput) -> &Weights| {
        sums.par_iter_mut().for_each(|(name, sum)| {
            for step in &steps {
                sum.data.iter_mut().zip(&parts(step)[name].data).for_each(|(sum, x)| *sum += x);
            }
            sum.data.iter_mut().for_each(|x| *x *= share);
        });
    };
    add(&mut total.gradients, |step| &step.gradients);
    add(&mut total.running, |step| &step.running);
    for step in &steps {
        total.loss += step.loss;
        total.symbols += step.symbols;
    }
    total.loss *= f64::from(share);
    total.symbols *= f64::from(share);
    total
}
