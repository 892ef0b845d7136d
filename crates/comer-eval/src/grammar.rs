//! The table of the packrat parser: what can be parsed from each token on. See [`crate::latex`].

use crate::lexer::Token;
use crate::symbols::{Command, Dialect, command};

/// The scripts from some token on: where each starts, and whether it may have scripts itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scripts {
    pub(crate) sub: Option<(usize, bool)>,
    pub(crate) sup: Option<(usize, bool)>,
    end: usize,
}

/// What starts at a token, without scripts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
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
    /// Scripts without a base: `^ { 2 }` at the start of a row.
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
pub(crate) struct Part {
    pub(crate) shape: Shape,
    pub(crate) end: usize,
}

/// A part with its scripts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    /// Where the part starts (after `\displaystyle`).
    pub(crate) part: usize,
    pub(crate) scripts: Option<Scripts>,
    pub(crate) limits: bool,
    pub(crate) end: usize,
}

const CLOSERS: [&str; 3] = [")", "]", "|"];

/// What can be parsed from each token on.
pub(crate) struct Table<'a> {
    pub(crate) tokens: Vec<Token<'a>>,
    pub(crate) dialect: Dialect,
    pub(crate) parts: Vec<Option<Part>>,
    pub(crate) wholes: Vec<Option<Whole>>,
    /// Where the argument of a command that starts here ends.
    argument_ends: Vec<Option<usize>>,
    /// Where a row that starts here ends.
    pub(crate) row_end: Vec<usize>,
    /// The first of each of [`CLOSERS`] in a row that starts here.
    closers: [Vec<Option<usize>>; 3],
    /// The end of the digits that start here.
    digits_end: Vec<usize>,
}

impl<'a> Table<'a> {
    pub(crate) fn fill(tokens: Vec<Token<'a>>, dialect: Dialect) -> Self {
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

    pub(crate) fn text(&self, at: usize) -> &'a str {
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
    pub(crate) fn delimiter(&self, at: usize) -> Option<&'a str> {
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

    /// Why parsing stops at this token.
    pub(crate) fn reason(&self, at: usize) -> &'static str {
        let text = self.text(at);
        match command(text) {
            None if text.starts_with('\\') => "not a known command",
            Some(Command::Fraction | Command::Root | Command::Accent { .. } | Command::Face) => {
                "an argument of the command is missing or incomplete"
            }
            Some(Command::Left | Command::Right | Command::Big) => "expected \\left, a delimiter and \\right",
            Some(Command::Limits(_)) => "expected once, after a symbol",
            _ => match text {
                "}" => "closes a brace that is not open",
                "{" => "the brace is not closed, or its content is incomplete",
                "^" | "_" => "the script is missing or incomplete",
                _ => "not expected here",
            },
        }
    }
}
