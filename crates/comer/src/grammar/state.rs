//! Where a prefix stands in the grammar: a pushdown automaton for each reading direction.

use super::kind::{Kind, is_delimiter};
use crate::direction::Direction;

/// What encloses the tokens of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enclosure {
    Formula,
    Braces,
    /// The optional argument of `\sqrt`.
    Brackets,
    Fence,
    Environment(u16),
}

const SUPERSCRIPT: u8 = 1;
const SUBSCRIPT: u8 = 2;
const PRIME: u8 = 4;

/// What the next token of a level has to know about those already written there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    enclosure: Enclosure,
    filled: bool,
    /// The kind of the last token, if it stands in this level.
    last: Option<Kind>,
    /// From the left: the scripts of the last base. From the right: the scripts that follow, and still wait for a base
    /// unless a group stands between.
    scripts: u8,
    /// From the left: whether a script would have a base.
    base: bool,
    /// From the left: arguments that have to come next.
    owed: u8,
    /// From the left: a fence was opened or closed, its delimiter has to come next.
    delimiter_owed: bool,
    /// From the right: groups (up to two) that come next without a script, and may become arguments.
    groups: u8,
    /// From the right: whether the nearest `]` is followed by a group, as that of an optional argument is.
    bracket: bool,
    /// From the right: `bracket` before the last token.
    bracket_before: bool,
    /// From the right: the last token is a `[` right before a `]`.
    brackets_empty: bool,
    /// From the right: the last token is a delimiter that no script leans on, so that `\left` can take it away.
    last_is_free: bool,
}

impl Level {
    fn new(enclosure: Enclosure) -> Self {
        Self {
            enclosure,
            filled: false,
            last: None,
            scripts: 0,
            base: false,
            owed: 0,
            delimiter_owed: false,
            groups: 0,
            bracket: false,
            bracket_before: false,
            brackets_empty: false,
            last_is_free: false,
        }
    }

    /// From the left: something that can carry scripts was written.
    fn atom(&mut self) {
        (self.filled, self.base, self.scripts) = (true, true, 0);
    }

    /// From the right: the same; whatever follows is now its own.
    fn take(&mut self) {
        (self.filled, self.scripts, self.groups) = (true, 0, 0);
    }

    /// From the right: scripts that have no base yet.
    fn base_owed(&self) -> bool {
        self.scripts != 0 && self.groups == 0
    }
}

/// Where a prefix stands in the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarState {
    direction: Direction,
    levels: Vec<Level>,
}

impl GrammarState {
    /// Before the first token.
    pub(super) fn new(direction: Direction) -> Self {
        Self { direction, levels: vec![Level::new(Enclosure::Formula)] }
    }

    /// Whether the formula may end here.
    pub fn complete(&self) -> bool {
        self.debt() == 0
    }

    fn top(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// A number of tokens that is enough to complete the formula; 0 if it is complete.
    pub(super) fn debt(&self) -> usize {
        let of_level = |level: &Level| {
            let closing = match level.enclosure {
                Enclosure::Formula => 0,
                Enclosure::Braces | Enclosure::Brackets => 1 + usize::from(!level.filled),
                Enclosure::Fence if level.last_is_free => 1,
                Enclosure::Fence => 2,
                Enclosure::Environment(_) => 1,
            };
            let limits = level.last == Some(Kind::Limits);
            closing
                + match self.direction {
                    Direction::LeftToRight => {
                        3 * usize::from(level.owed)
                            + usize::from(level.delimiter_owed)
                            + 4 * usize::from(limits)
                    }
                    Direction::RightToLeft => usize::from(limits || level.base_owed()),
                }
        };
        self.levels.iter().map(of_level).sum()
    }

    /// Takes a token of this kind, or says that it may not come here (and is then of no more use).
    pub(super) fn advance(&mut self, kind: Kind, close_bracket: bool) -> bool {
        match self.direction {
            Direction::LeftToRight => self.advance_right(kind, close_bracket),
            Direction::RightToLeft => self.advance_left(kind),
        }
    }

    fn advance_right(&mut self, kind: Kind, close_bracket: bool) -> bool {
        let level = self.top();
        let last = level.last.replace(kind);
        if level.delimiter_owed {
            level.delimiter_owed = false;
            return is_delimiter(kind);
        }
        if level.owed > 0 {
            // Brackets right after `\sqrt` come before its argument; the first `]` ends them, so they do not nest.
            let optional = kind == Kind::OpenBracket
                && last == Some(Kind::Root)
                && close_bracket
                && level.enclosure != Enclosure::Brackets;
            if optional {
                self.levels.push(Level::new(Enclosure::Brackets));
            } else if kind == Kind::Open {
                level.owed -= 1;
                self.levels.push(Level::new(Enclosure::Braces));
            }
            return optional || kind == Kind::Open;
        }
        let script = matches!(kind, Kind::Superscript | Kind::Subscript);
        if last == Some(Kind::Limits) && !script {
            return false;
        }
        match kind {
            Kind::CloseBracket if level.enclosure == Enclosure::Brackets => {
                let filled = level.filled;
                self.levels.pop();
                self.top().last = None;
                return filled;
            }
            Kind::Symbol { .. } | Kind::Operator | Kind::OpenBracket | Kind::CloseBracket => level.atom(),
            Kind::Limits => return last == Some(Kind::Operator),
            Kind::Superscript | Kind::Subscript => {
                let flag = flag(kind);
                let fits = level.base && level.scripts & flag == 0;
                level.scripts |= flag;
                level.owed = 1;
                return fits;
            }
            Kind::Prime => return level.base && level.scripts & SUPERSCRIPT == 0,
            Kind::Command(arguments) => {
                level.atom();
                level.owed = arguments;
            }
            Kind::Root => {
                level.atom();
                level.owed = 1;
            }
            Kind::Open => {
                level.atom();
                self.levels.push(Level::new(Enclosure::Braces));
            }
            Kind::Close => {
                let fits = level.enclosure == Enclosure::Braces && level.filled;
                return fits && self.leave();
            }
            Kind::Left => {
                level.atom();
                self.levels.push(Level { delimiter_owed: true, ..Level::new(Enclosure::Fence) });
            }
            Kind::Right => {
                if level.enclosure != Enclosure::Fence {
                    return false;
                }
                self.leave();
                self.top().delimiter_owed = true;
            }
            Kind::Begin(pair) => {
                level.atom();
                self.levels.push(Level::new(Enclosure::Environment(pair)));
            }
            Kind::End(pair) => return level.enclosure == Enclosure::Environment(pair) && self.leave(),
            Kind::Separator => {
                (level.base, level.scripts) = (false, 0);
                return matches!(level.enclosure, Enclosure::Environment(_));
            }
            Kind::Never => return false,
        }
        true
    }

    /// Goes back to the level outside.
    fn leave(&mut self) -> bool {
        self.levels.pop();
        let level = self.top();
        (level.last, level.last_is_free) = (None, false);
        true
    }

    fn advance_left(&mut self, kind: Kind) -> bool {
        let level = self.top();
        let last = level.last.replace(kind);
        let last_is_free = level.last_is_free;
        let bracket_before = std::mem::replace(&mut level.bracket_before, level.bracket);
        if last == Some(Kind::Limits) && kind != Kind::Operator {
            return false;
        }
        level.last_is_free = !level.base_owed() && is_delimiter(kind);
        match kind {
            Kind::CloseBracket => {
                level.bracket = level.groups > 0;
                level.take();
            }
            Kind::OpenBracket => {
                level.brackets_empty = last == Some(Kind::CloseBracket);
                level.take();
            }
            Kind::Symbol { .. } | Kind::Operator => level.take(),
            Kind::Limits => return matches!(last, Some(Kind::Superscript | Kind::Subscript)),
            Kind::Superscript | Kind::Subscript => {
                let flag = flag(kind);
                let others = if level.groups == 1 { level.scripts } else { 0 };
                let clash = flag | if kind == Kind::Superscript { PRIME } else { 0 };
                let fits = level.groups > 0 && others & clash == 0;
                (level.scripts, level.groups) = (others | flag, 0);
                return fits;
            }
            Kind::Prime => {
                let others = if level.groups == 0 { level.scripts } else { 0 };
                (level.scripts, level.groups) = (others | PRIME, 0);
            }
            Kind::Close => self.levels.push(Level::new(Enclosure::Braces)),
            Kind::Open => {
                let fits = level.enclosure == Enclosure::Braces && level.filled && !level.base_owed();
                if !fits {
                    return false;
                }
                self.leave();
                let level = self.top();
                level.filled = true;
                level.groups = if level.groups == 0 { 1 } else { 2 };
            }
            Kind::Command(arguments) => {
                let fits = level.groups >= arguments;
                level.take();
                return fits;
            }
            Kind::Root => {
                let brackets = last == Some(Kind::OpenBracket);
                let optional = brackets && last_is_free && level.bracket && !level.brackets_empty;
                let fits = optional || level.groups > 0;
                level.bracket &= !brackets;
                level.take();
                return fits;
            }
            Kind::Right => {
                if !last.is_some_and(is_delimiter) {
                    return false;
                }
                level.bracket = bracket_before;
                self.levels.push(Level::new(Enclosure::Fence));
            }
            Kind::Left => {
                let fits = level.enclosure == Enclosure::Fence && last_is_free;
                return fits && self.leave();
            }
            Kind::End(pair) => self.levels.push(Level::new(Enclosure::Environment(pair))),
            Kind::Begin(pair) => {
                let fits = level.enclosure == Enclosure::Environment(pair) && !level.base_owed();
                if !fits {
                    return false;
                }
                self.leave();
                self.top().take();
            }
            Kind::Separator => {
                let fits = matches!(level.enclosure, Enclosure::Environment(_)) && !level.base_owed();
                level.bracket = false;
                level.take();
                return fits;
            }
            Kind::Never => return false,
        }
        true
    }
}

fn flag(kind: Kind) -> u8 {
    if kind == Kind::Superscript { SUPERSCRIPT } else { SUBSCRIPT }
}
