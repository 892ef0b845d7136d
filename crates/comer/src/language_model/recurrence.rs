//! Letters that a formula has used already are likely to come again.
//!
//! Of the probability that any letter comes next, a share goes to the letters seen so far, in proportion to how often they
//! were seen: `p'(w) = (1 - s) p(w) + s P(letters) n(w) / n`, with `s = share n / (n + prior)`. Other tokens keep theirs,
//! and all of them still sum to 1.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::token::TokenId;
use crate::vocab::Vocab;

/// Which tokens come again, and how much so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recurrence {
    /// The greatest share of their probability that goes to those seen, below 1.
    share: f32,
    /// How many have to be seen for half of that share.
    prior: f32,
    /// Their numbers, ascending.
    tokens: Vec<TokenId>,
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    share: f32,
    prior: f32,
    tokens: Vec<String>,
}

/// The recurring tokens of a prefix and how often each was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen(Vec<(TokenId, u16)>);

const GREEK: &str = r"\alpha \beta \gamma \delta \epsilon \varepsilon \zeta \eta \theta \vartheta \iota \kappa \lambda
    \mu \nu \xi \pi \rho \varrho \sigma \tau \upsilon \phi \varphi \chi \psi \omega
    \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega";

impl Recurrence {
    /// Of some tokens.
    pub fn new(share: f32, prior: f32, mut tokens: Vec<TokenId>) -> Result<Self> {
        for (field, value, most) in [("share", share, 0.999), ("prior", prior, 1000.0)] {
            if !(0.0..=most).contains(&value) {
                let expected = format!("a number from 0 to {most}");
                return Err(Error::Config { field, found: value.to_string(), expected });
            }
        }
        tokens.sort_unstable();
        tokens.dedup();
        Ok(Self { share, prior, tokens })
    }

    /// Of the letters of a vocabulary, Latin and Greek.
    pub fn of_letters(share: f32, prior: f32, vocab: &Vocab) -> Result<Self> {
        let is_letter = |token: &str| {
            let mut characters = token.chars();
            let single = characters.next().is_some_and(char::is_alphabetic) && characters.next().is_none();
            single || GREEK.split_whitespace().any(|letter| letter == token)
        };
        let tokens =
            vocab.tokens().iter().filter(|token| is_letter(token)).filter_map(|token| vocab.id(token));
        Self::new(share, prior, tokens.collect())
    }

    pub(super) fn to_stored(&self, vocab: &Vocab) -> Stored {
        let tokens = self.tokens.iter().filter_map(|&token| vocab.token(token)).map(String::from).collect();
        Stored { share: self.share, prior: self.prior, tokens }
    }

    pub(super) fn from_stored(stored: Stored, vocab: &Vocab) -> Result<Self> {
        Self::new(stored.share, stored.prior, vocab.encode(&stored.tokens.join(" "))?)
    }

    pub(super) fn advance(&self, seen: &Seen, token: TokenId) -> Seen {
        let mut seen = seen.clone();
        if self.tokens.binary_search(&token).is_ok() {
            match seen.0.iter_mut().find(|(known, _)| *known == token) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => seen.0.push((token, 1)),
            }
        }
        seen
    }

    /// Shifts the log-probabilities of all tokens towards those seen.
    pub(super) fn apply(&self, seen: &Seen, row: &mut [f32]) {
        let count: f32 = seen.0.iter().map(|&(_, count)| f32::from(count)).sum();
        if count == 0.0 || self.share == 0.0 {
            return;
        }
        let share = self.share * count / (count + self.prior);
        let all: f32 = self.tokens.iter().map(|&token| row[usize::from(token)].exp()).sum();
        let kept = (1.0 - share).ln();
        self.tokens.iter().for_each(|&token| row[usize::from(token)] += kept);
        for &(token, own) in &seen.0 {
            let value = &mut row[usize::from(token)];
            *value = (value.exp() + share * all * f32::from(own) / count).ln();
        }
    }
}
