//! The structure of a caption: rows of symbols with scripts, fractions and roots.

use comer::internal::{TokenId, Vocab};

/// What stands side by side.
pub type Row = Vec<Node>;

/// A symbol, a fraction or a root, with its scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What the scripts belong to.
    pub atom: Atom,
    /// Whether the scripts stand below and above instead of beside.
    pub limits: bool,
    /// The subscript or what stands below.
    pub sub: Option<Row>,
    /// The superscript or what stands above.
    pub sup: Option<Row>,
}

/// The core of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Atom {
    /// One symbol.
    Symbol(TokenId),
    /// Numerator and denominator.
    Fraction(Row, Row),
    /// The index, if there is one, and the radicand.
    Root(Option<Row>, Row),
}

/// How a row belongs to the node around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Above a bar.
    Numerator,
    /// Below a bar.
    Denominator,
    /// Over a root's hook.
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

/// The way to a row: at each level the node's place in its row, and which of its rows.
pub type Path = Vec<(usize, Relation)>;

impl Node {
    /// A symbol without scripts.
    pub fn symbol(token: TokenId) -> Self {
        Self { atom: Atom::Symbol(token), limits: false, sub: None, sup: None }
    }

    /// The rows of the node in the order of its leaves.
    pub fn rows(&self) -> Vec<(Relation, &Row)> {
        let mut rows = Vec::new();
        match &self.atom {
            Atom::Symbol(_) => {}
            Atom::Fraction(numerator, denominator) => {
                rows.push((Relation::Numerator, numerator));
                rows.push((Relation::Denominator, denominator));
            }
            Atom::Root(index, radicand) => {
                rows.extend(index.iter().map(|index| (Relation::Index, index)));
                rows.push((Relation::Radicand, radicand));
            }
        }
        let [below, above] = self.script_relations();
        rows.extend(self.sub.iter().map(|sub| (below, sub)));
        rows.extend(self.sup.iter().map(|sup| (above, sup)));
        rows
    }

    fn script_relations(&self) -> [Relation; 2] {
        match self.limits {
            true => [Relation::Below, Relation::Above],
            false => [Relation::Subscript, Relation::Superscript],
        }
    }

    fn row_mut(&mut self, relation: Relation) -> Option<&mut Row> {
        match (&mut self.atom, relation) {
            (Atom::Fraction(numerator, _), Relation::Numerator) => Some(numerator),
            (Atom::Fraction(_, denominator), Relation::Denominator) => Some(denominator),
            (Atom::Root(index, _), Relation::Index) => index.as_mut(),
            (Atom::Root(_, radicand), Relation::Radicand) => Some(radicand),
            (_, Relation::Subscript | Relation::Below) => self.sub.as_mut(),
            (_, Relation::Superscript | Relation::Above) => self.sup.as_mut(),
            _ => None,
        }
    }

    /// Symbols that are written: bars and root signs among them.
    pub fn leaf_count(&self) -> usize {
        1 + self.rows().iter().map(|(_, row)| leaf_count(row)).sum::<usize>()
    }
}

/// Symbols that are written in a row.
pub fn leaf_count(row: &[Node]) -> usize {
    row.iter().map(Node::leaf_count).sum()
}

/// The row at the end of a path.
pub fn row_at<'a>(row: &'a mut Row, path: &[(usize, Relation)]) -> Option<&'a mut Row> {
    match path {
        [] => Some(row),
        [(index, relation), rest @ ..] => row_at(row.get_mut(*index)?.row_mut(*relation)?, rest),
    }
}

/// Every row inside a row: its path and the place of its first leaf. The row itself is not among them.
pub fn inner_rows(row: &[Node]) -> Vec<(Path, usize)> {
    let mut found = Vec::new();
    collect(row, 0, &mut Path::new(), &mut found);
    found
}

fn collect(row: &[Node], first: usize, path: &mut Path, found: &mut Vec<(Path, usize)>) {
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

/// The tokens that make structure, and those that bars and root signs are written as.
#[derive(Clone, Debug)]
pub struct Grammar {
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

impl Grammar {
    /// The grammar of a vocabulary, or the token that it lacks.
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

    /// The tree of a caption, if it is written the way captions are.
    pub fn parse(&self, tokens: &[TokenId]) -> Option<Row> {
        let mut reader = Reader { grammar: self, tokens, at: 0 };
        let row = reader.row(None)?;
        (reader.at == tokens.len()).then_some(row)
    }

    /// The caption of a tree.
    pub fn tokens(&self, row: &[Node]) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        row.iter().for_each(|node| self.write(node, &mut tokens));
        tokens
    }

    fn write(&self, node: &Node, tokens: &mut Vec<TokenId>) {
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

    /// The symbols that are written, in the order of the tree: a bar or a root sign before its rows, a symbol before
    /// its scripts.
    pub fn leaves(&self, row: &[Node]) -> Vec<TokenId> {
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

struct Reader<'a> {
    grammar: &'a Grammar,
    tokens: &'a [TokenId],
    at: usize,
}

impl Reader<'_> {
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

    /// A row up to the token that ends it, which is taken, or to the end.
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

    fn node(&mut self) -> Option<Node> {
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
        let mut node = Node { atom, limits, sub: None, sup: None };
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
    fn captions_survive_being_read_and_written() {
        let vocab = Vocab::crohme();
        let grammar = Grammar::new(&vocab).unwrap();
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
    fn rows_are_found_with_their_leaves() {
        let vocab = Vocab::crohme();
        let grammar = Grammar::new(&vocab).unwrap();
        let tokens = vocab.encode("a + \\frac { x ^ { 2 } } { \\sqrt { y } } = z _ { 1 }").unwrap();
        let mut row = grammar.parse(&tokens).unwrap();
        let leaves = grammar.leaves(&row);
        let found: Vec<(Relation, usize, String)> = inner_rows(&row)
            .into_iter()
            .map(|(path, first)| {
                let inner = row_at(&mut row, &path).unwrap().clone();
                let own = grammar.leaves(&inner);
                assert_eq!(leaves[first..first + own.len()], own);
                (path.last().unwrap().1, first, vocab.decode(&grammar.tokens(&inner)))
            })
            .collect();
        let expected = [
            (Relation::Numerator, 3, "x ^ { 2 }"),
            (Relation::Superscript, 4, "2"),
            (Relation::Denominator, 5, "\\sqrt { y }"),
            (Relation::Radicand, 6, "y"),
            (Relation::Subscript, 9, "1"),
        ];
        assert_eq!(found, expected.map(|(relation, first, text)| (relation, first, text.to_string())));
    }
}
