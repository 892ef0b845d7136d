//! `comer data clean`: converts scans and photographs to a set of pictures in CROHME's layout.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use comer::Input;
use comer_eval::find_files;
use comer_files::OutputFolder;
use comer_train::stroke_set::{self, Record};
use rayon::prelude::*;

use crate::args::ThreadArgs;
use crate::output::{Progress, message, print};

/// Clean scans with the image clean-up of recognition. Captions come from a stroke set whose ids are the names of the files.
///
/// Writes OUT_DIR/train/img/ID.png and OUT_DIR/train/caption.txt, for [[data]] of kind \"pictures\". Files without a record
/// are left out.
#[derive(clap::Args)]
#[command(after_help = "Example:
  comer data clean scans/train --captions sets/crohme2023.jsonl --without sets/validation.jsonl --out sets/scans")]
pub struct Arguments {
    /// Folder of scans.
    scans: PathBuf,
    /// Stroke set with their captions.
    #[arg(long, value_name = "JSONL")]
    captions: PathBuf,
    /// Stroke set whose writers are left out.
    #[arg(long, value_name = "JSONL")]
    without: Option<PathBuf>,
    /// Output folder; must not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.threads.apply()?;
    if arguments.out.exists() {
        bail!("{}: already exists, expected a new folder", arguments.out.display());
    }
    let writers: BTreeSet<String> = match &arguments.without {
        Some(path) => stroke_set::read(path)?.into_iter().filter_map(|record| record.writer).collect(),
        None => BTreeSet::new(),
    };
    let records = stroke_set::read(&arguments.captions)?;
    let known =
        records.iter().filter(|record| record.writer.as_ref().is_none_or(|own| !writers.contains(own)));
    let known: HashMap<&str, &Record> = known.map(|record| (&record.id[..], record)).collect();
    let paths = find_files(&arguments.scans, &["jpg", "jpeg", "png"])?;
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let scans: Vec<(&Record, &PathBuf)> =
        paths.iter().filter_map(|path| Some((*known.get(&name(path)[..])?, path))).collect();
    if scans.is_empty() {
        bail!("{}: no file has the id of a record", arguments.scans.display());
    }
    let writing = || format!("cannot write {}", arguments.out.display());
    let folder = OutputFolder::create(&arguments.out).with_context(writing)?;
    let progress = Progress::new(scans.len());
    let clean = |path: &Path| -> comer::Result<Vec<u8>> { Input::from_path(path)?.image().to_png() };
    // A scan that cannot be read is left out; a picture that cannot be written ends everything.
    let cleaned = scans
        .par_iter()
        .map(|(record, path)| -> Result<comer::Result<&Record>> {
            progress.advance();
            match clean(path) {
                Err(error) => Ok(Err(error)),
                Ok(png) => {
                    folder.write(format!("train/img/{}.png", record.id), &png).with_context(writing)?;
                    Ok(Ok(record))
                }
            }
        })
        .collect::<Result<Vec<_>>>();
    drop(progress);
    let mut captions = String::new();
    for ((scan, _), result) in scans.iter().zip(cleaned?) {
        match result {
            Ok(record) => captions += &format!("{}\t{}\n", record.id, record.tokens),
            Err(error) => message(format_args!("left out: {}: {:#}", scan.id, anyhow::Error::from(error))),
        }
    }
    folder.write("train/caption.txt", captions.as_bytes()).with_context(writing)?;
    folder.finish().with_context(writing)?;
    let text = format!(
        "{}: {} pictures of {} scans\n",
        arguments.out.display(),
        captions.lines().count(),
        paths.len()
    );
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
