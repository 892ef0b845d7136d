//! `comer ablate`: trains the four models of the paper under one budget and writes its tables and figure.

mod tables;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use comer::internal::Vocab;
use comer::internal::config::{Coverage, SearchConfig};
use comer::internal::dataset::Dataset;
use comer_eval::Report;
use comer_train::recipe::Recipe;
use comer_train::run_folder::{Resumed, RunFolder};
use comer_train::samples::Samples;
use comer_train::trainer::Trainer;
use serde_json::json;

use crate::args::{ModelArgs, ThreadArgs};
use crate::evaluation::Evaluation;
use crate::output::{message, print, report_json, warn, write_file};
use crate::training::{STOP, View, interrupt, open_backend, provenance, report_samples};

/// Train BTTR, Self, Cross and Fusion with the same budget and seed, evaluate each on the test sets, and write the
/// paper's tables, its figure of ExpRate by length, and the unread and reread ink of each model.
///
/// An interrupted ablation resumes when the same command is run again. The folder of each model contains its run and a
/// report per test set.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer ablate --data crohme.zip --out runs/ablation --epochs 30
  comer ablate --data crohme.zip --out runs/ablation --recipe configs/default.toml --device cuda:0
  comer ablate --data crohme.zip --ink inkml/train --out runs/two --recipe configs/ablation.toml --models bttr,fusion")]
pub struct Arguments {
    /// CROHME folder or zip with the training and test splits.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    data: PathBuf,
    /// Output folder: the runs, ablation.md, ablation.json and lengths.svg.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Epochs per run [default: the recipe's].
    #[arg(long, value_name = "N")]
    epochs: Option<NonZeroUsize>,
    /// Recipe for all models; only the coverage differs [default: the paper's].
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// Models to train.
    #[arg(long, value_delimiter = ',', default_value = "bttr,self,cross,fusion")]
    #[arg(value_parser = MODELS.map(|(name, _)| name))]
    models: Vec<String>,
    /// Folder of InkML files with the names of the images, for augmentation of the strokes.
    #[arg(long, value_name = "DIR")]
    ink: Vec<PathBuf>,
    /// Test splits; splits that are not in the data are skipped.
    #[arg(long, value_delimiter = ',', default_value = "2014,2016,2019")]
    test: Vec<String>,
    /// Device: cpu, cuda:0, cuda:0,cuda:1, wgpu.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// The paper's models, in the order of its table.
const MODELS: [(&str, Coverage); 4] = [
    ("bttr", Coverage::None),
    ("self", Coverage::SelfOnly),
    ("cross", Coverage::Cross),
    ("fusion", Coverage::Fusion),
];

/// The reports of a model, by test split.
pub struct ModelReports {
    pub name: &'static str,
    pub reports: Vec<(String, Report)>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let mut recipe = match &arguments.recipe {
        Some(path) => Recipe::open(path)?,
        None => Recipe::default(),
    };
    if let Some(epochs) = arguments.epochs {
        recipe.epochs = epochs.get();
    }
    let vocab = Vocab::crohme();
    let splits = Dataset::splits(&arguments.data)?;
    let tests: Vec<&String> = arguments.test.iter().filter(|test| splits.contains(test)).collect();
    if tests.is_empty() {
        bail!(
            "{}: has none of the test splits {:?}, expected some of {splits:?}",
            arguments.data.display(),
            arguments.test
        );
    }
    let samples = Samples::open(std::slice::from_ref(&arguments.data), &arguments.ink, &recipe, &vocab)?;
    report_samples(&samples);
    ctrlc::set_handler(interrupt).context("cannot handle Ctrl-C")?;
    let mut results = Vec::new();
    for (name, coverage) in
        MODELS.into_iter().filter(|(name, _)| arguments.models.iter().any(|own| own == name))
    {
        recipe.model.coverage = coverage;
        let folder = arguments.out.join(name);
        message(name);
        let trained = train(arguments, &recipe, &vocab, &samples, &folder)?;
        let reports = if trained { read(arguments, &folder, &tests)? } else { None };
        let Some(reports) = reports else {
            message("stopped; run the same command again to resume");
            return Ok(ExitCode::from(130));
        };
        results.push(ModelReports { name, reports });
    }
    let epochs = recipe.epochs;
    let table = tables::markdown(&results, epochs);
    write_file(&arguments.out.join("ablation.md"), table.as_bytes())?;
    write_file(&arguments.out.join("lengths.svg"), tables::lengths(&results).as_bytes())?;
    let figures = json!({ "epochs": epochs, "models": results.iter().map(figures).collect::<Vec<_>>() });
    write_file(&arguments.out.join("ablation.json"), format!("{figures:#}\n").as_bytes())?;
    let text = match arguments.json {
        true => format!("{figures:#}\n"),
        false => table,
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Trains one model, from its checkpoint if there is one; returns whether it finished.
fn train(
    arguments: &Arguments,
    recipe: &Recipe,
    vocab: &Vocab,
    samples: &Samples,
    folder: &Path,
) -> Result<bool> {
    let stop: &'static AtomicBool = &STOP;
    let mut backend = open_backend(&arguments.device, recipe, vocab)?;
    let start = Trainer::start(recipe, vocab)?;
    let (folder, state) = match folder.join("checkpoint.safetensors").exists() {
        true => {
            let Resumed { folder, state, notes } = RunFolder::resume(folder, recipe, &start)?;
            warn(&notes);
            (folder, state)
        }
        false => (RunFolder::create(folder, recipe, &recipe.to_toml())?, start),
    };
    let mut view = View::new(recipe);
    let trainer = Trainer {
        recipe,
        vocab,
        samples,
        backend: backend.as_mut(),
        folder: Some(folder),
        stop,
        provenance: provenance(std::slice::from_ref(&arguments.data), &arguments.ink),
    };
    let outcome = trainer.run(state, &mut |event| view.show(&event))?;
    view.clear();
    Ok(outcome.finished)
}

/// Evaluates the model of a run on the test splits; none if stopped from outside.
fn read(arguments: &Arguments, folder: &Path, tests: &[&String]) -> Result<Option<Vec<(String, Report)>>> {
    let best = folder.join("best.safetensors");
    let model = if best.exists() { best } else { folder.join("last.safetensors") };
    let model = ModelArgs { model: Some(model), ..ModelArgs::default() };
    let report = |test: &&String| {
        let evaluation = Evaluation {
            model: &model,
            data: &arguments.data,
            split: test,
            take: None,
            search: SearchConfig::default(),
            out: Some(&folder.join(test)),
            keep: true,
            stop: &STOP,
        };
        Ok(evaluation.run()?.map(|report| (test.to_string(), report)))
    };
    tests.iter().map(report).collect()
}

fn figures(result: &ModelReports) -> serde_json::Value {
    let sets: HashMap<&String, serde_json::Value> =
        result.reports.iter().map(|(test, report)| (test, report_json(report))).collect();
    json!({ "model": result.name, "sets": sets })
}
