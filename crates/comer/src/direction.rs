//! The two directions in which the decoder writes a formula.

use crate::token::{EOS, SOS, TokenId};

/// The order in which the decoder writes the tokens of a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// In the order of the LaTeX.
    #[default]
    LeftToRight,
    /// The last token first.
    RightToLeft,
}

impl Direction {
    /// Both of them.
    pub(crate) const BOTH: [Self; 2] = [Direction::LeftToRight, Direction::RightToLeft];

    /// The token that starts a prefix, and the one that ends it.
    pub(crate) fn ends(self) -> (TokenId, TokenId) {
        match self {
            Direction::LeftToRight => (SOS, EOS),
            Direction::RightToLeft => (EOS, SOS),
        }
    }

    /// The opposite direction.
    pub(crate) fn other(self) -> Self {
        match self {
            Direction::LeftToRight => Direction::RightToLeft,
            Direction::RightToLeft => Direction::LeftToRight,
        }
    }

    /// Turns the order of the LaTeX into the order of writing, and back.
    pub(crate) fn order<T: Clone>(self, values: &[T]) -> Vec<T> {
        match self {
            Direction::LeftToRight => values.to_vec(),
            Direction::RightToLeft => values.iter().rev().cloned().collect(),
        }
    }
}
