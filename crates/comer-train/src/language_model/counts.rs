//! N-gram counts.

use comer::internal::TokenId;

use super::Line;

/// An n-gram as an integer: 16 bits per token, the last token lowest. Keys of one length sort like their tokens.
pub(super) type Key = u128;

const TOKEN_BITS: usize = 16;

/// The tokens of an n-gram of `length` tokens.
pub(super) fn tokens(key: Key, length: usize) -> Vec<TokenId> {
    (0..length).rev().map(|index| (key >> (TOKEN_BITS * index)) as TokenId).collect()
}

/// Without its last token.
pub(super) fn prefix(key: Key) -> Key {
    key >> TOKEN_BITS
}

/// Without its first token, of an n-gram of `length` tokens.
pub(super) fn suffix(key: Key, length: usize) -> Key {
    key & !(Key::MAX << (TOKEN_BITS * (length - 1)))
}

fn key(tokens: &[TokenId]) -> Key {
    tokens.iter().fold(0, |key, &token| key << TOKEN_BITS | Key::from(token))
}

/// The counts of an n-gram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count {
    /// Number of occurrences, or of different preceding tokens.
    pub(super) seen: u32,
    /// The same, each with the weight of its list.
    pub(super) mass: f64,
    /// Number of occurrences, weighted.
    pub(super) weight: f64,
}

/// The n-grams of one length, sorted.
pub(super) type Table = Vec<(Key, Count)>;

/// The occurrences of n-grams of lengths 1 to `order`, with `start` and `end` around each line. Includes every token of
/// the vocabulary except padding.
pub(super) fn tables(
    lines: &[Line],
    vocab_size: usize,
    (start, end): (TokenId, TokenId),
    order: usize,
) -> Vec<Table> {
    let mut tables: Vec<Table> = (1..=order).map(|length| table(lines, (start, end), length)).collect();
    let all = (1..vocab_size).map(|token| (token as Key, Count { seen: 0, mass: 0.0, weight: 0.0 }));
    tables[0].extend(all);
    tables[0] = merge(std::mem::take(&mut tables[0]));
    tables
}

/// Replaces the occurrences of each n-gram by the number of different tokens before it (continuation counts), each with
/// its mean weight. A longer n-gram that is not `kept` is estimated by this one, and contributes all its occurrences.
/// N-grams at the start of a line keep their occurrences.
pub(super) fn continuations(tables: &mut [Table], start: TokenId, kept: impl Fn(usize, usize) -> bool) {
    for length in (1..tables.len()).rev() {
        let [shorter, longer] = &mut tables[length - 1..=length] else { continue };
        let first = |key: Key| (key >> (TOKEN_BITS * (length - 1))) as TokenId;
        for (_, count) in shorter.iter_mut().filter(|(key, _)| first(*key) != start) {
            (count.seen, count.mass) = (0, 0.0);
        }
        for (index, (key, count)) in longer.iter().enumerate() {
            let suffix = suffix(*key, length + 1);
            let Ok(at) = shorter.binary_search_by_key(&suffix, |(key, _)| *key) else { continue };
            let (seen, mass) = match kept(length, index) {
                true => (1, count.mass / f64::from(count.seen)),
                false => (count.seen, count.mass),
            };
            shorter[at].1.seen += seen;
            shorter[at].1.mass += mass;
        }
    }
}

fn table(lines: &[Line], (start, end): (TokenId, TokenId), length: usize) -> Table {
    let mut found = Vec::new();
    let mut text = Vec::new();
    for line in lines {
        text.clear();
        text.push(start);
        text.extend(&line.tokens);
        text.push(end);
        let weight = f64::from(line.count) * line.weight;
        let ngrams = text.windows(length).filter(|ngram| *ngram != [start]);
        found.extend(ngrams.map(|ngram| (key(ngram), Count { seen: line.count, mass: weight, weight })));
    }
    merge(found)
}

/// Sorts n-grams and adds up equal ones. The sort is stable, so that floating-point sums are reproducible.
fn merge(mut found: Table) -> Table {
    found.sort_by_key(|&(key, _)| key);
    found.dedup_by(|(next, count), (kept, sum)| {
        if next == kept {
            sum.seen = sum.seen.saturating_add(count.seen);
            sum.mass += count.mass;
            sum.weight += count.weight;
        }
        next == kept
    });
    found
}
