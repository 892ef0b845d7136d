//! Symbol label graphs: symbols named by their way from the first symbol, and the relations between them.
//!
//! In `x ^ { 2 } + 1` the paths are `O` for x, `OSup` for 2, `OR` for + and `ORR` for 1. A long line makes long paths,
//! so a path is kept as a number: where it comes from, and by which relation.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::latex::{self, Expression};
use crate::layout;
use crate::symbols::Dialect;

/// How one symbol stands to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The next symbol on the line.
    Right,
    /// A superscript.
    Sup,
    /// A subscript.
    Sub,
    /// A numerator, an upper limit, the index of a root.
    Above,
    /// A denominator, a lower limit.
    Below,
    /// What stands under a root.
    Inside,
    /// A relation that a file names and formulas of symbols do not have, of a matrix for instance.
    Other(String),
}

impl Relation {
    fn named(name: &str) -> Self {
        match name {
            "Right" | "R" => Self::Right,
            "Sup" => Self::Sup,
            "Sub" => Self::Sub,
            "Above" => Self::Above,
            "Below" => Self::Below,
            "Inside" => Self::Inside,
            other => Self::Other(other.into()),
        }
    }

    /// As it is written in a path.
    fn step(&self) -> &str {
        match self {
            Self::Right => "R",
            Self::Sup => "Sup",
            Self::Sub => "Sub",
            Self::Above => "Above",
            Self::Below => "Below",
            Self::Inside => "Inside",
            Self::Other(name) => name,
        }
    }
}

/// A path's number in its graph. [`ROOT`] is the path `O`.
pub type PathId = usize;

/// The path of the first symbol.
pub const ROOT: PathId = 0;

/// The graph of one formula. The empty graph stands for a formula that is missing or cannot be read.
#[derive(Clone, Debug, Default)]
pub struct LabelGraph {
    /// Of each path but the root: the path before, and the last step.
    steps: Vec<(PathId, Relation)>,
    numbers: HashMap<(PathId, Relation), PathId>,
    /// Of each path: the labels of its symbols. Almost always one, and none for a path that only leads further.
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

    /// The graph of a formula that has been read.
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

    /// Reads a label graph file: ground truth (`EO` lines) or what the official tools write (`R` lines).
    ///
    /// A relation between objects that the file does not have is passed over, as LgEval does: one file of CROHME 2014
    /// has two.
    pub fn from_lg(text: &str) -> Result<Self> {
        let mut graph = Self::default();
        let mut objects: HashMap<&str, PathId> = HashMap::new();
        let mut relations = Vec::new();
        for (line, content) in text.lines().enumerate() {
            let content = content.trim();
            let wrong = |expected| Error::GraphLine { line: line + 1, found: content.into(), expected };
            let fields: Vec<&str> = content.split(',').map(str::trim).collect();
            match fields[..] {
                [""] => {}
                [first, ..] if first.starts_with('#') => {}
                ["O", id, label, _weight, path] => {
                    let path = graph.path_named(path).ok_or_else(|| wrong("a path that starts with O"))?;
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

    /// Whether there is no symbol at all.
    pub fn is_empty(&self) -> bool {
        self.labels.iter().all(Vec::is_empty)
    }

    /// Every path with symbols on it and their labels, by path.
    pub fn nodes(&self) -> Vec<(String, Vec<String>)> {
        let labelled = (0..self.labels.len()).filter(|&path| !self.labels[path].is_empty());
        let mut nodes: Vec<_> = labelled.map(|path| (self.path(path), self.labels[path].clone())).collect();
        nodes.sort();
        nodes
    }

    /// Every pair of paths with a relation, by path.
    pub fn edges(&self) -> Vec<(String, String, Vec<Relation>)> {
        let mut edges: Vec<_> = self
            .edges
            .iter()
            .map(|(&(from, to), relations)| (self.path(from), self.path(to), relations.clone()))
            .collect();
        edges.sort();
        edges
    }

    /// A path as the files write it.
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

    fn path_named(&mut self, name: &str) -> Option<PathId> {
        let mut rest = name.strip_prefix('O')?;
        let mut path = ROOT;
        while !rest.is_empty() {
            let known = ["Right", "R", "Sup", "Sub", "Above", "Below", "Inside"];
            let step = known.into_iter().find(|step| rest.starts_with(step)).unwrap_or(rest);
            path = self.path_after(path, Relation::named(step));
            rest = &rest[step.len()..];
        }
        Some(path)
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
