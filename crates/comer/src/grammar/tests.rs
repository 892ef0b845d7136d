//! The automata against a parser of its own, on all short formulas and on long walks.

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
                places.extend((0..length).map(|place| number / alphabet.len().pow(place) % alphabet.len()));
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
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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
