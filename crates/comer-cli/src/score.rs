//! `comer score`: scores the predictions of any system.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use comer_eval::Report;
use comer_eval::run_folder::Run;

use crate::args::TruthArgs;
use crate::output::{message, print, print_json, report_json, report_table};

/// Score predictions of any system: ExpRate by official label graphs, by label graphs of the captions, and by tokens.
///
/// Predictions are a table (name, tab, LaTeX), the result.zip of the reference implementation, or a folder of .txt
/// files. A missing prediction, or one that is not LaTeX, counts as wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer score predictions.tsv --truth data/2014
  comer score result.zip --truth crohme.zip --split 2014 --out report
  comer score texts/ --truth symLg/ --truth caption.txt --json")]
pub struct Arguments {
    /// Predictions: a table, a zip or a folder.
    predictions: PathBuf,
    #[command(flatten)]
    truth: TruthArgs,
    /// Write report.json, report.md, report.html and predictions.tsv to this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder of images for the report: <name>.png or <name>.bmp.
    #[arg(long, value_name = "DIR", alias = "pictures")]
    images: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let truths = arguments.truth.read()?;
    let (scores, mut problems) = arguments.truth.score(&truths, &arguments.predictions)?;
    let report = Report::new(&scores);
    if let Some(folder) = &arguments.out {
        problems.extend(truths.problems);
        let title = arguments.predictions.display().to_string();
        let run = Run { title: &title, report: &report, scores: &scores, problems: &problems };
        run.write(folder, |name| image(arguments.images.as_deref()?, name))?;
        message(folder.join("report.html").display());
    }
    if arguments.json {
        print_json(&report_json(&report))?
    } else {
        print(report_table(&report))?
    }
    Ok(ExitCode::SUCCESS)
}

/// The bytes of an image file, if the folder has one of this name.
fn image(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let extensions = ["png", "bmp"].iter().filter(|_| comer_files::is_inside(name));
    extensions
        .map(|extension| folder.join(format!("{name}.{extension}")))
        .find_map(|path| comer_files::read(&path, comer_files::limit::INPUT).ok())
}
