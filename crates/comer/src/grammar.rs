//! Which token may come next so that the formula stays well-formed LaTeX, read from either side.
//!
//! Well-formed means: braces balance and hold something; commands and scripts have their arguments, in braces; scripts
//! have a base, and no base has two of a kind; `\limits` stands between an operator and a script; `\left` and `\right`,
//! `\begin{x}` and `\end{x}` match; and the formula can still be finished within the tokens that are left.
//!
//! Each reading direction has its own pushdown automaton over the same kinds of tokens; a beam carries a [`GrammarState`].
//! The automata accept the same formulas, which the tests check one by one for all short ones.

mod kind;
mod state;

pub use state::GrammarState;

use crate::direction::Direction;
use crate::token::{EOS, TokenId};
use crate::vocab::Vocab;
use kind::Kind;

/// The structure of a vocabulary's formulas.
#[derive(Clone, Debug)]
pub struct Grammar {
    /// The different kinds of tokens that the vocabulary has.
    kinds: Vec<Kind>,
    /// For each token the index of its kind.
    kind_of: Vec<usize>,
    close_bracket: bool,
}

impl Grammar {
    /// Classifies the tokens of a vocabulary by their names.
    pub fn new(vocab: &Vocab) -> Self {
        let mut grammar = Self {
            kinds: vec![Kind::Never],
            kind_of: vec![0; usize::from(EOS) + 1],
            close_bracket: vocab.id("]").is_some(),
        };
        for token in vocab.tokens() {
            let kind = Kind::of(token, vocab);
            let known = grammar.kinds.iter().position(|&known| known == kind);
            grammar.kind_of.push(known.unwrap_or(grammar.kinds.len()));
            if known.is_none() {
                grammar.kinds.push(kind);
            }
        }
        grammar
    }

    /// The state before the first token.
    pub fn start(&self, direction: Direction) -> GrammarState {
        GrammarState::new(direction)
    }

    /// Marks in `allowed` which tokens may come next when `left` tokens can still be written.
    pub fn allowed(&self, state: &GrammarState, left: usize, allowed: &mut Vec<bool>) {
        let by_kind: Vec<bool> = self
            .kinds
            .iter()
            .map(|&kind| {
                let mut next = state.clone();
                next.advance(kind, self.close_bracket) && next.debt() < left
            })
            .collect();
        allowed.clear();
        allowed.extend(self.kind_of.iter().map(|&kind| by_kind[kind]));
    }

    /// The state after `token`, which must have been allowed.
    pub fn advance(&self, state: &GrammarState, token: TokenId) -> GrammarState {
        let mut next = state.clone();
        next.advance(self.kinds[self.kind_of[usize::from(token)]], self.close_bracket);
        next
    }
}

#[cfg(test)]
mod tests;
