//! Decompose and recombine: subexpressions of real expressions, and expressions with swapped parts.

use std::collections::BTreeMap;

use comer::internal::TokenId;
use comer::{Point, Stroke};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::geometry::{Rect, transform};
use super::tree::{Atom, Path, Row, RowRelation, TreeGrammar, TreeNode, inner_rows, leaf_count, row_at};

/// The strokes of one leaf.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafInk {
    /// The symbol.
    pub token: TokenId,
    /// Its strokes.
    pub strokes: Vec<Stroke>,
}

/// A tree with the strokes of its leaves, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct InkTree {
    /// The tree.
    pub row: Row,
    /// The strokes of each leaf.
    pub leaves: Vec<LeafInk>,
}

/// The bounding box of leaves.
pub fn bounds(leaves: &[LeafInk]) -> Rect {
    Rect::of(leaves.iter().flat_map(|leaf| &leaf.strokes))
}

/// The mean height of symbols, ignoring flat ones.
pub fn mean_height(leaves: &[LeafInk]) -> f64 {
    let heights: Vec<f64> = leaves.iter().map(|leaf| Rect::of(&leaf.strokes).height()).collect();
    let most = heights.iter().copied().fold(0.0, f64::max);
    let tall: Vec<f64> = heights.into_iter().filter(|&height| height > 0.3 * most).collect();
    tall.iter().sum::<f64>() / tall.len().max(1) as f64
}

/// The rows of all expressions by their relation: expression, path, first leaf, number of leaves.
pub type RowIndex = BTreeMap<RowRelation, Vec<(usize, Path, usize, usize)>>;

/// Adds the inner rows of an expression.
pub fn collect(rows: &mut RowIndex, number: usize, row: &Row) {
    let mut row = row.clone();
    for (path, first) in inner_rows(&row.clone()) {
        let Some(count) = row_at(&mut row, &path).map(|row| leaf_count(row)) else { continue };
        let relation = path[path.len() - 1].1;
        rows.entry(relation).or_default().push((number, path, first, count));
    }
}

/// Whether a symbol can begin an expression.
fn can_begin(label: &str) -> bool {
    !matches!(
        label,
        "+" | "="
            | "<"
            | ">"
            | "\\leq"
            | "\\geq"
            | "\\neq"
            | "\\times"
            | "\\div"
            | "\\cdot"
            | "/"
            | ","
            | "."
            | "\\prime"
            | "\\rightarrow"
            | "\\in"
            | "!"
            | ")"
            | "]"
            | "\\}"
    )
}

/// Whether a symbol can end an expression.
fn can_end(label: &str) -> bool {
    !matches!(
        label,
        "+" | "-"
            | "="
            | "<"
            | ">"
            | "\\leq"
            | "\\geq"
            | "\\neq"
            | "\\times"
            | "\\div"
            | "\\cdot"
            | "/"
            | "\\pm"
            | "\\rightarrow"
            | "\\in"
            | "("
            | "["
            | "\\{"
            | "\\sin"
            | "\\cos"
            | "\\tan"
            | "\\log"
            | "\\lim"
            | "\\sum"
            | "\\int"
            | ","
            | "\\forall"
            | "\\exists"
    )
}

/// Whether brackets are balanced.
fn is_balanced(labels: &[&str]) -> bool {
    let mut open = Vec::new();
    for label in labels {
        match *label {
            "(" | "[" | "\\{" => open.push(*label),
            ")" | "]" | "\\}" => {
                let expected = match *label {
                    ")" => "(",
                    "]" => "[",
                    _ => "\\{",
                };
                if open.pop() != Some(expected) {
                    return false;
                }
            }
            _ => {}
        }
    }
    open.is_empty() && labels.iter().filter(|label| **label == "|").count() % 2 == 0
}

/// A random part of an expression that is an expression on its own: an inner row, or a run of any row.
pub fn random_part(written: &InkTree, labels: &[String], random: &mut impl Rng) -> Option<InkTree> {
    let mut rows = vec![(Path::new(), 0)];
    rows.extend(inner_rows(&written.row));
    let (path, first) = rows.choose(random)?;
    let mut tree = written.row.clone();
    let row = row_at(&mut tree, path)?;
    // An entire inner row half of the time, otherwise a run.
    let whole = !path.is_empty() && random.random::<bool>();
    let (begin, end) = match whole {
        true => (0, row.len()),
        false => {
            let begin = random.random_range(0..row.len());
            (begin, random.random_range(begin + 1..=row.len()))
        }
    };
    let part = row[begin..end].to_vec();
    let leaf = first + leaf_count(&row[..begin]);
    let count = leaf_count(&part);
    if count < 2 || count == written.leaves.len() {
        return None;
    }
    let label = |node: &TreeNode| match node.atom {
        Atom::Symbol(token) => &labels[token as usize][..],
        _ => "",
    };
    let own: Vec<&str> = part.iter().map(label).collect();
    let last = &part[part.len() - 1];
    let ends = can_end(own[own.len() - 1]) || last.sub.is_some() || last.sup.is_some();
    if !is_balanced(&own) || !can_begin(own[0]) || !ends {
        return None;
    }
    Some(InkTree { row: part, leaves: written.leaves[leaf..leaf + count].to_vec() })
}

/// How the symbols outside of a swapped row move.
enum Move {
    /// As a group, with the centre of their bounding box.
    Together(std::ops::Range<usize>),
    /// Each point separately: bars and root signs.
    Stretched(usize),
}

/// Lists the moves of everything except the row at the end of a path.
fn moves(row: &[TreeNode], first: usize, path: &[(usize, RowRelation)], list: &mut Vec<Move>) {
    let Some(((index, relation), rest)) = path.split_first() else { return };
    let mut leaf = first;
    for (position, node) in row.iter().enumerate() {
        let count = node.leaf_count();
        if position != *index {
            list.push(Move::Together(leaf..leaf + count));
        } else {
            list.push(match node.atom {
                Atom::Symbol(_) => Move::Together(leaf..leaf + 1),
                _ => Move::Stretched(leaf),
            });
            let mut inner = leaf + 1;
            for (own, row) in node.rows() {
                let count = leaf_count(row);
                if own == *relation {
                    moves(row, inner, rest, list);
                } else {
                    list.push(Move::Together(inner..inner + count));
                }
                inner += count;
            }
        }
        leaf += count;
    }
}

/// Limits of the new height and width of a row, relative to the old ones.
const HEIGHTS: std::ops::RangeInclusive<f64> = 0.6..=1.4;
const WIDTHS: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// Replaces the row at a path (`count` leaves from `first` on) by another one, at the same position and with the same
/// symbol size, and moves the symbols beside it. `None` if the shapes are too different.
pub fn swap(written: &InkTree, path: &Path, first: usize, count: usize, other: &InkTree) -> Option<InkTree> {
    let (_, relation) = *path.last()?;
    let old = &written.leaves[first..first + count];
    let (from, target) = (bounds(&other.leaves), bounds(old));
    let factor = mean_height(old) / mean_height(&other.leaves);
    let (width, height) = (factor * from.width(), factor * from.height());
    let share = |new: f64, old: f64| if new == old { 1.0 } else { new / old };
    let single = target.width() < 0.3 * target.height();
    if !factor.is_finite()
        || !HEIGHTS.contains(&share(height, target.height()))
        || !(single || WIDTHS.contains(&share(width, target.width())))
    {
        return None;
    }
    // The range from `left` to `right` grows by `more`.
    let core = first_core(written, path);
    let (left, right, more) = match relation {
        RowRelation::Numerator | RowRelation::Denominator => {
            let bar = Rect::of(&written.leaves[core].strokes);
            let others = fraction_sibling(written, path, core, first, count);
            let overhang = bar.width() - target.width().max(others);
            (bar.left, bar.right, width.max(others) + overhang - bar.width())
        }
        _ => (target.left, target.right, width - target.width()),
    };
    let span = (right - left).max(1e-6);
    let shift = |x: f64| more * ((x - left) / span).clamp(0.0, 1.0);
    let mut result = written.clone();
    let mut list = Vec::new();
    moves(&written.row, 0, path, &mut list);
    for own in list {
        match own {
            Move::Together(range) => {
                let by = shift(bounds(&written.leaves[range.clone()]).center().x);
                for leaf in &mut result.leaves[range] {
                    transform(&mut leaf.strokes, |point| Point { x: point.x + by, ..point });
                }
            }
            Move::Stretched(leaf) => transform(&mut result.leaves[leaf].strokes, |point| Point {
                x: point.x + shift(point.x),
                ..point
            }),
        }
    }
    let middle = match relation {
        RowRelation::Numerator | RowRelation::Denominator => (left + right + more) / 2.0,
        _ => target.center().x + shift(target.center().x),
    };
    let top = match relation {
        RowRelation::Numerator | RowRelation::Superscript | RowRelation::Above => target.bottom - height,
        RowRelation::Denominator | RowRelation::Subscript | RowRelation::Below => target.top,
        RowRelation::Radicand | RowRelation::Index => target.center().y - height / 2.0,
    };
    let corner = Point { x: middle - width / 2.0, y: top };
    let mut leaves = other.leaves.clone();
    for leaf in &mut leaves {
        transform(&mut leaf.strokes, |point| Point {
            x: corner.x + (point.x - from.left) * factor,
            y: corner.y + (point.y - from.top) * factor,
        });
    }
    result.leaves.splice(first..first + count, leaves);
    *row_at(&mut result.row, path)? = other.row.clone();
    Some(result)
}

/// The leaf of the parent node of the row at the end of a path.
fn first_core(written: &InkTree, path: &Path) -> usize {
    let (mut row, mut leaf) = (&written.row, 0);
    for (step, (index, relation)) in path.iter().enumerate() {
        leaf += leaf_count(&row[..*index]);
        if step + 1 == path.len() {
            return leaf;
        }
        leaf += 1;
        for (own, inner) in row[*index].rows() {
            if own == *relation {
                row = inner;
                break;
            }
            leaf += leaf_count(inner);
        }
    }
    leaf
}

/// The width of the other part of a fraction.
fn fraction_sibling(written: &InkTree, path: &Path, core: usize, first: usize, count: usize) -> f64 {
    let mut tree = written.row.clone();
    let parent = row_at(&mut tree, &path[..path.len() - 1]);
    let whole = parent.map_or(0, |row| row[path[path.len() - 1].0].leaf_count());
    let own = first..first + count;
    let others = (core + 1..core + whole).filter(|leaf| !own.contains(leaf));
    let bounds = others.map(|leaf| Rect::of(&written.leaves[leaf].strokes)).fold(Rect::EMPTY, Rect::union);
    bounds.width().max(0.0)
}

/// Whether the tokens of the leaves are those of the tree.
pub fn agrees(grammar: &TreeGrammar, written: &InkTree) -> bool {
    let tokens: Vec<TokenId> = written.leaves.iter().map(|leaf| leaf.token).collect();
    grammar.leaves(&written.row) == tokens
}

#[cfg(test)]
mod tests {
    use comer::internal::Vocab;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// An expression whose symbols are boxes: left, top, width, height.
    fn written(caption: &str, boxes: &[(f64, f64, f64, f64)]) -> (TreeGrammar, InkTree) {
        let vocab = Vocab::crohme();
        let grammar = TreeGrammar::new(&vocab).unwrap();
        let row = grammar.parse(&vocab.encode(caption).unwrap()).unwrap();
        let stroke = |&(x, y, width, height): &(f64, f64, f64, f64)| {
            vec![Stroke { points: vec![Point { x, y }, Point { x: x + width, y: y + height }] }]
        };
        let tokens = grammar.leaves(&row);
        assert_eq!(tokens.len(), boxes.len());
        let leaves =
            tokens.into_iter().zip(boxes).map(|(token, rect)| LeafInk { token, strokes: stroke(rect) });
        let leaves = leaves.collect();
        (grammar, InkTree { row, leaves })
    }

    fn corners(written: &InkTree, leaf: usize) -> [f64; 4] {
        let rect = Rect::of(&written.leaves[leaf].strokes);
        [rect.left, rect.top, rect.right, rect.bottom]
    }

    #[test]
    fn a_wider_numerator_stretches_its_bar_and_moves_the_rest() {
        let (grammar, a) = written(
            "\\frac { a } { b } + c",
            &[
                (0.0, 20.0, 20.0, 0.0),
                (5.0, 5.0, 10.0, 10.0),
                (5.0, 25.0, 10.0, 10.0),
                (25.0, 15.0, 10.0, 10.0),
                (40.0, 15.0, 10.0, 10.0),
            ],
        );
        let (_, b) =
            written("x y z", &[(100.0, 0.0, 20.0, 20.0), (130.0, 0.0, 20.0, 20.0), (160.0, 0.0, 20.0, 20.0)]);
        let path = vec![(0, RowRelation::Numerator)];
        let result = swap(&a, &path, 1, 1, &b).unwrap();
        assert!(agrees(&grammar, &result));
        // Half the size, 40 wide; the bar keeps its total overhang of 10.
        assert_eq!(corners(&result, 0), [0.0, 20.0, 50.0, 20.0]);
        assert_eq!(corners(&result, 1), [5.0, 5.0, 15.0, 15.0]);
        assert_eq!(corners(&result, 3), [35.0, 5.0, 45.0, 15.0]);
        assert_eq!(corners(&result, 4), [20.0, 25.0, 30.0, 35.0], "the denominator stays centred");
        assert_eq!(corners(&result, 6), [70.0, 15.0, 80.0, 25.0]);
        assert_eq!(result.row.len(), 3);
    }

    #[test]
    fn a_script_swapped_inside_a_root_stretches_the_root() {
        let (grammar, a) = written(
            "\\sqrt { x ^ { 2 } } y",
            &[
                (0.0, 0.0, 40.0, 30.0),
                (12.0, 10.0, 10.0, 20.0),
                (24.0, 5.0, 8.0, 10.0),
                (45.0, 10.0, 10.0, 20.0),
            ],
        );
        let (_, b) = written("n m", &[(0.0, 0.0, 8.0, 10.0), (10.0, 0.0, 8.0, 10.0)]);
        let path = vec![(0, RowRelation::Radicand), (0, RowRelation::Superscript)];
        let result = swap(&a, &path, 2, 1, &b).unwrap();
        assert!(agrees(&grammar, &result));
        assert_eq!(corners(&result, 0), [0.0, 0.0, 50.0, 30.0]);
        assert_eq!(corners(&result, 2), [24.0, 5.0, 32.0, 15.0]);
        assert_eq!(corners(&result, 4)[0], 55.0);
        let (_, tall) = written("n m", &[(0.0, 0.0, 8.0, 10.0), (10.0, 40.0, 8.0, 10.0)]);
        assert_eq!(swap(&a, &path, 2, 1, &tall), None);
    }

    #[test]
    fn parts_are_valid_expressions() {
        let vocab = Vocab::crohme();
        let labels: Vec<String> = (0..vocab.len()).map(|token| vocab.decode(&[token as TokenId])).collect();
        let boxes: Vec<(f64, f64, f64, f64)> = (0..9).map(|x| (10.0 * f64::from(x), 0.0, 8.0, 8.0)).collect();
        let (grammar, whole) = written("\\sin ( a + b ) = 2 c", &boxes);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut found = std::collections::BTreeSet::new();
        for _ in 0..300 {
            if let Some(part) = random_part(&whole, &labels, &mut random) {
                assert!(agrees(&grammar, &part));
                found.insert(vocab.decode(&grammar.tokens(&part.row)));
            }
        }
        let expected = [
            "( a + b )",
            "( a + b ) = 2",
            "( a + b ) = 2 c",
            "2 c",
            "\\sin ( a + b )",
            "\\sin ( a + b ) = 2",
            "a + b",
        ];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }
}
