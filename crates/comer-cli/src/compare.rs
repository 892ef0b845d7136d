//! `comer compare`: compares the predictions of two runs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use comer_eval::bootstrap::{Comparison, compare_runs};
use comer_eval::score::{FileScore, Protocol};

use crate::args::TruthArgs;
use crate::output::{print, print_json};

/// Compare the predictions of two runs: both ExpRates, a confidence interval of the difference, and every formula that
/// only one run has right.
///
/// The interval is the 95 % bootstrap interval over 10 000 resamplings of the files, with a fixed seed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer compare before.tsv after.tsv --truth data/2014
  comer compare runs/fusion runs/cross --truth crohme.zip --split 2014 --json")]
pub struct Arguments {
    /// First run: predictions as a table, a zip or a folder, or a report folder.
    before: PathBuf,
    /// Second run.
    after: PathBuf,
    #[command(flatten)]
    truth: TruthArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let truths = arguments.truth.read()?;
    let (before, _) = arguments.truth.score(&truths, &arguments.before)?;
    let (after, _) = arguments.truth.score(&truths, &arguments.after)?;
    let compared = Protocol::ALL.map(|protocol| compare_runs(&before, &after, protocol));
    if arguments.json {
        let [official, caption, token] = &compared;
        print_json(&serde_json::json!({ "official": official, "caption": caption, "token": token }))?;
    } else {
        print(table(&compared) + &flips(&compared, &before, &after))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(compared: &[Option<Comparison>; 3]) -> String {
    let mut text = format!(
        "{:<16}{:>9}{:>9}{:>12}{:>18}{:>8}{:>7}\n",
        "ExpRate", "before", "after", "difference", "95 % interval", "gained", "lost"
    );
    for (protocol, comparison) in Protocol::ALL.iter().zip(compared) {
        if let Some(comparison) = comparison {
            let [low, high] = comparison.interval;
            let _ = writeln!(
                text,
                "{:<16}{:>9.2}{:>9.2}{:>+12.2}{:>18}{:>8}{:>7}",
                protocol.name(),
                comparison.before,
                comparison.after,
                comparison.after - comparison.before,
                format!("{low:+.2} to {high:+.2}"),
                comparison.gained.len(),
                comparison.lost.len()
            );
        }
    }
    text
}

/// The formulas that only one run has right, by the first protocol available.
fn flips(compared: &[Option<Comparison>; 3], before: &[FileScore], after: &[FileScore]) -> String {
    let Some((protocol, comparison)) =
        Protocol::ALL.iter().zip(compared).find_map(|(protocol, found)| Some((protocol, found.as_ref()?)))
    else {
        return String::new();
    };
    let by_name = |scores| -> HashMap<&str, &FileScore> {
        let scores: &[FileScore] = scores;
        scores.iter().map(|score| (score.name.as_str(), score)).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let mut text = String::new();
    for (heading, names) in [("gained", &comparison.gained), ("lost", &comparison.lost)] {
        if !names.is_empty() {
            let _ = write!(text, "\n{heading} ({})\n", protocol.name());
        }
        for name in names {
            let prediction = |scores: &HashMap<&str, &FileScore>| {
                scores.get(name.as_str()).and_then(|score| score.prediction.clone())
            };
            let _ = writeln!(text, "{name}");
            if let Some(caption) = before.get(name.as_str()).and_then(|score| score.caption.as_ref()) {
                let _ = writeln!(text, "  truth   {caption}");
            }
            let _ = writeln!(text, "  before  {}", prediction(&before).unwrap_or_default());
            let _ = writeln!(text, "  after   {}", prediction(&after).unwrap_or_default());
        }
    }
    text
}
