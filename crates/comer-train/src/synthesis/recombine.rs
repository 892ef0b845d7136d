//! Decompose and recombine: parts of real expressions as expressions of their own, and parts of the same relation swapped.

use std::collections::BTreeMap;

use comer::internal::TokenId;
use comer::{Point, Stroke};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::geometry::{Rect, transform};
use super::tree::{Atom, Grammar, Node, Path, Relation, Row, inner_rows, leaf_count, row_at};

/// The strokes of one leaf.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The symbol.
    pub token: TokenId,
    /// Its strokes.
    pub strokes: Vec<Stroke>,
}

/// A tree with the strokes of its leaves, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The tree.
    pub row: Row,
    /// A piece for each leaf.
    pub pieces: Vec<Piece>,
}

/// The box around pieces.
pub fn bounds(pieces: &[Piece]) -> Rect {
    Rect::of(pieces.iter().flat_map(|piece| &piece.strokes))
}

/// The mean height of symbols, without flat ones.
pub fn mean_height(pieces: &[Piece]) -> f64 {
    let heights: Vec<f64> = pieces.iter().map(|piece| Rect::of(&piece.strokes).height()).collect();
    let most = heights.iter().copied().fold(0.0, f64::max);
    let tall: Vec<f64> = heights.into_iter().filter(|&height| height > 0.3 * most).collect();
    tall.iter().sum::<f64>() / tall.len().max(1) as f64
}

/// Where the rows of all expressions are, by their relation: expression, path, first leaf, number of leaves.
pub type Rows = BTreeMap<Relation, Vec<(usize, Path, usize, usize)>>;

/// Adds the inner rows of an expression.
pub fn collect(rows: &mut Rows, number: usize, row: &Row) {
    let mut row = row.clone();
    for (path, first) in inner_rows(&row.clone()) {
        let Some(count) = row_at(&mut row, &path).map(|row| leaf_count(row)) else { continue };
        let relation = path[path.len() - 1].1;
        rows.entry(relation).or_default().push((number, path, first, count));
    }
}

/// What may begin or end an expression, by label.
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

/// Whether brackets close what they open.
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

/// A part of an expression: an inner row, or a run of any row, that could stand alone.
pub fn cut(written: &Written, labels: &[String], random: &mut impl Rng) -> Option<Written> {
    let mut places = vec![(Path::new(), 0)];
    places.extend(inner_rows(&written.row));
    let (path, first) = places.choose(random)?;
    let mut tree = written.row.clone();
    let row = row_at(&mut tree, path)?;
    // All of an inner row half of the time, otherwise a run.
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
    if count < 2 || count == written.pieces.len() {
        return None;
    }
    let label = |node: &Node| match node.atom {
        Atom::Symbol(token) => &labels[token as usize][..],
        _ => "",
    };
    let own: Vec<&str> = part.iter().map(label).collect();
    let last = &part[part.len() - 1];
    let ends = can_end(own[own.len() - 1]) || last.sub.is_some() || last.sup.is_some();
    if !is_balanced(&own) || !can_begin(own[0]) || !ends {
        return None;
    }
    Some(Written { row: part, pieces: written.pieces[leaf..leaf + count].to_vec() })
}

/// How the symbols outside of a swapped row make room.
enum Move {
    /// Together, as the middle of their box does.
    Together(std::ops::Range<usize>),
    /// Each point by itself: bars and root signs.
    Stretched(usize),
}

/// Lists the moves of everything but the row at the end of a path.
fn moves(row: &[Node], first: usize, path: &[(usize, Relation)], list: &mut Vec<Move>) {
    let Some(((index, relation), rest)) = path.split_first() else { return };
    let mut leaf = first;
    for (place, node) in row.iter().enumerate() {
        let count = node.leaf_count();
        if place != *index {
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

/// Limits of a row's new height and width, as shares of the old ones.
const HEIGHTS: std::ops::RangeInclusive<f64> = 0.6..=1.4;
const WIDTHS: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// The expression with the row at a path (of `count` leaves from `first` on) replaced by another one, at the size of
/// its symbols and in its place; what is beside it makes room. Nothing if the shapes are too different.
pub fn swap(written: &Written, path: &Path, first: usize, count: usize, other: &Written) -> Option<Written> {
    let (_, relation) = *path.last()?;
    let old = &written.pieces[first..first + count];
    let (from, place) = (bounds(&other.pieces), bounds(old));
    let factor = mean_height(old) / mean_height(&other.pieces);
    let (width, height) = (factor * from.width(), factor * from.height());
    let share = |new: f64, old: f64| if new == old { 1.0 } else { new / old };
    let single = place.width() < 0.3 * place.height();
    if !factor.is_finite()
        || !HEIGHTS.contains(&share(height, place.height()))
        || !(single || WIDTHS.contains(&share(width, place.width())))
    {
        return None;
    }
    // From `left` to `right` there must be room for `more`.
    let core = first_core(written, path);
    let (left, right, more) = match relation {
        Relation::Numerator | Relation::Denominator => {
            let bar = Rect::of(&written.pieces[core].strokes);
            let others = fraction_sibling(written, path, core, first, count);
            let overhang = bar.width() - place.width().max(others);
            (bar.left, bar.right, width.max(others) + overhang - bar.width())
        }
        _ => (place.left, place.right, width - place.width()),
    };
    let span = (right - left).max(1e-6);
    let shift = |x: f64| more * ((x - left) / span).clamp(0.0, 1.0);
    let mut result = written.clone();
    let mut list = Vec::new();
    moves(&written.row, 0, path, &mut list);
    for own in list {
        match own {
            Move::Together(range) => {
                let by = shift(bounds(&written.pieces[range.clone()]).center().x);
                for piece in &mut result.pieces[range] {
                    transform(&mut piece.strokes, |point| Point { x: point.x + by, ..point });
                }
            }
            Move::Stretched(leaf) => transform(&mut result.pieces[leaf].strokes, |point| Point {
                x: point.x + shift(point.x),
                ..point
            }),
        }
    }
    let middle = match relation {
        Relation::Numerator | Relation::Denominator => (left + right + more) / 2.0,
        _ => place.center().x + shift(place.center().x),
    };
    let top = match relation {
        Relation::Numerator | Relation::Superscript | Relation::Above => place.bottom - height,
        Relation::Denominator | Relation::Subscript | Relation::Below => place.top,
        Relation::Radicand | Relation::Index => place.center().y - height / 2.0,
    };
    let corner = Point { x: middle - width / 2.0, y: top };
    let mut pieces = other.pieces.clone();
    for piece in &mut pieces {
        transform(&mut piece.strokes, |point| Point {
            x: corner.x + (point.x - from.left) * factor,
            y: corner.y + (point.y - from.top) * factor,
        });
    }
    result.pieces.splice(first..first + count, pieces);
    *row_at(&mut result.row, path)? = other.row.clone();
    Some(result)
}

/// The leaf of the node around the row at the end of a path.
fn first_core(written: &Written, path: &Path) -> usize {
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
fn fraction_sibling(written: &Written, path: &Path, core: usize, first: usize, count: usize) -> f64 {
    let mut tree = written.row.clone();
    let parent = row_at(&mut tree, &path[..path.len() - 1]);
    let whole = parent.map_or(0, |row| row[path[path.len() - 1].0].leaf_count());
    let own = first..first + count;
    let others = (core + 1..core + whole).filter(|leaf| !own.contains(leaf));
    let place = others.map(|leaf| Rect::of(&written.pieces[leaf].strokes)).fold(Rect::EMPTY, Rect::union);
    place.width().max(0.0)
}

/// Whether a tree has the leaves that were written.
pub fn agrees(grammar: &Grammar, written: &Written) -> bool {
    let tokens: Vec<TokenId> = written.pieces.iter().map(|piece| piece.token).collect();
    grammar.leaves(&written.row) == tokens
}

#[cfg(test)]
mod tests {
    use comer::internal::Vocab;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Symbols as boxes: label, left, top, width, height.
    fn written(caption: &str, boxes: &[(f64, f64, f64, f64)]) -> (Grammar, Written) {
        let vocab = Vocab::crohme();
        let grammar = Grammar::new(&vocab).unwrap();
        let row = grammar.parse(&vocab.encode(caption).unwrap()).unwrap();
        let stroke = |&(x, y, width, height): &(f64, f64, f64, f64)| {
            vec![Stroke { points: vec![Point { x, y }, Point { x: x + width, y: y + height }] }]
        };
        let leaves = grammar.leaves(&row);
        assert_eq!(leaves.len(), boxes.len());
        let pieces =
            leaves.into_iter().zip(boxes).map(|(token, place)| Piece { token, strokes: stroke(place) });
        let pieces = pieces.collect();
        (grammar, Written { row, pieces })
    }

    fn place(written: &Written, leaf: usize) -> [f64; 4] {
        let rect = Rect::of(&written.pieces[leaf].strokes);
        [rect.left, rect.top, rect.right, rect.bottom]
    }

    #[test]
    fn a_wider_numerator_stretches_its_bar_and_moves_what_follows() {
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
        let path = vec![(0, Relation::Numerator)];
        let result = swap(&a, &path, 1, 1, &b).unwrap();
        assert!(agrees(&grammar, &result));
        // Half the size, 40 wide; the bar keeps its overhang of 10 in all.
        assert_eq!(place(&result, 0), [0.0, 20.0, 50.0, 20.0]);
        assert_eq!(place(&result, 1), [5.0, 5.0, 15.0, 15.0]);
        assert_eq!(place(&result, 3), [35.0, 5.0, 45.0, 15.0]);
        assert_eq!(place(&result, 4), [20.0, 25.0, 30.0, 35.0], "the denominator stays in the middle");
        assert_eq!(place(&result, 6), [70.0, 15.0, 80.0, 25.0]);
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
        let path = vec![(0, Relation::Radicand), (0, Relation::Superscript)];
        let result = swap(&a, &path, 2, 1, &b).unwrap();
        assert!(agrees(&grammar, &result));
        assert_eq!(place(&result, 0), [0.0, 0.0, 50.0, 30.0]);
        assert_eq!(place(&result, 2), [24.0, 5.0, 32.0, 15.0]);
        assert_eq!(place(&result, 4)[0], 55.0);
        let (_, tall) = written("n m", &[(0.0, 0.0, 8.0, 10.0), (10.0, 40.0, 8.0, 10.0)]);
        assert_eq!(swap(&a, &path, 2, 1, &tall), None);
    }

    #[test]
    fn parts_can_stand_alone() {
        let vocab = Vocab::crohme();
        let labels: Vec<String> = (0..vocab.len()).map(|token| vocab.decode(&[token as TokenId])).collect();
        let boxes: Vec<(f64, f64, f64, f64)> = (0..9).map(|x| (10.0 * f64::from(x), 0.0, 8.0, 8.0)).collect();
        let (grammar, whole) = written("\\sin ( a + b ) = 2 c", &boxes);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut found = std::collections::BTreeSet::new();
        for _ in 0..300 {
            if let Some(part) = cut(&whole, &labels, &mut random) {
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
