//! What the search needs of a decoder.

use crate::token::TokenId;

/// A decoder that extends prefixes by one token each.
pub trait StepDecoder {
    /// The size of its vocabulary.
    fn vocab_size(&self) -> usize;

    /// Forgets all prefixes.
    fn restart(&mut self);

    /// Extends prefixes and returns the log-probabilities of the next token, `[tokens, vocab_size]`.
    ///
    /// Row `i` is the prefix of row `parents[i]` of the previous step, followed by `tokens[i]`. The first step has no
    /// previous one and ignores `parents`.
    fn step(&mut self, parents: &[usize], tokens: &[TokenId]) -> &[f32];
}
