//! The expression tree of a formula.

use crate::symbols::Dialect;

/// The kind of a node; children are in the given order.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One symbol, by its label. No children.
    Symbol(String),
    /// Parts on one baseline.
    Row,
    /// Numerator, denominator.
    Fraction,
    /// Radicand.
    Root,
    /// Radicand, index.
    IndexedRoot,
    /// Base, subscript.
    Sub,
    /// Base, superscript.
    Sup,
    /// Base, subscript, superscript.
    SubSup,
    /// Base, part below.
    Under,
    /// Base, part above.
    Over,
    /// Base, part below, part above.
    UnderOver,
}

/// A node of an [`Expression`].
#[derive(Clone, Debug)]
pub struct Node {
    /// Its kind.
    pub kind: Kind,
    /// Index of its token, for nodes with ink of their own: symbols, marks, fraction bars, roots.
    pub token: Option<usize>,
    /// Whether it is a delimiter after `\left` or `\right`, which grows with its content.
    pub grows: bool,
    first_child: Option<usize>,
    last_child: Option<usize>,
    next_sibling: Option<usize>,
}

/// A formula as a tree. A node comes before its children, and children are in reading order.
#[derive(Clone, Debug)]
pub struct Expression {
    nodes: Vec<Node>,
    dialect: Dialect,
}

impl Expression {
    /// All nodes, the root first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The dialect of the formula.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The children of a node.
    pub fn children(&self, parent: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.nodes[parent].first_child, |&child| self.nodes[child].next_sibling)
    }

    /// A tree without nodes.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { nodes: Vec::new(), dialect }
    }

    /// Adds a node as the last child of `parent`.
    pub(crate) fn add(&mut self, kind: Kind, parent: Option<usize>) -> usize {
        let id = self.nodes.len();
        let (token, grows) = (None, false);
        self.nodes.push(Node { kind, token, grows, first_child: None, last_child: None, next_sibling: None });
        if let Some(parent) = parent {
            match self.nodes[parent].last_child.replace(id) {
                None => self.nodes[parent].first_child = Some(id),
                Some(before) => self.nodes[before].next_sibling = Some(id),
            }
        }
        id
    }

    /// Marks a delimiter as one that grows.
    pub(crate) fn set_grows(&mut self, node: usize) {
        self.nodes[node].grows = true;
    }

    /// As [`Self::add`], for a node with a token.
    pub(crate) fn add_written(&mut self, kind: Kind, parent: Option<usize>, token: usize) -> usize {
        let id = self.add(kind, parent);
        self.nodes[id].token = Some(token);
        id
    }
}
