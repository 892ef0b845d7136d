//! `comer train`: follows a recipe from random weights to a model, and goes on after any interruption.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comer::internal::Vocab;
use comer_train::backend::{self, Backend};
use comer_train::recipe::Recipe;
use comer_train::run_folder::RunFolder;
use comer_train::samples::Samples;
use comer_train::trainer::{Event, Outcome, Trainer};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::common::{read_vocab, use_threads};

/// Train a model by a recipe.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer train configs/default.toml --data crohme.zip --out runs/default
  comer train configs/default.toml --data crohme.zip --out runs/default --resume
  comer train configs/default.toml --data crohme.zip --ink inkml/train --out runs/ink
  comer train configs/default.toml --data crohme.zip --device cpu,cpu --out runs/two-networks
  comer train configs/bundled.toml --data sets --device cpu,cpu --out runs/bundled
  comer train configs/by-heart.toml --data crohme.zip --out runs/by-heart
  comer train configs/paper.toml --data crohme.zip --device cuda:0 --out runs/paper")]
pub struct Arguments {
    /// The recipe, a TOML file; configs/ has some.
    recipe: PathBuf,
    /// A CROHME zip or folder; several are learnt from together. For a recipe with [[data]], the folder of its sets.
    #[arg(long, value_name = "DIR_OR_ZIP", required = true)]
    data: Vec<PathBuf>,
    /// A folder of InkML files, whose names are those of the pictures, for variation of the strokes.
    #[arg(long, value_name = "DIR")]
    ink: Vec<PathBuf>,
    /// The run's folder: log, metrics, curves, models, checkpoint.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Go on from the run's checkpoint, exactly as if it had never stopped.
    #[arg(long)]
    resume: bool,
    /// Where to compute: cpu, or cuda:0 and wgpu if the program was built for them. Several, separated by commas,
    /// share the batches of each step; cpu,cpu is two networks with half of the threads each.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// The vocabulary, one token a line [default: CROHME's].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    /// Print how it ended as JSON.
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Set by Ctrl-C and by SIGTERM.
pub static STOP: AtomicBool = AtomicBool::new(false);

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    use_threads(arguments.threads)?;
    let text =
        std::fs::read_to_string(&arguments.recipe).with_context(|| arguments.recipe.display().to_string())?;
    let recipe = Recipe::open(&arguments.recipe)?;
    let vocab = read_vocab(arguments.vocab.as_deref())?;
    let mut backend = open_backend(&arguments.device, &recipe, &vocab)?;
    let samples = Samples::open(&arguments.data, &arguments.ink, &recipe, &vocab)?;
    tell(&samples);
    ctrlc::set_handler(interrupt).context("Ctrl-C cannot be watched")?;
    let (folder, state) = match arguments.resume {
        false => (RunFolder::create(&arguments.out, &recipe, &text)?, Trainer::start(&recipe, &vocab)?),
        true => RunFolder::resume(&arguments.out, &recipe, &vocab)?,
    };
    if arguments.resume {
        let place = &state.place;
        eprintln!("comer: going on after epoch {}, batch {}, step {}", place.epoch, place.batch, place.step);
    }
    let mut view = View::new(&recipe);
    let trainer = Trainer {
        recipe: &recipe,
        vocab: &vocab,
        samples: &samples,
        backend: backend.as_mut(),
        folder,
        stop: &STOP,
        provenance: provenance(&arguments.data, &arguments.ink),
    };
    let outcome = trainer.run(state, &mut |event| view.show(&event))?;
    view.clear();
    finish(arguments, &recipe, &outcome)
}

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
            "this program was built for cpu alone; build with --features wgpu or cuda for GPUs".into();
        Err(comer_train::Error::Device { name: name.into(), reason })
    };
    Ok(backend::by_name(devices, recipe, other)?)
}

/// Names what could not be used, and counts the rest.
pub fn tell(samples: &Samples) {
    for problem in &samples.problems {
        eprintln!("comer: {problem}");
    }
    let inks = samples.training.iter().filter(|sample| sample.ink.is_some()).count();
    eprintln!(
        "comer: {} pictures to learn from, {inks} of them with strokes, {} to validate with",
        samples.training.len(),
        samples.hold_out.len()
    );
    if samples.sets.len() > 1 {
        for set in &samples.sets {
            eprintln!("comer: {}: {}", set.name, set.samples.len());
        }
    }
}

pub fn interrupt() {
    // The second time, the user means it.
    if STOP.swap(true, Ordering::Relaxed) {
        std::process::exit(130);
    }
    eprintln!("comer: stopping after this step; once more to stop at once");
}

/// What the model file tells about its making.
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

fn finish(arguments: &Arguments, recipe: &Recipe, outcome: &Outcome) -> Result<ExitCode> {
    let Outcome { finished, epochs, steps, best } = outcome;
    let out = arguments.out.display();
    if arguments.json {
        let text = json!({ "run": out.to_string(), "finished": finished, "epochs": epochs, "steps": steps,
            recipe.validation.names().1: best });
        writeln!(std::io::stdout().lock(), "{text:#}")?;
    } else {
        writeln!(std::io::stdout().lock(), "{out}")?;
    }
    if *finished {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("comer: stopped after {steps} steps; --resume goes on from there");
    Ok(ExitCode::from(130))
}

/// Progress: a line that changes on a terminal, plain lines elsewhere.
pub struct View {
    bar: ProgressBar,
    epochs: usize,
    read: &'static str,
    terminal: bool,
    spoke: Instant,
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
            read: recipe.validation.names().0,
            terminal,
            spoke: Instant::now(),
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
                    "loss {loss:.3}, {:.1} % of tokens, rate {rate:.2e}, {speed:.1} pictures/s{}",
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
                } else if self.spoke.elapsed() > Duration::from_secs(60) {
                    self.spoke = Instant::now();
                    let (batch, all) = batches;
                    eprintln!("comer: {prefix}, batch {batch}/{all}, step {}/{}: {line}", steps.0, steps.1);
                }
            }
            Event::Epoch { row, speed, best } => {
                let exp_rate = row.exp_rate.map(|rate| {
                    let best = if *best { ", the best so far" } else { "" };
                    format!(", ExpRate (token match) of the {} {:.2} %{best}", self.read, 100.0 * rate)
                });
                if let Some(text) = &exp_rate {
                    self.exp_rate = text.clone();
                }
                let line = format!(
                    "comer: epoch {}/{} done: loss {:.3}, {:.1} % of tokens, {speed:.1} pictures/s{}",
                    row.epoch,
                    self.epochs,
                    row.loss,
                    100.0 * row.tokens,
                    exp_rate.unwrap_or_default()
                );
                self.bar.suspend(|| eprintln!("{line}"));
            }
            Event::Warning(text) => self.bar.suspend(|| eprintln!("comer: {text}")),
        }
    }
}
