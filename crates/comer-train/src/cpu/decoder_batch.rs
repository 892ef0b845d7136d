//! The input of the decoder: the formulas of a batch in both directions, unpadded, with the cells of their pictures.

use comer::internal::TokenId;
use comer::internal::config::{Directions, ModelConfig};
use comer::internal::vocab::{EOS, PAD, SOS};
use comer::internal::weights::Weights;

use super::grid::Grid;
use super::norm::Dropout;

/// A formula for teacher forcing: the input tokens and the target of each.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSequence {
    /// The start token, then the formula. [`PAD`] is masked.
    pub inputs: Vec<TokenId>,
    /// The formula, then the end token. [`PAD`] is ignored by the loss.
    pub targets: Vec<TokenId>,
}

impl TokenSequence {
    /// The sequences of a formula in the directions of a model. There are always two: of a model that only writes from left to
    /// right, the second is a step without a target.
    pub fn of_formula(formula: &[TokenId], directions: Directions) -> [Self; 2] {
        let [left, right] = Self::both_directions(formula);
        match directions {
            Directions::Both => [left, right],
            Directions::LeftToRight => [left, Self { inputs: vec![EOS], targets: vec![PAD] }],
        }
    }

    /// A formula from left to right and from right to left.
    pub fn both_directions(formula: &[TokenId]) -> [Self; 2] {
        let sequence = |tokens: Vec<TokenId>, start, end| Self {
            inputs: [&[start], &tokens[..]].concat(),
            targets: [&tokens[..], &[end]].concat(),
        };
        let reversed = formula.iter().rev().copied().collect();
        [sequence(formula.to_vec(), SOS, EOS), sequence(reversed, EOS, SOS)]
    }
}

/// A token sequence and the position of its values in the buffers of the batch.
pub(super) struct Sequence<'a> {
    pub tokens: &'a TokenSequence,
    /// Index of its first token among all tokens.
    pub first: usize,
    /// Rows and columns of the cells of its picture.
    pub height: usize,
    pub width: usize,
    /// Offset of its attention weights among those of all sequences.
    pub offset: usize,
}

impl Sequence<'_> {
    pub fn steps(&self) -> usize {
        self.tokens.inputs.len()
    }

    pub fn cells(&self) -> usize {
        self.height * self.width
    }

    /// True if a token is padding.
    pub fn is_hidden(&self, step: usize) -> bool {
        self.tokens.inputs[step] == PAD
    }
}

/// Where dropout is applied; each place has its own mask.
#[derive(Clone, Copy)]
pub(super) enum Site {
    SelfWeights,
    SelfBranch,
    PlainWeights,
    CrossWeights,
    CrossBranch,
    Inner,
    FeedForwardBranch,
}

/// The weights and the input of the decoder. The two sequences of a picture follow each other.
pub(super) struct DecoderBatch<'a> {
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub seed: u32,
    pub cells: Grid,
    pub sequences: Vec<Sequence<'a>>,
    pub tokens: usize,
}

impl<'a> DecoderBatch<'a> {
    /// # Panics
    /// If there are not two sequences for each picture, or a sequence is empty or has not as many targets as inputs.
    pub fn new(
        config: &'a ModelConfig,
        weights: &'a Weights,
        seed: u32,
        cells: Grid,
        token_sequences: &'a [TokenSequence],
    ) -> Self {
        assert_eq!(token_sequences.len(), 2 * cells.sizes.len(), "every picture has two sequences");
        let (mut first, mut offset) = (0, 0);
        let mut sequences = Vec::with_capacity(token_sequences.len());
        for (index, tokens) in token_sequences.iter().enumerate() {
            let steps = tokens.inputs.len();
            assert!(steps > 0 && steps == tokens.targets.len(), "every input has a target");
            let (height, width) = cells.sizes[index / 2];
            sequences.push(Sequence { tokens, first, height, width, offset });
            first += steps;
            offset += config.heads * steps * height * width;
        }
        Self { config, weights, seed, cells, sequences, tokens: first }
    }

    /// The dropout of a layer, if the model has dropout.
    pub fn dropout(&self, layer: usize, site: Site) -> Option<Dropout> {
        self.dropout_of(self.config.dropout, layer, site)
    }

    /// As [`Self::dropout`], with another rate. Seeds count down; those of the encoder count up.
    pub fn dropout_of(&self, rate: f64, layer: usize, site: Site) -> Option<Dropout> {
        let number = 7 * layer as u32 + site as u32 + 1;
        let seed = self.seed.wrapping_mul(1009).wrapping_sub(number);
        (rate > 0.0).then(|| Dropout::new(rate, seed))
    }

    /// The sequences of each picture.
    pub fn pairs(&self) -> &[[Sequence<'a>; 2]] {
        self.sequences.as_chunks().0
    }

    /// Splits values of `[tokens][width]` by pairs of sequences.
    pub fn tokens_of_pairs<'v>(&self, values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        split_lengths(values, self.pairs().iter().map(|[a, b]| (a.steps() + b.steps()) * width))
    }

    /// Splits values of `[tokens][width]` by sequences.
    pub fn tokens_of_sequences<'v>(&self, values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        split_lengths(values, self.sequences.iter().map(|sequence| sequence.steps() * width))
    }

    /// Splits values of `[cells][width]` by pictures.
    pub fn cells_of_pairs<'v>(&self, values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        split_lengths(values, self.cells.sizes.iter().map(|(rows, columns)| rows * columns * width))
    }
}

/// Splits a slice into parts of these lengths.
pub(super) fn split_lengths(mut values: &mut [f32], lengths: impl Iterator<Item = usize>) -> Vec<&mut [f32]> {
    let next = |length| values.split_off_mut(..length).expect("the lengths add up to at most the slice");
    lengths.map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_starts_with_the_end_token_of_the_other() {
        let [left, right] = TokenSequence::both_directions(&[7, 8]);
        assert_eq!((left.inputs, left.targets), (vec![1, 7, 8], vec![7, 8, 2]));
        assert_eq!((right.inputs, right.targets), (vec![2, 8, 7], vec![8, 7, 1]));
    }
}
