//! Recognition from an input to LaTeX: encoder, decoder, search and alignment behind one type.

use std::fmt;
use std::path::Path;

use crate::alignment::{Aligner, Alignment, AlignmentDetail};
use crate::calibration::{self, Calibration};
use crate::config::{Directions, ModelConfig, SearchConfig, Strategy};
use crate::engine::Features;
use crate::engine::any_decoder::{AnyDecoder, AnyState};
use crate::engine::encoder::Encoder;
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::input::Input;
use crate::language_model::LanguageModel;
use crate::latex;
use crate::model_file::{ModelFile, Provenance, UNNAMED};
use crate::options::RecognizeOptions;
use crate::recognition::{Candidate, Recognition};
use crate::search::{self, Answer};
use crate::token::{EOS, Token, TokenId};
use crate::vocab::Vocab;
use crate::weights::parameter_count;

/// A model that is ready to recognise. Share one between threads by reference or in an `Arc`.
pub struct Recognizer {
    /// Its file, for messages.
    name: String,
    config: ModelConfig,
    vocab: Vocab,
    provenance: Provenance,
    encoder: Encoder,
    decoder: AnyDecoder,
    grammar: Grammar,
    language_model: Option<LanguageModel>,
    calibration: Option<Calibration>,
}

const _: () = {
    const fn assert<T: Send + Sync + fmt::Debug>() {}
    assert::<Recognizer>();
    assert::<RecognizeOptions>();
    assert::<Recognition>();
    assert::<Input>();
    assert::<Error>();
};

impl Recognizer {
    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::named(&path.display().to_string(), ModelFile::open(path)?)
    }

    /// Loads the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::named("model", ModelFile::from_bytes("model", bytes)?)
    }

    /// Loads the model of the crate `comer-model-crohme`, which is licensed CC BY-NC-SA 3.0: for non-commercial use.
    #[cfg(feature = "bundled")]
    pub fn bundled() -> Result<Self> {
        Self::named("the bundled model", ModelFile::bundled()?)
    }

    /// Prepares a model.
    #[doc(hidden)]
    pub fn new(model: ModelFile) -> Result<Self> {
        Self::named(UNNAMED, model)
    }

    /// Prepares a model whose file has this name.
    #[doc(hidden)]
    pub fn named(name: &str, model: ModelFile) -> Result<Self> {
        Self::prepared(name, model).map_err(|error| error.of(name))
    }

    fn prepared(name: &str, model: ModelFile) -> Result<Self> {
        model.validate()?;
        let (encoder, decoder) = rayon::join(
            || Encoder::new(&model.config, &model.weights),
            || AnyDecoder::new(&model.config, model.vocab.len(), &model.weights),
        );
        Ok(Self {
            name: name.into(),
            encoder,
            decoder: decoder?,
            grammar: Grammar::new(&model.vocab),
            calibration: calibration(&model)?,
            config: model.config,
            vocab: model.vocab,
            provenance: model.provenance,
            language_model: model.language_model,
        })
    }

    /// Uses the language model of a file from now on. It has to be for the vocabulary of the model.
    pub fn load_language_model(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let language_model = LanguageModel::open(path)?;
        language_model.check_vocab(&self.vocab).map_err(|error| error.of(&path.display().to_string()))?;
        self.language_model = Some(language_model);
        Ok(())
    }

    /// The LaTeX tokens that the model can write.
    pub fn tokens(&self) -> &[String] {
        self.vocab.tokens()
    }

    /// The number of trained parameters.
    pub fn parameters(&self) -> usize {
        parameter_count(&self.config, self.vocab.len())
    }

    /// What the model file says about its origin: data, recipe, licence, accuracy.
    pub fn provenance(&self) -> &serde_json::Map<String, serde_json::Value> {
        &self.provenance
    }

    /// The hyper-parameters.
    #[doc(hidden)]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The encoder, for benchmarks.
    #[doc(hidden)]
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Recognises a formula with the default options.
    pub fn recognize(&self, input: &Input) -> Result<Recognition> {
        self.recognize_with(input, &RecognizeOptions::default())
    }

    /// Recognises a formula.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::DeadlineExceeded`] if the options say so, [`Error::Config`] if an option is out of
    /// range, and [`Error::Image`] if no formula within the length limit was found.
    pub fn recognize_with(&self, input: &Input, options: &RecognizeOptions) -> Result<Recognition> {
        match options.threads {
            None => self.run(input, options, true),
            Some(1) => self.run(input, options, false),
            Some(0) => {
                let expected = "at least 1".into();
                Err(Error::Config { field: "threads", found: "0".into(), expected })
            }
            Some(threads) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let pool = pool.map_err(|source| Error::Threads { threads, source })?;
                pool.install(|| self.run(input, options, true))
            }
        }
    }

    fn run(&self, input: &Input, options: &RecognizeOptions, parallel: bool) -> Result<Recognition> {
        options.search.validate()?;
        let beam = options.search.beam.max(options.search.answers);
        let fixed = options.constraints.resolve(&self.vocab, options.search.max_length - 1)?;
        let mut search = SearchConfig { beam, fixed, ..options.search.clone() };
        if self.config.directions == Directions::LeftToRight && search.strategy == Strategy::Joint {
            search.strategy = Strategy::LeftToRight;
        }
        options.interrupt()?;
        let encode = if parallel { Encoder::encode } else { Encoder::encode_alone };
        let features = encode(&self.encoder, input.image())?;
        options.interrupt()?;
        let mut state = self.decoder.start(&features)?;
        if parallel {
            state.on_all_cores();
        }
        let language_model = self.language_model.as_ref();
        let answers =
            search::search(&mut state, &search, &self.grammar, language_model, &|| options.interrupt())?;
        let mut candidates = answers.iter().map(|answer| self.candidate(answer));
        let best = candidates.next().ok_or_else(|| {
            let constraints = if search.fixed.is_empty() { "" } else { " with the fixed tokens" };
            let reason =
                format!("no formula of less than {} tokens{constraints} was found", search.max_length);
            Error::Image { width: input.image().width(), height: input.image().height(), reason }
        })?;
        if !best.score.is_finite() {
            let reason =
                format!("its output is {}, expected finite numbers: its weights are damaged", best.score);
            return Err(Error::ModelFile { name: self.name.clone(), reason });
        }
        let alignment = match options.alignment {
            AlignmentDetail::None => None,
            detail => {
                options.interrupt()?;
                Some(self.aligner(input, &features, &mut state).align(&answers[0].tokens, detail)?)
            }
        };
        Ok(Recognition { best, alternatives: candidates.collect(), alignment })
    }

    /// Where the model would read the tokens of a given formula, with [full](AlignmentDetail::Full) detail.
    pub fn align(&self, input: &Input, latex: &str) -> Result<Alignment> {
        let tokens = self.vocab.encode_tokens(latex::tokenize(latex))?;
        let features = self.encoder.encode(input.image())?;
        let mut state = self.decoder.start(&features)?;
        self.aligner(input, &features, &mut state).align(&tokens, AlignmentDetail::Full)
    }

    fn aligner<'a, 'b>(
        &'a self,
        input: &'a Input,
        features: &'a Features,
        state: &'a mut AnyState<'b>,
    ) -> Aligner<'a, 'b> {
        Aligner { config: &self.config, vocab: &self.vocab, input, features, state }
    }

    fn candidate(&self, answer: &Answer) -> Candidate {
        let token = |(index, &id): (usize, &TokenId)| {
            let confidence = match (self.calibration, answer.token_confidence(index)) {
                // A fixed token is certain.
                (Some(own), confidence) if confidence < 1.0 => own.token.apply(confidence, 1),
                (_, confidence) => confidence,
            };
            (id > EOS).then(|| Token::new(self.vocab.token(id).unwrap_or_default(), confidence))
        };
        let tokens: Vec<Token> = answer.tokens.iter().enumerate().filter_map(token).collect();
        let confidence = match self.calibration {
            Some(own) if answer.by_direction.len() > 1 => own.joint.apply(answer.confidence(), tokens.len()),
            Some(own) => own.one_direction.apply(answer.confidence(), tokens.len()),
            None => answer.confidence(),
        };
        Candidate {
            latex: latex::write(tokens.iter().map(|token| token.text.as_str())),
            tokens,
            confidence,
            score: answer.score,
        }
    }
}

/// The calibration of a model, if its file has one.
fn calibration(model: &ModelFile) -> Result<Option<Calibration>> {
    let Some(value) = model.provenance.get(calibration::KEY) else { return Ok(None) };
    let wrong = |reason| Error::ModelFile { name: UNNAMED.into(), reason };
    let calibration: Calibration = serde_json::from_value(value.clone())
        .map_err(|error| wrong(format!("its calibration does not parse: {error}")))?;
    calibration.check().map_err(wrong)?;
    Ok(Some(calibration))
}

impl fmt::Debug for Recognizer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter
            .debug_struct("Recognizer")
            .field("config", &self.config)
            .field("tokens", &self.tokens().len())
            .field("provenance", &self.provenance)
            .finish_non_exhaustive()
    }
}
