//! The tokens of sequences of different lengths in the order of their steps, as a recurrent network reads them.

use std::ops::Range;

use super::decoder_batch::Sequence;

/// All tokens, step by step; within a step the sequences that have it, longest first. A sequence is at the same place of
/// every step that it has.
pub(super) struct PackedSteps {
    /// The sequences, longest first.
    pub order: Vec<usize>,
    /// The index of each row's token in the order of the sequences.
    tokens: Vec<usize>,
    /// The first row of each step, and the number of rows.
    starts: Vec<usize>,
}

impl PackedSteps {
    pub fn new(sequences: &[Sequence]) -> Self {
        let mut order: Vec<usize> = (0..sequences.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(sequences[index].steps()));
        let most = order.first().map_or(0, |&index| sequences[index].steps());
        let (mut tokens, mut starts) = (Vec::new(), vec![0]);
        for step in 0..most {
            let active = order.iter().map(|&index| &sequences[index]).take_while(|own| own.steps() > step);
            tokens.extend(active.map(|own| own.first + step));
            starts.push(tokens.len());
        }
        Self { order, tokens, starts }
    }

    /// Number of steps of the longest sequence.
    pub fn steps(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of a step.
    pub fn rows(&self, step: usize) -> Range<usize> {
        self.starts[step]..self.starts[step + 1]
    }

    /// Rows `[tokens][width]` in the order of the sequences to this order.
    pub fn pack(&self, values: &[f32], width: usize) -> Vec<f32> {
        self.tokens.iter().flat_map(|&token| &values[token * width..][..width]).copied().collect()
    }

    /// Writes rows `[tokens][width]` in this order to columns `column..column + width` of rows of `stride` values in the
    /// order of the sequences.
    pub fn unpack(&self, packed: &[f32], width: usize, target: &mut [f32], column: usize, stride: usize) {
        for (&token, row) in self.tokens.iter().zip(packed.chunks_exact(width)) {
            target[token * stride + column..][..width].copy_from_slice(row);
        }
    }
}
