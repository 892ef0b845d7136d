//! Splits LaTeX into control sequences and characters.

/// A control sequence or a character of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// Whether there is nothing between this token and the one before.
    pub(crate) glued: bool,
}

/// Symbols of several characters.
const LONG_SIGNS: [&str; 4] = ["''''", "'''", "''", ":="];

/// The tokens of a formula. White space and comments are not tokens.
pub(crate) fn split(formula: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut glued = false;
    let mut rest = formula;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\\' => control_sequence_length(rest),
            '%' => rest.find('\n').unwrap_or(rest.len()),
            _ => LONG_SIGNS
                .iter()
                .find(|sign| rest.starts_with(**sign))
                .map_or(first.len_utf8(), |sign| sign.len()),
        };
        let (text, after) = rest.split_at(length);
        let is_token = !first.is_whitespace() && first != '%';
        if is_token {
            tokens.push(Token { text, glued });
        }
        glued = is_token;
        rest = after;
    }
    tokens
}

fn control_sequence_length(rest: &str) -> usize {
    let name = &rest[1..];
    let letters = name.find(|character: char| !character.is_alphabetic()).unwrap_or(name.len());
    if letters > 0 { 1 + letters } else { 1 + name.chars().next().map_or(0, char::len_utf8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_with_and_without_spaces() {
        for (formula, expected) in [
            (r"\frac { 1 } { 2 }", vec![r"\frac", "{", "1", "}", "{", "2", "}"]),
            (r"\frac{1}2\alpha x", vec![r"\frac", "{", "1", "}", "2", r"\alpha", "x"]),
            (r"\{a\}\,b", vec![r"\{", "a", r"\}", r"\,", "b"]),
            ("f''a:=b' '", vec!["f", "''", "a", ":=", "b", "'", "'"]),
            ("a % comment\nb", vec!["a", "b"]),
            ("", vec![]),
            (r"a \", vec!["a", r"\"]),
            ("é ∑", vec!["é", "∑"]),
        ] {
            let texts: Vec<&str> = split(formula).iter().map(|token| token.text).collect();
            assert_eq!(texts, expected, "{formula}");
        }
        let glued: Vec<bool> = split("12 3").iter().map(|token| token.glued).collect();
        assert_eq!(glued, [false, true, false]);
    }
}
