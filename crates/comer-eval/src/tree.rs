//! Builds the expression tree from the parse table, with an explicit stack.

use crate::expression::{Expression, Kind};
use crate::grammar::{Part, Scripts, Shape, Table};
use crate::symbols::{Command, Dialect, character_label, command, function_label};

/// Work that is left.
enum Task {
    Whole(usize),
    Part(usize),
    Argument(usize),
    /// From the first token of a row to the one it stops at.
    Row(usize, usize),
    /// The label, and the token that wrote it.
    Symbol(String, usize),
    /// As a symbol, after `\left` or `\right`.
    Fence(String, usize),
}

impl Table<'_> {
    pub(crate) fn expression(&self) -> Expression {
        self.expression_and_steps().0
    }

    /// The tree and the number of tasks it took.
    pub(crate) fn expression_and_steps(&self) -> (Expression, usize) {
        let mut steps = 0;
        let mut expression = Expression::new(self.dialect);
        let mut tasks = vec![(Task::Row(0, self.tokens.len()), None)];
        while let Some((task, parent)) = tasks.pop() {
            steps += 1;
            match task {
                Task::Symbol(label, token) => {
                    expression.add_written(Kind::Symbol(label), parent, token);
                }
                Task::Fence(label, token) => {
                    let node = expression.add_written(Kind::Symbol(label), parent, token);
                    expression.set_grows(node);
                }
                Task::Whole(at) => self.expand_whole(at, parent, &mut expression, &mut tasks),
                Task::Part(at) => self.expand_part(at, parent, &mut expression, &mut tasks),
                Task::Argument(at) => {
                    let is_part = matches!(self.text(at), "{" | "~")
                        || matches!(command(self.text(at)), Some(Command::Accent { .. } | Command::Space));
                    let task = if is_part { Task::Part(at) } else { Task::Symbol(self.label(at), at) };
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

    /// Pushes the parts of a row, the first on top.
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
                // The official tools drop the node as well, so that a denominator may become a numerator.
                let keeps_place = match parent {
                    None => true,
                    Some(parent) => {
                        self.dialect == Dialect::Clean && expression.nodes()[parent].kind != Kind::Row
                    }
                };
                if keeps_place {
                    expression.add(Kind::Row, parent);
                }
            }
            Shape::Symbol => tasks.push((Task::Symbol(self.label(at), at), parent)),
            Shape::Number => {
                let digits = self.tokens[at..end].iter().map(|token| token.text).collect();
                tasks.push((Task::Symbol(digits, at), parent));
            }
            Shape::Braces { close } => tasks.push((Task::Row(at + 1, close), parent)),
            Shape::Argument => tasks.push((Task::Argument(at + 1), parent)),
            Shape::Delimited { close } => {
                let row = expression.add(Kind::Row, parent);
                tasks.push((Task::Symbol(self.label(close), close), Some(row)));
                self.push_row(at + 1, close, row, tasks);
                tasks.push((Task::Symbol(self.label(at), at), Some(row)));
            }
            Shape::Fenced { row_end, closed } => {
                let row = expression.add(Kind::Row, parent);
                let fence = |at| {
                    let symbol = self.delimiter(at).filter(|symbol| !symbol.is_empty());
                    symbol.map(|symbol| (Task::Fence(character_label(symbol, self.dialect), at), Some(row)))
                };
                tasks.extend(if closed { fence(row_end + 1) } else { None });
                self.push_row(at + 2, row_end, row, tasks);
                tasks.extend(fence(at + 1));
            }
            Shape::Bare(scripts) => {
                self.push_scripts(Task::Symbol(String::new(), at), scripts, false, parent, expression, tasks);
            }
            Shape::Fraction { denominator } => {
                let node = Some(expression.add_written(Kind::Fraction, parent, at));
                tasks.push((Task::Argument(denominator), node));
                tasks.push((Task::Argument(at + 1), node));
            }
            Shape::Root { body, index_end } => {
                let kind = if index_end.is_some() { Kind::IndexedRoot } else { Kind::Root };
                let node = Some(expression.add_written(kind, parent, at));
                tasks.extend(index_end.map(|index_end| (Task::Row(at + 2, index_end), node)));
                tasks.push((Task::Argument(body), node));
            }
            Shape::Accent { mark, above } => {
                let kind = if above { Kind::Over } else { Kind::Under };
                let node = Some(expression.add_written(kind, parent, at));
                tasks.push((Task::Symbol(mark.into(), at), node));
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
