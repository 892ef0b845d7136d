//! N-gram probabilities of one reading direction: a trie with back-off, small in memory and in a file.
//!
//! A node is an n-gram; its children are the tokens seen after it. Nodes are numbered level by level, so that the children
//! of successive nodes are successive. Only the probabilities of the n-grams are stored: the back-off weight of a context
//! follows from them, as what a context leaves over is shared out in the proportions of the next shorter context.

use super::scale::Scale;
use crate::token::{EOS, PAD, SOS, TokenId};

/// The longest n-grams.
pub const MAX_ORDER: usize = 8;

/// The bit beside a code that says that there are children, and that their number follows.
const CHILDREN: u8 = 0x80;

/// A context: what the next token's probabilities depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context(u32);

const ROOT: usize = 0;

/// The n-grams of one reading direction.
#[derive(Clone, PartialEq)]
pub struct Ngrams {
    vocab_size: usize,
    /// The token that starts a formula.
    start: TokenId,
    scale: Scale,
    /// Logarithms of probabilities by code, ascending; code 0 is impossible.
    codebook: Vec<f32>,
    /// The first node of each level, then the number of nodes; level 0 is the empty context.
    levels: Vec<usize>,
    /// The last token of each node.
    tokens: Vec<TokenId>,
    /// Each node's probability, as its place in the codebook.
    codes: Vec<u8>,
    /// The first child of each node, then the number of nodes.
    children: Vec<u32>,
    /// Each context without its first token.
    suffixes: Vec<u32>,
    /// The logarithm of each context's back-off weight.
    backoffs: Vec<f32>,
    /// The log-probabilities of the single tokens.
    unigrams: Vec<f32>,
}

impl std::fmt::Debug for Ngrams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        let counts: Vec<usize> = self.levels.windows(2).skip(1).map(|ends| ends[1] - ends[0]).collect();
        write!(formatter, "Ngrams({counts:?})")
    }
}

impl Ngrams {
    /// Builds the trie of n-grams (each with its probability after the tokens before its last), sorted by length and then
    /// by tokens. `start` starts a formula, [`SOS`] or [`EOS`]; the other one ends it.
    ///
    /// There has to be each token by itself (that of `start` may have any probability: it is never predicted), and with
    /// an n-gram also the n-grams without its first and without its last token.
    pub fn new<'a>(
        vocab_size: usize,
        start: TokenId,
        ngrams: impl Iterator<Item = (&'a [TokenId], f64)>,
    ) -> Result<Self, String> {
        let ngrams: Vec<(&[TokenId], f64)> = ngrams.filter(|(tokens, _)| !tokens.is_empty()).collect();
        let context_of = |tokens: &'a [TokenId]| &tokens[..tokens.len() - 1];
        let predicted = ngrams.iter().filter(|(tokens, _)| *tokens != [start]);
        let scale = Scale::new(predicted.map(|(_, probability)| *probability))?;
        let mut trie = Self::empty(vocab_size, start, scale);
        let mut counts = vec![0u32; ngrams.len() + 1];
        let mut contexts =
            std::iter::once(&[][..]).chain(ngrams.iter().map(|(tokens, _)| *tokens)).enumerate();
        for group in ngrams.chunk_by(|(one, _), (next, _)| context_of(one) == context_of(next)) {
            let context = context_of(group[0].0);
            let parent = contexts.find(|(_, known)| *known == context);
            let (parent, _) =
                parent.ok_or_else(|| format!("n-grams after {context:?}, which is not there"))?;
            counts[parent] = group.len() as u32;
            if context.len() + 1 > trie.levels.len() - 1 {
                trie.levels.push(trie.tokens.len());
            }
            trie.tokens.extend(group.iter().map(|(tokens, _)| tokens[context.len()]));
            let predicted = |tokens: &[TokenId]| tokens != [start];
            let exact: Vec<f64> =
                group.iter().filter(|(tokens, _)| predicted(tokens)).map(|(_, p)| *p).collect();
            let mut codes = scale.round(&trie.codebook, &exact).into_iter();
            let code = |(tokens, _): &(&[TokenId], f64)| if predicted(tokens) { codes.next() } else { None };
            trie.codes.extend(group.iter().map(code).map(Option::unwrap_or_default));
        }
        trie.levels.push(trie.tokens.len());
        trie.link(&counts)?;
        Ok(trie)
    }

    fn empty(vocab_size: usize, start: TokenId, scale: Scale) -> Self {
        Self {
            vocab_size,
            start,
            scale,
            codebook: scale.logarithms(),
            levels: vec![0],
            tokens: vec![PAD],
            codes: vec![0],
            children: Vec::new(),
            suffixes: Vec::new(),
            backoffs: Vec::new(),
            unigrams: vec![f32::NEG_INFINITY; vocab_size],
        }
    }

    /// Fills in what follows from the nodes and their numbers of children, and checks all of it.
    fn link(&mut self, counts: &[u32]) -> Result<(), String> {
        let nodes = self.tokens.len();
        let mut next = 1;
        self.children.reserve_exact(counts.len() + 1);
        for &count in counts {
            self.children.push(next as u32);
            next += count as usize;
        }
        self.children.push(next as u32);
        if next != nodes {
            return Err(format!("{next} n-grams follow from the counts, but there are {nodes}"));
        }
        self.link_unigrams()?;
        let contexts = self.levels[self.levels.len() - 2];
        self.suffixes = vec![0; contexts];
        self.backoffs = vec![0.0; contexts];
        for node in 1..contexts {
            let suffix = self.suffixes[node] as usize;
            let (mut left, mut left_below) = (1.0, 1.0);
            let mut below = self.children_of(suffix);
            let mut last = None;
            for child in self.children_of(node) {
                let token = self.tokens[child];
                if last.is_some_and(|last| last >= token) {
                    return Err("the tokens after a context are not in order".into());
                }
                last = Some(token);
                let twin = below.find(|&twin| self.tokens[twin] == token);
                let twin = twin.ok_or("an n-gram is there whose end is not")?;
                left -= f64::from(self.log_prob(child)).exp();
                left_below -= if suffix == ROOT {
                    f64::from(self.unigrams[usize::from(token)]).exp()
                } else {
                    f64::from(self.log_prob(twin)).exp()
                };
                if child < contexts {
                    self.suffixes[child] = twin as u32;
                }
            }
            if left < -1e-6 {
                return Err(format!("the probabilities after a context sum to {}", 1.0 - left));
            }
            if last.is_some() {
                self.backoffs[node] = (left.max(1e-12) / left_below.max(1e-12)).ln() as f32;
            }
        }
        Ok(())
    }

    /// The first level has every token but padding; what rounding left over goes to all of them.
    fn link_unigrams(&mut self) -> Result<(), String> {
        let level = self.children_of(ROOT);
        let tokens = self.tokens[level.clone()].iter().map(|&token| usize::from(token));
        if !tokens.eq(usize::from(SOS)..self.vocab_size) {
            return Err("the single tokens are not those of the vocabulary".into());
        }
        if self.tokens.iter().any(|&token| usize::from(token) >= self.vocab_size) {
            return Err(format!("a token is not one of the {} of the vocabulary", self.vocab_size));
        }
        let impossible = |node: usize| (self.codes[node] == 0) != (self.tokens[node] == self.start);
        if level.clone().any(impossible) || self.codes[level.end..].contains(&0) {
            return Err("a token is impossible, or the start is not".into());
        }
        let sum: f64 = level.clone().map(|node| f64::from(self.log_prob(node)).exp()).sum();
        for node in level {
            self.unigrams[usize::from(self.tokens[node])] = self.log_prob(node) - sum.ln() as f32;
        }
        Ok(())
    }

    /// How many tokens the longest n-grams have.
    pub fn order(&self) -> usize {
        self.levels.len() - 2
    }

    /// How many n-grams there are of each length, from 1.
    pub fn counts(&self) -> Vec<usize> {
        self.levels.windows(2).skip(1).map(|ends| ends[1] - ends[0]).collect()
    }

    /// The token that ends a formula.
    pub fn end(&self) -> TokenId {
        if self.start == SOS { EOS } else { SOS }
    }

    /// The context at the start of a formula.
    pub fn start(&self) -> Context {
        self.advance(Context(ROOT as u32), self.start)
    }

    /// The context after one more token.
    pub fn advance(&self, context: Context, token: TokenId) -> Context {
        let mut node = context.0 as usize;
        loop {
            let next = self.child(node, token).filter(|&child| {
                // Contexts that nothing was seen after say no more than the next shorter one.
                child < self.suffixes.len() && !self.children_of(child).is_empty()
            });
            match next {
                Some(child) => return Context(child as u32),
                None if node == ROOT => return Context(ROOT as u32),
                None => node = self.suffixes[node] as usize,
            }
        }
    }

    /// The log-probability that `token` comes next.
    pub fn log_probability(&self, context: Context, token: TokenId) -> f32 {
        let (mut node, mut backoff) = (context.0 as usize, 0.0);
        while node != ROOT {
            if let Some(child) = self.child(node, token) {
                return backoff + self.log_prob(child);
            }
            backoff += self.backoffs[node];
            node = self.suffixes[node] as usize;
        }
        backoff + self.unigrams.get(usize::from(token)).copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// The log-probabilities of all tokens, `[vocab_size]`.
    pub fn log_probabilities(&self, context: Context, row: &mut [f32]) {
        let mut contexts = [ROOT; MAX_ORDER];
        let (mut count, mut node) = (0, context.0 as usize);
        while node != ROOT {
            contexts[count] = node;
            count += 1;
            node = self.suffixes[node] as usize;
        }
        row.copy_from_slice(&self.unigrams);
        for &node in contexts[..count].iter().rev() {
            let backoff = self.backoffs[node];
            row.iter_mut().for_each(|value| *value += backoff);
            for child in self.children_of(node) {
                row[usize::from(self.tokens[child])] = self.log_prob(child);
            }
        }
    }

    /// The log-probabilities of a formula's tokens in the order of writing, the end's last.
    pub fn score(&self, tokens: &[TokenId]) -> Vec<f32> {
        let mut context = self.start();
        let tokens = tokens.iter().copied().chain([self.end()]);
        let score = |token| {
            let log_prob = self.log_probability(context, token);
            context = self.advance(context, token);
            log_prob
        };
        tokens.map(score).collect()
    }

    fn log_prob(&self, node: usize) -> f32 {
        self.codebook[usize::from(self.codes[node])]
    }

    fn children_of(&self, node: usize) -> std::ops::Range<usize> {
        self.children[node] as usize..self.children[node + 1] as usize
    }

    fn child(&self, node: usize, token: TokenId) -> Option<usize> {
        let children = self.children_of(node);
        let first = children.start;
        self.tokens[children].binary_search(&token).ok().map(|index| first + index)
    }

    /// Writes it so that [`Self::from_bytes`] reads it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.order() as u8];
        bytes.extend(self.scale.ends().iter().flat_map(|end| end.to_le_bytes()));
        for level in 1..=self.order() {
            let nodes = self.levels[level]..self.levels[level + 1];
            bytes.extend((nodes.len() as u32).to_le_bytes());
            for node in nodes {
                bytes.extend(&self.tokens[node].to_le_bytes()[..token_width(self.vocab_size)]);
                let children = self.children_of(node).len();
                match children {
                    0 => bytes.push(self.codes[node]),
                    _ => {
                        bytes.push(self.codes[node] | CHILDREN);
                        write_number(&mut bytes, children);
                    }
                }
            }
        }
        bytes
    }

    /// Reads and checks what [`Self::to_bytes`] wrote.
    pub fn from_bytes(vocab_size: usize, start: TokenId, bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader { bytes };
        let order = usize::from(reader.take(1)?[0]);
        if !(1..=MAX_ORDER).contains(&order) {
            return Err(format!("n-grams of {order} tokens, expected 1 to {MAX_ORDER}"));
        }
        let mut end = || Ok::<f32, String>(f32::from_bits(reader.number_of_four_bytes()?));
        let scale = Scale::from_ends([end()?, end()?])?;
        let mut trie = Self::empty(vocab_size, start, scale);
        let mut counts = Vec::new();
        for level in 1..=order {
            let count = reader.number_of_four_bytes()? as usize;
            // A node has a token and a code at least.
            if count > reader.bytes.len() / (token_width(vocab_size) + 1) {
                return Err("it ends too early".into());
            }
            trie.tokens.reserve_exact(count);
            trie.codes.reserve_exact(count);
            counts.reserve_exact(count + 1);
            trie.levels.push(trie.tokens.len());
            if level == 1 {
                counts.push(count as u32);
            }
            for _ in 0..count {
                let token = reader.take(token_width(vocab_size))?;
                trie.tokens.push(token.iter().rev().fold(0, |token, &byte| token << 8 | TokenId::from(byte)));
                let [byte] = reader.take(1)? else { continue };
                trie.codes.push(byte & !CHILDREN);
                counts.push(if byte & CHILDREN == 0 { 0 } else { reader.number()? });
            }
        }
        if counts[trie.levels[order]..].iter().any(|&count| count > 0) {
            return Err("the longest n-grams have children".into());
        }
        if !reader.bytes.is_empty() {
            return Err(format!("{} bytes follow its end", reader.bytes.len()));
        }
        trie.levels.push(trie.tokens.len());
        // Children belong to the next level.
        for level in 0..order {
            let children =
                counts[trie.levels[level]..trie.levels[level + 1]].iter().map(|&count| u64::from(count));
            let children: u64 = children.sum();
            let nodes = trie.levels[level + 2] - trie.levels[level + 1];
            if children != nodes as u64 {
                return Err(format!("{nodes} n-grams of {} tokens, expected {children}", level + 1));
            }
        }
        trie.link(&counts)?;
        Ok(trie)
    }
}

fn token_width(vocab_size: usize) -> usize {
    if vocab_size <= 256 { 1 } else { 2 }
}

/// Seven bits a byte, the lowest first; the last byte has its top bit clear.
fn write_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or("it ends too early")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number_of_four_bytes(&mut self) -> Result<u32, String> {
        Ok(self.take(4)?.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    fn number(&mut self) -> Result<u32, String> {
        let mut number = 0;
        for shift in [0, 7, 14] {
            let byte = self.take(1)?[0];
            number |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number of children is too large".into())
    }
}
