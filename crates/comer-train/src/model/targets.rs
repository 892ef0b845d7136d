//! Formulas as the decoder learns them: each one read from the left and, in the same batch, from the right.

use burn::prelude::*;
use burn::tensor::activation::log_softmax;
use comer::TokenId;
use comer::vocab::{EOS, PAD, SOS};

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

    /// Cross entropy of `logits` (`[rows, steps, tokens]`): the mean over the answers that are not padding.
    pub fn loss(&self, logits: Tensor<3>) -> Tensor<1> {
        let device = logits.device();
        let [rows, steps, tokens] = logits.dims();
        let answers: Tensor<1, Int> =
            Tensor::from_data(TensorData::new(self.answers.clone(), [rows * steps]), &device);
        let present = answers.clone().not_equal_elem(i64::from(PAD)).float();
        let count = self.answers.iter().filter(|&&token| token != i32::from(PAD)).count();
        let log_probabilities = log_softmax(logits.reshape([rows * steps, tokens]), 1);
        let chosen: Tensor<1> = log_probabilities.gather(1, answers.unsqueeze_dim(1)).squeeze_dim(1);
        (chosen * present).sum().neg() / count as f32
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
