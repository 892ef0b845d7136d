//! The training text of a language model: lists of formulas without those of the tests.

use std::collections::HashSet;

use comer::internal::{TokenId, Vocab};
use serde::Serialize;

use super::Line;

/// Formulas of several lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The formulas.
    pub lines: Vec<Line>,
    /// The statistics of each list.
    pub lists: Vec<List>,
}

/// The statistics of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct List {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// Different formulas that were used.
    pub formulas: usize,
    /// Different formulas that were excluded.
    pub excluded: usize,
    /// Different formulas that were skipped because they are empty or have unknown tokens.
    pub unknown: usize,
}

impl Text {
    /// Adds a list of formulas with their counts, one line per different formula; without `counts`, each counts once.
    /// Formulas in `exclude` are skipped.
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
        let mut indices = std::collections::HashMap::new();
        let mut skipped = HashSet::new();
        for (count, formula) in formulas {
            let tokens = match vocab.encode(formula) {
                Ok(tokens) if !tokens.is_empty() => tokens,
                _ => {
                    list.unknown += usize::from(skipped.insert(formula.to_string()));
                    continue;
                }
            };
            if exclude.contains(&tokens) {
                list.excluded += usize::from(skipped.insert(vocab.decode(&tokens)));
                continue;
            }
            match indices.get(&tokens) {
                Some(&index) if counts => {
                    let line: &mut Line = &mut self.lines[index];
                    line.count = line.count.saturating_add(count);
                }
                Some(_) => {}
                None => {
                    indices.insert(tokens.clone(), self.lines.len());
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
    // Some names may look like counts, but not all of them.
    let counted = lines()
        .all(|(_, line)| line.split_once('\t').is_some_and(|(count, _)| count.trim().parse::<u32>().is_ok()));
    let json = lines().next().is_some_and(|(_, line)| line.starts_with("{\""));
    let formula = |(number, line): (usize, &str)| {
        let invalid = |reason: String| format!("line {}: {reason}", number + 1);
        if json {
            let value: serde_json::Value =
                serde_json::from_str(line).map_err(|error| invalid(error.to_string()))?;
            let tokens = value["tokens"].as_str().ok_or_else(|| invalid("has no \"tokens\"".into()))?;
            return Ok((1, tokens.to_string()));
        }
        let (first, formula) = line.split_once('\t').unwrap_or(("", line));
        let count = if counted { first.trim().parse().unwrap_or(1) } else { 1 };
        Ok((count, formula.trim().to_string()))
    };
    lines().map(formula).collect()
}
