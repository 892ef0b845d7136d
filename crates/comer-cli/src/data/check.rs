//! `comer data check`: statistics and faults of a data set.

#[cfg(feature = "train")]
mod strokes;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use comer::internal::Vocab;
use comer::internal::dataset::{Dataset, LabelledImage};
use comer::internal::image::{HEIGHT_LIMITS, WIDTH_LIMITS};
use comer_eval::{Dialect, LabelGraph};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::args::{ThreadArgs, read_vocab};
use crate::output::{Progress, print};

/// Check a data set in CROHME's layout: counts, sizes, broken files and captions, duplicates, leaks between splits.
///
/// The exit code is 1 if there are faults: unreadable files, captions that are empty, are not LaTeX or have unknown
/// tokens, repeated names, images of a shape that the network cannot take, or images that are in two splits. Images over
/// the size limits, which are scaled, and duplicates within a split are only reported.
///
/// For a stroke set (.jsonl), the records are checked, and that it shares no caption with --tests and no ink with --ink.
/// Ink is shared if half of an expression's curved strokes, and at least three, are in the same places.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data check crohme.zip
  comer data check sets/crohme.jsonl --tests crohme.zip --ink inkml/2014 --ink inkml/2016
  comer data check data --split train --split 2014 --json")]
pub struct Arguments {
    /// CROHME folder or zip, or a stroke set.
    #[arg(value_name = "DIR_OR_ZIP_OR_JSONL")]
    data: PathBuf,
    /// For a stroke set: CROHME folder or zip whose captions (except those of `train`) the set must not have.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    tests: Option<PathBuf>,
    /// For a stroke set: folder of InkML whose ink the set must not have; may be repeated.
    #[arg(long, value_name = "DIR")]
    ink: Vec<PathBuf>,
    /// Split to check; may be repeated [default: all].
    #[arg(long, value_name = "NAME")]
    split: Vec<String>,
    /// Vocabulary, one token per line [default: CROHME's 110].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// What was found in one split.
#[derive(Default)]
struct Findings {
    split: String,
    formulas: usize,
    broken: Vec<String>,
    unfitting: Vec<String>,
    repeated_names: Vec<String>,
    empty: Vec<String>,
    not_latex: Vec<String>,
    unknown_tokens: BTreeMap<String, Vec<String>>,
    over_size: Vec<String>,
    duplicates: Vec<String>,
    widths: Vec<usize>,
    heights: Vec<usize>,
    lengths: Vec<usize>,
    /// The first name of each picture, by the hash of its pixels.
    pictures: HashMap<u64, String>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let vocab = read_vocab(arguments.vocab.as_deref())?;
    if arguments.data.extension().is_some_and(|ending| ending == "jsonl") {
        #[cfg(feature = "train")]
        return strokes::run(arguments, &vocab);
        #[cfg(not(feature = "train"))]
        bail!("{}: this program was built without the feature `train`", arguments.data.display());
    }
    if arguments.tests.is_some() || !arguments.ink.is_empty() {
        bail!("--tests and --ink are for a stroke set: expected a file ending in .jsonl");
    }
    let splits =
        if arguments.split.is_empty() { Dataset::splits(&arguments.data)? } else { arguments.split.clone() };
    if splits.is_empty() {
        bail!("{}: no split, expected folders with caption.txt and img/", arguments.data.display());
    }
    let progress = Progress::new(splits.len());
    let mut found = Vec::new();
    for split in splits.into_iter().collect::<BTreeSet<_>>() {
        found.push(Findings::of(split.clone(), Dataset::open(&arguments.data, &split)?, &vocab)?);
        progress.advance();
    }
    drop(progress);
    let leaks = leaks(&found);
    let broken = !leaks.is_empty() || found.iter().any(Findings::is_broken);
    let text = if arguments.json {
        let splits: serde_json::Map<String, Value> =
            found.iter().map(|findings| (findings.split.clone(), findings.json())).collect();
        format!("{:#}\n", json!({ "broken": broken, "splits": splits, "leaks": leaks }))
    } else {
        table(&found, &leaks)
    };
    print(text)?;
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Findings {
    fn of(split: String, set: Dataset, vocab: &Vocab) -> comer::Result<Self> {
        let inspected: comer::Result<Vec<(u64, bool)>> = set.samples.par_iter().map(inspect).collect();
        let inspected = inspected?;
        let mut findings =
            Self { split, formulas: set.samples.len(), broken: set.problems, ..Self::default() };
        let mut captions: HashMap<&str, &str> = HashMap::new();
        for (sample, (hash, is_latex)) in set.samples.iter().zip(inspected) {
            let name = || sample.name.clone();
            if captions.insert(&sample.name, &sample.caption).is_some() {
                findings.repeated_names.push(name());
            }
            let (width, height) = (sample.image.width(), sample.image.height());
            if sample.image.fits().is_err() {
                findings.unfitting.push(format!("{}: {width} x {height}", sample.name));
            } else if width > WIDTH_LIMITS.1 || height > HEIGHT_LIMITS.1 {
                findings.over_size.push(format!("{}: {width} x {height}", sample.name));
            }
            if sample.caption.is_empty() {
                findings.empty.push(name());
            } else if !is_latex {
                findings.not_latex.push(format!("{}: {}", sample.name, sample.caption));
            }
            let unknown: BTreeSet<&str> =
                sample.caption.split_whitespace().filter(|token| vocab.encode(token).is_err()).collect();
            for token in unknown {
                findings.unknown_tokens.entry(token.into()).or_default().push(name());
            }
            if let Some(first) = findings.pictures.get(&hash) {
                let differ = captions.get(first.as_str()).is_some_and(|caption| *caption != sample.caption);
                let remark = if differ { ", captions differ" } else { "" };
                findings.duplicates.push(format!("{first} = {}{remark}", sample.name));
            } else {
                findings.pictures.insert(hash, name());
            }
            findings.widths.push(width);
            findings.heights.push(height);
            findings.lengths.push(sample.caption.split_whitespace().count());
        }
        for numbers in [&mut findings.widths, &mut findings.heights, &mut findings.lengths] {
            numbers.sort_unstable();
        }
        Ok(findings)
    }

    /// Faults that make the set unusable: the name of each kind and its cases.
    fn faults(&self) -> [(&'static str, Vec<String>); 6] {
        let unknown = |(token, names): (&String, &Vec<String>)| {
            format!("{token} in {} caption(s), such as {}", names.len(), names[0])
        };
        [
            ("broken files", self.broken.clone()),
            ("shapes that do not fit", self.unfitting.clone()),
            ("repeated names", self.repeated_names.clone()),
            ("empty captions", self.empty.clone()),
            ("captions not LaTeX", self.not_latex.clone()),
            ("unknown tokens", self.unknown_tokens.iter().map(unknown).collect()),
        ]
    }

    /// Findings that are not faults.
    fn remarks(&self) -> [(&'static str, Vec<String>); 2] {
        [("over the size limits", self.over_size.clone()), ("duplicates", self.duplicates.clone())]
    }

    fn is_broken(&self) -> bool {
        self.faults().iter().any(|(_, cases)| !cases.is_empty())
    }

    fn measures(&self) -> [(&'static str, &[usize]); 3] {
        [("width", &self.widths), ("height", &self.heights), ("tokens", &self.lengths)]
    }

    fn json(&self) -> Value {
        let mut object = json!({ "formulas": self.formulas });
        for (name, cases) in self.faults().into_iter().chain(self.remarks()) {
            object[name.replace(' ', "_").to_lowercase()] = json!(cases);
        }
        object["unknown_tokens"] = json!(self.unknown_tokens);
        for (name, numbers) in self.measures() {
            let [p5, p50, p95] = [5, 50, 95].map(|percent| percentile(numbers, percent));
            object[name] = json!({
                "mean": mean(numbers), "p5": p5, "p50": p50, "p95": p95, "greatest": numbers.last(),
            });
        }
        object
    }
}

/// The hash of a picture, and whether its caption is LaTeX.
fn inspect(sample: &LabelledImage) -> comer::Result<(u64, bool)> {
    let picture = sample.image.decode()?;
    let mut hasher = DefaultHasher::new();
    (picture.width(), picture.height(), picture.pixels()).hash(&mut hasher);
    let is_latex = LabelGraph::from_latex(&sample.caption, Dialect::Clean).is_ok();
    Ok((hasher.finish(), is_latex))
}

/// Pictures that are in two splits.
fn leaks(found: &[Findings]) -> Vec<String> {
    let mut leaks = Vec::new();
    for (index, one) in found.iter().enumerate() {
        for other in &found[index + 1..] {
            for (hash, name) in &one.pictures {
                if let Some(same) = other.pictures.get(hash) {
                    leaks.push(format!("{}/{name} = {}/{same}", one.split, other.split));
                }
            }
        }
    }
    leaks.sort();
    leaks
}

fn mean(numbers: &[usize]) -> f64 {
    numbers.iter().sum::<usize>() as f64 / numbers.len().max(1) as f64
}

/// The number that `percent` of the sorted numbers do not exceed.
fn percentile(numbers: &[usize], percent: usize) -> Option<usize> {
    let rank = (numbers.len() * percent).div_ceil(100).max(1);
    numbers.get(rank - 1).copied()
}

/// Cases of each kind in the table; the JSON has all.
const MAX_LISTED: usize = 5;

fn table(found: &[Findings], leaks: &[String]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut row = |name: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>14}")).collect();
        let _ = writeln!(text, "{name:<26}{cells}");
    };
    row("", found.iter().map(|findings| findings.split.clone()).collect());
    row("formulas", found.iter().map(|findings| findings.formulas.to_string()).collect());
    let columns: Vec<Vec<(&str, Vec<String>)>> = found
        .iter()
        .map(|findings| findings.faults().into_iter().chain(findings.remarks()).collect())
        .collect();
    let kinds = columns.first().map_or(0, Vec::len);
    for kind in 0..kinds {
        row(columns[0][kind].0, columns.iter().map(|column| column[kind].1.len().to_string()).collect());
    }
    for measure in 0..3 {
        let cell = |numbers: &[usize], percent| percentile(numbers, percent).unwrap_or(0).to_string();
        let name = found.first().map_or("", |findings| findings.measures()[measure].0);
        let numbers = || found.iter().map(|findings| findings.measures()[measure].1);
        row(&format!("{name}, mean"), numbers().map(|numbers| format!("{:.1}", mean(numbers))).collect());
        row(
            &format!("{name}, 5/50/95 %"),
            numbers().map(|numbers| [5, 50, 95].map(|percent| cell(numbers, percent)).join("/")).collect(),
        );
        row(&format!("{name}, greatest"), numbers().map(|numbers| cell(numbers, 100)).collect());
    }
    let _ = writeln!(text, "{:<26}{:>14}", "leaks between splits", leaks.len());
    let mut list = |heading: String, cases: &[String]| {
        if cases.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n{heading}");
        for case in cases.iter().take(MAX_LISTED) {
            let _ = writeln!(text, "  {case}");
        }
        if cases.len() > MAX_LISTED {
            let _ = writeln!(text, "  and {} more (--json lists all)", cases.len() - MAX_LISTED);
        }
    };
    for (findings, column) in found.iter().zip(&columns) {
        for (name, cases) in column {
            list(format!("{}: {name}", findings.split), cases);
        }
    }
    list("leaks between splits".into(), leaks);
    text
}
