//! The whole way from a picture to LaTeX, behind one type.

use std::path::Path;

use rayon::prelude::*;

use crate::alignment::{Aligner, Alignment, AlignmentDetail};
use crate::config::{ModelConfig, SearchConfig, Strategy};
use crate::engine::Features;
use crate::engine::decoder::Decoder;
use crate::engine::decoder_state::DecoderState;
use crate::engine::encoder::Encoder;
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::image::Image;
use crate::model_file::{ModelFile, Provenance};
use crate::search::{self, Answer};
use crate::token::{EOS, Token};
use crate::vocab::Vocab;

/// A model that is ready to read pictures. It can be shared between threads.
pub struct Recognizer {
    config: ModelConfig,
    vocab: Vocab,
    provenance: Provenance,
    encoder: Encoder,
    decoder: Decoder,
    grammar: Grammar,
}

/// What is wanted of a recognition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How to search, and for how many answers.
    pub search: SearchConfig,
    /// How much to tell about where in the picture the best answer was read.
    pub alignment: AlignmentDetail,
}

/// What was read from a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Recognition {
    /// The best formula.
    pub best: Formula,
    /// The next best ones, if more than one was asked for.
    pub alternatives: Vec<Formula>,
    /// Where the tokens of the best formula were read, if asked for.
    pub alignment: Option<Alignment>,
}

/// A formula as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// Its tokens with spaces between them, which is valid LaTeX.
    pub latex: String,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// The probability that all of it is right, in 0..=1, as the model sees it.
    pub confidence: f32,
    /// The sum of both directions' mean logarithms, by which formulas are ranked: 0 would be certain.
    pub score: f32,
}

impl Recognizer {
    /// Opens a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(ModelFile::open(path)?)
    }

    /// Opens the model that comes with this crate ([`ModelFile::bundled`]).
    #[cfg(feature = "bundled")]
    pub fn bundled() -> Result<Self> {
        Self::new(ModelFile::bundled()?)
    }

    /// Prepares a model.
    pub fn new(model: ModelFile) -> Result<Self> {
        model.validate()?;
        let (encoder, decoder) = rayon::join(
            || Encoder::new(&model.config, &model.weights),
            || Decoder::new(&model.config, model.vocab.len(), &model.weights),
        );
        Ok(Self {
            encoder,
            decoder: decoder?,
            grammar: Grammar::new(&model.vocab),
            config: model.config,
            vocab: model.vocab,
            provenance: model.provenance,
        })
    }

    /// The shape of the model.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The tokens that it writes.
    pub fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    /// What made it.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The encoder, for those who measure.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Reads a picture of white ink on black, brought within the size limits if it is not. Uses all cores; the result
    /// does not depend on their number.
    pub fn recognize(&self, picture: &Image, options: &Options) -> Result<Recognition> {
        self.read(picture, options, false, &|| false)
    }

    /// As [`Self::recognize`], but stays on the thread that calls: for those who read several pictures at once.
    pub fn recognize_alone(&self, picture: &Image, options: &Options) -> Result<Recognition> {
        self.read(picture, options, true, &|| false)
    }

    /// As [`Self::recognize_alone`], but ends with [`Error::Stopped`] once `stop` says that nobody wants the answer any
    /// more; it is asked before each step.
    pub fn recognize_unless(
        &self,
        picture: &Image,
        options: &Options,
        stop: &dyn Fn() -> bool,
    ) -> Result<Recognition> {
        self.read(picture, options, true, stop)
    }

    fn read(
        &self,
        picture: &Image,
        options: &Options,
        alone: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Recognition> {
        options.search.validate()?;
        let check = || if stop() { Err(Error::Stopped) } else { Ok(()) };
        check()?;
        let picture = picture.clone().fit()?;
        let encode = if alone { Encoder::encode_alone } else { Encoder::encode };
        let features = encode(&self.encoder, &picture)?;
        check()?;
        let mut reading = self.decoder.start(&features)?;
        if !alone {
            reading.on_all_cores();
        }
        let answers = search::search(&mut reading, &options.search, &self.grammar, &check)?;
        let mut formulas = answers.iter().map(|answer| self.formula(answer));
        let best = formulas.next().ok_or_else(|| {
            let reason = "no formula was found within the length limit".into();
            Error::Image { width: picture.width(), height: picture.height(), reason }
        })?;
        let alignment =
            self.aligner(&picture, &features, &mut reading).align(&answers[0].tokens, options.alignment)?;
        Ok(Recognition { best, alternatives: formulas.collect(), alignment })
    }

    /// How the model reads a picture as a formula that is given to it, its tokens with spaces between them. `None` if
    /// no detail is wanted.
    pub fn align(
        &self,
        picture: &Image,
        formula: &str,
        detail: AlignmentDetail,
    ) -> Result<Option<Alignment>> {
        let tokens = self.vocab.encode(formula)?;
        let picture = picture.clone().fit()?;
        let features = self.encoder.encode(&picture)?;
        let mut reading = self.decoder.start(&features)?;
        self.aligner(&picture, &features, &mut reading).align(&tokens, detail)
    }

    fn aligner<'a, 'b>(
        &'a self,
        picture: &'a Image,
        features: &'a Features,
        reading: &'a mut DecoderState<'b>,
    ) -> Aligner<'a, 'b> {
        Aligner { config: &self.config, vocab: &self.vocab, picture, features, reading }
    }

    /// Reads many pictures, several at a time; answers in their order.
    pub fn recognize_batch(&self, pictures: &[Image], options: &Options) -> Vec<Result<Recognition>> {
        pictures.par_iter().with_max_len(1).map(|picture| self.recognize_alone(picture, options)).collect()
    }

    fn formula(&self, answer: &Answer) -> Formula {
        let token = |(index, id): (usize, &u16)| Token {
            text: self.vocab.token(*id).unwrap_or_default().to_string(),
            confidence: answer.token_confidence(index),
        };
        let visible = answer.tokens.iter().enumerate().filter(|(_, id)| **id > EOS);
        Formula {
            latex: self.vocab.decode(&answer.tokens),
            tokens: visible.map(token).collect(),
            confidence: answer.confidence(),
            score: answer.score,
        }
    }
}

impl Options {
    /// The quickest: one prefix, from the left only.
    pub fn greedy() -> Self {
        let search = SearchConfig { strategy: Strategy::Greedy, ..SearchConfig::default() };
        Self { search, ..Self::default() }
    }
}
