//! Other hands: the symbols of a real layout written by somebody else.

use comer::Stroke;
use comer::internal::TokenId;
use rand::Rng;

use super::geometry::{Rect, fit};
use super::glyphs::Hand;
use super::words::Words;

/// How far the proportions of a symbol may change to fill the place of another: letters stay what they are, brackets
/// grow with what they enclose.
const MOST: f64 = 1.4;
const MOST_BRACKET: f64 = 4.0;

/// The symbols that keep their own strokes: their size depends on what is around them, or they have no shape.
pub fn is_kept(label: &str) -> bool {
    matches!(label, "\\sqrt" | "-" | "." | "," | "\\cdot" | "\\cdots" | "\\ldots" | "\\prime")
}

/// Whether a symbol grows with what it encloses.
pub fn is_bracket(label: &str) -> bool {
    matches!(label, "(" | ")" | "[" | "]" | "\\{" | "\\}" | "|")
}

/// Strokes of a symbol in the place of others of the same symbol; nothing where it keeps its own.
pub fn replace(
    token: TokenId,
    label: &str,
    own: &[Stroke],
    hand: &mut Hand,
    words: &Words,
    random: &mut impl Rng,
) -> Option<Vec<Stroke>> {
    if is_kept(label) {
        return None;
    }
    let mut strokes = words.write(token, hand, random)?;
    fit(&mut strokes, Rect::of(own), if is_bracket(label) { MOST_BRACKET } else { MOST });
    Some(strokes)
}
