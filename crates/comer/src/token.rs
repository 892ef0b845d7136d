//! Tokens by number: what the engine and the search work with, without a vocabulary.

/// A token's number in its vocabulary.
pub type TokenId = u16;

/// Fills up shorter rows of a batch.
pub const PAD: TokenId = 0;
/// Starts a formula written left to right, and ends one written right to left.
pub const SOS: TokenId = 1;
/// Ends a formula written left to right, and starts one written right to left.
pub const EOS: TokenId = 2;

/// A token of a recognised formula.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Token {
    /// The LaTeX of the token, such as `x` or `\frac`.
    pub text: String,
    /// The probability that the token is correct given the other tokens, in `0.0..=1.0`.
    pub confidence: f32,
}

impl Token {
    /// A token with its confidence.
    pub fn new(text: impl Into<String>, confidence: f32) -> Self {
        Self { text: text.into(), confidence }
    }

    /// Whether the token is drawn. Braces, scripts and `\limits` only say where other tokens stand.
    pub fn has_ink(&self) -> bool {
        has_ink(&self.text)
    }
}

/// Whether a token is drawn (see [`Token::has_ink`]).
pub fn has_ink(token: &str) -> bool {
    !matches!(token, "{" | "}" | "^" | "_" | r"\limits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_scripts_have_no_ink() {
        for (token, expected) in [
            ("x", true),
            (r"\frac", true),
            (r"\sqrt", true),
            ("{", false),
            ("_", false),
            (r"\limits", false),
            (r"\{", true),
        ] {
            assert_eq!(has_ink(token), expected, "{token}");
        }
    }
}
