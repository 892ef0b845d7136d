//! LaTeX to an expression tree, in time linear in the number of tokens and without recursion.
//!
//! The grammar is that of the official CROHME tools, a grammar of ordered choices: what can be read from a token on
//! depends only on what follows it. So a table is filled from the last token to the first, each entry in constant
//! time from entries to its right, and the tree is then read off the table with a stack of its own. No choice is
//! tried twice, however often a looping prediction opens a parenthesis that it never closes.

use crate::error::{Error, Result};
use crate::symbols::{Command, Dialect, character_label, command, function_label};
use crate::token::{Token, split};

/// What a node of an [`Expression`] is; its children are in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One symbol, by its label. No children.
    Symbol(String),
    /// What stands on one line.
    Row,
    /// Numerator, denominator.
    Fraction,
    /// What stands under the root.
    Root,
    /// What stands under the root, the index.
    IndexedRoot,
    /// Base, subscript.
    Sub,
    /// Base, superscript.
    Sup,
    /// Base, subscript, superscript.
    SubSup,
    /// Base, what stands below it.
    Under,
    /// Base, what stands above it.
    Over,
    /// Base, what stands below it, what stands above it.
    UnderOver,
}

/// A node of an [`Expression`].
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    first_child: Option<usize>,
    last_child: Option<usize>,
    next_sibling: Option<usize>,
}

/// A formula as a tree. Nodes are numbered so that each comes before its children, and these in reading order.
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

    /// The dialect that the formula was read in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The numbers of the children of node `parent`.
    pub fn children(&self, parent: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.nodes[parent].first_child, |&child| self.nodes[child].next_sibling)
    }

    fn add(&mut self, kind: Kind, parent: Option<usize>) -> usize {
        let id = self.nodes.len();
        self.nodes.push(Node { kind, first_child: None, last_child: None, next_sibling: None });
        if let Some(parent) = parent {
            match self.nodes[parent].last_child.replace(id) {
                None => self.nodes[parent].first_child = Some(id),
                Some(before) => self.nodes[before].next_sibling = Some(id),
            }
        }
        id
    }
}

/// Reads a formula.
///
/// ```
/// use comer_eval::latex::{Kind, parse};
/// use comer_eval::Dialect;
///
/// let expression = parse(r"\frac { 1 } { x }", Dialect::Official).unwrap();
/// assert_eq!(expression.nodes()[0].kind, Kind::Fraction);
/// assert!(parse(r"\frac { 1 } {", Dialect::Official).is_err());
/// ```
pub fn parse(formula: &str, dialect: Dialect) -> Result<Expression> {
    let table = Table::fill(split(formula), dialect);
    let stop = table.row_end[0];
    match table.tokens.get(stop) {
        None => Ok(table.expression()),
        Some(token) => {
            Err(Error::Formula { position: stop + 1, token: token.text.into(), reason: table.reason(stop) })
        }
    }
}

/// The scripts from some token on: where each starts, and whether it may have scripts itself.
#[derive(Clone, Copy, Debug)]
struct Scripts {
    sub: Option<(usize, bool)>,
    sup: Option<(usize, bool)>,
    end: usize,
}

/// What stands at a token, scripts apart.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The symbol of this token.
    Symbol,
    /// Digits up to `end` as one symbol.
    Number,
    /// White space, or what the dialect drops.
    Nothing,
    /// `{ ... }`; the row ends at the brace.
    Braces { close: usize },
    /// `( ... )` as one: the row ends at the closing delimiter.
    Delimited { close: usize },
    /// `\left( ... \right)`, closed or not.
    Fenced { row_end: usize, closed: bool },
    /// The argument as it is.
    Argument,
    /// Scripts of nothing: `^ { 2 }` at the start of a row.
    Bare(Scripts),
    /// The second argument.
    Fraction { denominator: usize },
    /// The argument, and for an index where it ends.
    Root { body: usize, index_end: Option<usize> },
    /// A mark on the argument.
    Accent { mark: &'static str, above: bool },
}

/// A part without its scripts, and where it ends.
#[derive(Clone, Copy, Debug)]
struct Part {
    shape: Shape,
    end: usize,
}

/// A part with its scripts.
#[derive(Clone, Copy, Debug)]
struct Whole {
    /// Where the part starts (after `\displaystyle`).
    part: usize,
    scripts: Option<Scripts>,
    limits: bool,
    end: usize,
}

const CLOSERS: [&str; 3] = [")", "]", "|"];

/// What can be read from each token on.
struct Table<'a> {
    tokens: Vec<Token<'a>>,
    dialect: Dialect,
    parts: Vec<Option<Part>>,
    wholes: Vec<Option<Whole>>,
    /// Where the argument of a command that starts here ends.
    argument_ends: Vec<Option<usize>>,
    /// Where a row that starts here has to stop.
    row_end: Vec<usize>,
    /// The first of [`CLOSERS`] that a row that starts here comes to.
    closers: [Vec<Option<usize>>; 3],
    /// The end of the digits that start here.
    digits_end: Vec<usize>,
}

impl<'a> Table<'a> {
    fn fill(tokens: Vec<Token<'a>>, dialect: Dialect) -> Self {
        let count = tokens.len();
        let mut table = Self {
            tokens,
            dialect,
            parts: vec![None; count + 1],
            wholes: vec![None; count + 1],
            argument_ends: vec![None; count + 1],
            row_end: vec![count; count + 1],
            closers: std::array::from_fn(|_| vec![None; count + 1]),
            digits_end: vec![count; count + 1],
        };
        for at in (0..count).rev() {
            table.digits_end[at] = table.end_of_digits(at);
            table.parts[at] = table.part(at);
            table.argument_ends[at] = table.argument_end(at);
            table.wholes[at] = table.whole(at);
            let next = table.wholes[at].map(|whole| whole.end);
            table.row_end[at] = next.map_or(at, |next| table.row_end[next]);
            for (closers, closer) in table.closers.iter_mut().zip(CLOSERS) {
                let found = if table.tokens[at].text == closer {
                    Some(at)
                } else {
                    next.and_then(|next| closers[next])
                };
                closers[at] = found;
            }
        }
        table
    }

    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    fn is_digit(&self, at: usize) -> bool {
        self.text(at).starts_with(|character: char| character.is_ascii_digit())
    }

    fn is_glued(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.glued)
    }

    fn end_of_digits(&self, at: usize) -> usize {
        let goes_on = self.dialect == Dialect::Official && self.is_glued(at + 1) && self.is_digit(at + 1);
        if goes_on { self.digits_end[at + 1] } else { at + 1 }
    }

    /// The end of a number with its decimals, if one starts here.
    fn number_end(&self, at: usize) -> Option<usize> {
        let whole = if self.is_digit(at) { Some(self.digits_end[at]) } else { None };
        let point = whole.unwrap_or(at);
        let has_decimals = self.dialect == Dialect::Official
            && self.text(point) == "."
            && (whole.is_none() || self.is_glued(point))
            && self.is_glued(point + 1)
            && self.is_digit(point + 1);
        if has_decimals { Some(self.digits_end[point + 1]) } else { whole }
    }

    fn part(&self, at: usize) -> Option<Part> {
        let text = self.text(at);
        let here = |shape| Some(Part { shape, end: at + 1 });
        if text.starts_with('\\') {
            return self.command_part(at);
        }
        if let Some(end) = self.number_end(at) {
            return Some(Part { shape: Shape::Number, end });
        }
        match text {
            "{" => {
                let close = self.row_end[at + 1];
                (self.text(close) == "}").then_some(Part { shape: Shape::Braces { close }, end: close + 1 })
            }
            "^" | "_" => {
                let scripts = self.scripts(at)?;
                Some(Part { shape: Shape::Bare(scripts), end: scripts.end })
            }
            "(" | "[" | "|" if self.dialect == Dialect::Official => {
                let closer = if text == "(" {
                    0
                } else if text == "[" {
                    1
                } else {
                    2
                };
                match self.closers[closer][at + 1] {
                    Some(close) => Some(Part { shape: Shape::Delimited { close }, end: close + 1 }),
                    None => here(Shape::Symbol),
                }
            }
            "~" => here(Shape::Nothing),
            "}" | "&" | "\"" | "`" | "#" | "$" => None,
            _ => here(Shape::Symbol),
        }
    }

    fn command_part(&self, at: usize) -> Option<Part> {
        let here = |shape| Some(Part { shape, end: at + 1 });
        let with_argument = |shape| Some(Part { shape, end: self.argument_ends[at + 1]? });
        match command(self.text(at)) {
            None if self.dialect == Dialect::Clean => here(Shape::Symbol),
            None | Some(Command::Right | Command::Limits(_) | Command::Style) => None,
            Some(Command::Symbol(_) | Command::Delimiter(_) | Command::Function(_)) => here(Shape::Symbol),
            Some(Command::Space) => here(Shape::Nothing),
            Some(Command::Accent { mark, above }) => with_argument(Shape::Accent { mark, above }),
            Some(Command::Face) if self.dialect == Dialect::Official => with_argument(Shape::Nothing),
            Some(Command::Face) => with_argument(Shape::Argument),
            Some(Command::Big) => {
                self.delimiter(at + 1)?;
                Some(Part { shape: Shape::Argument, end: at + 2 })
            }
            Some(Command::Fraction) => {
                let denominator = self.argument_ends[at + 1]?;
                Some(Part { shape: Shape::Fraction { denominator }, end: self.argument_ends[denominator]? })
            }
            Some(Command::Root) if self.text(at + 1) == "[" => {
                let index_end = self.closers[1][at + 2]?;
                let body = index_end + 1;
                let shape = Shape::Root { body, index_end: Some(index_end) };
                Some(Part { shape, end: self.argument_ends[body]? })
            }
            Some(Command::Root) => match self.argument_ends[at + 1] {
                Some(end) => Some(Part { shape: Shape::Root { body: at + 1, index_end: None }, end }),
                None if self.text(at + 1) == "{" => None,
                None => here(Shape::Symbol),
            },
            Some(Command::Left) => {
                self.delimiter(at + 1)?;
                let row_end = self.row_end[at + 2];
                let closed = command(self.text(row_end)) == Some(Command::Right)
                    && self.delimiter(row_end + 1).is_some();
                let end = if closed { row_end + 2 } else { row_end };
                Some(Part { shape: Shape::Fenced { row_end, closed }, end })
            }
        }
    }

    /// The character of a delimiter; empty for the invisible one.
    fn delimiter(&self, at: usize) -> Option<&'a str> {
        match self.text(at) {
            "." => Some(""),
            "<" => Some("⟨"),
            ">" => Some("⟩"),
            text @ ("(" | ")" | "[" | "]" | "|") => Some(text),
            text => match command(text)? {
                Command::Delimiter(symbol) => Some(symbol),
                _ => None,
            },
        }
    }

    fn argument_end(&self, at: usize) -> Option<usize> {
        let text = self.text(at);
        if !text.starts_with('\\') {
            return match text {
                "{" => self.parts[at].map(|part| part.end),
                "}" => None,
                _ => Some(at + 1),
            };
        }
        match command(text) {
            None => (self.dialect == Dialect::Clean).then_some(at + 1),
            Some(Command::Symbol(_) | Command::Function(_) | Command::Space | Command::Root) => Some(at + 1),
            Some(Command::Accent { .. }) => self.argument_ends[at + 1],
            Some(_) => None,
        }
    }

    fn whole(&self, at: usize) -> Option<Whole> {
        let part = if command(self.text(at)) == Some(Command::Style) { at + 1 } else { at };
        let mut end = self.parts[part]?.end;
        let mut limits = false;
        if let Some(Command::Limits(stacked)) = command(self.text(end)) {
            limits = stacked;
            end += 1;
        }
        let scripts = self.scripts(end);
        Some(Whole { part, scripts, limits, end: scripts.map_or(end, |scripts| scripts.end) })
    }

    fn scripts(&self, at: usize) -> Option<Scripts> {
        let first = self.text(at);
        let second = match first {
            "_" => "^",
            "^" => "_",
            _ => return None,
        };
        let in_order = |one, other| if first == "_" { (one, other) } else { (other, one) };
        let both = self.parts[at + 1].filter(|part| self.text(part.end) == second).and_then(|part| {
            let (sub, sup) = in_order(Some((at + 1, false)), Some((part.end + 1, false)));
            Some(Scripts { sub, sup, end: self.parts[part.end + 1]?.end })
        });
        both.or_else(|| {
            let (sub, sup) = in_order(Some((at + 1, true)), None);
            Some(Scripts { sub, sup, end: self.wholes[at + 1]?.end })
        })
    }

    /// Why nothing can be read from this token on.
    fn reason(&self, at: usize) -> &'static str {
        let text = self.text(at);
        match command(text) {
            None if text.starts_with('\\') => "not a known command",
            Some(Command::Fraction | Command::Root | Command::Accent { .. } | Command::Face) => {
                "the command lacks an argument, or one that is complete"
            }
            Some(Command::Left | Command::Right | Command::Big) => "expected \\left, a delimiter and \\right",
            Some(Command::Limits(_)) => "expected after a symbol, and once",
            _ => match text {
                "}" => "closes a brace that was not opened",
                "{" => "the brace is not closed, or what it holds is not complete",
                "^" | "_" => "the script is missing or not complete",
                _ => "not expected here",
            },
        }
    }
}

/// What is left to be turned into nodes.
enum Task {
    Whole(usize),
    Part(usize),
    Argument(usize),
    /// From the first token of a row to the one it stops at.
    Row(usize, usize),
    Symbol(String),
}

impl Table<'_> {
    fn expression(&self) -> Expression {
        self.expression_and_steps().0
    }

    /// The tree, and how many tasks it took.
    fn expression_and_steps(&self) -> (Expression, usize) {
        let mut steps = 0;
        let mut expression = Expression { nodes: Vec::new(), dialect: self.dialect };
        let mut tasks = vec![(Task::Row(0, self.tokens.len()), None)];
        while let Some((task, parent)) = tasks.pop() {
            steps += 1;
            match task {
                Task::Symbol(label) => {
                    expression.add(Kind::Symbol(label), parent);
                }
                Task::Whole(at) => self.expand_whole(at, parent, &mut expression, &mut tasks),
                Task::Part(at) => self.expand_part(at, parent, &mut expression, &mut tasks),
                Task::Argument(at) => {
                    let is_part = matches!(self.text(at), "{" | "~")
                        || matches!(command(self.text(at)), Some(Command::Accent { .. } | Command::Space));
                    let task = if is_part { Task::Part(at) } else { Task::Symbol(self.label(at)) };
                    tasks.push((task, parent));
                }
                Task::Row(from, to) => {
                    if self.wholes[from].is_some_and(|whole| from < to && whole.end == to) {
                        tasks.push((Task::Whole(from), parent));
                    } else {
                        let row = expression.add(Kind::Row, parent);
                        self.push_row(from, to, row, &mut tasks);
                    }
                }
            }
        }
        (expression, steps)
    }

    /// Leaves the parts of a row as tasks, the first on top.
    fn push_row(&self, from: usize, to: usize, row: usize, tasks: &mut Vec<(Task, Option<usize>)>) {
        let start = tasks.len();
        let mut at = from;
        while let Some(whole) = self.wholes[at].filter(|_| at < to) {
            tasks.push((Task::Whole(at), Some(row)));
            at = whole.end;
        }
        tasks[start..].reverse();
    }

    fn expand_whole(
        &self,
        at: usize,
        parent: Option<usize>,
        expression: &mut Expression,
        tasks: &mut Vec<(Task, Option<usize>)>,
    ) {
        let Some(whole) = self.wholes[at] else { return };
        let base = Task::Part(whole.part);
        match whole.scripts {
            None => tasks.push((base, parent)),
            Some(scripts) => self.push_scripts(base, scripts, whole.limits, parent, expression, tasks),
        }
    }

    fn push_scripts(
        &self,
        base: Task,
        scripts: Scripts,
        limits: bool,
        parent: Option<usize>,
        expression: &mut Expression,
        tasks: &mut Vec<(Task, Option<usize>)>,
    ) {
        let kind = match (scripts.sub, scripts.sup, limits) {
            (Some(_), Some(_), false) => Kind::SubSup,
            (Some(_), Some(_), true) => Kind::UnderOver,
            (Some(_), None, false) => Kind::Sub,
            (Some(_), None, true) => Kind::Under,
            (None, _, false) => Kind::Sup,
            (None, _, true) => Kind::Over,
        };
        let node = Some(expression.add(kind, parent));
        for (at, may_have_scripts) in [scripts.sup, scripts.sub].into_iter().flatten() {
            tasks.push((if may_have_scripts { Task::Whole(at) } else { Task::Part(at) }, node));
        }
        tasks.push((base, node));
    }

    fn expand_part(
        &self,
        at: usize,
        parent: Option<usize>,
        expression: &mut Expression,
        tasks: &mut Vec<(Task, Option<usize>)>,
    ) {
        let Some(Part { shape, end }) = self.parts[at] else { return };
        match shape {
            Shape::Nothing => {
                // The official tools lose the place as well, so that a denominator may become a numerator.
                let keeps_place = match parent {
                    None => true,
                    Some(parent) => {
                        self.dialect == Dialect::Clean && expression.nodes[parent].kind != Kind::Row
                    }
                };
                if keeps_place {
                    expression.add(Kind::Row, parent);
                }
            }
            Shape::Symbol => tasks.push((Task::Symbol(self.label(at)), parent)),
            Shape::Number => {
                let digits = self.tokens[at..end].iter().map(|token| token.text).collect();
                tasks.push((Task::Symbol(digits), parent));
            }
            Shape::Braces { close } => tasks.push((Task::Row(at + 1, close), parent)),
            Shape::Argument => tasks.push((Task::Argument(at + 1), parent)),
            Shape::Delimited { close } => {
                let row = expression.add(Kind::Row, parent);
                tasks.push((Task::Symbol(self.label(close)), Some(row)));
                self.push_row(at + 1, close, row, tasks);
                tasks.push((Task::Symbol(self.label(at)), Some(row)));
            }
            Shape::Fenced { row_end, closed } => {
                let row = expression.add(Kind::Row, parent);
                let fence = |at| {
                    let symbol = self.delimiter(at).filter(|symbol| !symbol.is_empty());
                    symbol.map(|symbol| (Task::Symbol(character_label(symbol, self.dialect)), Some(row)))
                };
                tasks.extend(if closed { fence(row_end + 1) } else { None });
                self.push_row(at + 2, row_end, row, tasks);
                tasks.extend(fence(at + 1));
            }
            Shape::Bare(scripts) => {
                self.push_scripts(Task::Symbol(String::new()), scripts, false, parent, expression, tasks);
            }
            Shape::Fraction { denominator } => {
                let node = Some(expression.add(Kind::Fraction, parent));
                tasks.push((Task::Argument(denominator), node));
                tasks.push((Task::Argument(at + 1), node));
            }
            Shape::Root { body, index_end } => {
                let kind = if index_end.is_some() { Kind::IndexedRoot } else { Kind::Root };
                let node = Some(expression.add(kind, parent));
                tasks.extend(index_end.map(|index_end| (Task::Row(at + 2, index_end), node)));
                tasks.push((Task::Argument(body), node));
            }
            Shape::Accent { mark, above } => {
                let node = Some(expression.add(if above { Kind::Over } else { Kind::Under }, parent));
                tasks.push((Task::Symbol(mark.into()), node));
                tasks.push((Task::Argument(at + 1), node));
            }
        }
    }

    fn label(&self, at: usize) -> String {
        let character = match self.text(at) {
            "-" => "−",
            "'" => "′",
            "''" => "″",
            "'''" => "‴",
            "''''" => "⁗",
            text => match command(text) {
                Some(Command::Function(name)) => return function_label(name, self.dialect),
                Some(Command::Symbol(symbol) | Command::Delimiter(symbol)) => symbol,
                Some(Command::Root) => "√",
                _ => text,
            },
        };
        character_label(character, self.dialect)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_latex_is_refused_by_its_token() {
        for (formula, position, token) in [
            ("a }", 2, "}"),
            ("{ a", 1, "{"),
            (r"x + \frac { 1 } {", 3, r"\frac"),
            (r"\frac { 1 }", 1, r"\frac"),
            (r"\sqrt { a", 1, r"\sqrt"),
            (r"\sqrt [ 3 { x }", 1, r"\sqrt"),
            ("x ^", 2, "^"),
            (r"\limits x", 1, r"\limits"),
            (r"x \nonsense", 2, r"\nonsense"),
            (r"( \right )", 2, r"\right"),
            ("a & b", 2, "&"),
        ] {
            match parse(formula, Dialect::Official) {
                Err(Error::Formula { position: at, token: found, .. }) => {
                    assert_eq!((at, found.as_str()), (position, token), "{formula}");
                }
                other => panic!("{formula}: {other:?}"),
            }
        }
        assert!(parse(r"x \nonsense", Dialect::Clean).is_ok());
    }

    /// Formulas that make a parser that tries and goes back do so.
    fn hard(tokens: usize) -> Vec<String> {
        let repeated = |pattern: &str| pattern.repeat(tokens / pattern.split_whitespace().count());
        vec![
            repeated("( "),
            repeated("( [ | "),
            repeated("{ "),
            repeated("x ^ "),
            repeated("x ^ { "),
            repeated(r"\frac { "),
            repeated(r"\sqrt [ "),
            repeated(r"\sqrt ( "),
            repeated(r"\left ( "),
            repeated("x _ a ^ "),
            repeated("x + 1 "),
            format!("{}{}", "{ ".repeat(tokens / 2), "} ".repeat(tokens / 2)),
            format!("{}{}", "( ".repeat(tokens / 2), ") ".repeat(tokens / 2)),
            format!("{}{}", r"\sqrt ( ".repeat(tokens / 3), ") ".repeat(tokens / 3)),
        ]
    }

    #[test]
    fn the_work_is_linear_in_the_tokens() {
        for (short, long) in hard(12).into_iter().zip(hard(12_000)) {
            for formula in [short, long] {
                let table = Table::fill(split(&formula), Dialect::Official);
                let count = table.tokens.len();
                if table.row_end[0] == count {
                    let (expression, steps) = table.expression_and_steps();
                    assert!(steps <= 3 * count + 3, "{steps} steps for {count} tokens: {:.40}", formula);
                    assert!(expression.nodes().len() <= steps);
                }
            }
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        for (open, close) in
            [("{ ", "} "), ("( ", ") "), ("x ^ { ", "} "), (r"\sqrt { ", "} "), (r"\frac { 1 } { ", "} ")]
        {
            let formula = format!("{}x{}", open.repeat(100_000), format!(" {close}").repeat(100_000));
            assert!(crate::LabelGraph::from_latex(&formula, Dialect::Official).is_ok());
            assert!(parse(&open.repeat(100_000), Dialect::Clean).is_err() || open == "( ");
        }
    }

    /// Token soup that is LaTeX more often than not.
    fn soup() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "x",
            "1",
            "2.5",
            "+",
            "(",
            ")",
            "[",
            "]",
            "|",
            "{",
            "}",
            "{ }",
            "{ a }",
            "^",
            "_",
            "^ { 2 }",
            r"\frac",
            r"\sqrt",
            r"\sqrt [",
            r"\limits",
            r"\left (",
            r"\right )",
            r"\sum",
            r"\hat",
            r"\mathrm",
            r"\,",
            "'",
            "&",
            r"\",
            "é",
        ]);
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.join(" "))
    }

    proptest! {
        #[test]
        fn any_text_gives_a_tree_or_an_error(text in "\\PC*") {
            for dialect in [Dialect::Official, Dialect::Clean] {
                let _ = parse(&text, dialect);
            }
        }

        #[test]
        fn trees_hold_together(formula in soup()) {
            for dialect in [Dialect::Official, Dialect::Clean] {
                let Ok(expression) = parse(&formula, dialect) else { continue };
                let mut parents = vec![0; expression.nodes().len()];
                for parent in 0..expression.nodes().len() {
                    for child in expression.children(parent) {
                        prop_assert!(child > parent);
                        parents[child] += 1;
                    }
                }
                prop_assert!(parents.iter().skip(1).all(|&count| count == 1));
                let graph = crate::LabelGraph::from_expression(&expression);
                let same = crate::compare::compare(&graph, &graph);
                prop_assert!(same.total() == 0 && same.same_structure);
            }
        }

        #[test]
        fn spaces_around_tokens_change_nothing_in_the_clean_dialect(formula in soup()) {
            let nodes = |text: &str| crate::LabelGraph::from_latex(text, Dialect::Clean).map(|graph| graph.nodes()).ok();
            let spaced: Vec<&str> = split(&formula).iter().map(|token| token.text).collect();
            prop_assert_eq!(nodes(&formula), nodes(&spaced.join("  ")));
        }
    }
}
