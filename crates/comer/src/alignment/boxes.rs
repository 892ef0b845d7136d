//! The part of the image that a token was read from, as a box.

use super::ink::Region;
use crate::config::CELL_SIZE;

/// Cells with at least this share of a token's greatest attention count.
const LOOKED_AT: f32 = 0.3;

/// Left, top, right and bottom in pixels: the ink under the cells with most of the attention.
///
/// Ink that touches is taken as a whole where most of it lies under these cells; of longer ink, such as a fraction bar, only
/// the part there.
pub(super) fn token_box(attention: &[f32], width: usize, regions: &[Region]) -> [usize; 4] {
    let most = attention.iter().copied().fold(0.0, f32::max);
    let mut looked = [usize::MAX, usize::MAX, 0, 0];
    for (cell, _) in attention.iter().enumerate().filter(|&(_, &share)| share >= LOOKED_AT * most) {
        let (left, top) = (cell % width * CELL_SIZE, cell / width * CELL_SIZE);
        looked = united(looked, [left, top, left + CELL_SIZE, top + CELL_SIZE]);
    }
    let mut ink = None;
    for region in regions {
        let whole = [region.left, region.top, region.left + region.width, region.top + region.height];
        let Some(common) = common(looked, whole) else { continue };
        let part = if 2 * area(common) >= area(whole) { whole } else { common };
        ink = Some(ink.map_or(part, |ink| united(ink, part)));
    }
    ink.unwrap_or(looked)
}

fn united(a: [usize; 4], b: [usize; 4]) -> [usize; 4] {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

fn common(a: [usize; 4], b: [usize; 4]) -> Option<[usize; 4]> {
    let both = [a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])];
    (both[0] < both[2] && both[1] < both[3]).then_some(both)
}

fn area(of: [usize; 4]) -> usize {
    (of[2] - of[0]) * (of[3] - of[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(left: usize, top: usize, width: usize, height: usize) -> Region {
        Region { left, top, width, height, ..Region::default() }
    }

    #[test]
    fn boxes_are_those_of_the_ink_under_the_attention() {
        // Three rows of four cells; the attention is on the second and third of the middle row.
        let mut attention = vec![0.01; 12];
        (attention[5], attention[6]) = (0.6, 0.3);
        let symbol = region(20, 14, 10, 20);
        assert_eq!(token_box(&attention, 4, std::slice::from_ref(&symbol)), [20, 14, 30, 34]);
        let bar = region(0, 22, 70, 3);
        assert_eq!(token_box(&attention, 4, &[bar]), [16, 22, 48, 25]);
        let elsewhere = region(0, 0, 10, 10);
        assert_eq!(token_box(&attention, 4, &[elsewhere, symbol]), [20, 14, 30, 34]);
        assert_eq!(token_box(&attention, 4, &[]), [16, 16, 48, 32], "without ink the cells themselves");
    }
}
