//! `comer evaluate`: reads a whole set and scores what was read. An interrupted evaluation goes on where it stopped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use comer::internal::SearchConfig;
use comer::internal::dataset::{Dataset, Sample};
use comer::{AlignmentDetail, Input, RecognizeOptions, Recognizer};
use comer_eval::files::read_truths;
use comer_eval::report::InkRates;
use comer_eval::run_folder::Run;
use comer_eval::score::score;
use comer_eval::{Dialect, Journal, Report};
use rayon::prelude::*;

use crate::common::{ModelArgument, progress_bar, use_threads};
use crate::recognize::SearchArguments;
use crate::score::{json, table};

/// Read a whole set of pictures with a model and score it: ExpRate by the official label graphs, by the captions' own,
/// and by tokens; and how much of the ink was left unread or read twice.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer evaluate --model fusion.safetensors --data crohme.zip --split 2014 --out runs/2014
  comer evaluate --model fusion.safetensors --data data/2016 --greedy --json")]
pub struct Arguments {
    #[command(flatten)]
    model: ModelArgument,
    /// A CROHME zip or folder.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    data: PathBuf,
    /// The set to read: 2014, 2016, train, ...
    #[arg(long, default_value = "2014")]
    split: String,
    /// Write report.json, report.md, report.html and predictions.tsv into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArguments,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    use_threads(arguments.threads)?;
    let evaluation = Evaluation {
        model: &arguments.model,
        data: &arguments.data,
        split: &arguments.split,
        search: arguments.search.config(1),
        out: arguments.out.as_deref(),
        keep: false,
        stop: &AtomicBool::new(false),
    };
    let Some(report) = evaluation.run()? else { return Ok(ExitCode::from(130)) };
    if let Some(folder) = &arguments.out {
        eprintln!("comer: {}", folder.join("report.html").display());
    }
    let text = if arguments.json { format!("{:#}\n", json(&report)) } else { table(&report) };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// A set to be read by a model.
pub struct Evaluation<'a> {
    pub model: &'a ModelArgument,
    pub data: &'a Path,
    pub split: &'a str,
    pub search: SearchConfig,
    /// Where the report goes, and meanwhile what has been read.
    pub out: Option<&'a Path>,
    /// Keeps what was read beside the report, and takes it from there the next time.
    pub keep: bool,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
}

impl Evaluation<'_> {
    /// Reads the set, from where it was left; what could not be read is named on stderr. None if it was stopped.
    pub fn run(&self) -> Result<Option<Report>> {
        self.search.validate()?;
        let mut truths = read_truths(self.data, Some(self.split))?;
        let set = Dataset::open(self.data, self.split)?;
        let mut problems: Vec<String> = truths.problems.drain(..).chain(set.problems).collect();
        if set.samples.is_empty() {
            bail!("{}: no picture of split {:?} could be read", self.data.display(), self.split);
        }
        let recognizer = self.model.open()?;

        let mut done = HashMap::new();
        let mut journal = match self.out {
            Some(folder) => {
                fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
                let name = if self.keep { "answers.tsv" } else { "answers.unfinished.tsv" };
                let (journal, lines) = Journal::resume(folder.join(name), &self.key()?)?;
                done.extend(lines.iter().filter_map(|line| Answer::from_line(line)));
                Some(journal)
            }
            None => None,
        };
        if !done.is_empty() {
            eprintln!("comer: going on after {} pictures read before", done.len());
        }
        let left: Vec<&Sample> =
            set.samples.iter().filter(|sample| !done.contains_key(&sample.name)).collect();
        problems.extend(self.read(&recognizer, &left, &mut done, journal.as_mut())?);
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        for problem in &problems {
            eprintln!("comer: {problem}");
        }

        let ink: Vec<[f32; 2]> = done.values().map(|answer| answer.ink).collect();
        let predictions = done.into_iter().map(|(name, answer)| (name, answer.latex)).collect();
        let scores = score(&truths.truths, &predictions, Dialect::Official);
        let report = Report { ink: InkRates::new(&ink), ..Report::new(&scores) };
        if let Some(folder) = self.out {
            let title = format!("{} on {}", self.model.name(), self.set_name());
            let pictures: HashMap<&str, &Sample> =
                set.samples.iter().map(|sample| (sample.name.as_str(), sample)).collect();
            let run = Run { title: &title, report: &report, scores: &scores, problems: &problems };
            run.write(folder, |name| pictures.get(name)?.picture.to_png().ok())?;
            if let Some(journal) = journal.filter(|_| !self.keep) {
                fs::remove_file(journal.path()).with_context(|| journal.path().display().to_string())?;
            }
        }
        Ok(Some(report))
    }

    /// The set's name: a folder that is a set itself has its own.
    fn set_name(&self) -> Cow<'_, str> {
        let is_set = |folder: &Path| folder.join("caption.txt").is_file();
        let inside = [self.data.join(self.split), self.data.join("data").join(self.split)];
        let own =
            self.data.file_name().filter(|_| is_set(self.data) && !inside.iter().any(|path| is_set(path)));
        own.map_or(self.split.into(), |name| name.to_string_lossy())
    }

    /// Reads the samples into `done` and the journal; answers what could not be read.
    fn read(
        &self,
        recognizer: &Recognizer,
        samples: &[&Sample],
        done: &mut HashMap<String, Answer>,
        mut journal: Option<&mut Journal>,
    ) -> Result<Vec<String>> {
        let options = RecognizeOptions::new()
            .search(self.search.clone())
            .alignment(AlignmentDetail::Attention)
            .threads(1);
        let bar = progress_bar(samples.len());
        let mut problems = Vec::new();
        for group in samples.chunks(8 * rayon::current_num_threads()) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let results: Vec<_> = group
                .par_iter()
                .with_max_len(1)
                .map(|sample| {
                    let result = Input::from_image(sample.picture.clone())
                        .and_then(|input| recognizer.recognize_with(&input, &options));
                    bar.inc(1);
                    result
                })
                .collect();
            for (sample, result) in group.iter().zip(results) {
                match result {
                    Ok(recognition) => {
                        let ink = recognition
                            .alignment
                            .map_or([0.0; 2], |found| [found.ink.unread, found.ink.reread]);
                        let answer = Answer { latex: recognition.best.tokenized(), ink };
                        if let Some(journal) = &mut journal {
                            journal.write(&answer.line(&sample.name));
                        }
                        done.insert(sample.name.clone(), answer);
                    }
                    Err(error) => problems.push(format!("{}: {error}", sample.name)),
                }
            }
            if let Some(journal) = &mut journal {
                journal.flush()?;
            }
        }
        bar.finish_and_clear();
        Ok(problems)
    }

    /// What the answers depend on: the model's content, the set and the search.
    fn key(&self) -> Result<String> {
        let bytes = self.model.bytes()?;
        let data = fs::canonicalize(self.data).with_context(|| self.data.display().to_string())?;
        Ok(format!("# {:08x} {} {} {:?}", crc32fast::hash(&bytes), data.display(), self.split, self.search))
    }
}

/// What was read from one picture.
#[derive(Debug, PartialEq)]
struct Answer {
    latex: String,
    /// The shares of the ink that were left unread and read twice.
    ink: [f32; 2],
}

impl Answer {
    fn line(&self, name: &str) -> String {
        let [unread, reread] = self.ink;
        format!("{name}\t{}\t{unread}\t{reread}\n", self.latex)
    }

    /// The name and the answer of a line.
    fn from_line(line: &str) -> Option<(String, Self)> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, latex, unread, reread] = fields[..] else { return None };
        let ink = [unread.parse().ok()?, reread.parse().ok()?];
        Some((name.to_string(), Self { latex: latex.to_string(), ink }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_as_lines() {
        let answer = Answer { latex: "x ^ { 2 }".into(), ink: [0.1, 1.0 / 3.0] };
        let line = answer.line("one");
        let line = line.strip_suffix('\n').unwrap();
        assert_eq!(Answer::from_line(line), Some(("one".into(), answer)));
        assert_eq!(Answer::from_line("one\tx + "), None);
    }
}
