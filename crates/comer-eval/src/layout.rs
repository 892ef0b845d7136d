//! The relations between the symbols of an expression tree, by the rules of the official converter.
//!
//! A relation to a row leads to its first symbol, and the next symbol on the line is to the right of its last; scripts
//! belong to the last symbol of their base. The rules for empty groups follow from how the converter joins nested rows.

use crate::expression::{Expression, Kind};
use crate::relation::Relation;
use crate::symbols::Dialect;

/// A symbol and the one that its path goes through.
pub(crate) struct Symbol {
    pub(crate) node: usize,
    pub(crate) label: String,
    pub(crate) parent: Option<(usize, Relation)>,
}

/// The symbols of an expression in reading order, and their relations, by node number.
pub(crate) struct Layout {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) edges: Vec<(usize, usize, Relation)>,
}

/// How a part of an expression is connected to its surroundings.
#[derive(Clone, Copy, Default)]
struct Ends {
    /// The symbol that a relation to this part leads to.
    first: Option<usize>,
    /// The symbol after the first one when rows are joined.
    second: Option<usize>,
    /// The symbol that its scripts belong to.
    main: Option<usize>,
    /// The symbol that the next one on the line is to the right of.
    last: Option<usize>,
    /// A row, or scripts on a row: its parts are joined with those of the row around it.
    is_row: bool,
    /// A row that ends in an empty row.
    ends_empty: bool,
}

pub(crate) fn of(expression: &Expression) -> Layout {
    let nodes = expression.nodes();
    let mut ends = vec![Ends::default(); nodes.len()];
    let mut edges = Vec::new();
    // Children come after their parents, so in reverse order they are done first.
    for node in (0..nodes.len()).rev() {
        let children: Vec<Ends> = expression.children(node).map(|child| ends[child]).collect();
        let mut joiner = Joiner { node, edges: &mut edges };
        ends[node] = match &nodes[node].kind {
            Kind::Symbol(_) => joiner.symbol(),
            Kind::Row => joiner.row(&children),
            Kind::Fraction => joiner.around(&children, [Relation::Above, Relation::Below]),
            Kind::IndexedRoot => joiner.around(&children, [Relation::Inside, Relation::Above]),
            Kind::Root => joiner.root(&children, expression.dialect()),
            Kind::Sub => joiner.script(&children, Relation::Sub),
            Kind::Sup => joiner.script(&children, Relation::Sup),
            Kind::Under => joiner.scripts(&children, &[Relation::Below]),
            Kind::Over => joiner.scripts(&children, &[Relation::Above]),
            Kind::SubSup => joiner.scripts(&children, &[Relation::Sub, Relation::Sup]),
            Kind::UnderOver => joiner.scripts(&children, &[Relation::Below, Relation::Above]),
        };
    }
    let mut parents: Vec<Option<(usize, Relation)>> = vec![None; nodes.len()];
    for (from, to, relation) in &edges {
        let parent = &mut parents[*to];
        // The second symbol of a radicand has two relations; its path goes through the first symbol.
        if parent.is_none() || matches!(parent, Some((_, Relation::Inside))) {
            *parent = Some((*from, relation.clone()));
        }
    }
    let label = |kind: &Kind| match kind {
        Kind::Symbol(label) => Some(label.clone()),
        Kind::Fraction => Some("-".into()),
        Kind::Root | Kind::IndexedRoot => Some(r"\sqrt".into()),
        _ => None,
    };
    let symbols = nodes
        .iter()
        .zip(parents)
        .enumerate()
        .filter_map(|(node, (content, parent))| Some(Symbol { node, label: label(&content.kind)?, parent }))
        .collect();
    Layout { symbols, edges }
}

struct Joiner<'a> {
    node: usize,
    edges: &'a mut Vec<(usize, usize, Relation)>,
}

impl Joiner<'_> {
    fn join(&mut self, from: Option<usize>, to: Option<usize>, relation: Relation) {
        if let (Some(from), Some(to)) = (from, to) {
            self.edges.push((from, to, relation));
        }
    }

    fn symbol(&self) -> Ends {
        let own = Some(self.node);
        Ends { first: own, main: own, last: own, ..Ends::default() }
    }

    fn row(&mut self, children: &[Ends]) -> Ends {
        let mut row = Ends { is_row: true, ends_empty: true, ..Ends::default() };
        for child in children {
            row.main = child.main;
            row.ends_empty = child.ends_empty;
            if child.first.is_none() {
                continue;
            }
            if row.first.is_none() {
                row.first = child.first;
                row.second = child.second;
            } else {
                self.join(row.last, child.first, Relation::Right);
                row.second = row.second.or(child.first);
            }
            row.last = child.last;
        }
        row
    }

    /// A symbol with parts around it.
    fn around(&mut self, children: &[Ends], relations: [Relation; 2]) -> Ends {
        for (child, relation) in children.iter().zip(relations) {
            self.join(Some(self.node), child.first, relation);
        }
        self.symbol()
    }

    fn root(&mut self, children: &[Ends], dialect: Dialect) -> Ends {
        for child in children {
            self.join(Some(self.node), child.first, Relation::Inside);
            if dialect == Dialect::Official {
                self.join(Some(self.node), child.second, Relation::Inside);
            }
        }
        self.symbol()
    }

    /// One script: a row as its base is joined with the row around, its last part keeping the script.
    fn script(&mut self, children: &[Ends], relation: Relation) -> Ends {
        let Some(base) = children.first() else { return Ends::default() };
        let script = children.get(1).and_then(|script| script.first);
        if !base.is_row || !base.ends_empty {
            self.join(base.main, script, relation);
            let first = base.first.or(script);
            return Ends {
                first,
                second: base.second,
                main: base.main,
                last: base.main,
                is_row: base.is_row,
                ends_empty: false,
            };
        }
        // The script of an empty group is placed on the line.
        self.join(base.last, script, Relation::Right);
        Ends {
            first: base.first.or(script),
            second: base.second.or(script.filter(|_| base.first.is_some())),
            main: None,
            last: if script.is_some() { None } else { base.last },
            is_row: true,
            ends_empty: false,
        }
    }

    fn scripts(&mut self, children: &[Ends], relations: &[Relation]) -> Ends {
        let Some((base, scripts)) = children.split_first() else { return Ends::default() };
        for (script, relation) in scripts.iter().zip(relations) {
            self.join(base.main, script.first, relation.clone());
        }
        let first = children.iter().find_map(|child| child.first);
        Ends { first, main: base.main, last: base.main, ..Ends::default() }
    }
}
