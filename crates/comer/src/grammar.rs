//! Which token may come next so that the formula stays well-formed LaTeX, read from either side.
//!
//! Well-formed means: braces balance and hold something; commands and scripts have their arguments, in braces; scripts
//! have a base, and no base has two of a kind; `\limits` stands between an operator and a script; `\left` and `\right`,
//! `\begin{x}` and `\end{x}` match; and the formula can still be finished within the tokens that are left.
//!
//! Each reading direction has its own pushdown automaton over the same kinds of tokens; a beam carries a [`State`].
//! The automata accept the same formulas, which the tests check one by one for all short ones.

use crate::vocab::{EOS, TokenId, Vocab};

/// The order in which tokens are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As they are printed.
    LeftToRight,
    /// The last one first.
    RightToLeft,
}

/// What a token does to the structure of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Stands for itself.
    Symbol {
        delimiter: bool,
    },
    /// Stands for itself, and may have limits above and below.
    Operator,
    Limits,
    Superscript,
    Subscript,
    /// `'`, which is a superscript of its own.
    Prime,
    Open,
    Close,
    /// `[`, a symbol unless it comes right after `\sqrt`.
    OpenBracket,
    CloseBracket,
    /// A command with this many arguments.
    Command(u8),
    /// `\sqrt`, with an optional argument in brackets and one in braces.
    Root,
    Left,
    Right,
    /// `\begin{x}`, with the number of its token pair.
    Begin(u16),
    End(u16),
    /// Parts the cells or rows of an environment.
    Separator,
    /// Has no place in a formula.
    Never,
}

const ONE_ARGUMENT: &str = "\\hat \\widehat \\check \\tilde \\widetilde \\bar \\overline \\underline \\vec \\dot \
    \\ddot \\acute \\grave \\breve \\overrightarrow \\overleftarrow \\overbrace \\underbrace \\boxed \\text \\mbox \
    \\mathrm \\mathbf \\mathbb \\mathcal \\mathfrak \\mathit \\mathsf \\mathscr \\boldsymbol \\operatorname \
    \\textbf \\textrm \\textit \\pmod \\cancel";
const TWO_ARGUMENTS: &str = "\\frac \\dfrac \\tfrac \\cfrac \\binom \\overset \\underset \\stackrel";
const OPERATORS: &str = "\\sum \\prod \\coprod \\int \\iint \\iiint \\oint \\lim \\limsup \\liminf \\max \\min \\sup \
    \\inf \\bigcup \\bigcap \\bigoplus \\bigotimes \\bigvee \\bigwedge \\biguplus \\bigsqcup \\det \\gcd \\Pr \\argmax \
    \\argmin";
const DELIMITERS: &str = "( ) / | . < > \\{ \\} \\| \\lbrace \\rbrace \\langle \\rangle \\vert \\Vert \\lvert \\rvert \
    \\lVert \\rVert \\lfloor \\rfloor \\lceil \\rceil \\uparrow \\downarrow \\backslash";

impl Kind {
    fn of(token: &str, vocab: &Vocab) -> Self {
        let listed = |list: &str| list.split_whitespace().any(|word| word == token);
        let has = |token: &str| vocab.id(token).is_some();
        let braces = has("{") && has("}");
        // A token that could never be completed with this vocabulary has no place in its formulas.
        let when = |possible: bool, kind: Self| if possible { kind } else { Self::Never };
        let pair = |from: &str, to: &str| vocab.id(&token.replacen(from, to, 1));
        match token {
            "{" => when(braces, Self::Open),
            "}" => when(braces, Self::Close),
            "^" => when(braces, Self::Superscript),
            "_" => when(braces, Self::Subscript),
            "'" => Self::Prime,
            "[" => Self::OpenBracket,
            "]" => Self::CloseBracket,
            "\\sqrt" => when(braces, Self::Root),
            "\\limits" | "\\nolimits" | "\\displaylimits" => {
                let operator = OPERATORS.split_whitespace().any(has);
                when(braces && operator && (has("^") || has("_")), Self::Limits)
            }
            "\\left" | "\\right" => {
                let delimiter = DELIMITERS.split_whitespace().chain(["[", "]"]).any(has);
                let kind = if token == "\\left" { Self::Left } else { Self::Right };
                when(delimiter && has("\\left") && has("\\right"), kind)
            }
            "&" | "\\\\" | "\\hline" => Self::Separator,
            "\\begin" | "\\end" | "\\middle" => Self::Never,
            _ if token.starts_with("\\begin{") => pair("\\begin", "\\end").map_or(Self::Never, Self::Begin),
            _ if token.starts_with("\\end{") => {
                when(pair("\\end", "\\begin").is_some(), vocab.id(token).map_or(Self::Never, Self::End))
            }
            _ if listed(ONE_ARGUMENT) => when(braces, Self::Command(1)),
            _ if listed(TWO_ARGUMENTS) => when(braces, Self::Command(2)),
            _ if listed(OPERATORS) => Self::Operator,
            _ => Self::Symbol { delimiter: listed(DELIMITERS) },
        }
    }
}

/// The structure of a vocabulary's formulas.
#[derive(Clone, Debug)]
pub struct Grammar {
    /// The different kinds of tokens that the vocabulary has.
    kinds: Vec<Kind>,
    /// For each token the index of its kind.
    kind_of: Vec<usize>,
    close_bracket: bool,
}

impl Grammar {
    /// Sorts the tokens of a vocabulary by what they do, which their names tell.
    pub fn new(vocab: &Vocab) -> Self {
        let mut grammar = Self {
            kinds: vec![Kind::Never],
            kind_of: vec![0; usize::from(EOS) + 1],
            close_bracket: vocab.id("]").is_some(),
        };
        for token in vocab.tokens() {
            let kind = Kind::of(token, vocab);
            let known = grammar.kinds.iter().position(|&known| known == kind);
            grammar.kind_of.push(known.unwrap_or(grammar.kinds.len()));
            if known.is_none() {
                grammar.kinds.push(kind);
            }
        }
        grammar
    }

    /// The state before the first token.
    pub fn start(&self, direction: Direction) -> State {
        State { direction, levels: vec![Level::new(Enclosure::Formula)] }
    }

    /// Marks in `allowed` which tokens may come next when `left` tokens can still be written.
    pub fn allowed(&self, state: &State, left: usize, allowed: &mut Vec<bool>) {
        let by_kind: Vec<bool> = self
            .kinds
            .iter()
            .map(|&kind| {
                let mut next = state.clone();
                next.advance(kind, self.close_bracket) && next.debt() < left
            })
            .collect();
        allowed.clear();
        allowed.extend(self.kind_of.iter().map(|&kind| by_kind[kind]));
    }

    /// The state after `token`, which must have been allowed.
    pub fn advance(&self, state: &State, token: TokenId) -> State {
        let mut next = state.clone();
        next.advance(self.kinds[self.kind_of[usize::from(token)]], self.close_bracket);
        next
    }
}

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
pub struct State {
    direction: Direction,
    levels: Vec<Level>,
}

impl State {
    /// Whether the formula may end here.
    pub fn complete(&self) -> bool {
        self.debt() == 0
    }

    fn top(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// A number of tokens that is enough to complete the formula; 0 if it is complete.
    fn debt(&self) -> usize {
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
    fn advance(&mut self, kind: Kind, close_bracket: bool) -> bool {
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

fn is_delimiter(kind: Kind) -> bool {
    matches!(kind, Kind::Symbol { delimiter: true } | Kind::OpenBracket | Kind::CloseBracket)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A parser of its own, from the left: what the automata have to agree with.
    struct Parser<'a> {
        tokens: &'a [&'a str],
    }

    impl Parser<'_> {
        fn accepts(tokens: &[&str]) -> bool {
            let mut parser = Parser { tokens };
            parser.list("formula").is_some() && parser.tokens.is_empty()
        }

        fn next_is(&mut self, token: &str) -> Option<()> {
            let (first, rest) = self.tokens.split_first()?;
            self.tokens = rest;
            (*first == token).then_some(())
        }

        fn delimiter(&mut self) -> Option<()> {
            let (first, rest) = self.tokens.split_first()?;
            self.tokens = rest;
            ["(", ")", "[", "]", "|"].contains(first).then_some(())
        }

        fn group(&mut self) -> Option<()> {
            self.next_is("{")?;
            (self.list("group")? > 0).then_some(())?;
            self.next_is("}")
        }

        /// Atoms with their scripts, up to what ends the list or cannot start an atom; how many tokens.
        fn list(&mut self, within: &str) -> Option<usize> {
            let before = self.tokens.len();
            while let Some((&first, rest)) = self.tokens.split_first() {
                let mut limits = false;
                match first {
                    "}" | "\\right" | "\\end{m}" | "^" | "_" | "'" | "\\limits" => break,
                    "]" if within == "brackets" => break,
                    "&" if within != "environment" => break,
                    "&" => {
                        self.tokens = rest;
                        continue;
                    }
                    "{" => self.group()?,
                    "\\frac" => {
                        self.tokens = rest;
                        self.group()?;
                        self.group()?;
                    }
                    "\\sqrt" => {
                        self.tokens = rest;
                        if rest.first() == Some(&"[") && within != "brackets" {
                            self.tokens = &rest[1..];
                            (self.list("brackets")? > 0).then_some(())?;
                            self.next_is("]")?;
                        }
                        self.group()?;
                    }
                    "\\left" => {
                        self.tokens = rest;
                        self.delimiter()?;
                        self.list("fence")?;
                        self.next_is("\\right")?;
                        self.delimiter()?;
                    }
                    "\\begin{m}" => {
                        self.tokens = rest;
                        self.list("environment")?;
                        self.next_is("\\end{m}")?;
                    }
                    _ => {
                        self.tokens = rest;
                        limits = first == "\\sum" && self.next_is_ahead("\\limits");
                    }
                }
                if limits && !self.next_is_ahead_of("^", "_") {
                    return None;
                }
                self.scripts()?;
            }
            Some(before - self.tokens.len())
        }

        fn next_is_ahead(&mut self, token: &str) -> bool {
            let found = self.tokens.first() == Some(&token);
            self.tokens = &self.tokens[usize::from(found)..];
            found
        }

        fn next_is_ahead_of(&self, one: &str, other: &str) -> bool {
            self.tokens.first().is_some_and(|&token| token == one || token == other)
        }

        fn scripts(&mut self) -> Option<()> {
            let (mut above, mut below) = (false, false);
            loop {
                match self.tokens.first() {
                    Some(&"'") if !above => self.next_is("'")?,
                    Some(&"^") if !above => {
                        above = true;
                        self.next_is("^")?;
                        self.group()?;
                    }
                    Some(&"_") if !below => {
                        below = true;
                        self.next_is("_")?;
                        self.group()?;
                    }
                    _ => return Some(()),
                }
            }
        }
    }

    /// Every formula of at most `longest` tokens that an automaton accepts, as it is printed.
    fn language(grammar: &Grammar, direction: Direction, longest: usize) -> BTreeSet<Vec<TokenId>> {
        let mut formulas = BTreeSet::new();
        let mut open = vec![(grammar.start(direction), Vec::new())];
        let mut allowed = Vec::new();
        while let Some((state, written)) = open.pop() {
            if written.len() < longest {
                // With 1000 tokens left only the structure counts.
                grammar.allowed(&state, 1000, &mut allowed);
                for id in (0..allowed.len()).filter(|&id| allowed[id]).map(|id| id as TokenId) {
                    open.push((grammar.advance(&state, id), [&written[..], &[id]].concat()));
                }
            }
            if state.complete() {
                let mut formula = written;
                if direction == Direction::RightToLeft {
                    formula.reverse();
                }
                formulas.insert(formula);
            }
        }
        formulas
    }

    #[test]
    fn both_automata_accept_exactly_the_short_formulas_that_parse() {
        let alphabets: [(&[&str], usize); 6] = [
            (&["a", "{", "}", "^", "_", "\\frac"], 7),
            (&["a", "[", "]", "{", "}", "\\sqrt"], 8),
            (&["a", "\\sum", "\\limits", "_", "^", "{", "}"], 7),
            (&["a", "'", "_", "^", "{", "}"], 7),
            (&["(", "]", "[", "\\left", "\\right", "^", "{", "}"], 7),
            (&["a", "&", "\\begin{m}", "\\end{m}", "^", "{", "}"], 7),
        ];
        for (alphabet, longest) in alphabets {
            let vocab = Vocab::new(alphabet.iter().copied()).unwrap();
            let grammar = Grammar::new(&vocab);
            let mut parse = BTreeSet::new();
            let (mut places, mut tokens) = (Vec::new(), Vec::new());
            for length in 0..=longest as u32 {
                for number in 0..alphabet.len().pow(length) {
                    places.clear();
                    places
                        .extend((0..length).map(|place| number / alphabet.len().pow(place) % alphabet.len()));
                    tokens.clear();
                    tokens.extend(places.iter().map(|&place| alphabet[place]));
                    if Parser::accepts(&tokens) {
                        parse.insert(places.iter().map(|&place| place as TokenId + EOS + 1).collect());
                    }
                }
            }
            assert!(parse.len() > 30, "{alphabet:?} makes only {} formulas", parse.len());
            for direction in [Direction::LeftToRight, Direction::RightToLeft] {
                let accepted: BTreeSet<Vec<TokenId>> = language(&grammar, direction, longest);
                let text = |formula: &Vec<TokenId>| vocab.decode(formula);
                let wrong: Vec<String> = accepted.difference(&parse).map(text).collect();
                let missed: Vec<String> = parse.difference(&accepted).map(text).collect();
                assert!(wrong.is_empty(), "{direction:?} accepts {wrong:?}");
                assert!(missed.is_empty(), "{direction:?} refuses {missed:?}");
            }
        }
    }

    #[test]
    fn any_walk_ends_in_a_formula_within_its_length() {
        let alphabet = [
            "a",
            "(",
            "[",
            "]",
            "{",
            "}",
            "^",
            "_",
            "'",
            "\\frac",
            "\\sqrt",
            "\\sum",
            "\\limits",
            "\\left",
            "\\right",
            "&",
            "\\begin{m}",
            "\\end{m}",
        ];
        let vocab = Vocab::new(alphabet).unwrap();
        let grammar = Grammar::new(&vocab);
        let mut random = 1u64;
        for walk in 0..4000 {
            let direction = [Direction::LeftToRight, Direction::RightToLeft][walk % 2];
            let (mut state, mut written, mut allowed) = (grammar.start(direction), Vec::new(), Vec::new());
            let length = walk / 2 % 40;
            while written.len() < length {
                grammar.allowed(&state, length - written.len(), &mut allowed);
                let choices: Vec<TokenId> =
                    (0..allowed.len()).filter(|&id| allowed[id]).map(|id| id as TokenId).collect();
                assert!(!choices.is_empty(), "no way on from {written:?}, {direction:?}");
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let id = choices[(random >> 33) as usize % choices.len()];
                state = grammar.advance(&state, id);
                written.push(id);
            }
            assert!(state.complete(), "{direction:?} {written:?}");
            if direction == Direction::RightToLeft {
                written.reverse();
            }
            let text = vocab.decode(&written);
            assert!(
                Parser::accepts(&text.split(' ').filter(|token| !token.is_empty()).collect::<Vec<_>>()),
                "{text}"
            );
        }
    }

    #[test]
    fn tokens_that_a_vocabulary_cannot_complete_are_never_allowed() {
        let cases: [(&[&str], &[&str]); 5] = [
            (&["a", "^", "\\frac", "{"], &["a"]),
            (&["a", "\\limits", "_", "{", "}"], &["a", "{"]),
            (&["a", "\\left", "("], &["a", "("]),
            (&["a", "\\begin{m}", "\\end{n}", "&"], &["a"]),
            (&["\\sum", "\\sqrt", "[", "{", "}"], &["\\sum", "\\sqrt", "[", "{"]),
        ];
        for (tokens, expected) in cases {
            let vocab = Vocab::new(tokens.iter().copied()).unwrap();
            let grammar = Grammar::new(&vocab);
            let mut allowed = Vec::new();
            grammar.allowed(&grammar.start(Direction::LeftToRight), 100, &mut allowed);
            let found: Vec<&str> = (0..vocab.len() as TokenId)
                .filter(|&id| allowed[usize::from(id)])
                .filter_map(|id| vocab.token(id))
                .collect();
            assert_eq!(found, expected);
        }
    }
}
