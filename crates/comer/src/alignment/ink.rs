//! How much of the ink no token attended to, and how much was read twice.
//!
//! Ink that touches is a region. A token looks at a region with the attention that it pays to the cells that the region
//! has ink in. Only tokens that leave ink count: braces and scripts look about too, but there is nothing to read for
//! them. A word, which is written in several letters, is read off its first: it looks at what follows on the line too.
//! `docs/explain.md` describes how the limits were chosen.

use crate::components::{Component, components};
use crate::config::CELL_SIZE;
use crate::image::Image;
use crate::token::has_ink;

/// The least that is ink.
const LEAST_INK: u8 = 64;
/// A region is unread if no token looks at it with this much of its attention.
pub const LOOKED_AT: f32 = 0.1;
/// A region is read twice if two tokens have this much of their attention in common on it.
pub const SHARED: f32 = 0.25;

/// How many cells to the right of where it looks the letters of a word stand.
const WORD: usize = 3;

/// How much of the ink of an image was attended to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct InkCoverage {
    /// The share of the ink that no token attended to, in `0.0..=1.0`.
    pub unread: f32,
    /// The share of the ink that two or more tokens were read from, in `0.0..=1.0`.
    pub reread: f32,
    /// The connected regions of ink, from the top and then from the left.
    pub regions: Vec<Region>,
}

/// Connected ink: a symbol, a part of one, or several that touch.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Region {
    /// The first column of pixels that it has ink in.
    pub left: usize,
    /// The first row.
    pub top: usize,
    /// Columns from the first to the last.
    pub width: usize,
    /// Rows from the first to the last.
    pub height: usize,
    /// Pixels of ink.
    pub pixels: usize,
    /// The most attention that one token paid to it.
    pub attention: f32,
    /// The most attention that two tokens paid to it in the same places.
    pub shared: f32,
    /// The attention that all tokens together paid to it.
    pub coverage: f32,
}

impl Region {
    /// Whether no token attended to it.
    pub fn is_unread(&self) -> bool {
        self.attention < LOOKED_AT
    }

    /// Whether two or more tokens were read from it.
    pub fn is_reread(&self) -> bool {
        self.shared >= SHARED
    }
}

/// Whether a token is written in several letters or dots.
fn is_word(token: &str) -> bool {
    let name = token.strip_prefix('\\').unwrap_or_default();
    matches!(name, "sin" | "cos" | "tan" | "log" | "lim" | "exp" | "max" | "min" | "ln" | "ldots" | "cdots")
}

impl InkCoverage {
    /// What was read of an image by tokens, each with its attention to cells in rows of `width`.
    #[doc(hidden)]
    pub fn new<'a>(
        picture: &Image,
        width: usize,
        tokens: impl IntoIterator<Item = (&'a str, &'a [f32])>,
    ) -> Self {
        let (mut regions, cells) = regions(picture, width);
        let sum =
            |cells: &[usize], map: &[f32]| -> f32 { cells.iter().filter_map(|&cell| map.get(cell)).sum() };
        let mut before: Vec<&[f32]> = Vec::new();
        for (token, map) in tokens.into_iter().filter(|(token, _)| has_ink(token)) {
            let reach = if is_word(token) { to_the_right(map, width) } else { map.to_vec() };
            for (region, cells) in regions.iter_mut().zip(&cells) {
                region.coverage += sum(cells, map);
                region.attention = region.attention.max(sum(cells, &reach));
            }
            for other in &before {
                let common: Vec<f32> = map.iter().zip(*other).map(|(a, b)| a.min(*b)).collect();
                // Most pairs have too little in common for any region.
                if common.iter().sum::<f32>() >= SHARED {
                    for (region, cells) in regions.iter_mut().zip(&cells) {
                        region.shared = region.shared.max(sum(cells, &common));
                    }
                }
            }
            before.push(map);
        }
        let all: usize = regions.iter().map(|region| region.pixels).sum();
        let share = |is_in: fn(&Region) -> bool| {
            let pixels: usize =
                regions.iter().filter(|region| is_in(region)).map(|region| region.pixels).sum();
            pixels as f32 / all.max(1) as f32
        };
        Self { unread: share(Region::is_unread), reread: share(Region::is_reread), regions }
    }
}

/// Each cell with the most that it or one of those on its left has.
fn to_the_right(map: &[f32], width: usize) -> Vec<f32> {
    let most = |cell: usize| {
        let first = cell - WORD.min(cell % width);
        map[first..=cell].iter().copied().fold(0.0, f32::max)
    };
    (0..map.len()).map(most).collect()
}

/// The regions of an image, and for each the cells that it has ink in, as numbers in rows of `width`.
fn regions(image: &Image, width: usize) -> (Vec<Region>, Vec<Vec<usize>>) {
    let columns = image.width();
    let mask: Vec<bool> = image.pixels().iter().map(|&pixel| pixel >= LEAST_INK).collect();
    let region = |part: &Component| {
        let cell = |&pixel: &usize| pixel / columns / CELL_SIZE * width + pixel % columns / CELL_SIZE;
        let mut cells: Vec<usize> = part.pixels.iter().map(cell).collect();
        cells.sort_unstable();
        cells.dedup();
        let side = |(first, last): (usize, usize)| last + 1 - first;
        let region = Region {
            left: part.columns.0,
            top: part.rows.0,
            width: side(part.columns),
            height: side(part.rows),
            pixels: part.pixels.len(),
            ..Region::default()
        };
        (region, cells)
    };
    components(&mask, columns).iter().map(region).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three bars of 10 pixels in a row of four cells: in the first, in the second, and across the last two.
    fn bars() -> Image {
        let ink = |x: usize, y: usize| {
            y == 5 && ((2..12).contains(&x) || (18..28).contains(&x) || (40..60).contains(&x))
        };
        let pixels = (0..64 * 16).map(|i| if ink(i % 64, i / 64) { 255 } else { 0 }).collect();
        Image::new(64, 16, pixels).unwrap()
    }

    #[test]
    fn what_is_read_once_twice_and_never() {
        let cases: [(&str, &[&[f32]], f32, f32); 8] = [
            ("each once", &[&[1.0, 0.0, 0.0, 0.0], &[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 0.5, 0.5]], 0.0, 0.0),
            ("nothing read", &[], 1.0, 0.0),
            ("the first left out", &[&[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 1.0, 0.0]], 0.25, 0.0),
            ("the long one left out", &[&[1.0, 0.0, 0.0, 0.0], &[0.0, 1.0, 0.0, 0.0]], 0.5, 0.0),
            ("a glance from far off is no reading", &[&[0.46, 0.46, 0.04, 0.04]], 0.5, 0.0),
            ("a glance from both sides is enough", &[&[0.45, 0.45, 0.06, 0.05]], 0.0, 0.0),
            (
                "the second twice",
                &[&[1.0, 0.0, 0.0, 0.0], &[0.0, 0.7, 0.3, 0.0], &[0.0, 0.0, 0.1, 0.9], &[0.2, 0.8, 0.0, 0.0]],
                0.0,
                0.25,
            ),
            (
                "both ends of the long one, by two that touch",
                &[&[0.5, 0.5, 0.0, 0.0], &[0.0, 0.0, 0.9, 0.1], &[0.0, 0.0, 0.1, 0.9]],
                0.0,
                0.0,
            ),
        ];
        for (what, attention, unread, reread) in cases {
            let found = InkCoverage::new(&bars(), 4, attention.iter().map(|map| ("x", *map)));
            assert_eq!((found.unread, found.reread), (unread, reread), "{what}: {found:?}");
        }
    }

    #[test]
    fn words_are_read_off_their_first_letter_and_braces_read_nothing() {
        let first: &[f32] = &[1.0, 0.0, 0.0, 0.0];
        for (tokens, unread, reread) in [
            (vec![("x", first)], 0.75, 0.0),
            (vec![(r"\cos", first)], 0.0, 0.0),
            (vec![(r"\cos", first), ("x", &[0.0, 1.0, 0.0, 0.0])], 0.0, 0.0),
            (vec![("{", first), ("^", first)], 1.0, 0.0),
            (vec![("x", first), ("{", first)], 0.75, 0.0),
            (vec![("x", first), ("y", first)], 0.75, 0.25),
        ] {
            let found = InkCoverage::new(&bars(), 4, tokens.clone());
            assert_eq!((found.unread, found.reread), (unread, reread), "{tokens:?}");
        }
        // The letters of a word stand on its line.
        let spread = to_the_right(&[0.0, 0.5, 0.0, 0.2, 0.0, 0.0], 3);
        assert_eq!(spread, [0.0, 0.5, 0.5, 0.2, 0.2, 0.2]);
    }

    #[test]
    fn regions_are_what_touches() {
        let text = "
            ##....#.
            .#...#..
            ..#.....
            #......#";
        let pixels: Vec<u8> = text
            .bytes()
            .filter(|byte| b"#.".contains(byte))
            .map(|byte| u8::from(byte == b'#') * 255)
            .collect();
        let found =
            InkCoverage::new(&Image::new(8, 4, pixels).unwrap(), 1, [("x", &[0.6][..]), ("y", &[0.7])]);
        let boxes: Vec<_> = found
            .regions
            .iter()
            .map(|region| (region.left, region.top, region.width, region.height, region.pixels))
            .collect();
        assert_eq!(boxes, [(0, 0, 3, 3, 4), (5, 0, 2, 2, 2), (0, 3, 1, 1, 1), (7, 3, 1, 1, 1)]);
        for region in &found.regions {
            assert_eq!((region.attention, region.shared), (0.7, 0.6));
            assert!((region.coverage - 1.3).abs() < 1e-6);
        }
    }

    #[test]
    fn an_empty_picture_has_nothing_to_read() {
        let found = InkCoverage::new(&Image::new(20, 20, vec![0; 400]).unwrap(), 2, [("x", &[0.25; 4][..])]);
        assert_eq!(found, InkCoverage::default());
    }
}
