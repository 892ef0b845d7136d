//! What is known about a formula before it is read.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::token::TokenId;
use crate::vocab::Vocab;

/// Tokens that the formula must have, such as those that a user has confirmed or corrected.
///
/// ```
/// use comer::{Constraints, RecognizeOptions};
///
/// // The formula starts with `2 +`, and its fourth token is `z`.
/// let known = Constraints::new().prefix(["2", "+"]).token(3, "z");
/// let options = RecognizeOptions::new().constraints(known);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    tokens: BTreeMap<usize, String>,
}

impl Constraints {
    /// Allows every formula.
    pub fn new() -> Self {
        Self::default()
    }

    /// The formula starts with these tokens.
    pub fn prefix(mut self, tokens: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tokens.extend(tokens.into_iter().map(Into::into).enumerate());
        self
    }

    /// The token at `position`, counted from 0, is `token`.
    pub fn token(mut self, position: usize, token: impl Into<String>) -> Self {
        self.tokens.insert(position, token.into());
        self
    }

    /// Parses `{"prefix": ["2", "+"], "tokens": {"3": "z"}}`. Both parts are optional.
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parts {
            #[serde(default)]
            prefix: Vec<String>,
            #[serde(default)]
            tokens: BTreeMap<usize, String>,
        }
        let parts: Parts = serde_json::from_str(text).map_err(|error| Error::Config {
            field: "constraints",
            found: format!("{text:?} ({error})"),
            expected: r#"JSON such as {"prefix": ["2", "+"], "tokens": {"3": "z"}}"#.into(),
        })?;
        let mut constraints = Self::new().prefix(parts.prefix);
        constraints.tokens.extend(parts.tokens);
        Ok(constraints)
    }

    /// The numbers of the fixed tokens by position, up to the last of them, which is below `most`.
    pub(crate) fn resolve(&self, vocab: &Vocab, most: usize) -> Result<Vec<Option<TokenId>>> {
        let length = self.tokens.keys().next_back().map_or(0, |last| last.saturating_add(1));
        if length > most {
            let found = format!("a token at position {}", length - 1);
            let expected = format!("positions below {most}, the most tokens of a formula");
            return Err(Error::Config { field: "constraints", found, expected });
        }
        let mut fixed = vec![None; length];
        let ids = vocab.encode_tokens(self.tokens.values().map(String::as_str))?;
        self.tokens.keys().zip(ids).for_each(|(&position, id)| fixed[position] = Some(id));
        Ok(fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_methods_say_the_same() {
        let text = r#"{"prefix": ["2", "+"], "tokens": {"3": "z"}}"#;
        let constraints = Constraints::from_json(text).unwrap();
        assert_eq!(constraints, Constraints::new().prefix(["2", "+"]).token(3, "z"));
        let vocab = Vocab::new(["2", "+", "z"]).unwrap();
        assert_eq!(constraints.resolve(&vocab, 4).unwrap(), [Some(3), Some(4), None, Some(5)]);
        assert_eq!(Constraints::from_json("{}").unwrap().resolve(&vocab, 4).unwrap(), []);
    }

    #[test]
    fn bad_ones_are_refused_by_name() {
        for text in ["", "7", r#"{"sufix": []}"#, r#"{"prefix": "2"}"#, r#"{"tokens": {"-1": "z"}}"#] {
            let message = Constraints::from_json(text).unwrap_err().to_string();
            assert!(message.contains("constraints") && message.contains("expected JSON"), "{message}");
        }
        let vocab = Vocab::new(["z"]).unwrap();
        let far = Constraints::new().token(usize::MAX, "z").resolve(&vocab, 199).unwrap_err();
        assert!(far.to_string().contains("positions below 199"), "{far}");
        let unknown = Constraints::new().token(0, "y").resolve(&vocab, 199).unwrap_err();
        assert!(matches!(unknown, Error::UnknownToken { .. }), "{unknown}");
    }
}
