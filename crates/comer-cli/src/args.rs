//! Arguments that several subcommands share, and what they resolve to.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use comer::Recognizer;
use comer::internal::config::{SearchConfig, Strategy};
use comer::internal::language_model::LanguageModel;
use comer::internal::{ModelFile, Vocab};
use comer_eval::Dialect;
use comer_eval::files::{Truths, read_predictions, read_truths};
use comer_eval::score::{FileScore, score};

use crate::output::warn;

/// `--model` and the language model for it.
#[derive(clap::Args, Default)]
pub struct ModelArgs {
    /// Model file [default: the bundled model].
    #[arg(long, value_name = "FILE", env = "COMER_MODEL")]
    pub model: Option<PathBuf>,
    /// Language model made by `comer train-lm` [default: the model's own, if it has one].
    #[arg(long, value_name = "FILE")]
    pub language_model: Option<PathBuf>,
    /// Search without a language model.
    #[arg(long, conflicts_with = "language_model")]
    pub no_language_model: bool,
    /// Weight of the language model; each direction of the decoder has weight 1 [default: the language model's own].
    #[arg(long, value_name = "WEIGHT", conflicts_with = "no_language_model")]
    pub language_model_weight: Option<f32>,
}

impl ModelArgs {
    /// The model to use when the command line has no `--model`.
    pub fn from_environment() -> Self {
        Self { model: std::env::var_os("COMER_MODEL").map(PathBuf::from), ..Self::default() }
    }

    /// The model's name in messages.
    pub fn name(&self) -> String {
        self.model.as_ref().map_or("the bundled model".into(), |path| path.display().to_string())
    }

    /// The licence of the bundled model, as an SPDX identifier; that of other models is not known.
    pub fn license(&self) -> Option<&'static str> {
        #[cfg(feature = "bundled")]
        let bundled = Some(comer_model_crohme::LICENSE);
        #[cfg(not(feature = "bundled"))]
        let bundled = None;
        bundled.filter(|_| self.model.is_none())
    }

    /// The bytes of the model file.
    pub fn bytes(&self) -> Result<Cow<'static, [u8]>> {
        match &self.model {
            Some(path) => Ok(comer_files::read(path, comer_files::limit::MODEL)
                .with_context(|| path.display().to_string())?
                .into()),
            #[cfg(feature = "bundled")]
            None => Ok(comer_model_crohme::MODEL.into()),
            #[cfg(not(feature = "bundled"))]
            None => bail!("this program has no bundled model: give --model FILE or set COMER_MODEL"),
        }
    }

    /// Reads the model file, with the language model that is asked for.
    pub fn read(&self) -> Result<ModelFile> {
        let mut model = match &self.model {
            Some(path) => ModelFile::open(path)?,
            None => ModelFile::from_bytes(&self.name(), &self.bytes()?)?,
        };
        if self.no_language_model {
            model.language_model = None;
        } else if let Some(path) = &self.language_model {
            model.language_model = Some(open_language_model(path, &model.vocab)?);
        } else if self.model.is_none() && model.language_model.is_none() {
            model.language_model = bundled_language_model()?;
        }
        match (self.language_model_weight, &mut model.language_model) {
            (None, _) => {}
            (Some(weight), Some(language_model)) if (0.0..=10.0).contains(&weight) => {
                language_model.weight = weight;
            }
            (Some(weight), Some(_)) => {
                bail!("--language-model-weight {weight}: expected a number from 0 to 10")
            }
            (Some(_), None) => bail!("--language-model-weight: {} has no language model", self.name()),
        }
        Ok(model)
    }

    /// Reads the model file and prepares it for recognition.
    pub fn open(&self) -> Result<Recognizer> {
        Ok(Recognizer::named(&self.name(), self.read()?)?)
    }
}

/// Reads a language model for this vocabulary.
pub fn open_language_model(path: &Path, vocab: &Vocab) -> Result<LanguageModel> {
    let language_model = LanguageModel::open(path)?;
    language_model.check_vocab(vocab).with_context(|| path.display().to_string())?;
    Ok(language_model)
}

#[cfg(feature = "bundled")]
fn bundled_language_model() -> Result<Option<LanguageModel>> {
    let bytes = comer_model_crohme::LANGUAGE_MODEL;
    Ok(Some(LanguageModel::from_bytes("the bundled language model", bytes)?))
}

#[cfg(not(feature = "bundled"))]
fn bundled_language_model() -> Result<Option<LanguageModel>> {
    Ok(None)
}

/// `--threads`.
#[derive(clap::Args)]
pub struct ThreadArgs {
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

impl ThreadArgs {
    /// Limits the program to this many threads.
    pub fn apply(&self) -> Result<()> {
        match self.threads {
            None => Ok(()),
            Some(0) => bail!("--threads 0: expected at least 1"),
            Some(threads) => rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build_global()
                .context("the threads could not be started"),
        }
    }
}

/// How to search for the formula.
#[derive(clap::Args)]
pub struct SearchArgs {
    /// Beam size of each reading direction.
    #[arg(long, value_name = "N", default_value_t = SearchConfig::default().beam)]
    pub beam: usize,
    /// Fastest search: a beam of one, left to right only.
    #[arg(long, conflicts_with = "one_direction")]
    pub greedy: bool,
    /// Search left to right only.
    #[arg(long)]
    pub one_direction: bool,
    /// Allow ill-formed LaTeX, as the reference implementation does.
    #[arg(long)]
    pub no_grammar: bool,
    /// Search exactly as the reference implementation does: the whole beam, no grammar, no language model.
    #[arg(long)]
    pub exact: bool,
}

impl SearchArgs {
    /// The search for this many answers.
    pub fn resolve(&self, nbest: usize) -> Result<SearchConfig> {
        for (flag, value) in [("--beam", self.beam), ("--nbest", nbest)] {
            if !(1..=1000).contains(&value) {
                bail!("{flag} {value}: expected a number from 1 to 1000");
            }
        }
        let strategy = match (self.greedy, self.one_direction) {
            (true, _) => Strategy::Greedy,
            (_, true) => Strategy::LeftToRight,
            _ => Strategy::Joint,
        };
        let config = SearchConfig {
            strategy,
            beam: self.beam,
            margin: SearchConfig::default().margin.filter(|_| !self.exact),
            grammar: !self.no_grammar && !self.exact,
            language_model: !self.exact,
            answers: nbest,
            ..SearchConfig::default()
        };
        config.validate()?;
        Ok(config)
    }
}

/// The ground truth that predictions are scored against.
#[derive(clap::Args)]
pub struct TruthArgs {
    /// Caption file, folder of .lg files, or CROHME folder or zip with both; may be repeated.
    #[arg(long, value_name = "CAPTIONS_OR_LG", required = true)]
    truth: Vec<PathBuf>,
    /// Split of a CROHME folder or zip with several, such as 2014.
    #[arg(long)]
    split: Option<String>,
    /// Parse captions as the official tools do, including their bugs. The official protocol always does.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    strict_official: bool,
}

impl TruthArgs {
    /// Reads the ground truth. What could not be read is reported on stderr.
    pub fn read(&self) -> Result<Truths> {
        let mut truths = Truths::default();
        for path in &self.truth {
            truths.merge(read_truths(path, self.split.as_deref())?);
        }
        warn(&truths.problems);
        Ok(truths)
    }

    /// Reads and scores predictions. What could not be read is reported on stderr and returned.
    pub fn score(&self, truths: &Truths, predictions: &Path) -> Result<(Vec<FileScore>, Vec<String>)> {
        let found = read_predictions(predictions)?;
        warn(&found.problems);
        if !truths.truths.iter().any(|truth| found.by_name.contains_key(&truth.name)) {
            bail!(
                "{}: none of its {} names is one of the {} names of the ground truth, such as {:?}",
                predictions.display(),
                found.by_name.len(),
                truths.truths.len(),
                truths.truths.first().map_or("", |truth| &truth.name),
            );
        }
        let dialect = if self.strict_official { Dialect::Official } else { Dialect::Clean };
        Ok((score(&truths.truths, &found.by_name, dialect), found.problems))
    }
}

/// Reads a vocabulary, one token per line; CROHME's without a file.
pub fn read_vocab(path: Option<&Path>) -> Result<Vocab> {
    let Some(path) = path else { return Ok(Vocab::crohme()) };
    let text =
        comer_files::read_text(path, comer_files::limit::TEXT).with_context(|| path.display().to_string())?;
    Vocab::from_lines(&text).with_context(|| path.display().to_string())
}
