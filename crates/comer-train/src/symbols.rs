//! The symbol of each cell of the encoder's features: the targets of an auxiliary loss, for samples with strokes.
//!
//! The targets come from the strokes, so the encoder learns to recognise symbols before the decoder's attention has
//! converged.

use std::collections::BTreeMap;

use comer::Image;
use comer::Ink;
use comer::internal::TokenId;
use comer::internal::config::CELL_SIZE as CELL;
use comer::internal::vocab::{PAD, SOS};

/// The target of a cell without ink; no symbol has this id.
pub const EMPTY_CELL: TokenId = SOS;

/// The weight of a cell without ink, as most cells are empty; a cell with a symbol has weight 1.
const EMPTY_WEIGHT: f32 = 0.1;

/// The weight of a cell with this symbol in the loss.
pub fn loss_weight(symbol: TokenId) -> f32 {
    match symbol {
        PAD => 0.0,
        EMPTY_CELL => EMPTY_WEIGHT,
        _ => 1.0,
    }
}

/// The number of columns and rows of cells of a picture.
pub fn cell_grid(picture: &Image) -> (usize, usize) {
    (picture.width().div_ceil(CELL), picture.height().div_ceil(CELL))
}

/// The symbol with most ink in each cell of a picture, row by row. The picture is the drawing of `ink` with the size `drawn`
/// (width, height), scaled. `strokes` are the symbols of the strokes, [`PAD`] if unknown.
pub fn cell_symbols(picture: &Image, ink: &Ink, drawn: (usize, usize), strokes: &[TokenId]) -> Vec<TokenId> {
    let (columns, rows) = cell_grid(picture);
    let mut votes: BTreeMap<(usize, TokenId), usize> = BTreeMap::new();
    ink.pen(|stroke, [x, y]| {
        let (x, y) = (x * picture.width() / drawn.0 / CELL, y * picture.height() / drawn.1 / CELL);
        if x < columns && y < rows {
            *votes.entry((y * columns + x, strokes[stroke])).or_default() += 1;
        }
    });
    let mut cells = vec![EMPTY_CELL; columns * rows];
    let mut most = vec![0; columns * rows];
    for ((cell, symbol), count) in votes {
        if count > most[cell] {
            (cells[cell], most[cell]) = (symbol, count);
        }
    }
    cells
}

/// The targets of a picture without strokes.
pub fn unknown_symbols(picture: &Image) -> Vec<TokenId> {
    let (columns, rows) = cell_grid(picture);
    vec![PAD; columns * rows]
}

#[cfg(test)]
mod tests {
    use comer::internal::ink::{Point, Stroke};

    use super::*;

    #[test]
    fn cells_have_the_symbol_with_most_ink() {
        let line =
            |points: &[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        // The drawing keeps their height of 28 pixels.
        let ink =
            Ink::new(vec![line(&[(0.0, 0.0), (0.0, 28.0)]), line(&[(64.0, 0.0), (64.0, 28.0)])]).unwrap();
        let picture = ink.draw().unwrap();
        let size = (picture.width(), picture.height());
        assert_eq!(size, (90, 54));
        let cells = cell_symbols(&picture, &ink, size, &[7, PAD]);
        let row = |first, last| vec![first, EMPTY_CELL, EMPTY_CELL, EMPTY_CELL, last, EMPTY_CELL];
        let expected = [row(7, PAD), row(7, PAD), row(7, PAD), vec![EMPTY_CELL; 6]].concat();
        assert_eq!(cells, expected);

        let half = picture.scale(0.5).unwrap();
        let cells = cell_symbols(&half, &ink, size, &[7, 8]);
        assert_eq!(cells, [[7, EMPTY_CELL, 8], [7, EMPTY_CELL, 8]].concat());
        assert_eq!(unknown_symbols(&half), [PAD; 6]);
    }
}
