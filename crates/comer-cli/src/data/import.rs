//! `comer data import`: converts handwriting of several sources to a stroke set.

mod boxes;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::Ink;
use comer::internal::Vocab;
use comer::internal::dataset::Dataset;
use comer_eval::caption::Normalizer;
use comer_eval::{Dialect, LabelGraph, find_files};
use comer_train::stroke_set::{self, Record};
use rayon::prelude::*;
use serde::Deserialize;

use crate::args::{ThreadArgs, read_vocab};
use crate::output::{message, print};

/// Convert InkML or other JSON lines to a stroke set, for the [[data]] of a recipe.
///
/// A source is a folder that is searched for .inkml files, or a file of JSON lines with `id`, `tokens`, `strokes` and
/// optionally `symbols` or `boxes`, `writer`, `pen`, `test_text`. Records that are marked `test_text`, whose caption is in a
/// test set, or that are malformed are left out. The caption of an InkML file is its normalized `truth` annotation, or
/// that of the same name in --captions.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  comer data import inkml/train --captions crohme.zip --tests crohme.zip --out sets/crohme.jsonl
  comer data import inkml-extra/2013 --writers validation --tests crohme.zip --out sets/validation.jsonl
  comer data import offhme/train.jsonl --tests crohme.zip --out sets/offhme.jsonl")]
pub struct Arguments {
    /// Folders of InkML, or files of JSON lines.
    #[arg(value_name = "DIR_OR_JSONL", required = true)]
    sources: Vec<PathBuf>,
    /// Output file.
    #[arg(long, value_name = "JSONL")]
    out: PathBuf,
    /// CROHME folder or zip with the captions of the InkML files; files without a caption are left out.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    captions: Option<PathBuf>,
    /// Split of --captions.
    #[arg(long, value_name = "NAME", default_value = "train")]
    split: String,
    /// CROHME folder or zip: records with a caption of any of its splits except `train` are left out.
    #[arg(long, value_name = "DIR_OR_ZIP")]
    tests: Option<PathBuf>,
    /// Prefix of the names of writers, to distinguish sources [default: the name of the source].
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Use only one half of the writers, chosen by a hash of their names; records without a writer are left out.
    #[arg(long, value_name = "HALF")]
    writers: Option<Half>,
    /// Vocabulary, one token per line [default: CROHME's 110].
    #[arg(long, value_name = "FILE")]
    vocab: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// A half of the writers.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Half {
    /// Writers for training.
    Training,
    /// Writers for validation.
    Validation,
}

impl Half {
    fn has(self, writer: &str) -> bool {
        let training = crc32fast::hash(writer.as_bytes()) >> 31 == 0;
        training == (self == Self::Training)
    }
}

/// Records that were left out, by reason: their number, and the first one.
type LeftOut = BTreeMap<String, (usize, String)>;

/// Why a record is left out; counted by kind.
struct Reason {
    kind: &'static str,
    detail: String,
}

fn reason(kind: &'static str) -> impl Fn(String) -> Reason {
    move |detail| Reason { kind, detail }
}

/// Options for all sources.
struct Import {
    vocab: Vocab,
    normalizer: Normalizer,
    captions: Option<HashMap<String, String>>,
    tests: HashSet<String>,
    writers: Option<Half>,
    source: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    let vocab = read_vocab(arguments.vocab.as_deref())?;
    let captions = match &arguments.captions {
        Some(path) => Some(captions(path, &arguments.split)?.collect()),
        None => None,
    };
    let import = Import {
        normalizer: Normalizer::new(vocab.tokens()),
        vocab,
        captions,
        tests: test_captions(arguments.tests.as_deref())?,
        writers: arguments.writers,
        source: arguments.source.clone(),
    };
    let (mut records, mut left_out) = (Vec::new(), LeftOut::new());
    for source in &arguments.sources {
        let read = if source.is_dir() { import.folder(source)? } else { import.lines(source)? };
        for (name, result) in read {
            match result {
                Ok(record) => records.push(record),
                Err(Reason { kind, detail }) => {
                    let entry =
                        left_out.entry(kind.into()).or_insert_with(|| (0, format!("{name}: {detail}")));
                    entry.0 += 1;
                }
            }
        }
    }
    for (kind, (count, first)) in &left_out {
        message(format_args!("{count} left out: {kind}, the first {first}"));
    }
    if records.is_empty() {
        bail!("none of the records could be used");
    }
    stroke_set::write(&arguments.out, &records)?;
    let writers: BTreeSet<_> = records.iter().filter_map(|record| record.writer.as_ref()).collect();
    let text = format!(
        "{}: {} expressions, {} named writers\n",
        arguments.out.display(),
        records.len(),
        writers.len()
    );
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The names and captions of a split.
fn captions(path: &Path, split: &str) -> Result<impl Iterator<Item = (String, String)>> {
    Ok(Dataset::open(path, split)?.samples.into_iter().map(|sample| (sample.name, sample.caption)))
}

/// The captions of all splits of a data set except `train`.
pub fn test_captions(path: Option<&Path>) -> Result<HashSet<String>> {
    let mut tests = HashSet::new();
    if let Some(path) = path {
        for split in Dataset::splits(path)?.iter().filter(|split| *split != "train") {
            tests.extend(captions(path, split)?.map(|(_, caption)| caption));
        }
    }
    Ok(tests)
}

/// A line of a JSON lines source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    tokens: String,
    strokes: Vec<Vec<i32>>,
    #[serde(default)]
    symbols: Vec<(String, Vec<usize>)>,
    #[serde(default)]
    boxes: Vec<(String, i32, i32, i32, i32)>,
    writer: Option<String>,
    pen: Option<f64>,
    test_text: Option<u8>,
    #[serde(rename = "raw")]
    _raw: Option<String>,
}

type Read = Vec<(String, Result<Record, Reason>)>;

/// Bytes of lines that are converted at a time.
const CHUNK: usize = 16 << 20;

impl Import {
    fn lines(&self, path: &Path) -> Result<Read> {
        let source = self.source.clone().unwrap_or_else(|| stem(path));
        let convert = |(number, line): (usize, String)| {
            let line: Line = serde_json::from_str(&line)
                .with_context(|| format!("{}, line {}", path.display(), number + 1))?;
            Ok((line.id.clone(), self.line(line, &source)))
        };
        let convert = |lines: Vec<_>| lines.into_par_iter().map(convert).collect::<Result<Read>>();
        let (mut read, mut lines, mut size) = (Read::new(), Vec::new(), 0);
        let file = comer_files::lines(path).with_context(|| path.display().to_string())?;
        for (number, line) in file.enumerate() {
            let line = line.with_context(|| path.display().to_string())?;
            size += line.len() + size_of::<(usize, String)>();
            lines.push((number, line));
            if size > CHUNK {
                read.extend(convert(std::mem::take(&mut lines))?);
                size = 0;
            }
        }
        read.extend(convert(lines)?);
        Ok(read)
    }

    fn line(&self, line: Line, source: &str) -> Result<Record, Reason> {
        if line.test_text.is_some_and(|flag| flag != 0) {
            return Err(reason("marked test_text")(line.tokens));
        }
        let Line { id, tokens, strokes, symbols, boxes, writer, pen, .. } = line;
        let writer = named(writer.as_deref(), source);
        let mut record = Record { id, tokens, strokes, symbols, writer, pen };
        if !boxes.is_empty() {
            boxes::assign(&mut record, &boxes).map_err(reason("broken"))?;
        }
        self.finish(record)
    }

    fn folder(&self, folder: &Path) -> Result<Read> {
        let paths = find_files(folder, &["inkml"])?;
        let source = self.source.clone().unwrap_or_else(|| stem(folder));
        let read = |path: &PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let record = self.inkml(path, &name, &source);
            (name, record)
        };
        Ok(paths.par_iter().map(read).collect())
    }

    fn inkml(&self, path: &Path, name: &str, source: &str) -> Result<Record, Reason> {
        let bytes = comer_files::read(path, comer_files::limit::INPUT)
            .map_err(|error| reason("broken")(error.to_string()))?;
        let ink = Ink::from_inkml(&bytes).map_err(|error| reason("broken")(error.to_string()))?;
        let caption = match &self.captions {
            Some(captions) => {
                captions.get(name).cloned().ok_or_else(|| reason("not in --captions")(String::new()))?
            }
            None => {
                let latex = ink.annotation("truth").map(str::trim);
                let latex = latex.ok_or_else(|| reason("without truth")(String::new()))?;
                let rejected = |error: comer_eval::Error| reason("no caption")(format!("{latex}: {error}"));
                self.normalizer.normalize(latex).map_err(rejected)?
            }
        };
        let mut record = Record::of(name, &caption, &ink);
        record.writer = named(ink.annotation("writer"), source);
        self.finish(record)
    }

    /// Maps the labels of symbols to tokens and validates the record.
    fn finish(&self, mut record: Record) -> Result<Record, Reason> {
        if self.tests.contains(&record.tokens) {
            return Err(reason("a caption of the tests")(record.tokens));
        }
        if let Some(half) = self.writers
            && !record.writer.as_deref().is_some_and(|writer| half.has(writer))
        {
            return Err(reason("writers of the other half")(record.writer.unwrap_or_default()));
        }
        record.symbols = std::mem::take(&mut record.symbols)
            .into_iter()
            .filter_map(|(label, strokes)| Some((self.token(&label)?, strokes)))
            .collect();
        LabelGraph::from_latex(&record.tokens, Dialect::Clean)
            .map_err(|error| reason("caption is not LaTeX")(format!("{}: {error}", record.tokens)))?;
        let (_, ink, _) = record.read(&self.vocab).map_err(reason("broken"))?;
        ink.draw()
            .and_then(|picture| picture.fit())
            .map_err(|error| reason("does not fit the network")(error.to_string()))?;
        Ok(record)
    }

    /// The token of a label, if the vocabulary has it.
    fn token(&self, label: &str) -> Option<String> {
        let label = if label == "COMMA" { "," } else { label };
        // Tokens first, because a root sign alone is not a formula and cannot be normalized.
        let is_token = |label: &str| self.vocab.encode(label).is_ok_and(|tokens| tokens.len() == 1);
        match is_token(label) {
            true => Some(label.to_string()),
            false => self.normalizer.normalize(label).ok().filter(|token| is_token(token)),
        }
    }
}

/// The name of a writer with the prefix of the source.
fn named(writer: Option<&str>, source: &str) -> Option<String> {
    let writer = writer.map(str::trim).filter(|writer| !writer.is_empty());
    writer.map(|writer| format!("{source}/{writer}"))
}

/// The name of a file without its extension, or of a folder, prefixed with that of the parent folder to make it unique.
fn stem(path: &Path) -> String {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match whole.parent() {
        Some(parent) if parent.file_name().is_some() => format!("{}-{}", name(parent), name(&whole)),
        _ => name(&whole),
    }
}
