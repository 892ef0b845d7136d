//! What several subcommands share: the model, the vocabulary, the threads, the progress bar, the search of folders.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use comer::Recognizer;
use comer::internal::{ModelFile, Vocab};
use indicatif::{ProgressBar, ProgressStyle};

/// Which model reads.
#[derive(clap::Args)]
pub struct ModelArgument {
    /// The model file [default: the bundled model].
    #[arg(long, value_name = "FILE", env = "COMER_MODEL")]
    pub model: Option<PathBuf>,
}

impl ModelArgument {
    /// The model that reads when nothing is said on the command line.
    pub fn from_environment() -> Self {
        Self { model: std::env::var_os("COMER_MODEL").map(PathBuf::from) }
    }

    /// The model's name for people.
    pub fn name(&self) -> String {
        self.model.as_ref().map_or("the bundled model".into(), |path| path.display().to_string())
    }

    /// The bytes of the model file.
    pub fn bytes(&self) -> Result<Cow<'static, [u8]>> {
        match &self.model {
            Some(path) => Ok(std::fs::read(path).with_context(|| path.display().to_string())?.into()),
            #[cfg(feature = "bundled")]
            None => Ok(comer_model_crohme::MODEL.into()),
            #[cfg(not(feature = "bundled"))]
            None => bail!("this program has no bundled model: give --model FILE or set COMER_MODEL"),
        }
    }

    /// Reads it.
    pub fn read(&self) -> Result<ModelFile> {
        Ok(ModelFile::from_bytes(&self.name(), &self.bytes()?)?)
    }

    /// Opens it to recognise.
    pub fn open(&self) -> Result<Recognizer> {
        Ok(Recognizer::new(self.read()?)?)
    }
}

/// The tokens of a file, one per line, or CROHME's.
pub fn read_vocab(path: Option<&Path>) -> Result<Vocab> {
    let Some(path) = path else { return Ok(Vocab::crohme()) };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Vocab::from_lines(&text).with_context(|| path.display().to_string())
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
