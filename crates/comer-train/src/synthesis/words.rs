//! Tokens that are composed of other symbols: function names, letter by letter, and centred dots.

use std::collections::BTreeMap;

use comer::internal::{TokenId, Vocab};
use comer::{Point, Stroke};
use rand::Rng;

use super::geometry::{Rect, fit, transform};
use super::glyphs::GlyphWriter;
use super::metrics::{LayoutMetrics, normal};

/// The letters of each function name, and their sizes.
#[derive(Clone, Debug)]
pub struct Words {
    letters: BTreeMap<TokenId, Vec<TokenId>>,
    metrics: LayoutMetrics,
}

impl Words {
    /// The functions of a vocabulary.
    pub fn new(vocab: &Vocab, metrics: &LayoutMetrics) -> Self {
        let token = |label: &str| match vocab.encode(label).as_deref() {
            Ok(&[token]) => Some(token),
            _ => None,
        };
        let mut letters = BTreeMap::new();
        for name in ["sin", "cos", "tan", "log", "lim"] {
            let own: Option<Vec<TokenId>> = name.chars().map(|letter| token(&letter.to_string())).collect();
            if let (Some(word), Some(own)) = (token(&format!("\\{name}")), own) {
                letters.insert(word, own);
            }
        }
        // A centred dot has the shape of a dot.
        if let (Some(centered), Some(dot)) = (token("\\cdot"), token(".")) {
            letters.insert(centered, vec![dot]);
        }
        Self { letters, metrics: metrics.clone() }
    }

    /// The symbols of a token: its letters, or itself.
    pub fn parts<'a>(&'a self, token: &'a TokenId) -> &'a [TokenId] {
        self.letters.get(token).map_or(std::slice::from_ref(token), Vec::as_slice)
    }

    /// Strokes of a symbol or of a whole word, in any unit.
    pub fn write(
        &self,
        token: TokenId,
        writer: &mut GlyphWriter,
        random: &mut impl Rng,
    ) -> Option<Vec<Stroke>> {
        let Some(letters) = self.letters.get(&token) else { return writer.write(token, random) };
        let mut word: Vec<Stroke> = Vec::new();
        let mut right = 0.0;
        for &letter in letters {
            let mut strokes = writer.write(letter, random)?;
            let size = self.metrics.symbol(letter);
            let middle = size.center + 0.03 * normal(random);
            let target = Rect {
                left: 0.0,
                top: middle - size.height / 2.0,
                right: size.width,
                bottom: middle + size.height / 2.0,
            };
            fit(&mut strokes, target, 1.3);
            let bounds = Rect::of(&strokes);
            let shift = right - bounds.left;
            transform(&mut strokes, |point| Point { x: point.x + shift, y: point.y });
            right += bounds.width() + 0.12 + 0.06 * normal(random);
            word.extend(strokes);
        }
        Some(word)
    }
}
