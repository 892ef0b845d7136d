//! The text that a language model is estimated from: lists of formulas without those of the tests.

use std::collections::HashSet;

use comer::internal::{TokenId, Vocab};
use serde::Serialize;

use super::Line;

/// Formulas of several lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The formulas.
    pub lines: Vec<Line>,
    /// What became of each list.
    pub lists: Vec<List>,
}

/// What became of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct List {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// Different formulas that were used.
    pub formulas: usize,
    /// Different formulas left out because they are to be excluded.
    pub excluded: usize,
    /// Different formulas left out because they have tokens that the vocabulary lacks, or none at all.
    pub unknown: usize,
}

impl Text {
    /// Adds a list of formulas with their counts, each different formula as one line; without `counts` it counts once.
    /// Formulas whose tokens are those of an excluded one stay out, whatever their length.
    pub fn add<'a>(
        &mut self,
        name: &str,
        formulas: impl IntoIterator<Item = (u32, &'a str)>,
        weight: f64,
        counts: bool,
        vocab: &Vocab,
        exclude: &HashSet<Vec<TokenId>>,
    ) {
        let mut list = List { name: name.into(), weight, formulas: 0, excluded: 0, unknown: 0 };
        let first = self.lines.len();
        let mut places = std::collections::HashMap::new();
        let mut left_out = HashSet::new();
        for (count, formula) in formulas {
            let tokens = match vocab.encode(formula) {
                Ok(tokens) if !tokens.is_empty() => tokens,
                _ => {
                    list.unknown += usize::from(left_out.insert(formula.to_string()));
                    continue;
                }
            };
            if exclude.contains(&tokens) {
                list.excluded += usize::from(left_out.insert(vocab.decode(&tokens)));
                continue;
            }
            match places.get(&tokens) {
                Some(&place) if counts => {
                    let line: &mut Line = &mut self.lines[place];
                    line.count = line.count.saturating_add(count);
                }
                Some(_) => {}
                None => {
                    places.insert(tokens.clone(), self.lines.len());
                    self.lines.push(Line { tokens, count: if counts { count.max(1) } else { 1 }, weight });
                }
            }
        }
        list.formulas = self.lines.len() - first;
        self.lists.push(list);
    }
}

/// The formulas of a file with their counts. Each line is a formula, a count and a formula, or a name and a formula, with a
/// tab between; a line that is a JSON object has the formula in `tokens`, as in a set of strokes.
pub fn parse_list(text: &str) -> Result<Vec<(u32, String)>, String> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    // Names may look like counts, but not all of them.
    let counted = lines()
        .all(|(_, line)| line.split_once('\t').is_some_and(|(count, _)| count.trim().parse::<u32>().is_ok()));
    let json = lines().next().is_some_and(|(_, line)| line.starts_with("{\""));
    let formula = |(number, line): (usize, &str)| {
        let wrong = |reason: String| format!("line {}: {reason}", number + 1);
        if json {
            let value: serde_json::Value =
                serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            let tokens = value["tokens"].as_str().ok_or_else(|| wrong("has no \"tokens\"".into()))?;
            return Ok((1, tokens.to_string()));
        }
        let (first, formula) = line.split_once('\t').unwrap_or(("", line));
        let count = if counted { first.trim().parse().unwrap_or(1) } else { 1 };
        Ok((count, formula.trim().to_string()))
    };
    lines().map(formula).collect()
}
