//! Recognises a whole split and scores the answers. An interrupted evaluation resumes where it stopped.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use comer::internal::SearchConfig;
use comer::internal::dataset::{Dataset, LabelledImage};
use comer::{AlignmentDetail, Input, RecognizeOptions, Recognizer};
use comer_eval::files::read_truths;
use comer_eval::reliability::Reliability;
use comer_eval::report::InkRates;
use comer_eval::run_folder::Run;
use comer_eval::score::{FileScore, Protocol, Truth, score};
use comer_eval::{DataSource, Dialect, Report};
use comer_files::Journal;
use rayon::prelude::*;

use crate::args::ModelArgs;
use crate::output::{Progress, message, warn};

/// A model on a split.
pub struct Evaluation<'a> {
    pub model: &'a ModelArgs,
    pub data: &'a Path,
    pub split: &'a str,
    /// How many formulas, evenly spread; all if none.
    pub take: Option<usize>,
    pub search: SearchConfig,
    /// Where the report is written, and the answers until then.
    pub out: Option<&'a Path>,
    /// Keeps the answers beside the report, and reuses them the next time.
    pub keep: bool,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
}

impl Evaluation<'_> {
    /// Evaluates, resuming from the answers in the output folder. Problems are reported on stderr. None if stopped.
    pub fn run(&self) -> Result<Option<(Report, Vec<FileScore>)>> {
        let mut truths = read_truths(self.data, Some(self.split))?;
        let mut set = Dataset::open(self.data, self.split)?;
        let mut problems: Vec<String> = truths.problems.drain(..).chain(set.problems).collect();
        if set.samples.is_empty() {
            bail!("{}: no image of split {:?} could be read", self.data.display(), self.split);
        }
        if let Some(take) = self.take {
            let step = set.samples.len().div_ceil(take);
            set.samples = set.samples.into_iter().step_by(step).collect();
            let taken: HashSet<&str> = set.samples.iter().map(|sample| sample.name.as_str()).collect();
            truths.truths.retain(|truth| taken.contains(truth.name.as_str()));
            problems.clear();
        }
        let recognizer = self.model.open()?;

        let mut done = HashMap::new();
        let mut journal = match self.out {
            Some(folder) => {
                fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
                let name = if self.keep { "answers.tsv" } else { "answers.unfinished.tsv" };
                let path = folder.join(name);
                let (journal, lines) = Journal::resume(&path, &self.key(&set.samples)?)
                    .with_context(|| path.display().to_string())?;
                done.extend(lines.iter().filter_map(|line| Answer::from_line(line)));
                Some(journal)
            }
            None => None,
        };
        if !done.is_empty() {
            message(format_args!("resuming after {} formulas", done.len()));
        }
        let left: Vec<&LabelledImage> =
            set.samples.iter().filter(|sample| !done.contains_key(&sample.name)).collect();
        problems.extend(self.read(&recognizer, &left, &mut done, journal.as_mut())?);
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        warn(&problems);

        let (report, scores) = summarize(&truths.truths, done);
        if let Some(folder) = self.out {
            let title = format!(
                "{} on {}",
                self.model.name(),
                DataSource::open(self.data)?.split(Some(self.split))?.name()
            );
            let pictures: HashMap<&str, &LabelledImage> =
                set.samples.iter().map(|sample| (sample.name.as_str(), sample)).collect();
            let run = Run { title: &title, report: &report, scores: &scores, problems: &problems };
            run.write(folder, |name| {
                pictures.get(name)?.image.decode().and_then(|image| image.to_png()).ok()
            })?;
            if let Some(journal) = journal.filter(|_| !self.keep) {
                fs::remove_file(journal.path()).with_context(|| journal.path().display().to_string())?;
            }
        }
        Ok(Some((report, scores)))
    }

    /// Recognises samples into `done` and the journal; returns what could not be read.
    fn read(
        &self,
        recognizer: &Recognizer,
        samples: &[&LabelledImage],
        done: &mut HashMap<String, Answer>,
        mut journal: Option<&mut Journal>,
    ) -> Result<Vec<String>> {
        let options = RecognizeOptions::new()
            .search(self.search.clone())
            .alignment(AlignmentDetail::Attention)
            .threads(1);
        let progress = Progress::new(samples.len());
        let mut problems = Vec::new();
        for group in samples.chunks(8 * rayon::current_num_threads()) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let results: Vec<_> = group
                .par_iter()
                .with_max_len(1)
                .map(|sample| {
                    let result = sample
                        .image
                        .decode()
                        .and_then(Input::from_image)
                        .and_then(|input| recognizer.recognize_with(&input, &options));
                    progress.advance();
                    result
                })
                .collect();
            for (sample, result) in group.iter().zip(results) {
                match result {
                    Ok(recognition) => {
                        let ink = recognition
                            .alignment
                            .map_or([0.0; 2], |found| [found.ink.unread, found.ink.reread]);
                        let confidence = recognition.best.confidence;
                        let answer = Answer { latex: recognition.best.tokenized(), ink, confidence };
                        if let Some(journal) = &mut journal {
                            journal.write(&answer.line(&sample.name));
                        }
                        done.insert(sample.name.clone(), answer);
                    }
                    Err(error) => problems.push(format!("{}: {error}", sample.name)),
                }
            }
            if let Some(journal) = &mut journal {
                journal.flush().with_context(|| journal.path().display().to_string())?;
            }
        }
        Ok(problems)
    }

    /// What the answers depend on: model, images and search.
    fn key(&self, samples: &[LabelledImage]) -> Result<String> {
        let bytes = self.model.bytes()?;
        let language_model = self.model.read()?.language_model;
        let language_model = language_model.map(|own| own.to_bytes()).transpose()?.unwrap_or_default();
        let mut images = crc32fast::Hasher::new();
        for sample in samples {
            images.update(sample.name.as_bytes());
            images.update(sample.image.decode()?.pixels());
        }
        Ok(format!(
            "# model {:08x}, language model {:08x}, images of {} {:08x}, {:?}",
            crc32fast::hash(&bytes),
            crc32fast::hash(&language_model),
            self.split,
            images.finalize(),
            self.search
        ))
    }
}

/// Scores the answers that an earlier evaluation of a split kept in a file, without its model.
#[cfg(feature = "train")]
pub fn score_kept(data: &Path, split: &str, answers: &Path) -> Result<(Report, Vec<FileScore>)> {
    let truths = read_truths(data, Some(split))?;
    let text = comer_files::read_text(answers, comer_files::limit::TEXT)
        .with_context(|| answers.display().to_string())?;
    let done: HashMap<String, Answer> = text.lines().filter_map(Answer::from_line).collect();
    Ok(summarize(&truths.truths, done))
}

/// The report and the score of every file.
fn summarize(truths: &[Truth], answers: HashMap<String, Answer>) -> (Report, Vec<FileScore>) {
    let ink: Vec<[f32; 2]> = answers.values().map(|answer| answer.ink).collect();
    let confidences: HashMap<String, f32> =
        answers.iter().map(|(name, answer)| (name.clone(), answer.confidence)).collect();
    let predictions = answers.into_iter().map(|(name, answer)| (name, answer.latex)).collect();
    let scores = score(truths, &predictions, Dialect::Official);
    let confident = scores
        .iter()
        .filter_map(|score| Some((*confidences.get(&score.name)?, score.by(Protocol::Token)?.errors == 0)));
    let confident: Vec<(f32, bool)> = confident.collect();
    let reliability = (!confident.is_empty()).then(|| Reliability::new(&confident));
    (Report { ink: InkRates::new(&ink), reliability, ..Report::new(&scores) }, scores)
}

/// The answer for one image.
#[derive(Debug, PartialEq)]
struct Answer {
    latex: String,
    /// Shares of the ink left unread and read twice.
    ink: [f32; 2],
    confidence: f32,
}

impl Answer {
    fn line(&self, name: &str) -> String {
        let [unread, reread] = self.ink;
        format!("{name}\t{}\t{unread}\t{reread}\t{}\n", self.latex, self.confidence)
    }

    /// Parses a line.
    fn from_line(line: &str) -> Option<(String, Self)> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, latex, unread, reread, confidence] = fields[..] else { return None };
        let ink = [unread.parse().ok()?, reread.parse().ok()?];
        Some((name.to_string(), Self { latex: latex.to_string(), ink, confidence: confidence.parse().ok()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_as_lines() {
        let answer = Answer { latex: "x ^ { 2 }".into(), ink: [0.1, 1.0 / 3.0], confidence: 0.7 };
        let line = answer.line("one");
        let line = line.strip_suffix('\n').unwrap();
        assert_eq!(Answer::from_line(line), Some(("one".into(), answer)));
        assert_eq!(Answer::from_line("one\tx + "), None);
    }
}
