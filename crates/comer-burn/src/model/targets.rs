//! Inputs and targets of the decoder: each formula from left to right and, in the same batch, from right to left.

use burn::prelude::*;
use burn::tensor::activation::log_softmax;
use comer::internal::TokenId;
use comer::internal::vocab::{EOS, PAD, SOS};

/// Inputs and targets for teacher forcing; formulas from left to right first, then those from right to left.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// Twice the number of formulas.
    pub rows: usize,
    /// One more than the tokens of the longest formula.
    pub steps: usize,
    /// `[rows, steps]`: the start token, then the formula.
    pub inputs: Vec<i32>,
    /// `[rows, steps]`: the formula, then the end token.
    pub targets: Vec<i32>,
}

impl Targets {
    /// Both directions of `formulas`.
    pub fn new(formulas: &[Vec<TokenId>]) -> Self {
        let steps = formulas.iter().map(Vec::len).max().unwrap_or(0) + 1;
        let rows = 2 * formulas.len();
        let (mut inputs, mut targets) = (Vec::with_capacity(rows * steps), Vec::with_capacity(rows * steps));
        let from_right: Vec<Vec<TokenId>> =
            formulas.iter().map(|f| f.iter().rev().copied().collect()).collect();
        for (sequences, start, end) in [(formulas, SOS, EOS), (&from_right[..], EOS, SOS)] {
            for tokens in sequences {
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
                targets.extend(row(None, Some(end)));
            }
        }
        Self { rows, steps, inputs, targets }
    }

    /// The inputs as a tensor: `[rows, steps]`
    pub fn inputs(&self, device: &Device) -> Tensor<2, Int> {
        Tensor::from_data(TensorData::new(self.inputs.clone(), [self.rows, self.steps]), device)
    }

    /// Number of targets that are not padding.
    pub fn count(&self) -> usize {
        self.targets.iter().filter(|&&token| token != i32::from(PAD)).count()
    }

    /// Number of targets, without padding, that have the largest of the `logits` (`[rows, steps, tokens]`).
    pub fn correct(&self, logits: Tensor<3>) -> usize {
        let tokens = logits.dims()[2];
        let logits = logits.into_data().try_to_vec::<f32>().expect("logits are f32");
        let argmax = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        let rows = self.targets.iter().zip(logits.chunks_exact(tokens));
        let correct = rows.filter(|(target, row)| {
            **target != i32::from(PAD) && argmax(row) == usize::try_from(**target).ok()
        });
        correct.count()
    }

    /// [`Self::loss`] with label smoothing: the share `smoothing` of each target is spread over all tokens.
    pub fn smooth_loss(&self, logits: Tensor<3>, smoothing: f64) -> Tensor<1> {
        if smoothing == 0.0 {
            return self.loss(logits);
        }
        let [rows, steps, tokens] = logits.dims();
        let mask: Vec<f32> =
            self.targets.iter().map(|&token| f32::from(u8::from(token != i32::from(PAD)))).collect();
        let mask: Tensor<1> = Tensor::from_data(TensorData::new(mask, [rows * steps]), &logits.device());
        let log_probs = log_softmax(logits.clone().reshape([rows * steps, tokens]), 1);
        let spread: Tensor<1> = log_probs.mean_dim(1).squeeze_dim(1);
        let spread = (spread * mask).sum().neg() / self.count() as f32;
        self.loss(logits) * (1.0 - smoothing) + spread * smoothing
    }

    /// Cross entropy of `logits` (`[rows, steps, tokens]`): the mean over targets that are not padding.
    pub fn loss(&self, logits: Tensor<3>) -> Tensor<1> {
        let device = logits.device();
        let [rows, steps, tokens] = logits.dims();
        let targets: Tensor<1, Int> =
            Tensor::from_data(TensorData::new(self.targets.clone(), [rows * steps]), &device);
        let mask = targets.clone().not_equal_elem(i64::from(PAD)).float();
        let log_probabilities = log_softmax(logits.reshape([rows * steps, tokens]), 1);
        let chosen: Tensor<1> = log_probabilities.gather(1, targets.unsqueeze_dim(1)).squeeze_dim(1);
        (chosen * mask).sum().neg() / self.count() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_starts_with_the_end_token_of_the_other() {
        let targets = Targets::new(&[vec![7, 8], vec![9]]);
        assert_eq!((targets.rows, targets.steps), (4, 3));
        assert_eq!(targets.inputs, [1, 7, 8, 1, 9, 0, 2, 8, 7, 2, 9, 0]);
        assert_eq!(targets.targets, [7, 8, 2, 9, 2, 0, 8, 7, 1, 9, 1, 0]);
    }
}
