//! How well a model reads what it has not learnt from: by the engine that will read for its users, not by the network that learns.

use comer::Image;
use comer::internal::recognizer::{Options, Recognizer};
use comer::internal::{ModelFile, SearchConfig};

use crate::error::Result;
use crate::samples::Sample;

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
    let options = Options { search: search.clone(), ..Options::default() };
    let resize = |sample: &&Sample| {
        let picture = sample.picture()?;
        if size == 1.0 { Ok(picture.into_owned()) } else { picture.scale(size) }
    };
    let pictures: Vec<Image> = samples.iter().map(resize).collect::<comer::Result<_>>()?;
    let readings = recognizer.recognize_batch(&pictures, &options);
    let right = readings.iter().zip(samples).filter(|(reading, sample)| {
        reading.as_ref().is_ok_and(|reading| reading.best.latex == vocab.decode(&sample.tokens))
    });
    Ok(Validated { pictures: samples.len(), right: right.count() })
}
