//! Which symbol each cell of the encoder's features shows: what a second loss asks of the encoder, where strokes tell.
//!
//! Symbols and places are known from the strokes alone, so the encoder need not wait for the decoder to find out where
//! to look before it learns what to see.

use std::collections::BTreeMap;

use comer::Image;
use comer::Ink;
use comer::internal::TokenId;
use comer::internal::config::CELL_SIZE as CELL;
use comer::internal::vocab::{PAD, SOS};

/// A cell without ink; no symbol has this number.
pub const NOTHING: TokenId = SOS;

/// What a cell without ink counts beside one with a symbol: most cells are empty.
const EMPTY: f32 = 0.1;

/// How much a cell with this symbol counts in the loss.
pub fn count(symbol: TokenId) -> f32 {
    match symbol {
        PAD => 0.0,
        NOTHING => EMPTY,
        _ => 1.0,
    }
}

/// Columns and rows of a picture's cells.
pub fn size(picture: &Image) -> (usize, usize) {
    (picture.width().div_ceil(CELL), picture.height().div_ceil(CELL))
}

/// The symbol with most ink in each cell of a picture, row by row. The picture is `ink`'s drawing of `drawn` pixels
/// (width, height), scaled to its own size; `strokes` are the symbols of the strokes. Where a symbol is not known it is
/// padding.
pub fn of_cells(picture: &Image, ink: &Ink, drawn: (usize, usize), strokes: &[TokenId]) -> Vec<TokenId> {
    let (columns, rows) = size(picture);
    let mut votes: BTreeMap<(usize, TokenId), usize> = BTreeMap::new();
    ink.pen(|stroke, [x, y]| {
        let (x, y) = (x * picture.width() / drawn.0 / CELL, y * picture.height() / drawn.1 / CELL);
        if x < columns && y < rows {
            *votes.entry((y * columns + x, strokes[stroke])).or_default() += 1;
        }
    });
    let mut cells = vec![NOTHING; columns * rows];
    let mut most = vec![0; columns * rows];
    for ((cell, symbol), count) in votes {
        if count > most[cell] {
            (cells[cell], most[cell]) = (symbol, count);
        }
    }
    cells
}

/// For a picture of which nothing is known.
pub fn unknown(picture: &Image) -> Vec<TokenId> {
    let (columns, rows) = size(picture);
    vec![PAD; columns * rows]
}

#[cfg(test)]
mod tests {
    use comer::internal::ink::{Point, Stroke};

    use super::*;

    #[test]
    fn cells_show_the_symbol_that_has_most_ink_in_them() {
        let line =
            |points: &[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        // 28 pixels high after drawing, as they are.
        let ink =
            Ink::new(vec![line(&[(0.0, 0.0), (0.0, 28.0)]), line(&[(64.0, 0.0), (64.0, 28.0)])]).unwrap();
        let picture = ink.draw().unwrap();
        let size = (picture.width(), picture.height());
        assert_eq!(size, (90, 54));
        let cells = of_cells(&picture, &ink, size, &[7, PAD]);
        let row = |first, last| vec![first, NOTHING, NOTHING, NOTHING, last, NOTHING];
        let expected = [row(7, PAD), row(7, PAD), row(7, PAD), vec![NOTHING; 6]].concat();
        assert_eq!(cells, expected);

        let half = picture.scale(0.5).unwrap();
        let cells = of_cells(&half, &ink, size, &[7, 8]);
        assert_eq!(cells, [[7, NOTHING, 8], [7, NOTHING, 8]].concat());
        assert_eq!(unknown(&half), [PAD; 6]);
    }
}
