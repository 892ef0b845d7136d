//! `comer compare`: two runs side by side, with what changed between them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use comer_eval::bootstrap::{Comparison, compare_runs};
use comer_eval::score::{FileScore, Protocol};

use crate::score::TruthArguments;

/// Compare the predictions of two runs: both ExpRates, how sure the difference is, and every formula that changed sides.
///
/// The interval holds the middle 95 % of the differences when the files are drawn anew 10 000 times, always with the
/// same random numbers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer compare before.tsv after.tsv --truth data/2014
  comer compare runs/fusion runs/cross --truth crohme.zip --split 2014 --json")]
pub struct Arguments {
    /// The first run: predictions as a table, a zip or a folder, or the folder of a report.
    before: PathBuf,
    /// The second run.
    after: PathBuf,
    #[command(flatten)]
    truth: TruthArguments,
    /// Print the comparison as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let truths = arguments.truth.read()?;
    let (before, _) = arguments.truth.score(&truths, &arguments.before)?;
    let (after, _) = arguments.truth.score(&truths, &arguments.after)?;
    let compared = Protocol::ALL.map(|protocol| compare_runs(&before, &after, protocol));
    let text = if arguments.json {
        let [official, caption, token] = &compared;
        let record = serde_json::json!({ "official": official, "caption": caption, "token": token });
        format!("{record:#}\n")
    } else {
        table(&compared) + &flips(&compared, &before, &after)
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
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

/// The formulas that changed sides by the first protocol that there is.
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
