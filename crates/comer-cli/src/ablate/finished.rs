//! The record of a finished run: what the tables need beside its answers, so that the model may be deleted.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use comer_eval::Report;
use comer_eval::score::FileScore;
use comer_train::recipe::Recipe;
use serde::{Deserialize, Serialize};

use crate::evaluation::score_kept;
use crate::output::write_file;
use crate::version;

const RESULT: &str = "result.json";
const ANSWERS: &str = "answers.tsv";

#[derive(Serialize, Deserialize)]
pub struct RunResult {
    /// The version and commit that trained and evaluated it.
    #[serde(default)]
    program: String,
    /// The recipe as TOML.
    recipe: String,
    /// Trained parameters.
    pub parameters: usize,
    /// Of training, with its validation, by the clock.
    pub hours: f64,
    /// CPU hours of the same.
    #[serde(default)]
    pub cpu_hours: Option<f64>,
    /// CRC-32 of the answers on each test split.
    answers: BTreeMap<String, u32>,
}

/// Records that a run has finished.
pub fn write(
    folder: &Path,
    recipe: &Recipe,
    parameters: usize,
    [hours, cpu_hours]: [Option<f64>; 2],
    tests: &[&String],
) -> Result<()> {
    let answers = tests.iter().map(|&test| Ok((test.clone(), checksum(folder, test)?)));
    let answers = answers.collect::<Result<_>>()?;
    let program = version::SHORT.into();
    let result = RunResult {
        program,
        recipe: recipe.to_toml(),
        parameters,
        hours: hours.unwrap_or_default(),
        cpu_hours,
        answers,
    };
    write_file(&folder.join(RESULT), format!("{}\n", serde_json::to_string_pretty(&result)?).as_bytes())
}

/// The record of a run; none if it has not finished.
pub fn read(folder: &Path, recipe: &Recipe) -> Result<Option<RunResult>> {
    let path = folder.join(RESULT);
    let text = match comer_files::read_text(&path, comer_files::limit::TEXT) {
        Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| path.display().to_string())?,
    };
    let result: RunResult = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let earlier = Recipe::parse(&result.recipe).map_err(anyhow::Error::msg);
    let changes = recipe.changes(&earlier.with_context(|| path.display().to_string())?);
    if let Some(change) = changes.first() {
        bail!("{}: finished with another recipe ({change}), expected another --out", path.display());
    }
    Ok(Some(result))
}

fn checksum(folder: &Path, test: &str) -> Result<u32> {
    let path = folder.join(test).join(ANSWERS);
    let bytes = comer_files::read(&path, comer_files::limit::LINES);
    Ok(crc32fast::hash(&bytes.with_context(|| path.display().to_string())?))
}

impl RunResult {
    /// The report and the score of every file for each test split.
    pub fn scores(
        &self,
        folder: &Path,
        data: &Path,
        tests: &[&String],
    ) -> Result<Vec<(String, Report, Vec<FileScore>)>> {
        let one = |test: &&String| {
            let path = folder.join(test).join(ANSWERS);
            if self.answers.get(*test) != Some(&checksum(folder, test)?) {
                bail!("{}: not the answers that {RESULT} records, expected them unchanged", path.display());
            }
            let (report, scores) = score_kept(data, test, &path)?;
            Ok(((*test).clone(), report, scores))
        };
        tests.iter().map(one).collect()
    }
}
