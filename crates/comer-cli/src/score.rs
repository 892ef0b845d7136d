//! `comer score`: predictions of any system against the truth, by the official figures.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use comer_eval::files::{Truths, read_predictions, read_truths};
use comer_eval::run_folder::Run;
use comer_eval::score::{FileScore, Protocol, score};
use comer_eval::{Dialect, Report};

/// Score predictions of any system: ExpRate by the official label graphs, by the captions' own, and by tokens.
///
/// Reads a table (name, tab, LaTeX), the result.zip of the reference, or a folder of .txt files. A prediction that is
/// missing or is not LaTeX counts as wrong, and nothing else is lost.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer score predictions.tsv --truth data/2014
  comer score result.zip --truth crohme.zip --split 2014 --out report
  comer score texts/ --truth symLg/ --truth caption.txt --json")]
pub struct Arguments {
    /// The predictions: a table, a zip or a folder.
    predictions: PathBuf,
    #[command(flatten)]
    truth: TruthArguments,
    /// Write report.json, report.md, report.html and predictions.tsv into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The folder of the pictures for the report, one <name>.bmp or <name>.png for each formula.
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// What predictions are scored against.
#[derive(clap::Args)]
pub struct TruthArguments {
    /// Captions, a folder of .lg files, or a CROHME folder or zip with both; may be given several times.
    #[arg(long, value_name = "CAPTIONS_OR_LG", required = true)]
    truth: Vec<PathBuf>,
    /// The set to take from a folder or zip with several: 2014, 2016.
    #[arg(long)]
    split: Option<String>,
    /// Read captions as the official tools do, their bugs included. The official protocol always does.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    strict_official: bool,
}

impl TruthArguments {
    /// Reads the truth; what could not be read is named on stderr.
    pub fn read(&self) -> Result<Truths> {
        let mut truths = Truths::default();
        for path in &self.truth {
            truths.merge(read_truths(path, self.split.as_deref())?);
        }
        warn(&truths.problems);
        Ok(truths)
    }

    /// Reads and scores predictions; what could not be read is named on stderr and given back.
    pub fn score(&self, truths: &Truths, predictions: &Path) -> Result<(Vec<FileScore>, Vec<String>)> {
        let found = read_predictions(predictions)?;
        warn(&found.problems);
        if !truths.truths.iter().any(|truth| found.by_name.contains_key(&truth.name)) {
            bail!(
                "{}: none of its {} names is one of the {} of the truth, such as {:?}",
                predictions.display(),
                found.by_name.len(),
                truths.truths.len(),
                truths.truths.first().map_or("", |truth| &truth.name),
            );
        }
        let dialect = if self.strict_official { Dialect::Official } else { Dialect::Clean };
        Ok((score(&truths.truths, &found.by_name, dialect), found.problems))
    }
}

fn warn(problems: &[String]) {
    for problem in problems {
        eprintln!("comer: {problem}");
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let truths = arguments.truth.read()?;
    let (scores, mut problems) = arguments.truth.score(&truths, &arguments.predictions)?;
    let report = Report::new(&scores);
    if let Some(folder) = &arguments.out {
        problems.extend(truths.problems);
        let title = arguments.predictions.display().to_string();
        let run = Run { title: &title, report: &report, scores: &scores, problems: &problems };
        run.write(folder, |name| picture(arguments.pictures.as_deref()?, name))?;
        eprintln!("comer: {}", folder.join("report.html").display());
    }
    let text = if arguments.json { format!("{:#}\n", json(&report)) } else { table(&report) };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The bytes of a picture, if the folder has one of this name.
fn picture(folder: &Path, name: &str) -> Option<Vec<u8>> {
    ["png", "bmp"].iter().find_map(|ending| std::fs::read(folder.join(format!("{name}.{ending}"))).ok())
}

/// The figures without what only a report has room for.
pub fn json(report: &Report) -> serde_json::Value {
    serde_json::json!({
        "files": report.files,
        "missing": report.missing,
        "unreadable": report.unreadable,
        "official": report.official,
        "caption": report.caption,
        "token": report.token,
        "token_error_rate": report.token_error_rate,
        "bleu4": report.bleu4,
        "symbols": report.symbols,
        "ink": report.ink,
    })
}

/// The figures as the paper's table has them.
pub fn table(report: &Report) -> String {
    let mut text = format!(
        "{} files, {} without a prediction, {} not LaTeX\n\n{:<16}{:>9}{:>9}{:>9}{:>9}{:>11}\n",
        report.files, report.missing, report.unreadable, "", "ExpRate", "<= 1", "<= 2", "<= 3", "structure"
    );
    for protocol in Protocol::ALL {
        if let Some(rates) = report.rates(protocol) {
            text += &format!(
                "{:<16}{:>9.2}{:>9.2}{:>9.2}{:>9.2}{:>11.2}\n",
                protocol.name(),
                rates.exp_rate,
                rates.le1,
                rates.le2,
                rates.le3,
                rates.structure
            );
        }
    }
    text.push('\n');
    for sentence in report.sentences() {
        text += &format!("{sentence}\n");
    }
    text
}
