//! Parses raw LaTeX into rows of symbols with their scripts.

use super::Normalizer;
use super::item::{Item, write, write_braced};
use crate::error::{Error, Result};
use crate::lexer::Token;
use crate::symbols::{Command, command};

const UNKNOWN: &str = "not in the vocabulary";
/// Deepest nesting of braces and arguments.
const MAX_DEPTH: usize = 100;

/// Symbols with limits: their scripts stand below and above.
const WITH_LIMITS: [&str; 15] = [
    r"\sum", r"\prod", r"\coprod", r"\int", r"\iint", r"\iiint", r"\oint", r"\bigcup", r"\bigcap", r"\lim",
    r"\limsup", r"\liminf", r"\max", r"\min", r"\sup",
];

/// Parses a formula from left to right.
pub(super) struct Reader<'a> {
    normalizer: &'a Normalizer,
    tokens: Vec<Token<'a>>,
    position: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(normalizer: &'a Normalizer, tokens: Vec<Token<'a>>) -> Self {
        Self { normalizer, tokens, position: 0, depth: 0 }
    }

    /// The tokens of the caption.
    pub(super) fn formula(mut self) -> Result<Vec<String>> {
        let row = self.row("}")?;
        if let Some(token) = self.peek() {
            return Err(self.wrong(token, "it closes nothing"));
        }
        let mut words = Vec::new();
        write(&row, &mut words);
        Ok(words)
    }

    /// The next token that is not white space, a size or a style.
    fn peek(&mut self) -> Option<&'a str> {
        while let Some(token) = self.tokens.get(self.position) {
            if !is_passed_over(token.text) {
                return Some(token.text);
            }
            let fence = matches!(command(token.text), Some(Command::Left | Command::Right));
            self.position += 1;
            // The empty delimiter: `\left.`
            if fence && self.tokens.get(self.position).is_some_and(|next| next.text == ".") {
                self.position += 1;
            }
        }
        None
    }

    fn next_is(&mut self, expected: &str) -> bool {
        let found = self.peek() == Some(expected);
        self.position += usize::from(found);
        found
    }

    fn wrong(&self, token: &str, reason: &'static str) -> Error {
        Error::Formula { position: self.position + 1, token: token.into(), reason: reason.into() }
    }

    /// Limits the nesting, so that no formula overflows the stack.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            let token = self.tokens.get(self.position).map_or("", |token| token.text);
            return Err(self.wrong(token, "nested more than 100 levels deep"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Items up to `end`, a closing brace or the end of the formula.
    fn row(&mut self, end: &str) -> Result<Vec<Item>> {
        let mut row: Vec<Item> = Vec::new();
        while let Some(token) = self.peek().filter(|&token| token != "}" && token != end) {
            if token == r"\over" {
                self.position += 1;
                let row = self.functions(row);
                let below = self.deeper(|reader| reader.row(end))?;
                return Ok(vec![self.command(r"\frac", &[&row, &below])?]);
            }
            // A prime without a base is a symbol of its own: `f^{'}`.
            let lone = row.is_empty() && token.starts_with('\'');
            let mut items = if lone { Vec::new() } else { self.atom()? };
            self.scripts(&mut items, lone)?;
            row.append(&mut items);
        }
        Ok(self.functions(row))
    }

    /// Joins the letters of a function's name, such as `l o g`, if scripts or an argument follow.
    fn functions(&self, row: Vec<Item>) -> Vec<Item> {
        let mut joined = Vec::with_capacity(row.len());
        let mut rest = row.into_iter();
        while let Some(mut item) = rest.next() {
            if let Some(name) = self.function(&item, rest.as_slice()) {
                // The scripts are those of the last letter.
                item = rest.nth(1).unwrap_or(item);
                item.words = vec![name];
                item.limits = self.takes_limits(&item);
            }
            joined.push(item);
        }
        joined
    }

    /// The name that an item begins with the two after it, if it is one of a function that something follows.
    fn function(&self, first: &Item, rest: &[Item]) -> Option<String> {
        let [second, third, after @ ..] = rest else { return None };
        let applied = !after.is_empty() || third.has_scripts();
        if !applied || first.has_scripts() || second.has_scripts() {
            return None;
        }
        let letters: String = [first, second, third].into_iter().map(Item::letter).collect::<Option<_>>()?;
        Some(format!("\\{letters}")).filter(|name| self.is_function(name))
    }

    fn is_function(&self, name: &str) -> bool {
        matches!(command(name), Some(Command::Function(_))) && self.normalizer.has(name)
    }

    /// Whether the scripts of an item are written after `\limits`.
    fn takes_limits(&self, item: &Item) -> bool {
        let usual = item.words.last().is_some_and(|word| WITH_LIMITS.contains(&word.as_str()));
        (item.limits || usual) && item.has_scripts() && self.normalizer.has(r"\limits")
    }

    /// One argument: a symbol, a command, or a group without its braces.
    fn atom(&mut self) -> Result<Vec<Item>> {
        self.deeper(Self::read_atom)
    }

    fn read_atom(&mut self) -> Result<Vec<Item>> {
        let token = self.peek().unwrap_or("");
        let start = self.position;
        self.position += 1;
        match token {
            "{" => self.group(start),
            "" | "}" => {
                self.position = start;
                Err(self.wrong(token, "expected an argument"))
            }
            // The caller handles scripts without a base.
            "^" | "_" => {
                self.position = start;
                Ok(Vec::new())
            }
            r"\not" if self.next_is("=") => self.symbol(start, r"\neq"),
            _ if is_face(token) => self.face(),
            _ => match command(token) {
                Some(Command::Fraction) => {
                    let (above, below) = (self.argument()?, self.argument()?);
                    Ok(vec![self.command(r"\frac", &[&above, &below])?])
                }
                Some(Command::Root) => self.root(start),
                _ => self.symbol(start, token),
            },
        }
    }

    fn argument(&mut self) -> Result<Vec<Item>> {
        match self.peek() {
            Some(token @ ("^" | "_")) => Err(self.wrong(token, "expected an argument")),
            _ => self.atom(),
        }
    }

    fn symbol(&self, position: usize, token: &str) -> Result<Vec<Item>> {
        let spelled = match token {
            ":=" => self
                .normalizer
                .spell(":")
                .zip(self.normalizer.spell("="))
                .map(|(first, second)| [first, second].concat()),
            _ => self.normalizer.spell(token),
        };
        match spelled {
            Some(words) => Ok(words.into_iter().map(|word| Item::new(vec![word])).collect()),
            None => {
                Err(Error::Formula { position: position + 1, token: token.into(), reason: UNKNOWN.into() })
            }
        }
    }

    fn group(&mut self, start: usize) -> Result<Vec<Item>> {
        let row = self.row("}")?;
        if self.next_is("}") {
            return Ok(row);
        }
        self.position = start;
        Err(self.wrong("{", "not closed"))
    }

    /// Letters in another font, or the name of a function.
    fn face(&mut self) -> Result<Vec<Item>> {
        if self.peek() == Some("{") {
            let rest = &self.tokens[self.position + 1..];
            let length = rest.iter().position(|token| token.text == "}").unwrap_or(0);
            let name: String =
                ["\\"].into_iter().chain(rest[..length].iter().map(|token| token.text)).collect();
            if self.is_function(&name) {
                self.position += length + 2;
                return Ok(vec![Item::new(vec![name])]);
            }
        }
        self.argument()
    }

    fn root(&mut self, start: usize) -> Result<Vec<Item>> {
        let mut words = vec![self.structure(r"\sqrt")?];
        if self.next_is("[") {
            let (mut index, row) = (Vec::new(), self.row("]")?);
            write(&row, &mut index);
            // A bracket in the caption would end the index.
            let ambiguous = index.iter().any(|word| word == "]");
            if ambiguous || !self.next_is("]") {
                self.position = start;
                let reason =
                    if ambiguous { "its index contains a bracket" } else { "its index is not closed" };
                return Err(self.wrong(r"\sqrt", reason));
            }
            words.push(self.structure("[")?);
            words.append(&mut index);
            words.push(self.structure("]")?);
        }
        write_braced(&self.argument()?, &mut words);
        Ok(vec![Item::new(words)])
    }

    /// A command with its arguments.
    fn command(&self, name: &str, arguments: &[&[Item]]) -> Result<Item> {
        let mut words = vec![self.structure(name)?];
        arguments.iter().for_each(|argument| write_braced(argument, &mut words));
        Ok(Item::new(words))
    }

    /// A structural token, if the vocabulary has it and the braces after it.
    fn structure(&self, name: &str) -> Result<String> {
        match [name, "{", "}"].iter().find(|token| !self.normalizer.has(token)) {
            None => Ok(name.into()),
            Some(token) => Err(self.wrong(token, UNKNOWN)),
        }
    }

    /// Parses the scripts that follow and adds them to the last of `items`; `lone` primes are items of their own.
    fn scripts(&mut self, items: &mut Vec<Item>, lone: bool) -> Result<()> {
        let mut said_limits = false;
        let (mut sub, mut sup): (Option<Vec<Item>>, Option<Vec<Item>>) = (None, None);
        let mut primes = Vec::new();
        while let Some(token) = self.peek() {
            let at = self.position;
            match token {
                r"\limits" => said_limits = true,
                "'" | "''" | "'''" | "''''" => {
                    for _ in token.chars() {
                        primes.append(&mut self.symbol(at, "'")?);
                    }
                    if lone {
                        items.append(&mut primes);
                    }
                }
                "^" | "_" => {
                    self.position += 1;
                    let script = self.argument()?;
                    let place = if token == "^" { &mut sup } else { &mut sub };
                    if place.is_some() {
                        self.position = at;
                        return Err(self.wrong(token, "the symbol already has such a script"));
                    }
                    *place = Some(script);
                    continue;
                }
                _ => break,
            }
            self.position += 1;
        }
        if !primes.is_empty() {
            primes.append(&mut sup.unwrap_or_default());
            sup = Some(primes);
        }
        let written = |script: Option<Vec<Item>>| script.filter(|row| !row.is_empty());
        let (sub, sup) = (written(sub), written(sup));
        if sub.is_none() && sup.is_none() {
            return Ok(());
        }
        for (sign, script) in [("_", &sub), ("^", &sup)] {
            if script.is_some() {
                self.structure(sign)?;
            }
        }
        // Scripts of a group belong to its last symbol, unless that has its own.
        let taken =
            |item: &Item| (item.sub.is_some() && sub.is_some()) || (item.sup.is_some() && sup.is_some());
        if items.last().is_none_or(taken) {
            let mut words = Vec::new();
            write_braced(items, &mut words);
            *items = vec![Item::new(words)];
        }
        if let Some(last) = items.last_mut() {
            last.sub = sub.or(last.sub.take());
            last.sup = sup.or(last.sup.take());
            last.limits |= said_limits;
            last.limits = self.takes_limits(last);
        }
        Ok(())
    }
}

/// Commands that only change the font of their argument.
fn is_face(token: &str) -> bool {
    let more = [r"\operatorname", r"\textnormal", r"\boldsymbol", r"\mathnormal", r"\hbox", r"\mathop"];
    matches!(command(token), Some(Command::Face)) || more.contains(&token)
}

/// White space, sizes and styles, which are not part of captions.
fn is_passed_over(token: &str) -> bool {
    match command(token) {
        Some(Command::Space | Command::Left | Command::Right | Command::Big | Command::Style) => true,
        Some(Command::Limits(kept)) => !kept,
        // A trailing backslash was `\ ` before it was trimmed.
        _ => ["$", "~", r"\", r"\rm", r"\it", r"\bf", r"\nonumber"].contains(&token),
    }
}
