//! `comer ablate`: trains the models of several recipes with several seeds under one budget, evaluates them, and writes the
//! tables and the figure of the paper.

mod cpu_share;
mod finished;
mod lengths;
mod page;
mod paper;
mod tables;

use std::collections::HashSet;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use comer::internal::config::{Coverage, DecoderKind, SearchConfig};
use comer::internal::dataset::Dataset;
use comer::internal::{ModelFile, Vocab};
use comer_eval::Report;
use comer_eval::score::FileScore;
use comer_files::Lock;
use comer_train::recipe::Recipe;
use comer_train::run_folder::{Resumed, RunFolder};
use comer_train::samples::Samples;
use comer_train::trainer::Trainer;

use self::cpu_share::CpuShare;
use self::finished::RunResult;
use crate::args::{ModelArgs, ThreadArgs};
use crate::evaluation::Evaluation;
use crate::output::{message, print, warn, write_file};
use crate::training::{STOP, View, interrupt, open_backend, provenance, report_samples};

/// Train the models of several recipes with the same budget, evaluate each on the test sets, and write the paper's tables
/// with confidence intervals, its figure of ExpRate by length, and the unread and reread ink of each model.
///
/// Each recipe is a row. A recipe can be trained as BTTR, Self, Cross and Fusion (--models), and every row with several seeds.
/// The tables are written after every run. An interrupted ablation resumes when the same command is run again. Several processes
/// with the same command and a common output folder, on several machines or started by mpirun, share the runs: each run is trained by
/// the first that gets to it. The folder of each run contains its model, its log and a report per test set. A finished run is recorded
/// in result.json; with the answers.tsv of each test set it is all that the tables need.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer ablate --data crohme.zip --out runs/ablation --epochs 30
  comer ablate --data crohme.zip --out runs/ablation --recipe configs/default.toml --device cuda:0
  comer ablate --data crohme.zip --ink inkml/train --out runs/two --recipe configs/ablation.toml --models bttr,fusion --seeds 1,2
  comer ablate --data crohme.zip --out runs/table --recipe configs/bttr.toml --recipe configs/paper.toml --recipe configs/densewap.toml \\
    --budget configs/ablation-budget.toml --device cpu,cpu
  mpirun -n 4 comer ablate --data crohme.zip --out runs/table --seeds 1,2 --threads 1")]
pub struct Arguments {
    /// CROHME folder or zip with the training and test splits.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    data: PathBuf,
    /// Folder or zip with the test splits, if it is not that of --data.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    test_data: Option<PathBuf>,
    /// Output folder: the runs, ablation.md, ablation.html, ablation.json and lengths.svg.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Epochs per run [default: the recipe's].
    #[arg(long, value_name = "N")]
    epochs: Option<NonZeroUsize>,
    /// Recipe of a row, or of one row for each of --models; may be repeated [default: the paper's].
    #[arg(long, value_name = "FILE")]
    recipe: Vec<PathBuf>,
    /// Values that replace those of every recipe, so that the rows have the same budget: sections and keys as in a recipe.
    #[arg(long, value_name = "FILE", requires = "recipe")]
    budget: Option<PathBuf>,
    /// Models to train with each recipe, which differ in coverage alone [default: all four with one recipe, with several the
    /// model of each].
    #[arg(long, value_delimiter = ',', value_parser = paper::MODELS.map(|(name, _)| name))]
    models: Vec<String>,
    /// Seeds to train each row with [default: the recipe's].
    #[arg(long, value_delimiter = ',', value_name = "N")]
    seeds: Vec<u64>,
    /// Folder of InkML files with the names of the images, for augmentation of the strokes.
    #[arg(long, value_name = "DIR")]
    ink: Vec<PathBuf>,
    /// Test splits; splits that are not in the data are skipped.
    #[arg(long, value_delimiter = ',', default_value = "2014,2016,2019")]
    test: Vec<String>,
    /// Devices: cpu, cuda:0, cuda:0,cuda:1, wgpu.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Runs at the same time, which share the devices (as many for each) and the threads.
    #[arg(long, default_value = "1", value_name = "N")]
    jobs: NonZeroUsize,
    /// Train nothing: write the tables of the runs that have finished.
    #[arg(long)]
    finished: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// A recipe to train, with all seeds.
struct Row {
    name: String,
    recipe: Recipe,
}

/// A run that is to be trained.
struct Wanted {
    row: usize,
    /// With the seed of the run.
    recipe: Recipe,
    folder: PathBuf,
}

/// A finished run.
struct Run<'a> {
    row: usize,
    seed: u64,
    folder: &'a Path,
    result: RunResult,
    /// A report and the score of every file for each test split.
    tests: Vec<(String, Report, Vec<FileScore>)>,
}

/// A row of the tables: the runs of a recipe.
pub struct RowResult {
    pub name: String,
    pub parameters: usize,
    /// Range of the scale augmentation.
    pub scale: [f64; 2],
    /// The mean of its runs, by the clock.
    pub hours: f64,
    /// The mean of its runs, where it is known of all.
    pub cpu_hours: Option<f64>,
    pub seeds: Vec<u64>,
    pub tests: Vec<TestResult>,
}

/// The runs of a row on a test split.
pub struct TestResult {
    pub test: String,
    /// One per seed.
    pub reports: Vec<Report>,
    pub scores: Vec<Vec<FileScore>>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let rows = rows(arguments)?;
    let data = arguments.test_data.as_ref().unwrap_or(&arguments.data);
    let splits = Dataset::splits(data)?;
    let tests: Vec<&String> = arguments.test.iter().filter(|test| splits.contains(test)).collect();
    if tests.is_empty() {
        let path = data.display();
        bail!("{path}: has none of the test splits {:?}, expected some of {splits:?}", arguments.test);
    }
    let devices: Vec<&str> = arguments.device.split(',').collect();
    let jobs = arguments.jobs.get();
    if !devices.len().is_multiple_of(jobs) {
        bail!("--jobs {jobs}: {} devices cannot be shared equally, expected a divisor", devices.len());
    }
    let mut seeds = HashSet::new();
    if let Some(seed) = arguments.seeds.iter().find(|seed| !seeds.insert(**seed)) {
        bail!("--seeds: {seed} stands there twice, expected different seeds");
    }
    ctrlc::set_handler(interrupt).context("cannot handle Ctrl-C")?;

    let wanted = wanted(arguments, &rows);
    let finished = || finished_runs(&wanted, data, &tests);
    if !arguments.finished {
        train_all(arguments, &wanted, &devices, &|run, own, clock| {
            Ok(run_one(arguments, run, (own, clock), data, &tests)? && {
                // One process after the other, the last one with all runs that have finished.
                let _lock = wait_for_lock(&arguments.out.join(".tables"))?;
                write_tables(&arguments.out, &collect(&rows, &finished()?))?;
                true
            })
        })?;
    }
    let runs = finished()?;
    let done: HashSet<&Path> = runs.iter().map(|run| run.folder).collect();
    let missing: Vec<String> = wanted
        .iter()
        .filter(|run| !done.contains(run.folder.as_path()))
        .map(|run| format!("{}, seed {}", rows[run.row].name, run.recipe.seed))
        .collect();
    let results = collect(&rows, &runs);
    write_tables(&arguments.out, &results)?;
    if STOP.load(Ordering::Relaxed) {
        message("stopped; run the same command again to resume");
        return Ok(ExitCode::from(130));
    }
    if !missing.is_empty() {
        let place =
            if arguments.finished { "not finished" } else { "not finished, but in use by another process" };
        message(format_args!("{place}: {}", missing.join("; ")));
        if let Some(first) = results.first().filter(|first| first.name != rows[0].name) {
            message(format_args!("differences are to {}, since {} is missing", first.name, rows[0].name));
        }
        if !arguments.finished {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let text = match arguments.json {
        true => format!("{:#}\n", tables::json(&results)),
        false => tables::markdown(&results),
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// All rows with their first seed, then all with their second.
fn wanted(arguments: &Arguments, rows: &[Row]) -> Vec<Wanted> {
    let seeds = |row: &Row| match arguments.seeds.is_empty() {
        true => vec![row.recipe.seed],
        false => arguments.seeds.clone(),
    };
    let most = rows.iter().map(|row| seeds(row).len()).max().unwrap_or(0);
    let numbers = (0..most).flat_map(|number| (0..rows.len()).map(move |row| (row, number)));
    let run = |(row, number): (usize, usize)| {
        let Row { name, recipe } = &rows[row];
        let seed = *seeds(&rows[row]).get(number)?;
        let folder = match arguments.seeds.len() {
            0 => arguments.out.join(name),
            _ => arguments.out.join(name).join(format!("seed-{seed}")),
        };
        Some(Wanted { row, recipe: Recipe { seed, ..recipe.clone() }, folder })
    };
    numbers.filter_map(run).collect()
}

/// Trains what has not finished, several runs at a time, each by the first process that gets to it. `run` says whether a run
/// has finished.
fn train_all(
    arguments: &Arguments,
    wanted: &[Wanted],
    devices: &[&str],
    run: &(impl Fn(&Wanted, &str, &(dyn Fn() -> f64 + Sync)) -> Result<bool> + Sync),
) -> Result<()> {
    let jobs = arguments.jobs.get();
    let (next, cpu) = (AtomicUsize::new(0), CpuShare::new(jobs));
    let threads = (rayon::current_num_threads() / jobs).max(1);
    let job = |number: usize, devices: &[&str]| -> Result<()> {
        let clock = || cpu.seconds(number);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        while let Some(wanted) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            if finished::read(&wanted.folder, &wanted.recipe)?.is_some() {
                continue;
            }
            let Some(_claim) = claim(&wanted.folder)? else { continue };
            // The process that had it may have finished it meanwhile.
            if finished::read(&wanted.folder, &wanted.recipe)?.is_none()
                && !pool.install(|| run(wanted, &devices.join(","), &clock))?
            {
                return Ok(());
            }
        }
        Ok(())
    };
    // A run that fails stops the others after their step.
    let job = |number: usize, own: &[&str]| {
        let outcome = job(number, own).inspect_err(|_| STOP.store(true, Ordering::Relaxed));
        cpu.end(number);
        outcome
    };
    std::thread::scope(|scope| {
        let job = &job;
        let shares = devices.chunks(devices.len() / jobs).enumerate();
        let jobs: Vec<_> = shares.map(|(number, own)| scope.spawn(move || job(number, own))).collect();
        let joined =
            jobs.into_iter().map(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.fold(Ok(()), Result::and)
    })
}

/// Reserves a run for this process; none if another one has it.
fn claim(folder: &Path) -> Result<Option<Lock>> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(".claim");
    match Lock::acquire(&path) {
        Err(reason) if reason.kind() == ErrorKind::WouldBlock => Ok(None),
        lock => Ok(Some(lock.with_context(|| path.display().to_string())?)),
    }
}

/// Takes a lock that other processes have for a second at most.
fn wait_for_lock(path: &Path) -> Result<Lock> {
    loop {
        match Lock::acquire(path) {
            Err(reason) if reason.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(100));
            }
            lock => return lock.with_context(|| path.display().to_string()),
        }
    }
}

/// The runs that have finished, whichever process trained them.
fn finished_runs<'a>(wanted: &'a [Wanted], data: &Path, tests: &[&String]) -> Result<Vec<Run<'a>>> {
    let mut runs = Vec::new();
    for Wanted { row, recipe, folder } in wanted {
        if let Some(result) = finished::read(folder, recipe)? {
            let tests = result.scores(folder, data, tests)?;
            runs.push(Run { row: *row, seed: recipe.seed, folder, result, tests });
        }
    }
    Ok(runs)
}

fn write_tables(folder: &Path, results: &[RowResult]) -> Result<()> {
    let lengths = lengths::svg(results);
    write_file(&folder.join("ablation.md"), tables::markdown(results).as_bytes())?;
    write_file(&folder.join("lengths.svg"), lengths.as_bytes())?;
    write_file(&folder.join("ablation.html"), page::html(results, &lengths).as_bytes())?;
    write_file(&folder.join("ablation.json"), format!("{:#}\n", tables::json(results)).as_bytes())
}

/// The rows that the arguments ask for, with different names.
fn rows(arguments: &Arguments) -> Result<Vec<Row>> {
    let mut recipes = Vec::new();
    for path in &arguments.recipe {
        let name =
            path.file_stem().map_or_else(|| "recipe".into(), |stem| stem.to_string_lossy().into_owned());
        let recipe = match &arguments.budget {
            Some(budget) => Recipe::open_with(path, budget)?,
            None => Recipe::open(path)?,
        };
        recipes.push((name, recipe));
    }
    if recipes.is_empty() {
        recipes.push(("paper".into(), Recipe::default()));
    }
    let all = || paper::MODELS.map(|(name, _)| name.to_string()).to_vec();
    let models = match (arguments.models.is_empty(), recipes.len()) {
        (true, 1) => all(),
        _ => arguments.models.clone(),
    };
    let alone = recipes.len() == 1;
    let mut rows = Vec::new();
    for (name, mut recipe) in recipes {
        if let Some(epochs) = arguments.epochs {
            recipe.epochs = epochs.get();
        }
        // The models differ in the coverage of the transformer, which a GRU decoder does not have.
        if models.is_empty() || recipe.model.decoder != DecoderKind::Transformer {
            rows.push(Row { name, recipe });
            continue;
        }
        for model in &models {
            let coverage = paper::MODELS.iter().find(|(known, _)| known == model);
            let mut recipe = recipe.clone();
            recipe.model.coverage = coverage.map_or(Coverage::Fusion, |(_, coverage)| *coverage);
            let name = if alone { model.clone() } else { format!("{name}-{model}") };
            rows.push(Row { name, recipe });
        }
    }
    let mut names = HashSet::new();
    if let Some(row) = rows.iter().find(|row| !names.insert(row.name.as_str())) {
        bail!("--recipe: two rows are named {:?}, expected files of different names", row.name);
    }
    Ok(rows)
}

/// Trains and evaluates one run; returns whether it finished.
fn run_one(
    arguments: &Arguments,
    Wanted { recipe, folder, .. }: &Wanted,
    (devices, cpu_clock): (&str, &dyn Fn() -> f64),
    data: &Path,
    tests: &[&String],
) -> Result<bool> {
    message(format_args!("{}", folder.display()));
    if STOP.load(Ordering::Relaxed) || !train(arguments, recipe, (devices, cpu_clock), folder)? {
        return Ok(false);
    }
    let best = folder.join("best.safetensors");
    let path = if best.exists() { best } else { folder.join("last.safetensors") };
    let file = ModelFile::open(&path)?;
    let parameters = comer::internal::weights::parameter_count(&file.config, file.vocab.len());
    let last = ModelFile::open(folder.join("last.safetensors"))?;
    let hours =
        ["hours", "cpu_hours"].map(|key| last.provenance.get(key).and_then(serde_json::Value::as_f64));
    let model = ModelArgs { model: Some(path), ..ModelArgs::default() };
    for &test in tests {
        let evaluation = Evaluation {
            model: &model,
            data,
            split: test,
            take: None,
            search: SearchConfig { language_model: false, ..SearchConfig::default() },
            out: Some(&folder.join(test)),
            keep: true,
            stop: &STOP,
        };
        if evaluation.run()?.is_none() {
            return Ok(false);
        }
    }
    finished::write(folder, recipe, parameters, hours, tests)?;
    Ok(true)
}

/// Trains one model, from its checkpoint if there is one; returns whether it finished.
fn train(
    arguments: &Arguments,
    recipe: &Recipe,
    (devices, cpu_clock): (&str, &dyn Fn() -> f64),
    folder: &Path,
) -> Result<bool> {
    let stop: &'static AtomicBool = &STOP;
    let vocab = &Vocab::crohme();
    let samples = &Samples::open(std::slice::from_ref(&arguments.data), &arguments.ink, recipe, vocab)?;
    report_samples(samples);
    let mut backend = open_backend(devices, recipe, vocab)?;
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
        cpu_clock,
    };
    let outcome = trainer.run(state, &mut |event| view.show(&event))?;
    view.clear();
    Ok(outcome.finished)
}

/// The runs by row, in the order of rows and seeds. Rows without a run are left out.
fn collect(rows: &[Row], runs: &[Run]) -> Vec<RowResult> {
    let result = |(index, row): (usize, &Row)| {
        let mut own: Vec<&Run> = runs.iter().filter(|run| run.row == index).collect();
        own.sort_by_key(|run| run.seed);
        let cpu_hours: Option<f64> = own.iter().map(|run| run.result.cpu_hours).sum();
        let tests = own.first()?.tests.iter().enumerate().map(|(place, (test, ..))| TestResult {
            test: test.clone(),
            reports: own.iter().map(|run| run.tests[place].1.clone()).collect(),
            scores: own.iter().map(|run| run.tests[place].2.clone()).collect(),
        });
        Some(RowResult {
            name: row.name.clone(),
            parameters: own.first()?.result.parameters,
            scale: row.recipe.augmentation.scale,
            hours: own.iter().map(|run| run.result.hours).sum::<f64>() / own.len() as f64,
            cpu_hours: cpu_hours.map(|hours| hours / own.len() as f64),
            seeds: own.iter().map(|run| run.seed).collect(),
            tests: tests.collect(),
        })
    };
    rows.iter().enumerate().filter_map(result).collect()
}
