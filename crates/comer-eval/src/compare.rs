//! Counts the differences of two label graphs.

use crate::label_graph::{LabelGraph, PathId, ROOT};

/// The differences between two label graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Paths whose labels differ, or that only one graph has.
    pub nodes: usize,
    /// Pairs of paths whose relations differ, or that only one graph has.
    pub edges: usize,
    /// Whether both have the same paths and pairs of paths, whatever their labels.
    pub same_structure: bool,
}

impl Errors {
    /// Node and edge errors: what "at most k errors" counts.
    pub fn total(&self) -> usize {
        self.nodes + self.edges
    }
}

/// Counts the differences, as LgEval does.
///
/// ```
/// use comer_eval::{Dialect, LabelGraph, compare::compare};
///
/// let graph = |formula| LabelGraph::from_latex(formula, Dialect::Official).unwrap();
/// let errors = compare(&graph("x + 1"), &graph("x + l"));
/// assert_eq!((errors.nodes, errors.edges, errors.same_structure), (1, 0, true));
/// ```
pub fn compare(truth: &LabelGraph, prediction: &LabelGraph) -> Errors {
    // The ids of the prediction's paths in the ground truth. A path comes after its prefix, so one pass is enough.
    let mut in_truth: Vec<Option<PathId>> = vec![Some(ROOT)];
    for (before, relation) in prediction.steps() {
        let path = in_truth[*before].and_then(|before| truth.find(before, relation));
        in_truth.push(path);
    }
    let nodes = differences(
        truth.labels().iter().filter(|labels| !labels.is_empty()).count(),
        prediction.labels().iter().zip(&in_truth).filter(|(labels, _)| !labels.is_empty()).map(
            |(labels, path)| {
                let other = path.and_then(|path| truth.labels().get(path)).filter(|other| !other.is_empty());
                other.map(|other| meet(labels, other))
            },
        ),
    );
    let edges = differences(
        truth.raw_edges().len(),
        prediction.raw_edges().iter().map(|((from, to), relations)| {
            let pair = (in_truth[*from]?, in_truth[*to]?);
            truth.raw_edges().get(&pair).map(|other| meet(relations, other))
        }),
    );
    let same_structure = nodes.unmatched + edges.unmatched == 0;
    Errors { nodes: nodes.total(), edges: edges.total(), same_structure }
}

struct Differences {
    unmatched: usize,
    disagreeing: usize,
}

impl Differences {
    fn total(&self) -> usize {
        self.unmatched + self.disagreeing
    }
}

/// `found` has, for each item of the prediction, whether it agrees with the ground truth; none if that has no such item.
fn differences(in_truth: usize, found: impl Iterator<Item = Option<bool>>) -> Differences {
    let (mut extra, mut agreeing, mut disagreeing) = (0, 0, 0);
    for agrees in found {
        match agrees {
            None => extra += 1,
            Some(true) => agreeing += 1,
            Some(false) => disagreeing += 1,
        }
    }
    Differences { unmatched: extra + in_truth - agreeing - disagreeing, disagreeing }
}

fn meet<T: PartialEq>(one: &[T], other: &[T]) -> bool {
    one.iter().any(|item| other.contains(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Dialect;

    #[test]
    fn counts_by_hand() {
        for (truth, prediction, nodes, edges, same_structure) in [
            ("x + 1", "x + 1", 0, 0, true),
            ("x + 1", "x + l", 1, 0, true),
            ("x + 1", "x +", 1, 1, false),
            ("x + 1", "x + 1 2", 1, 1, false),
            ("x ^ { 2 }", "x _ { 2 }", 2, 2, false),
            ("x ^ { 2 }", "x 2", 2, 2, false),
            (r"\sum \limits _ { i }", r"\sum _ { i }", 2, 2, false),
            ("x + 1", "", 3, 2, false),
            ("", "", 0, 0, true),
            ("", "x + 1", 3, 2, false),
        ] {
            let graph = |formula| LabelGraph::from_latex(formula, Dialect::Official).unwrap();
            let errors = compare(&graph(truth), &graph(prediction));
            assert_eq!(errors, Errors { nodes, edges, same_structure }, "{truth} / {prediction}");
        }
    }

    #[test]
    fn symbols_that_share_a_path_agree_if_one_does() {
        let two = LabelGraph::from_lg("O, a, x, 1.0, O\nO, b, y, 1.0, O").unwrap();
        let one = LabelGraph::from_lg("O, a, y, 1.0, O").unwrap();
        let other = LabelGraph::from_lg("O, a, z, 1.0, O").unwrap();
        assert_eq!(compare(&two, &one).total(), 0);
        assert_eq!(compare(&two, &other).total(), 1);
    }
}
