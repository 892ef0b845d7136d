//! Evaluates the photographs of `comer data photograph`: which formulas are found, and how they are read.

use std::path::Path;

use anyhow::{Context, Result, bail};
use comer::internal::SearchConfig;
use comer::{Input, InputOptions, RecognizeOptions, Recognizer};
use comer_eval::reliability::Reliability;
use comer_train::stroke_set::Record;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::output::{Progress, write_file};
use crate::reading::{self, Formulas};

/// A box that shares this much of its area with the true one is found.
const FOUND: f64 = 0.7;

/// A line of truth.jsonl.
#[derive(Deserialize)]
struct Truth {
    name: String,
    formulas: Vec<TrueFormula>,
}

#[derive(Deserialize)]
struct TrueFormula {
    #[serde(rename = "box")]
    bounds: [f64; 4],
    record: Record,
}

/// The figures of a set of photographs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PhotographReport {
    /// Photographs.
    pub photographs: usize,
    /// Formulas on them.
    pub formulas: usize,
    /// Formulas whose box was found.
    pub found: usize,
    /// Boxes that are no formula's.
    pub other: usize,
    /// Formulas that were read without an error in a token.
    pub right: usize,
    /// Formulas that were read without an error when their ink was drawn directly.
    pub drawn_right: usize,
    /// How far the confidences of the formulas that were read can be trusted; none if nothing was read.
    pub reliability: Option<Reliability>,
    /// The confidence of each of them, and whether it is right.
    #[serde(skip)]
    read: Vec<(f32, bool)>,
}

impl PhotographReport {
    fn add(mut self, other: Self) -> Self {
        self.read.extend(other.read);
        Self {
            photographs: self.photographs + other.photographs,
            formulas: self.formulas + other.formulas,
            found: self.found + other.found,
            other: self.other + other.other,
            right: self.right + other.right,
            drawn_right: self.drawn_right + other.drawn_right,
            reliability: None,
            read: self.read,
        }
    }

    /// The figures as text.
    pub fn text(&self) -> String {
        let share = |count: usize| 100.0 * count as f64 / self.formulas.max(1) as f64;
        let reliability =
            self.reliability.as_ref().map_or_else(String::new, |it| format!("{}\n", it.sentence()));
        format!(
            "{} photographs of {} formulas\nboxes found      {:>9.2} %, and {} others\ntoken match      {:>9.2} %\nink drawn        {:>9.2} %\n{reliability}",
            self.photographs,
            self.formulas,
            share(self.found),
            self.other,
            share(self.right),
            share(self.drawn_right),
        )
    }

    /// Writes report.json and report.html, with a plot of the confidences, to a folder.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
        let plot = self.reliability.as_ref().map(Reliability::svg).unwrap_or_default();
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Photographs</title>\n\
             <h1>Photographs</h1>\n<pre>{}</pre>\n<h2>Confidence</h2>\n{plot}\n</html>\n",
            self.text()
        );
        write_file(&folder.join("report.json"), format!("{:#}\n", serde_json::to_value(self)?).as_bytes())?;
        write_file(&folder.join("report.html"), page.as_bytes())
    }
}

/// Reads the photographs of a folder; `several` says whether they may show more than one formula.
pub fn evaluate(
    recognizer: &Recognizer,
    folder: &Path,
    take: Option<usize>,
    search: &SearchConfig,
    several: bool,
) -> Result<PhotographReport> {
    let path = folder.join("truth.jsonl");
    let text = comer_files::read_text(&path, comer_files::limit::TEXT)
        .with_context(|| path.display().to_string())?;
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("{}, line {}", path.display(), number + 1))
    };
    let truths: Vec<Truth> = text.lines().enumerate().map(parse).collect::<Result<_>>()?;
    if truths.is_empty() {
        bail!("{}: expected at least one photograph", path.display());
    }
    let step = take.map_or(1, |take| truths.len().div_ceil(take));
    let truths: Vec<Truth> = truths.into_iter().step_by(step).collect();
    let options = RecognizeOptions::new().search(search.clone()).threads(1);
    let progress = Progress::new(truths.len());
    let one = |truth: &Truth| -> Result<PhotographReport> {
        if !comer_files::is_inside(&truth.name) {
            bail!("{}: the name {:?} leads out of the folder", path.display(), truth.name);
        }
        let file = folder.join(&truth.name);
        let bytes = comer_files::read(&file, comer_files::limit::INPUT)
            .with_context(|| file.display().to_string())?;
        let formulas = if several { Formulas::All } else { Formulas::One };
        let inputs = reading::prepare(&bytes, &InputOptions::new(), formulas)
            .map_or_else(|_| Vec::new(), |found| found.0);
        let mut report =
            PhotographReport { photographs: 1, formulas: truth.formulas.len(), ..Default::default() };
        let mut matched = vec![false; inputs.len()];
        for formula in &truth.formulas {
            let read = |input: Input| {
                let best = recognizer.recognize_formula(input, &options).ok()?.recognition.best;
                Some((best.confidence, best.tokenized() == formula.record.tokens))
            };
            let shares = inputs.iter().map(|input| overlap(input, formula.bounds));
            let best = shares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((at, share)) = best {
                report.found += usize::from(share >= FOUND);
                if share > 0.3 && !matched[at] {
                    matched[at] = true;
                    let answer = read(inputs[at].clone());
                    report.right += usize::from(answer.is_some_and(|answer| answer.1));
                    report.read.extend(answer);
                }
            }
            let ink = formula.record.ink().map_err(anyhow::Error::msg)?;
            report.drawn_right += usize::from(read(Input::from_ink(ink)?).is_some_and(|answer| answer.1));
        }
        report.other = matched.iter().filter(|matched| !**matched).count();
        progress.advance();
        Ok(report)
    };
    let reports: Vec<PhotographReport> = truths.par_iter().with_max_len(1).map(one).collect::<Result<_>>()?;
    let mut report = reports.into_iter().fold(PhotographReport::default(), PhotographReport::add);
    report.reliability = (!report.read.is_empty()).then(|| Reliability::new(&report.read));
    Ok(report)
}

/// The area that the box of an input and another share, over that of both together.
fn overlap(input: &Input, [left, top, right, bottom]: [f64; 4]) -> f64 {
    let own = input.bounds();
    let width = (own.right.min(right) - own.left.max(left)).max(0.0);
    let height = (own.bottom.min(bottom) - own.top.max(top)).max(0.0);
    let area = (own.right - own.left) * (own.bottom - own.top) + (right - left) * (bottom - top);
    width * height / (area - width * height).max(1e-9)
}
