//! What several subcommands share: the model, the threads, the progress bar.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use comer::recognizer::Recognizer;
use indicatif::{ProgressBar, ProgressStyle};

/// Which model reads.
#[derive(clap::Args)]
pub struct ModelArgument {
    /// The model file.
    #[arg(long, value_name = "FILE", env = "COMER_MODEL")]
    pub model: Option<PathBuf>,
}

impl ModelArgument {
    /// The model file's place, or a word on how to get one.
    pub fn path(&self) -> Result<&PathBuf> {
        match &self.model {
            Some(path) => Ok(path),
            None => bail!(
                "no model: give one with --model FILE (or COMER_MODEL=FILE); `comer import CHECKPOINT FILE` makes one \
                 of a checkpoint of the authors' implementation"
            ),
        }
    }

    /// Opens it.
    pub fn open(&self) -> Result<Recognizer> {
        Ok(Recognizer::open(self.path()?)?)
    }
}

/// Limits the program to this many threads.
pub fn use_threads(threads: Option<usize>) -> Result<()> {
    let Some(threads) = threads else { return Ok(()) };
    if threads == 0 {
        bail!("--threads 0: expected at least one");
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .context("the threads could not be started")
}

/// A bar on a terminal, nothing elsewhere; nothing for one input either.
pub fn progress_bar(count: usize) -> ProgressBar {
    if count < 2 {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {per_sec}, {eta} left");
    ProgressBar::new(count as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
