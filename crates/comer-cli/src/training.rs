//! Parts of training that `train` and `ablate` share: devices, interruption, progress.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use comer::internal::Vocab;
use comer_train::backend::{self, Backend};
use comer_train::recipe::Recipe;
use comer_train::samples::Samples;
use comer_train::trainer::Event;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::output::{message, warn};

/// Set by Ctrl-C and by SIGTERM.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// The backend for a list of devices.
pub fn open_backend(devices: &str, recipe: &Recipe, vocab: &Vocab) -> Result<Box<dyn Backend>> {
    #[cfg(feature = "burn")]
    let other = |name: &str| -> comer_train::Result<Box<dyn Backend>> {
        let device = comer_burn::device(name)?;
        Ok(Box::new(comer_burn::BurnBackend::new(recipe, vocab.clone(), &device)))
    };
    #[cfg(not(feature = "burn"))]
    let other = |name: &str| -> comer_train::Result<Box<dyn Backend>> {
        let _ = vocab;
        let reason =
            "this program was built for the CPU only; build with --features wgpu or cuda for GPUs".into();
        Err(comer_train::Error::Device { name: name.into(), reason })
    };
    Ok(backend::by_name(devices, recipe, other)?)
}

/// Reports the samples, and what could not be used, on stderr.
pub fn report_samples(samples: &Samples) {
    warn(&samples.problems);
    let inks = samples.training.iter().filter(|sample| sample.ink.is_some()).count();
    message(format_args!(
        "{} training samples, {inks} of them with strokes; {} validation samples",
        samples.training.len(),
        samples.hold_out.len()
    ));
    if samples.sets.len() > 1 {
        for set in &samples.sets {
            message(format_args!("{}: {} samples", set.name, set.samples.len()));
        }
    }
}

/// Handles Ctrl-C: the first stops after the current step, the second at once.
pub fn interrupt() {
    if STOP.swap(true, Ordering::Relaxed) {
        std::process::exit(130);
    }
    message("stopping after this step; press Ctrl-C again to stop at once");
}

/// The provenance that is stored in model files.
pub fn provenance(data: &[PathBuf], ink: &[PathBuf]) -> comer::internal::model_file::Provenance {
    let names = |paths: &[PathBuf]| -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        paths.iter().filter_map(name).collect()
    };
    let mut provenance = comer::internal::model_file::Provenance::new();
    provenance.insert("program".into(), json!(concat!("comer ", env!("CARGO_PKG_VERSION"))));
    provenance.insert("data".into(), json!(names(data)));
    provenance.insert("ink".into(), json!(names(ink)));
    provenance
}

/// Shows progress on stderr: a bar on a terminal, a line per minute elsewhere.
pub struct View {
    bar: ProgressBar,
    epochs: usize,
    validated: &'static str,
    terminal: bool,
    last_line: Instant,
    exp_rate: String,
}

impl View {
    pub fn new(recipe: &Recipe) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} steps, {eta} left\n{msg}");
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self {
            bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            epochs: recipe.epochs,
            validated: recipe.validation.names().0,
            terminal,
            last_line: Instant::now(),
            exp_rate: String::new(),
        }
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    pub fn show(&mut self, event: &Event) {
        match event {
            Event::Step { epoch, batches, steps, loss, tokens, rate, speed } => {
                let line = format!(
                    "loss {loss:.3}, {:.1} % of tokens, rate {rate:.2e}, {speed:.1} images/s{}",
                    100.0 * tokens,
                    self.exp_rate
                );
                let prefix = format!("epoch {}/{}", epoch + 1, self.epochs);
                if self.terminal {
                    if self.bar.length() != Some(steps.1) {
                        self.bar.set_length(steps.1);
                        self.bar.set_position(steps.0);
                        self.bar.reset_eta();
                    }
                    self.bar.set_position(steps.0);
                    self.bar.set_prefix(prefix);
                    self.bar.set_message(line);
                } else if self.last_line.elapsed() > Duration::from_secs(60) {
                    self.last_line = Instant::now();
                    let (batch, all) = batches;
                    let (step, steps) = steps;
                    message(format_args!("{prefix}, batch {batch}/{all}, step {step}/{steps}: {line}"));
                }
            }
            Event::Epoch { row, speed, best } => {
                let exp_rate = row.exp_rate.map(|rate| {
                    let best = if *best { ", the best so far" } else { "" };
                    format!(", ExpRate (token match) of the {} {:.2} %{best}", self.validated, 100.0 * rate)
                });
                if let Some(text) = &exp_rate {
                    self.exp_rate = text.clone();
                }
                let line = format!(
                    "epoch {}/{} done: loss {:.3}, {:.1} % of tokens, {speed:.1} images/s{}",
                    row.epoch,
                    self.epochs,
                    row.loss,
                    100.0 * row.tokens,
                    exp_rate.unwrap_or_default()
                );
                self.bar.suspend(|| message(line));
            }
            Event::Warning(text) => self.bar.suspend(|| message(text)),
        }
    }
}
