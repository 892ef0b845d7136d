//! Converts raw LaTeX to the captions that models are trained on: tokens of a vocabulary, separated by spaces, in one
//! normal form.
//!
//! The form is that of CROHME's training captions: every argument in braces and no other braces, the subscript before
//! the superscript, `\limits` after a sum, an integral or a limit with a script, `\prime` for `'`, one name per
//! symbol; no sizes, fonts, styles or spaces.

mod item;
mod reader;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use self::reader::Reader;
use crate::error::Result;
use crate::latex::check_length;
use crate::lexer::split;
use crate::symbols::{Command, command};

/// Substitutes for symbols that a vocabulary does not have, beside other commands for the same character.
const SUBSTITUTES: &[(&str, &[&str])] = &[
    (r"\varphi", &[r"\phi"]),
    (r"\varepsilon", &[r"\epsilon"]),
    (r"\epsilon", &[r"\varepsilon"]),
    (r"\vartheta", &[r"\theta"]),
    (r"\varsigma", &[r"\sigma"]),
    (r"\varrho", &[r"\rho"]),
    (r"\varpi", &[r"\pi"]),
    (r"\mid", &["|"]),
    (r"\|", &["|", "|"]),
    (r"\Vert", &["|", "|"]),
    (r"\parallel", &["|", "|"]),
    ("−", &["-"]),
];

/// Converts formulas to the tokens of one vocabulary.
#[derive(Clone, Debug)]
pub struct Normalizer {
    tokens: HashSet<String>,
    /// The first token for each character.
    by_character: HashMap<String, String>,
}

impl Normalizer {
    /// For a vocabulary without its reserved tokens.
    pub fn new<S: AsRef<str>>(vocabulary: impl IntoIterator<Item = S>) -> Self {
        let (mut tokens, mut by_character) = (HashSet::new(), HashMap::new());
        for token in vocabulary {
            let token = token.as_ref();
            if !is_structure(token) {
                by_character.entry(character(token).to_string()).or_insert_with(|| token.to_string());
            }
            tokens.insert(token.to_string());
        }
        Self { tokens, by_character }
    }

    /// Returns the caption of a formula, or why it has none.
    ///
    /// ```
    /// use comer_eval::caption::Normalizer;
    ///
    /// let normalizer = Normalizer::new(["x", "1", "2", "<", "^", "{", "}", r"\frac"]);
    /// assert_eq!(normalizer.normalize(r"$\frac12\lt{x}^2$").unwrap(), r"\frac { 1 } { 2 } < x ^ { 2 }");
    /// assert!(normalizer.normalize("x + 1").unwrap_err().to_string().contains("not in the vocabulary"));
    /// ```
    pub fn normalize(&self, formula: &str) -> Result<String> {
        check_length(formula)?;
        let separated = separate_relations(formula);
        Ok(Reader::new(self, split(&separated)).formula()?.join(" "))
    }

    fn has(&self, token: &str) -> bool {
        self.tokens.contains(token)
    }

    /// The tokens for a symbol.
    fn spell(&self, token: &str) -> Option<Vec<String>> {
        if self.has(token) && !is_structure(token) {
            return Some(vec![token.to_string()]);
        }
        if let Some(same) = self.by_character.get(character(token)) {
            return Some(vec![same.clone()]);
        }
        let (_, substitute) = SUBSTITUTES.iter().find(|(name, _)| *name == token)?;
        substitute
            .iter()
            .all(|token| self.has(token))
            .then(|| substitute.iter().map(|token| token.to_string()).collect())
    }
}

/// Tokens that give structure and are not symbols.
fn is_structure(token: &str) -> bool {
    ["{", "}", "^", "_", r"\limits", r"\frac", r"\sqrt"].contains(&token)
}

/// The character that a token shows; an unknown token stands for itself.
fn character(token: &str) -> &str {
    match command(token) {
        Some(Command::Symbol(character) | Command::Delimiter(character)) => character,
        _ if token == "'" => "′",
        _ => token,
    }
}

/// Adds the missing space in `M\ltN`: CROHME's files write `\lt` and `\gt` for `<` and `>`, even before letters.
fn separate_relations(formula: &str) -> String {
    let mut separated = String::with_capacity(formula.len());
    let mut rest = formula;
    while let Some(start) = rest.find('\\') {
        let (before, sequence) = rest.split_at(start);
        let letters =
            sequence[1..].find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(sequence.len() - 1);
        let length = if letters > 0 {
            1 + letters
        } else {
            1 + sequence[1..].chars().next().map_or(0, char::len_utf8)
        };
        let (name, after) = sequence.split_at(length);
        separated += before;
        match name.strip_prefix(r"\lt").or(name.strip_prefix(r"\gt")) {
            Some(letter) if letter.len() == 1 => separated.extend([&name[..3], " ", letter]),
            _ => separated += name,
        }
        rest = after;
    }
    separated + rest
}
