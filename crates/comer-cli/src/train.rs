//! `comer train`: trains a model with a recipe, and resumes after interruption.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use comer::internal::ModelFile;
use comer_train::recipe::Recipe;
use comer_train::run_folder::{Resumed, RunFolder};
use comer_train::samples::Samples;
use comer_train::trainer::{Outcome, Trainer};
use serde_json::json;

use crate::args::{ThreadArgs, read_vocab};
use crate::clock::cpu_time;
use crate::output::{message, print, print_json, warn};
use crate::ranks::Ranks;
use crate::training::{STOP, View, interrupt, open_backend, provenance, report_samples};

/// Train a model with a recipe.
///
/// Ctrl-C stops after the current step; --resume continues exactly as if the run had not been interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer train configs/default.toml --data crohme.zip --out runs/default
  comer train configs/default.toml --data crohme.zip --out runs/default --resume
  comer train configs/default.toml --data crohme.zip --ink inkml/train --out runs/ink
  comer train configs/default.toml --data crohme.zip --device cpu,cpu --out runs/two-networks
  comer train configs/bundled.toml --data sets --device cpu,cpu --out runs/bundled
  comer train configs/further.toml --data crohme.zip --from model.safetensors --out runs/further
  comer train configs/overfit.toml --data crohme.zip --out runs/overfit
  comer train configs/paper.toml --data crohme.zip --device cuda:0 --out runs/paper
  mpirun -n 4 comer train configs/paper.toml --data crohme.zip --out runs/four-processes")]
pub struct Arguments {
    /// Recipe (TOML); examples are in configs/.
    recipe: PathBuf,
    /// CROHME folder or zip; may be repeated. For a recipe with [[data]], the folder of its sets.
    #[arg(long, value_name = "DIR_OR_ZIP", required = true)]
    data: Vec<PathBuf>,
    /// Folder of InkML files with the names of the images, for augmentation of the strokes.
    #[arg(long, value_name = "DIR")]
    ink: Vec<PathBuf>,
    /// Run folder: log, metrics, curves, models, checkpoint.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Resume from the checkpoint in the run folder.
    #[arg(long)]
    resume: bool,
    /// Start with the weights of a model file instead of random ones. Vocabulary and shape must match the recipe.
    #[arg(long, value_name = "MODEL", conflicts_with = "resume")]
    from: Option<PathBuf>,
    /// Device: cpu, or wgpu and cuda:0 if the program was built with these features. Several devices, separated by
    /// commas, share the batches of each step; cpu,cpu runs two networks with half of the threads each.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Vocabulary, one token per line [default: CROHME's].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let began = Instant::now();
    let ranks = Ranks::join()?;
    ranks.finish(train(arguments, &ranks), began.elapsed().as_secs_f64())
}

fn train(arguments: &Arguments, ranks: &Ranks) -> Result<ExitCode> {
    let text = comer_files::read_text(&arguments.recipe, comer_files::limit::RECIPE)
        .with_context(|| arguments.recipe.display().to_string())?;
    let recipe = Recipe::open(&arguments.recipe)?;
    let vocab = read_vocab(arguments.vocab.as_deref())?;
    if ranks.is_first() {
        // Before the data is read, which takes a while.
        RunFolder::check_unused(&arguments.out)?;
    }
    let backend = open_backend(&arguments.device, &recipe, &vocab)?;
    let mut backend = ranks.share(backend, recipe.batches.accumulate);
    let samples = Samples::open(&arguments.data, &arguments.ink, &recipe, &vocab)?;
    if ranks.is_first() {
        report_samples(&samples);
    }
    ctrlc::set_handler(interrupt).context("cannot handle Ctrl-C")?;
    let mut provenance = provenance(&arguments.data, &arguments.ink);
    // A resumed run keeps the provenance of the model that it started from.
    if let Ok(model) = ModelFile::open(arguments.out.join("last.safetensors"))
        && let Some(from) = model.provenance.get("from")
        && arguments.resume
    {
        provenance.insert("from".into(), from.clone());
    }
    let start = match &arguments.from {
        Some(path) => {
            let model = ModelFile::open(path)?;
            provenance.insert("from".into(), json!(model.provenance));
            let state = Trainer::start_from(&recipe, &vocab, model);
            state.map_err(|reason| anyhow!("{}: {reason}", path.display()))?
        }
        None => Trainer::start(&recipe, &vocab)?,
    };
    let out = &arguments.out;
    let (folder, state) = match (ranks.is_first(), arguments.resume) {
        (true, false) => (Some(RunFolder::create(out, &recipe, &text)?), start),
        (true, true) => {
            let Resumed { folder, state, notes } = RunFolder::resume(out, &recipe, &start)?;
            warn(&notes);
            (Some(folder), state)
        }
        // The first process writes.
        (false, false) => (None, start),
        (false, true) => (None, RunFolder::state(out, &recipe, &start)?.0),
    };
    if arguments.resume && ranks.is_first() {
        let progress = &state.progress;
        message(format_args!(
            "resuming after epoch {}, batch {}, step {}",
            progress.epoch, progress.batch, progress.step
        ));
    }
    let mut view = View::new(&recipe);
    let trainer = Trainer {
        recipe: &recipe,
        vocab: &vocab,
        samples: &samples,
        backend: backend.as_mut(),
        folder,
        stop: &STOP,
        provenance,
        cpu_clock: &|| cpu_time().as_secs_f64(),
    };
    let outcome = trainer.run(state, &mut |event| {
        if ranks.is_first() {
            view.show(&event);
        }
    })?;
    view.clear();
    if !ranks.is_first() {
        return Ok(if outcome.finished { ExitCode::SUCCESS } else { ExitCode::from(130) });
    }
    finish(arguments, &recipe, &outcome)
}

fn finish(arguments: &Arguments, recipe: &Recipe, outcome: &Outcome) -> Result<ExitCode> {
    let Outcome { finished, epochs, steps, best } = outcome;
    let out = arguments.out.display();
    if arguments.json {
        let text = json!({ "run": out.to_string(), "finished": finished, "epochs": epochs, "steps": steps,
            recipe.validation.names().1: best });
        print_json(&text)?;
    } else {
        print(format_args!("{out}\n"))?;
    }
    if *finished {
        return Ok(ExitCode::SUCCESS);
    }
    message(format_args!("stopped after {steps} steps; --resume continues from here"));
    Ok(ExitCode::from(130))
}
