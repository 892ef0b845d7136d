//! The result of a recognition.

use crate::alignment::Alignment;
use crate::token::Token;

/// What was recognised.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recognition {
    /// The best candidate.
    pub best: Candidate,
    /// The next best candidates, best first, if more than one was asked for.
    pub alternatives: Vec<Candidate>,
    /// Where the tokens of the best candidate were read, if asked for.
    pub alignment: Option<Alignment>,
}

impl Recognition {
    /// The LaTeX of the best candidate.
    pub fn latex(&self) -> &str {
        &self.best.latex
    }

    /// All candidates, best first.
    pub fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        std::iter::once(&self.best).chain(&self.alternatives)
    }
}

/// A formula that the input may show.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// Compact LaTeX, such as `\frac{x^{2}}{2}`.
    pub latex: String,
    /// The tokens, such as `\frac`, `{`, `x`.
    pub tokens: Vec<Token>,
    /// The probability that the whole formula is correct, in `0.0..=1.0`, as the model estimates it.
    pub confidence: f32,
    /// What candidates are ranked by: the sum over both directions of the mean log-probability of a token. At most 0.
    pub score: f32,
}

impl Candidate {
    /// The tokens separated by spaces, as in the captions of CROHME: `\frac { x ^ { 2 } } { 2 }`.
    pub fn tokenized(&self) -> String {
        let words: Vec<&str> = self.tokens.iter().map(|token| token.text.as_str()).collect();
        words.join(" ")
    }
}
