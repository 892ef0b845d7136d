//! How well a model reads what it has not learnt from: by the engine that will read for its users, not by the network that learns.

use comer::internal::{ModelFile, SearchConfig};
use comer::{Input, RecognizeOptions, Recognizer};
use rayon::prelude::*;

use crate::error::Result;
use crate::sample::Sample;

/// What a validation found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Validated {
    /// Pictures read.
    pub pictures: usize,
    /// Those read without any fault.
    pub right: usize,
}

impl Validated {
    /// The share of formulas without any fault (ExpRate by token match).
    pub fn exp_rate(&self) -> f64 {
        self.right as f64 / self.pictures.max(1) as f64
    }
}

/// Reads the samples at a size factor and counts those whose tokens are all right.
pub fn validate(
    model: ModelFile,
    samples: &[&Sample],
    search: &SearchConfig,
    size: f64,
) -> Result<Validated> {
    let vocab = model.vocab.clone();
    let recognizer = Recognizer::new(model)?;
    let options = RecognizeOptions::new().search(search.clone()).threads(1);
    let input = |sample: &&Sample| {
        let picture = sample.picture()?;
        Input::from_image(if size == 1.0 { picture.into_owned() } else { picture.scale(size)? })
    };
    let inputs: Vec<Input> = samples.iter().map(input).collect::<comer::Result<_>>()?;
    let right = inputs.par_iter().with_max_len(1).zip(samples).filter(|(input, sample)| {
        let recognition = recognizer.recognize_with(input, &options);
        recognition.is_ok_and(|recognition| recognition.best.tokenized() == vocab.decode(&sample.tokens))
    });
    Ok(Validated { pictures: samples.len(), right: right.count() })
}
