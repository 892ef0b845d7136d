//! What the decoder reads: the formulas of a batch in both directions, each sequence in its own length beside the cells
//! of its own picture.

use comer::internal::TokenId;
use comer::internal::config::ModelConfig;
use comer::internal::vocab::{EOS, PAD, SOS};
use comer::internal::weights::Weights;

use super::grid::Grid;
use super::norm::Drop;

/// A formula as the decoder learns it: what it is given and what it should answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The start token, then the formula. What is [`PAD`] is hidden from the tokens after it.
    pub inputs: Vec<TokenId>,
    /// The formula, then the end token. What is [`PAD`] does not count.
    pub targets: Vec<TokenId>,
}

impl Reading {
    /// A formula read from the left and from the right.
    pub fn both(formula: &[TokenId]) -> [Self; 2] {
        let reading = |tokens: Vec<TokenId>, start, end| Self {
            inputs: [&[start], &tokens[..]].concat(),
            targets: [&tokens[..], &[end]].concat(),
        };
        let reversed = formula.iter().rev().copied().collect();
        [reading(formula.to_vec(), SOS, EOS), reading(reversed, EOS, SOS)]
    }
}

/// One reading and where its numbers lie.
pub(super) struct Sequence<'a> {
    pub reading: &'a Reading,
    /// Of its first token among all tokens.
    pub first: usize,
    /// Rows and columns of its picture's cells.
    pub height: usize,
    pub width: usize,
    /// Of its attention's first number among those of all sequences.
    pub place: usize,
}

impl Sequence<'_> {
    pub fn steps(&self) -> usize {
        self.reading.inputs.len()
    }

    pub fn cells(&self) -> usize {
        self.height * self.width
    }

    /// True where a token is padding.
    pub fn is_hidden(&self, step: usize) -> bool {
        self.reading.inputs[step] == PAD
    }
}

/// Numbers that are dropped by the same rule.
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

/// The decoder's weights and what it reads; the two sequences of a picture follow each other.
pub(super) struct Scene<'a> {
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub seed: u32,
    pub cells: Grid,
    pub sequences: Vec<Sequence<'a>>,
    pub tokens: usize,
}

impl<'a> Scene<'a> {
    /// # Panics
    /// If there are not two readings for each picture, or one has not as many targets as inputs, or none.
    pub fn new(
        config: &'a ModelConfig,
        weights: &'a Weights,
        seed: u32,
        cells: Grid,
        readings: &'a [Reading],
    ) -> Self {
        assert_eq!(readings.len(), 2 * cells.sizes.len(), "every picture has two readings");
        let (mut first, mut place) = (0, 0);
        let mut sequences = Vec::with_capacity(readings.len());
        for (index, reading) in readings.iter().enumerate() {
            let steps = reading.inputs.len();
            assert!(steps > 0 && steps == reading.targets.len(), "a reading targets each of its inputs");
            let (height, width) = cells.sizes[index / 2];
            sequences.push(Sequence { reading, first, height, width, place });
            first += steps;
            place += config.heads * steps * height * width;
        }
        Self { config, weights, seed, cells, sequences, tokens: first }
    }

    /// The rule that drops numbers of a layer, if any are dropped. The encoder counts its seeds up, these count down.
    pub fn drop(&self, layer: usize, site: Site) -> Option<Drop> {
        let number = 7 * layer as u32 + site as u32 + 1;
        let seed = self.seed.wrapping_mul(1009).wrapping_sub(number);
        (self.config.dropout > 0.0).then(|| Drop::new(self.config.dropout, seed))
    }

    /// The sequences of each picture.
    pub fn pairs(&self) -> &[[Sequence<'a>; 2]] {
        self.sequences.as_chunks().0
    }

    /// Cuts rows of `width` numbers, one for each token, at the borders of the pairs.
    pub fn tokens_of_pairs<'v>(&self, values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        cut(values, self.pairs().iter().map(|[a, b]| (a.steps() + b.steps()) * width))
    }

    /// Cuts rows of `width` numbers, one for each token, at the borders of the sequences.
    pub fn tokens_of_sequences<'v>(&self, values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        cut(values, self.sequences.iter().map(|sequence| sequence.steps() * width))
    }

    /// Cuts rows of `width` numbers, one for each cell, at the borders of the pictures.
    pub fn cells_of_pairs<'v>(&self, values: &'v mut [f32], width: usize) -> Vec<&'v mut [f32]> {
        cut(values, self.cells.sizes.iter().map(|(rows, columns)| rows * columns * width))
    }
}

pub(super) fn cut(mut values: &mut [f32], lengths: impl Iterator<Item = usize>) -> Vec<&mut [f32]> {
    let next = |length| values.split_off_mut(..length).expect("as many numbers as the parts ask for");
    lengths.map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_start_and_end_with_the_other_ones_token() {
        let [left, right] = Reading::both(&[7, 8]);
        assert_eq!((left.inputs, left.targets), (vec![1, 7, 8], vec![7, 8, 2]));
        assert_eq!((right.inputs, right.targets), (vec![2, 8, 7], vec![8, 7, 1]));
    }
}
