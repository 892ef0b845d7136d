//! Replaces the symbols of a real layout by those of another writer.

use comer::Stroke;
use comer::internal::TokenId;
use rand::Rng;

use super::geometry::{Rect, fit};
use super::glyphs::GlyphWriter;
use super::words::Words;

/// Maximum change of the proportions of a symbol to fit the box of another: letters must stay legible, brackets grow
/// with their contents.
const MOST: f64 = 1.4;
const MOST_BRACKET: f64 = 4.0;

/// Symbols that keep their own strokes: their size depends on the context, or they have no shape.
pub fn is_kept(label: &str) -> bool {
    matches!(label, "\\sqrt" | "-" | "." | "," | "\\cdot" | "\\cdots" | "\\ldots" | "\\prime")
}

/// Whether a symbol grows with its contents.
pub fn is_bracket(label: &str) -> bool {
    matches!(label, "(" | ")" | "[" | "]" | "\\{" | "\\}" | "|")
}

/// New strokes of a symbol in the box of its own; `None` if it keeps its own.
pub fn replace(
    token: TokenId,
    label: &str,
    own: &[Stroke],
    writer: &mut GlyphWriter,
    words: &Words,
    random: &mut impl Rng,
) -> Option<Vec<Stroke>> {
    if is_kept(label) {
        return None;
    }
    let mut strokes = words.write(token, writer, random)?;
    fit(&mut strokes, Rect::of(own), if is_bracket(label) { MOST_BRACKET } else { MOST });
    Some(strokes)
}
