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

    /// The probability that each symbol is correct and stands in its place; `None` for tokens without ink
    /// ([`Token::has_ink`]).
    ///
    /// It is the product of the confidences of its own token and of the braces and scripts that belong to it: an opening
    /// brace or a script to the next symbol, a closing brace to the symbol before it.
    pub fn symbol_confidences(&self) -> Vec<Option<f32>> {
        let tokens = &self.tokens;
        let mut symbols: Vec<Option<f32>> =
            tokens.iter().map(|token| token.has_ink().then_some(token.confidence)).collect();
        let inked = |index: &usize| tokens[*index].has_ink();
        for (index, token) in tokens.iter().enumerate().filter(|(_, token)| !token.has_ink()) {
            let owner = match token.text.as_str() {
                "}" => (0..index).rfind(inked),
                _ => (index..tokens.len()).find(inked),
            };
            // A group without ink at the end or the start belongs to the first symbol.
            if let Some(owner) = owner.or_else(|| (0..tokens.len()).find(inked)) {
                symbols[owner] = symbols[owner].map(|confidence| confidence * token.confidence);
            }
        }
        symbols
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_scripts_belong_to_the_symbols_beside_them() {
        let half = |words: &str, doubtful: &[usize]| {
            let words = words.split(' ').enumerate();
            let token = |(index, word): (usize, &str)| {
                Token::new(word, if doubtful.contains(&index) { 0.5 } else { 1.0 })
            };
            let candidate = Candidate {
                latex: String::new(),
                tokens: words.map(token).collect(),
                confidence: 1.0,
                score: 0.0,
            };
            let found = candidate.symbol_confidences();
            let written = found.iter().map(|symbol| symbol.map_or("-".into(), |symbol| symbol.to_string()));
            written.collect::<Vec<_>>().join(" ")
        };
        for (words, doubtful, expected) in [
            ("x ^ { 2 }", vec![0], "0.5 - - 1 -"),
            // A script, an opening and a closing brace; all of them.
            ("x ^ { 2 }", vec![1], "1 - - 0.5 -"),
            ("x ^ { 2 }", vec![2], "1 - - 0.5 -"),
            ("x ^ { 2 }", vec![4], "1 - - 0.5 -"),
            ("x ^ { 2 }", vec![1, 2, 3, 4], "1 - - 0.0625 -"),
            // The first and the last symbol of a group, and of nested groups.
            ("e ^ { n + 1 } !", vec![1, 6], "1 - - 0.5 1 0.5 - 1"),
            (r"\frac { a } { b _ { i } }", vec![1, 4, 9], "1 - 0.5 - - 0.5 - - 0.5 - -"),
            (r"\frac { a } { b _ { i } }", vec![10], "1 - 1 - - 1 - - 0.5 - -"),
            (r"\sum \limits _ { i }", vec![1], "1 - - - 0.5 -"),
            // Without ink on that side.
            ("} x { }", vec![0, 2], "- 0.25 - -"),
            ("{ }", vec![0], "- -"),
        ] {
            assert_eq!(half(words, &doubtful), expected, "{words} {doubtful:?}");
        }
    }
}
