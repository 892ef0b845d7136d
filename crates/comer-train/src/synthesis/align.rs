//! Assigns written symbols to the leaves of the caption's tree by their positions.
//!
//! The nodes of a row are side by side, so the symbols of a row, sorted by their centres, divide into runs of known
//! lengths. A bar separates numerator and denominator, a symbol its scripts. Each part must have the labels of its
//! subtree; otherwise the expression is not used.

use comer::internal::TokenId;

use super::geometry::Rect;
use super::tree::{Atom, Row, TreeGrammar, TreeNode, leaf_count};

/// A written symbol.
#[derive(Clone, Copy, Debug)]
pub struct SymbolBox {
    /// Its label.
    pub token: TokenId,
    /// Its bounding box.
    pub bounds: Rect,
}

/// The index of the symbol of each leaf of the tree, if the symbols can be assigned.
pub fn align(grammar: &TreeGrammar, row: &[TreeNode], symbols: &[SymbolBox]) -> Option<Vec<usize>> {
    let mut order = Vec::with_capacity(symbols.len());
    let all = (0..symbols.len()).collect();
    let aligner = Aligner { grammar, symbols };
    (aligner.row(row, all, &mut order)).then_some(order)
}

struct Aligner<'a> {
    grammar: &'a TreeGrammar,
    symbols: &'a [SymbolBox],
}

impl Aligner<'_> {
    fn bounds(&self, symbol: usize) -> Rect {
        self.symbols[symbol].bounds
    }

    fn sort_by(&self, own: &mut [usize], key: impl Fn(Rect) -> f64) {
        own.sort_by(|&a, &b| key(self.bounds(a)).total_cmp(&key(self.bounds(b))).then(a.cmp(&b)));
    }

    fn row(&self, row: &[TreeNode], mut own: Vec<usize>, order: &mut Vec<usize>) -> bool {
        if own.len() != leaf_count(row) || !self.has_labels(row, &own) {
            return false;
        }
        self.sort_by(&mut own, |bounds| bounds.center().x);
        let mut rest = &own[..];
        row.iter().all(|node| {
            let (part, others) = rest.split_at(node.leaf_count());
            rest = others;
            self.has_labels(std::slice::from_ref(node), part) && self.node(node, part.to_vec(), order)
        })
    }

    fn has_labels(&self, row: &[TreeNode], own: &[usize]) -> bool {
        let mut wanted = self.grammar.leaves(row);
        let mut found: Vec<TokenId> = own.iter().map(|&symbol| self.symbols[symbol].token).collect();
        wanted.sort();
        found.sort();
        wanted == found
    }

    /// One node of at least one symbol.
    fn node(&self, node: &TreeNode, own: Vec<usize>, order: &mut Vec<usize>) -> bool {
        let (token, widest) = match &node.atom {
            Atom::Symbol(token) => (*token, false),
            Atom::Fraction(..) => (self.grammar.bar, true),
            Atom::Root(..) => (self.grammar.sqrt, true),
        };
        let mut cores: Vec<usize> =
            own.iter().copied().filter(|&symbol| self.symbols[symbol].token == token).collect();
        self.sort_by(&mut cores, |bounds| if widest { -bounds.width() } else { bounds.left });
        // Scripts of fractions and roots are rare and not supported.
        if widest && (node.sub.is_some() || node.sup.is_some()) {
            return false;
        }
        cores.into_iter().any(|core| {
            let rest: Vec<usize> = own.iter().copied().filter(|&symbol| symbol != core).collect();
            let before = order.len();
            order.push(core);
            let assigned = match &node.atom {
                Atom::Symbol(_) => self.scripts(node, core, rest, order),
                Atom::Fraction(numerator, denominator) => {
                    let middle = self.bounds(core).center().y;
                    let (above, below) =
                        rest.into_iter().partition(|&symbol| self.bounds(symbol).center().y < middle);
                    self.row(numerator, above, order) && self.row(denominator, below, order)
                }
                Atom::Root(None, radicand) => self.row(radicand, rest, order),
                Atom::Root(Some(index), radicand) => {
                    let mut rest = rest;
                    self.sort_by(&mut rest, |bounds| bounds.center().x);
                    let count = leaf_count(index);
                    if count > rest.len() {
                        return false;
                    }
                    let inner = rest.split_off(count);
                    self.row(index, rest, order) && self.row(radicand, inner, order)
                }
            };
            if !assigned {
                order.truncate(before);
            }
            assigned
        })
    }

    fn scripts(&self, node: &TreeNode, core: usize, mut rest: Vec<usize>, order: &mut Vec<usize>) -> bool {
        let count = |row: &Option<Row>| row.as_ref().map_or(0, |row| leaf_count(row));
        if rest.len() != count(&node.sub) + count(&node.sup) {
            return false;
        }
        self.sort_by(&mut rest, |bounds| bounds.center().y);
        let lower = rest.split_off(count(&node.sup));
        let middle = self.bounds(core).center().y;
        let mean = |own: &[usize]| {
            own.iter().map(|&symbol| self.bounds(symbol).center().y).sum::<f64>() / own.len() as f64
        };
        // An empty script has no mean (NaN) and passes.
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
    fn equal_symbols_are_distinguished_by_position() {
        let vocab = Vocab::crohme();
        let grammar = TreeGrammar::new(&vocab).unwrap();
        let symbol = |label: &str, x: f64, y: f64, width: f64| SymbolBox {
            token: vocab.encode(label).unwrap()[0],
            bounds: Rect {
                left: x,
                top: y,
                right: x + width,
                bottom: y + if label == "-" { 1.0 } else { 10.0 },
            },
        };
        // x^2 - (2 over x - 2), unordered.
        let symbols = [
            symbol("-", 40.0, 5.0, 30.0),
            symbol("2", 12.0, -8.0, 5.0),
            symbol("2", 60.0, 10.0, 8.0),
            symbol("x", 40.0, 10.0, 8.0),
            symbol("-", 25.0, 5.0, 8.0),
            symbol("x", 0.0, 0.0, 10.0),
            symbol("-", 50.0, 15.0, 8.0),
            symbol("2", 50.0, -8.0, 8.0),
        ];
        let parse = |caption: &str| grammar.parse(&vocab.encode(caption).unwrap()).unwrap();
        let row = parse("x ^ { 2 } - \\frac { 2 } { x - 2 }");
        assert_eq!(align(&grammar, &row, &symbols), Some(vec![5, 1, 4, 0, 7, 3, 6, 2]));
        for other in
            ["x _ { 2 } - \\frac { 2 } { x - 2 }", "x ^ { 2 } - \\frac { x - 2 } { 2 }", "x ^ { 2 } - 2"]
        {
            assert_eq!(align(&grammar, &parse(other), &symbols), None, "{other}");
        }
    }
}
