//! The vocabulary of a model: any list of LaTeX tokens, after three reserved ones.

use std::collections::HashMap;

use crate::error::{Error, Result};
pub use crate::token::{EOS, PAD, SOS, TokenId};

const RESERVED: [&str; 3] = ["<pad>", "<sos>", "<eos>"];

/// The 110 tokens of the CROHME competitions, in their usual order.
const CROHME: &str = r"
    ! ( ) + , - . / 0 1 2 3 4 5 6 7 8 9 < = > A B C E F G H I L M N P R S T V X Y [ \Delta \Pi
    \alpha \beta \cdot \cdots \cos \div \exists \forall \frac \gamma \geq \in \infty \int \lambda
    \ldots \leq \lim \limits \log \mu \neq \phi \pi \pm \prime \rightarrow \sigma \sin \sqrt \sum
    \tan \theta \times \{ \} ] ^ _ a b c d e f g h i j k l m n o p q r s t u v w x y z { | }
";

/// A list of distinct tokens and their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocab {
    tokens: Vec<String>,
    ids: HashMap<String, TokenId>,
}

impl Vocab {
    /// Numbers `tokens` from 3 on, after `<pad>`, `<sos>` and `<eos>`.
    pub fn new<S: Into<String>>(tokens: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut vocab = Self { tokens: Vec::new(), ids: HashMap::new() };
        for token in RESERVED.map(String::from).into_iter().chain(tokens.into_iter().map(Into::into)) {
            let wrong = |expected| Error::Vocab { token: token.clone(), expected };
            if token.is_empty() || token.chars().any(char::is_whitespace) {
                return Err(wrong("a token without white space"));
            }
            let id =
                TokenId::try_from(vocab.tokens.len()).map_err(|_| wrong("at most 65536 tokens in all"))?;
            if vocab.ids.insert(token.clone(), id).is_some() {
                return Err(wrong("each token once, and none of <pad>, <sos>, <eos>"));
            }
            vocab.tokens.push(token);
        }
        Ok(vocab)
    }

    /// The tokens of the CROHME competitions, as in the paper's models.
    pub fn crohme() -> Self {
        Self::new(CROHME.split_whitespace()).expect("the list is one of distinct tokens")
    }

    /// Reads one token per line, as in CROHME's `dictionary.txt`; empty lines are skipped.
    pub fn from_lines(text: &str) -> Result<Self> {
        Self::new(text.lines().map(str::trim).filter(|line| !line.is_empty()))
    }

    /// How many tokens there are, the reserved ones included.
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary always has its reserved tokens")]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The tokens after the reserved ones, in the order of their numbers.
    pub fn tokens(&self) -> &[String] {
        &self.tokens[RESERVED.len()..]
    }

    /// The id of `token`, if the vocabulary has it.
    pub fn id(&self, token: &str) -> Option<TokenId> {
        self.ids.get(token).copied()
    }

    /// The token with this number.
    pub fn token(&self, id: TokenId) -> Option<&str> {
        self.tokens.get(usize::from(id)).map(String::as_str)
    }

    /// The ids of a formula whose tokens are separated by white space.
    pub fn encode(&self, formula: &str) -> Result<Vec<TokenId>> {
        self.encode_tokens(formula.split_whitespace())
    }

    /// The ids of tokens.
    pub fn encode_tokens<'a>(&self, tokens: impl IntoIterator<Item = &'a str>) -> Result<Vec<TokenId>> {
        tokens
            .into_iter()
            .map(|token| {
                self.id(token)
                    .filter(|&id| id > EOS)
                    .ok_or_else(|| Error::UnknownToken { token: token.into() })
            })
            .collect()
    }

    /// The tokens of ids, separated by spaces; reserved and unknown numbers are skipped.
    pub fn decode(&self, ids: &[TokenId]) -> String {
        let words: Vec<&str> = ids.iter().filter(|&&id| id > EOS).filter_map(|&id| self.token(id)).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_start_after_the_reserved_tokens() {
        let vocab = Vocab::from_lines("!\nx\n\n\\frac\n").unwrap();
        assert_eq!((vocab.id("<pad>"), vocab.id("!"), vocab.len()), (Some(PAD), Some(3), 6));
        assert_eq!(vocab.encode("x \\frac !").unwrap(), [4, 5, 3]);
        assert_eq!(vocab.decode(&[SOS, 4, 5, 3, EOS, 999]), "x \\frac !");
    }

    #[test]
    fn bad_lists_and_unknown_tokens_are_refused_by_name() {
        for (tokens, named) in
            [(vec!["a", "a"], "\"a\""), (vec!["<eos>"], "<eos>"), (vec!["a b"], "a b"), (vec![""], "\"\"")]
        {
            let message = Vocab::new(tokens).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
        assert!(Vocab::new((0..70_000).map(|i| i.to_string())).is_err());
        let vocab = Vocab::new(["x"]).unwrap();
        assert!(vocab.encode("x y").unwrap_err().to_string().contains("\"y\""));
        assert!(vocab.encode("<eos>").is_err());
    }
}
