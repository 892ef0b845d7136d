//! Modified Kneser-Ney estimates of n-gram probabilities, and pruning.
//!
//! Two passes: the first estimates all n-grams and selects the most useful ones; the second estimates these again, with
//! shorter n-grams that also account for the longer ones that were removed (revised Kneser pruning by Siivola et al.).

use comer::internal::TokenId;
use comer::internal::language_model::Ngrams;

use super::Line;
use super::counts::{Count, Key, Table, continuations, prefix, suffix, tables, tokens};

/// An n-gram and its estimate.
#[derive(Clone, Copy, Debug)]
struct Gram {
    key: Key,
    probability: f64,
    /// The loss of log-likelihood of the text without it, in nats: its count times the cost of backing off.
    gain: f64,
    /// Indices of the n-grams without its last and without its first token, among those one token shorter.
    prefix: usize,
    suffix: usize,
}

/// The estimates of one reading direction.
pub struct Estimate {
    vocab_size: usize,
    start: TokenId,
    /// Occurrences by length from 1, sorted.
    tables: Vec<Table>,
    /// Estimates of all of them.
    levels: Vec<Vec<Gram>>,
}

impl Estimate {
    /// Estimates from lines in reading order; `ends` are the tokens that start and end a formula.
    pub fn new(lines: &[Line], vocab_size: usize, ends: (TokenId, TokenId), order: usize) -> Self {
        let tables = tables(lines, vocab_size, ends, order);
        let levels = estimate(tables.clone(), vocab_size, ends.0, |_, _| true);
        Self { vocab_size, start: ends.0, tables, levels }
    }

    /// The best n-grams that fit in `max_bytes`.
    pub fn prune(&self, max_bytes: usize) -> Result<Ngrams, String> {
        // Bounds of the logarithm of the gain of any n-gram.
        let (mut fits, mut least) = (30.0f64, -30.0f64);
        let mut kept = self.kept(f64::NEG_INFINITY);
        if bytes(&kept) > max_bytes {
            for _ in 0..40 {
                let middle = (fits + least) / 2.0;
                match bytes(&self.kept(middle.exp())) <= max_bytes {
                    true => fits = middle,
                    false => least = middle,
                }
            }
            kept = self.kept(fits.exp());
        }
        let is_kept = |level: usize, index: usize| kept[level][index].is_some();
        let levels = estimate(self.tables.clone(), self.vocab_size, self.start, is_kept);
        let mut ngrams: Vec<(Vec<TokenId>, f64)> = Vec::new();
        for (level, (grams, kept)) in levels.iter().zip(&kept).enumerate() {
            let grams = grams.iter().zip(kept).filter(|(_, children)| children.is_some());
            ngrams.extend(grams.map(|(gram, _)| (tokens(gram.key, level + 1), gram.probability)));
        }
        let ngrams = ngrams.iter().map(|(tokens, probability)| (tokens.as_slice(), *probability));
        Ngrams::new(self.vocab_size, self.start, ngrams)
    }

    /// The number of kept children of each n-gram with at least this gain, and of those that such n-grams need.
    fn kept(&self, least: f64) -> Vec<Vec<Option<u32>>> {
        let mut kept: Vec<Vec<Option<u32>>> =
            self.levels.iter().map(|level| vec![None; level.len()]).collect();
        for (level, grams) in self.levels.iter().enumerate().rev() {
            for (index, gram) in grams.iter().enumerate() {
                if level == 0 || gram.gain >= least {
                    kept[level][index].get_or_insert(0);
                }
                if level > 0 && kept[level][index].is_some() {
                    *kept[level - 1][gram.prefix].get_or_insert(0) += 1;
                    kept[level - 1][gram.suffix].get_or_insert(0);
                }
            }
        }
        kept
    }

    /// The probability of a token after a context (with its start), by definition.
    #[cfg(test)]
    pub(super) fn probability(&self, context: &[TokenId], token: TokenId) -> f64 {
        let find = |tokens: &[TokenId]| {
            let key = tokens.iter().fold(0, |key, &token| key << 16 | Key::from(token));
            let level = self.levels.get(tokens.len().checked_sub(1)?)?;
            level.binary_search_by_key(&key, |gram| gram.key).ok().map(|index| level[index].probability)
        };
        if let Some(found) = find(&[context, &[token]].concat()) {
            return if token == self.start { 0.0 } else { found };
        }
        if context.is_empty() {
            return 0.0;
        }
        let explicit: Vec<TokenId> = (1..self.vocab_size as TokenId)
            .filter(|&other| find(&[context, &[other]].concat()).is_some())
            .collect();
        let sum = |context: &[TokenId]| -> f64 {
            explicit.iter().map(|&other| self.probability(context, other)).sum()
        };
        let backoff =
            if explicit.is_empty() { 1.0 } else { (1.0 - sum(context)) / (1.0 - sum(&context[1..])) };
        backoff * self.probability(&context[1..], token)
    }
}

/// The bytes of a trie with these numbers of children.
fn bytes(kept: &[Vec<Option<u32>>]) -> usize {
    // A token, a code, and the number of children if it is not small.
    let node = |&children: &u32| match children {
        0 => 2,
        1..128 => 3,
        _ => 4,
    };
    kept.iter().flatten().flatten().map(node).sum()
}

/// The estimates of n-grams if only some are kept; those of the others are meaningless.
fn estimate(
    mut tables: Vec<Table>,
    vocab_size: usize,
    start: TokenId,
    kept: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<Gram>> {
    continuations(&mut tables, start, &kept);
    let mut levels: Vec<Vec<Gram>> = Vec::new();
    for (level, table) in tables.iter().enumerate() {
        let kept = |index| kept(level, index);
        let grams =
            estimate_level(table, level + 1, vocab_size, start, levels.last().map(Vec::as_slice), kept);
        levels.push(grams);
    }
    levels
}

/// The estimates of one length from its counts and the estimates of the next shorter length.
fn estimate_level(
    table: &Table,
    length: usize,
    vocab_size: usize,
    start: TokenId,
    shorter: Option<&[Gram]>,
    kept: impl Fn(usize) -> bool,
) -> Vec<Gram> {
    let discounts = Discounts::new(table);
    let is_start = |key: Key| length == 1 && key == Key::from(start);
    let mut grams = Vec::with_capacity(table.len());
    let mut context = 0;
    for group in table.chunk_by(|(one, _), (next, _)| prefix(*one) == prefix(*next)) {
        if let Some(shorter) = shorter {
            context += shorter[context..].partition_point(|gram| gram.key < prefix(group[0].0));
        }
        let all: f64 = group.iter().map(|(_, count)| count.mass).sum();
        // The discounts of kept n-grams and the mass of the others.
        let taken = |(index, (_, count)): (usize, &(Key, Count))| match kept(grams.len() + index) {
            true => count.mass * discounts.share(count),
            false => count.mass,
        };
        let left = group.iter().enumerate().map(taken).sum::<f64>() / all;
        for (key, count) in group {
            let (index, below) = match shorter {
                None => (0, 1.0 / (vocab_size - 2) as f64),
                Some(shorter) => {
                    let index = shorter.partition_point(|gram| gram.key < suffix(*key, length));
                    (index, shorter[index].probability)
                }
            };
            let backed_off = left * below;
            let probability = count.mass * (1.0 - discounts.share(count)) / all + backed_off;
            grams.push(Gram {
                key: *key,
                probability: if is_start(*key) { 1.0 } else { probability },
                gain: count.weight * (probability / backed_off).ln(),
                prefix: context,
                suffix: index,
            });
        }
    }
    grams
}

/// The discounts of counts of 1, 2 and more.
struct Discounts([f64; 3]);

impl Discounts {
    /// Chen and Goodman's estimates from the numbers of n-grams that were seen one to four times.
    fn new(table: &Table) -> Self {
        let seen = |times: u32| table.iter().filter(|(_, count)| count.seen == times).count() as f64;
        let seen = [1, 2, 3, 4].map(seen);
        let share = seen[0] / (seen[0] + 2.0 * seen[1]);
        let discount = |times: usize| {
            let value = times as f64 - (times + 1) as f64 * share * seen[times] / seen[times - 1];
            // With little text, values can be extreme or undefined.
            if value.is_finite() { value.clamp(0.1, times as f64 - 0.1) } else { 0.5 }
        };
        Self([1, 2, 3].map(discount))
    }

    /// The share of the mass of an n-gram that is discounted.
    fn share(&self, count: &Count) -> f64 {
        match count.seen {
            0 => 1.0,
            seen => self.0[seen.min(3) as usize - 1] / f64::from(seen),
        }
    }
}
