//! Formulas as the decoder learns them: each one read from the left and, in the same batch, from the right.

use burn::prelude::*;
use burn::tensor::activation::log_softmax;
use comer::internal::TokenId;
use comer::internal::vocab::{EOS, PAD, SOS};

/// What the decoder is given and what it should answer, the formulas from the left before those from the right.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// Twice the number of formulas.
    pub rows: usize,
    /// One more than the tokens of the longest formula.
    pub steps: usize,
    /// `[rows, steps]`: the start token, then the formula.
    pub inputs: Vec<i32>,
    /// `[rows, steps]`: the formula, then the end token.
    pub answers: Vec<i32>,
}

impl Targets {
    /// Both readings of `formulas`.
    pub fn new(formulas: &[Vec<TokenId>]) -> Self {
        let steps = formulas.iter().map(Vec::len).max().unwrap_or(0) + 1;
        let rows = 2 * formulas.len();
        let (mut inputs, mut answers) = (Vec::with_capacity(rows * steps), Vec::with_capacity(rows * steps));
        let from_right: Vec<Vec<TokenId>> =
            formulas.iter().map(|f| f.iter().rev().copied().collect()).collect();
        for (readings, start, end) in [(formulas, SOS, EOS), (&from_right[..], EOS, SOS)] {
            for tokens in readings {
                let padding = std::iter::repeat_n(PAD, steps - 1 - tokens.len());
                let row = |first: Option<TokenId>, last: Option<TokenId>| {
                    first
                        .into_iter()
                        .chain(tokens.iter().copied())
                        .chain(last)
                        .chain(padding.clone())
                        .map(i32::from)
                };
                inputs.extend(row(Some(start), None));
                answers.extend(row(None, Some(end)));
            }
        }
        Self { rows, steps, inputs, answers }
    }

    /// The inputs as a tensor: `[rows, steps]`
    pub fn inputs(&self, device: &Device) -> Tensor<2, Int> {
        Tensor::from_data(TensorData::new(self.inputs.clone(), [self.rows, self.steps]), device)
    }

    /// How many answers are not padding.
    pub fn count(&self) -> usize {
        self.answers.iter().filter(|&&token| token != i32::from(PAD)).count()
    }

    /// How many answers that are not padding have the greatest of the `logits` (`[rows, steps, tokens]`).
    pub fn correct(&self, logits: Tensor<3>) -> usize {
        let tokens = logits.dims()[2];
        let logits = logits.into_data().try_to_vec::<f32>().expect("logits are f32");
        let greatest = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        let rows = self.answers.iter().zip(logits.chunks_exact(tokens));
        let right = rows.filter(|(answer, row)| {
            **answer != i32::from(PAD) && greatest(row) == usize::try_from(**answer).ok()
        });
        right.count()
    }

    /// [`Self::loss`] with a share `smoothing` of each answer spread over all tokens.
    pub fn smooth_loss(&self, logits: Tensor<3>, smoothing: f64) -> Tensor<1> {
        if smoothing == 0.0 {
            return self.loss(logits);
        }
        let [rows, steps, tokens] = logits.dims();
        let present: Vec<f32> =
            self.answers.iter().map(|&token| f32::from(u8::from(token != i32::from(PAD)))).collect();
        let present: Tensor<1> =
            Tensor::from_data(TensorData::new(present, [rows * steps]), &logits.device());
        let logarithms = log_softmax(logits.clone().reshape([rows * steps, tokens]), 1);
        let spread: Tensor<1> = logarithms.mean_dim(1).squeeze_dim(1);
        let spread = (spread * present).sum().neg() / self.count() as f32;
        self.loss(logits) * (1.0 - smoothing) + spread * smoothing
    }

    /// Cross entropy of `logits` (`[rows, steps, tokens]`): the mean over the answers that are not padding.
    pub fn loss(&self, logits: Tensor<3>) -> Tensor<1> {
        let device = logits.device();
        let [rows, steps, tokens] = logits.dims();
        let answers: Tensor<1, Int> =
            Tensor::from_data(TensorData::new(self.answers.clone(), [rows * steps]), &device);
        let present = answers.clone().not_equal_elem(i64::from(PAD)).float();
        let log_probabilities = log_softmax(logits.reshape([rows * steps, tokens]), 1);
        let chosen: Tensor<1> = log_probabilities.gather(1, answers.unsqueeze_dim(1)).squeeze_dim(1);
        (chosen * present).sum().neg() / self.count() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_start_and_end_with_the_other_ones_token() {
        let targets = Targets::new(&[vec![7, 8], vec![9]]);
        assert_eq!((targets.rows, targets.steps), (4, 3));
        assert_eq!(targets.inputs, [1, 7, 8, 1, 9, 0, 2, 8, 7, 2, 9, 0]);
        assert_eq!(targets.answers, [7, 8, 2, 9, 2, 0, 8, 7, 1, 9, 1, 0]);
    }
}
