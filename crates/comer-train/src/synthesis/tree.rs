//! The structure of a caption: rows of symbols with scripts, fractions and roots.

use comer::internal::{TokenId, Vocab};

/// Nodes side by side.
pub type Row = Vec<TreeNode>;

/// A symbol, a fraction or a root, with its scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeNode {
    /// The base of the scripts.
    pub atom: Atom,
    /// Whether the scripts are limits, below and above the base.
    pub limits: bool,
    /// The subscript or lower limit.
    pub sub: Option<Row>,
    /// The superscript or upper limit.
    pub sup: Option<Row>,
}

/// The base of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Atom {
    /// One symbol.
    Symbol(TokenId),
    /// Numerator and denominator.
    Fraction(Row, Row),
    /// The index, if there is one, and the radicand.
    Root(Option<Row>, Row),
}

/// The relation of a row to its parent node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowRelation {
    /// Above a bar.
    Numerator,
    /// Below a bar.
    Denominator,
    /// Over the hook of a root.
    Index,
    /// Under a root.
    Radicand,
    /// Beside and below a symbol.
    Subscript,
    /// Beside and above a symbol.
    Superscript,
    /// Below a symbol.
    Below,
    /// Above a symbol.
    Above,
}

/// The path to a row: at each level the index of the node in its row, and which of its rows.
pub type Path = Vec<(usize, RowRelation)>;

impl TreeNode {
    /// A symbol without scripts.
    pub fn symbol(token: TokenId) -> Self {
        Self { atom: Atom::Symbol(token), limits: false, sub: None, sup: None }
    }

    /// The rows of the node in the order of its leaves.
    pub fn rows(&self) -> Vec<(RowRelation, &Row)> {
        let mut rows = Vec::new();
        match &self.atom {
            Atom::Symbol(_) => {}
            Atom::Fraction(numerator, denominator) => {
                rows.push((RowRelation::Numerator, numerator));
                rows.push((RowRelation::Denominator, denominator));
            }
            Atom::Root(index, radicand) => {
                rows.extend(index.iter().map(|index| (RowRelation::Index, index)));
                rows.push((RowRelation::Radicand, radicand));
            }
        }
        let [below, above] = self.script_relations();
        rows.extend(self.sub.iter().map(|sub| (below, sub)));
        rows.extend(self.sup.iter().map(|sup| (above, sup)));
        rows
    }

    fn script_relations(&self) -> [RowRelation; 2] {
        match self.limits {
            true => [RowRelation::Below, RowRelation::Above],
            false => [RowRelation::Subscript, RowRelation::Superscript],
        }
    }

    fn row_mut(&mut self, relation: RowRelation) -> Option<&mut Row> {
        match (&mut self.atom, relation) {
            (Atom::Fraction(numerator, _), RowRelation::Numerator) => Some(numerator),
            (Atom::Fraction(_, denominator), RowRelation::Denominator) => Some(denominator),
            (Atom::Root(index, _), RowRelation::Index) => index.as_mut(),
            (Atom::Root(_, radicand), RowRelation::Radicand) => Some(radicand),
            (_, RowRelation::Subscript | RowRelation::Below) => self.sub.as_mut(),
            (_, RowRelation::Superscript | RowRelation::Above) => self.sup.as_mut(),
            _ => None,
        }
    }

    /// Number of written symbols, including bars and root signs.
    pub fn leaf_count(&self) -> usize {
        1 + self.rows().iter().map(|(_, row)| leaf_count(row)).sum::<usize>()
    }
}

/// Number of written symbols in a row.
pub fn leaf_count(row: &[TreeNode]) -> usize {
    row.iter().map(TreeNode::leaf_count).sum()
}

/// The row at the end of a path.
pub fn row_at<'a>(row: &'a mut Row, path: &[(usize, RowRelation)]) -> Option<&'a mut Row> {
    match path {
        [] => Some(row),
        [(index, relation), rest @ ..] => row_at(row.get_mut(*index)?.row_mut(*relation)?, rest),
    }
}

/// The rows inside a row, without the row itself: path and index of the first leaf.
pub fn inner_rows(row: &[TreeNode]) -> Vec<(Path, usize)> {
    let mut found = Vec::new();
    collect(row, 0, &mut Path::new(), &mut found);
    found
}

fn collect(row: &[TreeNode], first: usize, path: &mut Path, found: &mut Vec<(Path, usize)>) {
    let mut leaf = first;
    for (index, node) in row.iter().enumerate() {
        let mut inner = leaf + 1;
        for (relation, row) in node.rows() {
            path.push((index, relation));
            found.push((path.clone(), inner));
            collect(row, inner, path, found);
            path.pop();
            inner += leaf_count(row);
        }
        leaf = inner;
    }
}

/// The structural tokens, and the tokens of bars and root signs.
#[derive(Clone, Debug)]
pub struct TreeGrammar {
    open: TokenId,
    close: TokenId,
    sub: TokenId,
    sup: TokenId,
    frac: TokenId,
    limits: TokenId,
    index: [TokenId; 2],
    /// A root sign.
    pub sqrt: TokenId,
    /// A bar.
    pub bar: TokenId,
}

impl TreeGrammar {
    /// The grammar of a vocabulary; an error names a missing token.
    pub fn new(vocab: &Vocab) -> Result<Self, String> {
        let token = |name: &str| match vocab.encode(name).as_deref() {
            Ok(&[token]) => Ok(token),
            _ => Err(format!("the vocabulary lacks {name}, which synthesis needs")),
        };
        Ok(Self {
            open: token("{")?,
            close: token("}")?,
            sub: token("_")?,
            sup: token("^")?,
            frac: token("\\frac")?,
            limits: token("\\limits")?,
            index: [token("[")?, token("]")?],
            sqrt: token("\\sqrt")?,
            bar: token("-")?,
        })
    }

    /// Whether a token is written as a symbol.
    pub fn is_symbol(&self, token: TokenId) -> bool {
        ![self.open, self.close, self.sub, self.sup, self.frac, self.limits, self.sqrt].contains(&token)
    }

    /// Parses a caption in the normal form of captions.
    pub fn parse(&self, tokens: &[TokenId]) -> Option<Row> {
        let mut parser = Parser { grammar: self, tokens, at: 0 };
        let row = parser.row(None)?;
        (parser.at == tokens.len()).then_some(row)
    }

    /// The caption of a tree.
    pub fn tokens(&self, row: &[TreeNode]) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        row.iter().for_each(|node| self.write(node, &mut tokens));
        tokens
    }

    fn write(&self, node: &TreeNode, tokens: &mut Vec<TokenId>) {
        let group = |row: &Row, tokens: &mut Vec<TokenId>| {
            tokens.push(self.open);
            row.iter().for_each(|node| self.write(node, tokens));
            tokens.push(self.close);
        };
        match &node.atom {
            Atom::Symbol(token) => tokens.push(*token),
            Atom::Fraction(numerator, denominator) => {
                tokens.push(self.frac);
                group(numerator, tokens);
                group(denominator, tokens);
            }
            Atom::Root(index, radicand) => {
                tokens.push(self.sqrt);
                if let Some(index) = index {
                    tokens.push(self.index[0]);
                    index.iter().for_each(|node| self.write(node, tokens));
                    tokens.push(self.index[1]);
                }
                group(radicand, tokens);
            }
        }
        if node.limits {
            tokens.push(self.limits);
        }
        for (sign, script) in [(self.sub, &node.sub), (self.sup, &node.sup)] {
            if let Some(script) = script {
                tokens.push(sign);
                group(script, tokens);
            }
        }
    }

    /// The written symbols in the order of the tree: a bar or root sign before its rows, a symbol before its scripts.
    pub fn leaves(&self, row: &[TreeNode]) -> Vec<TokenId> {
        let mut leaves = Vec::new();
        for node in row {
            leaves.push(match &node.atom {
                Atom::Symbol(token) => *token,
                Atom::Fraction(..) => self.bar,
                Atom::Root(..) => self.sqrt,
            });
            node.rows().iter().for_each(|(_, row)| leaves.extend(self.leaves(row)));
        }
        leaves
    }
}

struct Parser<'a> {
    grammar: &'a TreeGrammar,
    tokens: &'a [TokenId],
    at: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<TokenId> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn accept(&mut self, token: TokenId) -> bool {
        let found = self.tokens.get(self.at) == Some(&token);
        self.at += usize::from(found);
        found
    }

    /// A row up to and including its end token, or to the end.
    fn row(&mut self, end: Option<TokenId>) -> Option<Row> {
        let mut row = Row::new();
        loop {
            if let Some(end) = end
                && self.accept(end)
            {
                break;
            }
            if self.at == self.tokens.len() {
                if end.is_some() {
                    return None;
                }
                break;
            }
            row.push(self.node()?);
        }
        (!row.is_empty()).then_some(row)
    }

    fn group(&mut self) -> Option<Row> {
        if self.accept(self.grammar.open) { self.row(Some(self.grammar.close)) } else { None }
    }

    fn node(&mut self) -> Option<TreeNode> {
        let grammar = self.grammar;
        let token = self.next()?;
        let atom = if token == grammar.frac {
            Atom::Fraction(self.group()?, self.group()?)
        } else if token == grammar.sqrt {
            let [open, close] = grammar.index;
            let index = if self.accept(open) { Some(self.row(Some(close))?) } else { None };
            Atom::Root(index, self.group()?)
        } else if grammar.is_symbol(token) {
            Atom::Symbol(token)
        } else {
            return None;
        };
        let limits = self.accept(grammar.limits);
        let mut node = TreeNode { atom, limits, sub: None, sup: None };
        loop {
            let script = if self.accept(grammar.sub) {
                &mut node.sub
            } else if self.accept(grammar.sup) {
                &mut node.sup
            } else {
                break;
            };
            if script.is_some() {
                return None;
            }
            *script = Some(self.group()?);
        }
        (!limits || node.sub.is_some() || node.sup.is_some()).then_some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_round_trip() {
        let vocab = Vocab::crohme();
        let grammar = TreeGrammar::new(&vocab).unwrap();
        for (caption, leaves) in [
            ("x", "x"),
            ("\\frac { a ^ { 2 } } { b } + 1", "- a 2 b + 1"),
            ("\\sqrt [ 3 ] { x _ { i } ^ { 2 } }", "\\sqrt 3 x i 2"),
            ("\\sum \\limits _ { i = 1 } ^ { n } [ i ]", "\\sum i = 1 n [ i ]"),
        ] {
            let tokens = vocab.encode(caption).unwrap();
            let row = grammar.parse(&tokens).unwrap();
            assert_eq!(grammar.tokens(&row), tokens, "{caption}");
            assert_eq!(vocab.decode(&grammar.leaves(&row)), leaves);
            assert_eq!(leaf_count(&row), leaves.split(' ').count());
        }
        for caption in [
            "{ x }",
            "^ { 2 }",
            "\\frac { a }",
            "x _ { }",
            "x ^ { 2 } ^ { 3 }",
            "x }",
            "\\limits x",
            "x \\limits",
        ] {
            assert_eq!(grammar.parse(&vocab.encode(caption).unwrap()), None, "{caption}");
        }
    }

    #[test]
    fn inner_rows_have_the_right_leaves() {
        let vocab = Vocab::crohme();
        let grammar = TreeGrammar::new(&vocab).unwrap();
        let tokens = vocab.encode("a + \\frac { x ^ { 2 } } { \\sqrt { y } } = z _ { 1 }").unwrap();
        let mut row = grammar.parse(&tokens).unwrap();
        let leaves = grammar.leaves(&row);
        let found: Vec<(RowRelation, usize, String)> = inner_rows(&row)
            .into_iter()
            .map(|(path, first)| {
                let inner = row_at(&mut row, &path).unwrap().clone();
                let own = grammar.leaves(&inner);
                assert_eq!(leaves[first..first + own.len()], own);
                (path.last().unwrap().1, first, vocab.decode(&grammar.tokens(&inner)))
            })
            .collect();
        let expected = [
            (RowRelation::Numerator, 3, "x ^ { 2 }"),
            (RowRelation::Superscript, 4, "2"),
            (RowRelation::Denominator, 5, "\\sqrt { y }"),
            (RowRelation::Radicand, 6, "y"),
            (RowRelation::Subscript, 9, "1"),
        ];
        assert_eq!(found, expected.map(|(relation, first, text)| (relation, first, text.to_string())));
    }
}
