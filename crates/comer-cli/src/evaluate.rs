//! `comer evaluate`: recognises a whole split and scores the answers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};

use crate::args::{ModelArgs, SearchArgs, ThreadArgs};
use crate::evaluation::Evaluation;
use crate::output::{message, print, print_json, report_json, report_table};

/// Recognize a whole split and score the answers: ExpRate by official label graphs, by label graphs of the captions, and
/// by tokens; and how much of the ink was left unread or read twice.
///
/// With --out, an interrupted evaluation resumes when the same command is run again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer evaluate --data crohme.zip --split 2014 --out runs/2014
  comer evaluate --data crohme.zip --split 2016 --take 100 --greedy
  comer evaluate --model fusion.safetensors --data data/2016 --json
  comer evaluate --photographs photos --greedy --out runs/photos")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArgs,
    /// CROHME folder or zip.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    #[cfg_attr(feature = "train", arg(required_unless_present = "photographs"))]
    #[cfg_attr(not(feature = "train"), arg(required = true))]
    data: Option<PathBuf>,
    /// Folder of `comer data photograph`: find and read the formulas of photographs instead.
    #[cfg(feature = "train")]
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    photographs: Option<PathBuf>,
    /// With --photographs: read all ink of a photograph as one formula.
    #[cfg(feature = "train")]
    #[arg(long, requires = "photographs")]
    one: bool,
    /// Split to evaluate: 2014, 2016, train, ...
    #[arg(long, default_value = "2014")]
    split: String,
    /// Evaluate only N formulas, evenly spread over the split.
    #[arg(long, value_name = "N")]
    take: Option<usize>,
    /// Write report.json, report.md, report.html and predictions.tsv to this folder; of photographs report.json and
    /// report.html.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    if arguments.take == Some(0) {
        bail!("--take 0: expected at least 1");
    }
    #[cfg(feature = "train")]
    if let Some(folder) = &arguments.photographs {
        let (search, recognizer) = (arguments.search.resolve(1)?, arguments.model.open()?);
        let report =
            crate::photographs::evaluate(&recognizer, folder, arguments.take, &search, !arguments.one)?;
        if let Some(folder) = &arguments.out {
            report.write(folder)?;
            message(folder.join("report.html").display());
        }
        if arguments.json {
            print_json(&serde_json::to_value(report)?)?
        } else {
            print(report.text())?
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(data) = &arguments.data else { bail!("--data: expected a folder or zip") };
    let evaluation = Evaluation {
        model: &arguments.model,
        data,
        split: &arguments.split,
        take: arguments.take,
        search: arguments.search.resolve(1)?,
        out: arguments.out.as_deref(),
        keep: false,
        stop: &AtomicBool::new(false),
    };
    let Some((report, _)) = evaluation.run()? else { return Ok(ExitCode::from(130)) };
    if let Some(folder) = &arguments.out {
        message(folder.join("report.html").display());
    }
    if arguments.json {
        print_json(&report_json(&report))?
    } else {
        print(report_table(&report))?
    }
    Ok(ExitCode::SUCCESS)
}
