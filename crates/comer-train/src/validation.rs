//! Validation of a model during training, with the inference engine.

use comer::internal::{ModelFile, SearchConfig};
use comer::{Input, RecognizeOptions, Recognizer};
use rayon::prelude::*;

use crate::error::Result;
use crate::sample::Sample;

/// The result of a validation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValidationResult {
    /// Number of pictures.
    pub pictures: usize,
    /// Pictures that were recognised without an error.
    pub correct: usize,
}

impl ValidationResult {
    /// The share of formulas without an error (ExpRate by token match).
    pub fn exp_rate(&self) -> f64 {
        self.correct as f64 / self.pictures.max(1) as f64
    }
}

/// Recognises the samples, scaled by `size`, and counts those whose tokens are all correct.
pub fn validate(
    model: ModelFile,
    samples: &[&Sample],
    search: &SearchConfig,
    size: f64,
) -> Result<ValidationResult> {
    if samples.is_empty() {
        return Ok(ValidationResult::default());
    }
    let vocab = model.vocab.clone();
    let recognizer = Recognizer::new(model)?;
    let options = RecognizeOptions::new().search(search.clone()).threads(1);
    let input = |sample: &&Sample| {
        let picture = sample.picture()?;
        Input::from_image(if size == 1.0 { picture } else { picture.scale(size)? })
    };
    let inputs: Vec<Input> = samples.iter().map(input).collect::<comer::Result<_>>()?;
    let correct = inputs.par_iter().with_max_len(1).zip(samples).filter(|(input, sample)| {
        let recognition = recognizer.recognize_with(input, &options);
        recognition.is_ok_and(|recognition| recognition.best.tokenized() == vocab.decode(&sample.tokens))
    });
    Ok(ValidationResult { pictures: samples.len(), correct: correct.count() })
}
