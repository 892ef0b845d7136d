//! Which written symbol is which leaf of the caption's tree, found by where the symbols stand.
//!
//! The nodes of a row stand side by side, so that the symbols of a row, sorted by their middles, fall into runs of known
//! lengths. A bar parts numerator from denominator, a symbol its scripts. Each part must have the labels that the tree
//! asks for; an expression where it has not is not used.

use comer::internal::TokenId;

use super::geometry::Rect;
use super::tree::{Atom, Grammar, Node, Row, leaf_count};

/// A written symbol.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Its label.
    pub token: TokenId,
    /// Where it stands.
    pub place: Rect,
}

/// The mark of each leaf of the tree, if the marks can be told apart.
pub fn align(grammar: &Grammar, row: &[Node], marks: &[Mark]) -> Option<Vec<usize>> {
    let mut order = Vec::with_capacity(marks.len());
    let all = (0..marks.len()).collect();
    let aligner = Aligner { grammar, marks };
    (aligner.row(row, all, &mut order)).then_some(order)
}

struct Aligner<'a> {
    grammar: &'a Grammar,
    marks: &'a [Mark],
}

impl Aligner<'_> {
    fn place(&self, mark: usize) -> Rect {
        self.marks[mark].place
    }

    fn sort_by(&self, own: &mut [usize], key: impl Fn(Rect) -> f64) {
        own.sort_by(|&a, &b| key(self.place(a)).total_cmp(&key(self.place(b))).then(a.cmp(&b)));
    }

    fn row(&self, row: &[Node], mut own: Vec<usize>, order: &mut Vec<usize>) -> bool {
        if own.len() != leaf_count(row) || !self.has_labels(row, &own) {
            return false;
        }
        self.sort_by(&mut own, |place| place.center().x);
        let mut rest = &own[..];
        row.iter().all(|node| {
            let (part, others) = rest.split_at(node.leaf_count());
            rest = others;
            self.has_labels(std::slice::from_ref(node), part) && self.node(node, part.to_vec(), order)
        })
    }

    fn has_labels(&self, row: &[Node], own: &[usize]) -> bool {
        let mut wanted = self.grammar.leaves(row);
        let mut found: Vec<TokenId> = own.iter().map(|&mark| self.marks[mark].token).collect();
        wanted.sort();
        found.sort();
        wanted == found
    }

    /// One node of at least one mark.
    fn node(&self, node: &Node, own: Vec<usize>, order: &mut Vec<usize>) -> bool {
        let (token, widest) = match &node.atom {
            Atom::Symbol(token) => (*token, false),
            Atom::Fraction(..) => (self.grammar.bar, true),
            Atom::Root(..) => (self.grammar.sqrt, true),
        };
        let mut cores: Vec<usize> =
            own.iter().copied().filter(|&mark| self.marks[mark].token == token).collect();
        self.sort_by(&mut cores, |place| if widest { -place.width() } else { place.left });
        // Scripts of fractions and roots are too rare to tell apart.
        if widest && (node.sub.is_some() || node.sup.is_some()) {
            return false;
        }
        cores.into_iter().any(|core| {
            let rest: Vec<usize> = own.iter().copied().filter(|&mark| mark != core).collect();
            let before = order.len();
            order.push(core);
            let good = match &node.atom {
                Atom::Symbol(_) => self.scripts(node, core, rest, order),
                Atom::Fraction(numerator, denominator) => {
                    let middle = self.place(core).center().y;
                    let (above, below) =
                        rest.into_iter().partition(|&mark| self.place(mark).center().y < middle);
                    self.row(numerator, above, order) && self.row(denominator, below, order)
                }
                Atom::Root(None, radicand) => self.row(radicand, rest, order),
                Atom::Root(Some(index), radicand) => {
                    let mut rest = rest;
                    self.sort_by(&mut rest, |place| place.center().x);
                    let count = leaf_count(index);
                    if count > rest.len() {
                        return false;
                    }
                    let inner = rest.split_off(count);
                    self.row(index, rest, order) && self.row(radicand, inner, order)
                }
            };
            if !good {
                order.truncate(before);
            }
            good
        })
    }

    fn scripts(&self, node: &Node, core: usize, mut rest: Vec<usize>, order: &mut Vec<usize>) -> bool {
        let count = |row: &Option<Row>| row.as_ref().map_or(0, |row| leaf_count(row));
        if rest.len() != count(&node.sub) + count(&node.sup) {
            return false;
        }
        self.sort_by(&mut rest, |place| place.center().y);
        let lower = rest.split_off(count(&node.sup));
        let middle = self.place(core).center().y;
        let mean = |own: &[usize]| {
            own.iter().map(|&mark| self.place(mark).center().y).sum::<f64>() / own.len() as f64
        };
        // Nothing has no mean, and nothing is on the wrong side.
        if mean(&rest) > middle || mean(&lower) < middle {
            return false;
        }
        let row =
            |row: &Option<Row>, own, order: &mut _| row.as_ref().is_none_or(|row| self.row(row, own, order));
        row(&node.sub, lower, order) && row(&node.sup, rest, order)
    }
}

#[cfg(test)]
mod tests {
    use comer::internal::Vocab;

    use super::*;

    #[test]
    fn equal_symbols_are_told_apart_by_their_places() {
        let vocab = Vocab::crohme();
        let grammar = Grammar::new(&vocab).unwrap();
        let mark = |label: &str, x: f64, y: f64, width: f64| Mark {
            token: vocab.encode(label).unwrap()[0],
            place: Rect {
                left: x,
                top: y,
                right: x + width,
                bottom: y + if label == "-" { 1.0 } else { 10.0 },
            },
        };
        // x^2 - (2 over x - 2), in no order.
        let marks = [
            mark("-", 40.0, 5.0, 30.0),
            mark("2", 12.0, -8.0, 5.0),
            mark("2", 60.0, 10.0, 8.0),
            mark("x", 40.0, 10.0, 8.0),
            mark("-", 25.0, 5.0, 8.0),
            mark("x", 0.0, 0.0, 10.0),
            mark("-", 50.0, 15.0, 8.0),
            mark("2", 50.0, -8.0, 8.0),
        ];
        let parse = |caption: &str| grammar.parse(&vocab.encode(caption).unwrap()).unwrap();
        let row = parse("x ^ { 2 } - \\frac { 2 } { x - 2 }");
        assert_eq!(align(&grammar, &row, &marks), Some(vec![5, 1, 4, 0, 7, 3, 6, 2]));
        for other in
            ["x _ { 2 } - \\frac { 2 } { x - 2 }", "x ^ { 2 } - \\frac { x - 2 } { 2 }", "x ^ { 2 } - 2"]
        {
            assert_eq!(align(&grammar, &parse(other), &marks), None, "{other}");
        }
    }
}
