//! Symbol label graphs: symbols, identified by their path from the first symbol, and the relations between them.
//!
//! In `x ^ { 2 } + 1` the paths are `O` for x, `OSup` for 2, `OR` for + and `ORR` for 1. Long lines have long paths, so a
//! path is stored as the id of its prefix and its last relation.

use std::collections::HashMap;

use crate::error::{Error, Result, shortened};
use crate::expression::Expression;
use crate::latex;
use crate::layout;
use crate::relation::Relation;
use crate::symbols::Dialect;

/// Most lines of a label graph file.
const MOST_LINES: usize = 20_000;
/// Most paths of a label graph file. Its lines may share them, and each step of a path is one.
const MOST_PATHS: usize = 10_000;

/// Id of a path in its graph. [`ROOT`] is the path `O`.
pub type PathId = usize;

/// The path of the first symbol.
pub const ROOT: PathId = 0;

/// The graph of one formula. The empty graph stands for a formula that is missing or cannot be parsed.
#[derive(Clone, Debug, Default)]
pub struct LabelGraph {
    /// For each path but the root: its prefix and its last relation.
    steps: Vec<(PathId, Relation)>,
    numbers: HashMap<(PathId, Relation), PathId>,
    /// For each path: the labels of its symbols. Almost always one; none if it is only a prefix.
    labels: Vec<Vec<String>>,
    edges: HashMap<(PathId, PathId), Vec<Relation>>,
}

impl LabelGraph {
    /// The graph of a formula.
    ///
    /// ```
    /// use comer_eval::{Dialect, LabelGraph};
    ///
    /// let graph = LabelGraph::from_latex("x ^ { 2 } + 1", Dialect::Official).unwrap();
    /// assert_eq!(graph.nodes()[1], ("OR".to_string(), vec!["+".to_string()]));
    /// ```
    pub fn from_latex(formula: &str, dialect: Dialect) -> Result<Self> {
        Ok(Self::from_expression(&latex::parse(formula, dialect)?))
    }

    /// The graph of a parsed formula.
    pub fn from_expression(expression: &Expression) -> Self {
        let layout = layout::of(expression);
        let mut graph = Self::default();
        let mut paths: Vec<PathId> = vec![ROOT; expression.nodes().len()];
        for symbol in &layout.symbols {
            if let Some((parent, relation)) = &symbol.parent {
                paths[symbol.node] = graph.path_after(paths[*parent], relation.clone());
            }
            graph.add_label(paths[symbol.node], symbol.label.clone());
        }
        for (from, to, relation) in layout.edges {
            graph.add_edge(paths[from], paths[to], relation);
        }
        graph
    }

    /// Reads a label graph file: ground truth (`EO` lines) or output of the official tools (`R` lines).
    ///
    /// Relations between objects that the file does not have are ignored, as in LgEval: one file of CROHME 2014 has two.
    pub fn from_lg(text: &str) -> Result<Self> {
        let mut graph = Self::default();
        let mut objects: HashMap<&str, PathId> = HashMap::new();
        let mut relations = Vec::new();
        for (line, content) in text.lines().enumerate() {
            let content = content.trim();
            let wrong = |expected| Error::GraphLine { line: line + 1, found: shortened(content), expected };
            if line == MOST_LINES {
                return Err(wrong("at most 20000 lines"));
            }
            let mut fields = [""; 6];
            let mut count = 0;
            for (place, field) in fields.iter_mut().zip(content.splitn(6, ',')) {
                *place = field.trim();
                count += 1;
            }
            match fields[..count] {
                [""] => {}
                [first, ..] if first.starts_with('#') => {}
                ["O", id, label, _weight, path] => {
                    let path = graph.path_named(path).map_err(wrong)?;
                    graph.add_label(path, label.into());
                    objects.insert(id, path);
                }
                ["O", ..] => return Err(wrong("O, id, label, weight, path")),
                ["R" | "EO", from, to, relation, _weight] => relations.push((from, to, relation)),
                ["R" | "EO", ..] => return Err(wrong("R or EO, id, id, relation, weight")),
                _ => return Err(wrong("a line that starts with O, R, EO or #")),
            }
        }
        for (from, to, relation) in relations {
            if let (Some(&from), Some(&to)) = (objects.get(from), objects.get(to)) {
                graph.add_edge(from, to, Relation::named(relation));
            }
        }
        Ok(graph)
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.labels.iter().all(Vec::is_empty)
    }

    /// Every path that has symbols, with their labels, sorted by path.
    pub fn nodes(&self) -> Vec<(String, Vec<String>)> {
        let labelled = (0..self.labels.len()).filter(|&path| !self.labels[path].is_empty());
        let mut nodes: Vec<_> = labelled.map(|path| (self.path(path), self.labels[path].clone())).collect();
        nodes.sort();
        nodes
    }

    /// Every pair of paths that has relations, sorted by path.
    pub fn edges(&self) -> Vec<(String, String, Vec<Relation>)> {
        let mut edges: Vec<_> = self
            .edges
            .iter()
            .map(|(&(from, to), relations)| (self.path(from), self.path(to), relations.clone()))
            .collect();
        edges.sort();
        edges
    }

    /// A path as in label graph files.
    pub fn path(&self, mut path: PathId) -> String {
        let mut steps = Vec::new();
        while path != ROOT {
            let (before, relation) = &self.steps[path - 1];
            steps.push(relation.step());
            path = *before;
        }
        steps.push("O");
        steps.reverse();
        steps.concat()
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let labels: usize = self.labels.iter().flatten().map(|label| 120 + label.len()).sum();
        1000 + 160 * self.steps.len() + labels + 180 * self.edges.len()
    }

    pub(crate) fn steps(&self) -> &[(PathId, Relation)] {
        &self.steps
    }

    pub(crate) fn labels(&self) -> &[Vec<String>] {
        &self.labels
    }

    pub(crate) fn raw_edges(&self) -> &HashMap<(PathId, PathId), Vec<Relation>> {
        &self.edges
    }

    pub(crate) fn find(&self, path: PathId, relation: &Relation) -> Option<PathId> {
        self.numbers.get(&(path, relation.clone())).copied()
    }

    fn path_after(&mut self, before: PathId, relation: Relation) -> PathId {
        *self.numbers.entry((before, relation)).or_insert_with_key(|(before, relation)| {
            self.steps.push((*before, relation.clone()));
            self.steps.len()
        })
    }

    /// The path with a name, or what was expected instead.
    fn path_named(&mut self, name: &str) -> Result<PathId, &'static str> {
        let mut rest = name.strip_prefix('O').ok_or("a path that starts with O")?;
        let mut path = ROOT;
        while !rest.is_empty() {
            if self.steps.len() == MOST_PATHS {
                return Err("at most 10000 paths in all");
            }
            let known = ["Right", "R", "Sup", "Sub", "Above", "Below", "Inside"];
            let step = known.into_iter().find(|step| rest.starts_with(step)).unwrap_or(rest);
            path = self.path_after(path, Relation::named(step));
            rest = &rest[step.len()..];
        }
        Ok(path)
    }

    fn add_label(&mut self, path: PathId, label: String) {
        if self.labels.len() <= path {
            self.labels.resize(path + 1, Vec::new());
        }
        let labels = &mut self.labels[path];
        if let Err(place) = labels.binary_search(&label) {
            labels.insert(place, label);
        }
    }

    fn add_edge(&mut self, from: PathId, to: PathId, relation: Relation) {
        if from == to {
            return;
        }
        let relations = self.edges.entry((from, to)).or_default();
        if let Err(place) = relations.binary_search(&relation) {
            relations.insert(place, relation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The symbols of a formula as `path:label`, by path.
    fn nodes(formula: &str, dialect: Dialect) -> String {
        let graph = LabelGraph::from_latex(formula, dialect).unwrap();
        let nodes: Vec<String> =
            graph.nodes().iter().map(|(path, labels)| format!("{path}:{}", labels.join("&"))).collect();
        nodes.join(" ")
    }

    #[test]
    fn paths_of_both_dialects() {
        for (formula, expected) in [
            ("x ^ { 2 } + 1", "O:x OR:+ ORR:1 OSup:2"),
            ("x_1^2", "O:x OSub:1 OSup:2"),
            ("x ^ 2 _ 1 y", "O:x OR:y OSub:1 OSup:2"),
            (r"\frac { a } { b c } d", "O:- OAbove:a OBelow:b OBelowR:c OR:d"),
            (r"\sqrt { a b c }", r"O:\sqrt OInside:a OInsideR:b OInsideRR:c"),
            (r"\sqrt [ 3 ] { x }", r"O:\sqrt OAbove:3 OInside:x"),
            (r"\sum \limits _ { i } ^ n x", r"O:\sum OAbove:n OBelow:i OR:x"),
            (r"\sum _ { i } ^ n x", r"O:\sum OR:x OSub:i OSup:n"),
            ("( a ) ^ { 2 }", "O:( OR:a ORR:) ORRSup:2"),
            ("{ ( a + b ) } ^ 2", "O:( OR:a ORR:+ ORRR:b ORRRR:) ORRRRSup:2"),
            ("{ a b } _ 1 ^ 2 c", "O:a OR:b ORR:c ORSub:1 ORSup:2"),
            ("x ^ 2 ^ 3", "O:x OSup:2 OSupSup:3"),
            ("x ^ { } y", "O:x OR:y"),
            ("f ' x", r"O:f OR:\prime ORR:x"),
            (r"f ^ { \prime }", r"O:f OSup:\prime"),
            (r"\left ( \frac 1 2 \right ) ^ 2", "O:( OR:- ORAbove:1 ORBelow:2 ORR:) ORRSup:2"),
            (r"a , b \lt c > d \{", r"O:a OR:COMMA ORR:b ORRR:\lt ORRRR:c ORRRRR:\gt ORRRRRR:d ORRRRRRR:\{"),
            (r"\hat { a b } \, c", "O:a OR:b ORAbove:\u{302} ORR:c"),
            ("", ""),
            ("{ { { x } } }", "O:x"),
        ] {
            assert_eq!(nodes(formula, Dialect::Official), expected, "{formula}");
            assert_eq!(nodes(formula, Dialect::Clean), expected, "{formula}");
        }
    }

    #[test]
    fn files_that_are_too_large_are_refused() {
        let read = |text: &str| LabelGraph::from_lg(text).map_err(|error| error.to_string());
        assert!(read(&format!("O,a,x,1,O{}", "R".repeat(10_000))).is_ok());
        let line = "O,a,x,1,O".to_string();
        for (text, expected) in [
            (format!("{line}{}", "R".repeat(10_001)), "expected at most 10000 paths"),
            (format!("#\n{}", "#\n".repeat(20_000)), "line 20001: found \"#\", expected at most 20000 lines"),
            (",".repeat(1 << 20), "expected a line that starts with"),
            (format!("{line},{}", ",".repeat(1 << 20)), "expected O, id, label, weight, path"),
        ] {
            let message = read(&text).unwrap_err();
            assert!(message.contains(expected) && message.len() < 300, "{message}");
        }
    }

    #[test]
    fn what_the_official_tools_get_wrong() {
        for (formula, official, clean) in [
            (r"\Gamma \gamma", r"O:\gamma OR:\gamma", r"O:\Gamma OR:\gamma"),
            (r"\cdots \Pi", "O:⋯ OR:Π", r"O:\cdots OR:\Pi"),
            (r"\sin \max", r"O:\sin OR:max", r"O:\sin OR:\max"),
            (r"\mathrm { d } x", "O:x", "O:d OR:x"),
            (r"\frac { \, } { x }", "O:- OAbove:x", "O:- OBelow:x"),
            (r"\,", "", ""),
            ("12", "O:12", "O:1 OR:2"),
            ("1.5", "O:1.5", "O:1 OR:. ORR:5"),
            ("x ^ ( a )", "O:x OSup:( OSupR:a OSupRR:)", "O:x OR:a ORR:) OSup:("),
            ("( ^ 2 )", "O:( OR: ORR:) ORSup:2", "O:( OR:) OSup:2"),
            ("{ a { } } ^ 2", "O:a OR:2", "O:a OR:2"),
            ("{ a { } } _ 1 ^ 2", "O:1&2&a", "O:1&2&a"),
        ] {
            assert_eq!(nodes(formula, Dialect::Official), official, "{formula}");
            assert_eq!(nodes(formula, Dialect::Clean), clean, "{formula}");
        }
        let edges = |dialect| LabelGraph::from_latex(r"\sqrt { a b }", dialect).unwrap().edges().len();
        assert_eq!((edges(Dialect::Official), edges(Dialect::Clean)), (3, 2));
    }
}
