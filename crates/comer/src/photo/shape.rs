//! What belongs to the ink by its shape: no specks, no edges of tables or shadows; and its centre lines.

use super::parts::{Part, Parts};
use super::{Mask, Work};
use crate::error::Result;

/// A connected part is a speck when it has less ink than this share of a square as wide as a stroke.
const SPECK: f32 = 0.4;
/// A part in strokes this many times as wide as those of the pen is no writing.
const THICK: f32 = 2.5;
/// Pixels of a part, in squares as wide as a stroke, from which its strokes can be measured.
const MEASURABLE: f32 = 20.0;
/// Share of a sheet's side, along each of its edges, that nothing is written in.
const EDGE_OF_PAPER: f32 = 0.03;
/// Share of the image's side within which a part counts as being at the edge.
const AT_EDGE: f32 = 0.01;
/// Share of the image's side from which a straight line along it is no writing, if it is at the edge.
const LONG: f32 = 0.3;

/// What the edge of an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// It may be close to the ink.
    Anything,
    /// Ruled or squared paper goes on beyond it: what is small and touches it is a piece of a line.
    Ruled,
    /// The edge of a sheet: what is close to it is what the edge looks like.
    Sheet,
}

/// The centre lines of the ink, one pixel wide: Guo and Hall's thinning, which keeps thin diagonals.
pub fn centre_lines(mask: &Mask, work: &Work) -> Result<Mask> {
    let Mask { width, height, ref ink } = *mask;
    // A border of one pixel makes bounds checks on neighbours unnecessary.
    let stride = width + 2;
    let mut thin = vec![false; stride * (height + 2)];
    for (row, ink) in ink.chunks(width).enumerate() {
        thin[(row + 1) * stride + 1..][..width].copy_from_slice(ink);
    }
    let around = [
        -(stride as isize),
        1 - stride as isize,
        1,
        1 + stride as isize,
        stride as isize,
        stride as isize - 1,
        -1,
        -1 - stride as isize,
    ];
    // A pixel has to be asked only while its neighbours change: once for each half of a step.
    let mut asked: Vec<usize> = thin.iter().enumerate().filter(|(_, ink)| **ink).map(|(at, _)| at).collect();
    let mut changed = asked.clone();
    let mut listed = vec![false; thin.len()];
    let tables = [false, true].map(removable);
    work.spend(thin.len())?;
    for half in 0.. {
        let table: &[bool; 256] = &tables[half % 2];
        work.spend(8 * asked.len())?;
        asked.retain(|&at| {
            let neighbours = around.iter().enumerate();
            let bits =
                neighbours.map(|(bit, &offset)| usize::from(thin[at.wrapping_add_signed(offset)]) << bit);
            thin[at] && table[bits.sum::<usize>()]
        });
        let removed = asked;
        removed.iter().for_each(|&at| thin[at] = false);
        let mut next = Vec::new();
        for at in removed.into_iter().flat_map(|at| around.map(|offset| at.wrapping_add_signed(offset))) {
            if thin[at] && !listed[at] {
                listed[at] = true;
                next.push(at);
            }
        }
        // Those that changed in this half and in the one before it are asked in the next.
        asked = next.clone();
        asked.extend(changed.into_iter().filter(|&at| !listed[at]));
        next.iter().for_each(|&at| listed[at] = false);
        changed = next;
        if asked.is_empty() {
            break;
        }
    }
    let mut ink = Vec::with_capacity(width * height);
    thin.chunks(stride).skip(1).take(height).for_each(|row| ink.extend_from_slice(&row[1..=width]));
    Ok(Mask { width, height, ink })
}

/// Whether a pixel is removed in the first or in the second half of a step of the thinning, by its neighbours: a bit for each,
/// clockwise from the one above.
fn removable(second: bool) -> [bool; 256] {
    std::array::from_fn(|bits| {
        let [n, ne, e, se, south, sw, w, nw] = std::array::from_fn(|bit| bits >> bit & 1 == 1);
        let count = |sides: [bool; 4]| sides.into_iter().filter(|&side| side).count();
        let runs = count([!n && (ne || e), !e && (se || south), !south && (sw || w), !w && (nw || n)]);
        let pairs = count([nw || n, ne || e, se || south, sw || w]);
        let pairs = pairs.min(count([n || ne, e || se, south || sw, w || nw]));
        let kept = if second { (n || ne || !se) && e } else { (south || sw || !nw) && w };
        runs == 1 && (2..=3).contains(&pairs) && !kept
    })
}

/// The width of the strokes of those parts that hold most of the ink, whatever the number of specks.
pub fn main_stroke_width(parts: &Parts, counted: &[bool]) -> Option<f32> {
    let mut order: Vec<usize> = (0..parts.list.len()).filter(|&part| counted[part]).collect();
    order.sort_by_key(|&part| std::cmp::Reverse(parts.list[part].pixels));
    let total: usize = order.iter().map(|&part| parts.list[part].pixels).sum();
    let (mut held, mut large) = (0, vec![false; parts.list.len()]);
    for part in order {
        if held >= total.div_ceil(2) {
            break;
        }
        held += parts.list[part].pixels;
        large[part] = true;
    }
    parts.stroke_width(&large)
}

/// Which of the counted parts are no specks, judged by the width of the strokes.
pub fn without_specks(parts: &Parts, counted: &[bool]) -> Vec<bool> {
    let Some(width) = main_stroke_width(parts, counted) else { return counted.to_vec() };
    let written = |part: &Part| part.pixels as f32 >= SPECK * width * width;
    parts.list.iter().zip(counted).map(|(part, &counted)| counted && written(part)).collect()
}

/// Which parts are writing, and not edges of tables and shadows, punch holes, margin lines and other dark things.
pub fn written(parts: &Parts, mask: &Mask, pen: f32, frame: Frame) -> Vec<bool> {
    let outermost = |part: &Part| {
        let at = |(first, last): (usize, usize), side: usize| {
            let band = (side as f32 * EDGE_OF_PAPER) as usize;
            let touches = first <= 1 || last + 2 >= side;
            (last < band || first + band >= side) && (touches || frame == Frame::Sheet)
        };
        frame != Frame::Anything && (at(part.columns, mask.width) || at(part.rows, mask.height))
    };
    let edge = |side: usize| ((side as f32 * AT_EDGE) as usize).max(1);
    let (margin_x, margin_y) = (edge(mask.width), edge(mask.height));
    let sides = |part: &Part| {
        let across = part.columns.0 < margin_x || part.columns.1 + margin_x >= mask.width;
        let down = part.rows.0 < margin_y || part.rows.1 + margin_y >= mask.height;
        (across, down)
    };
    let large = |part: &Part| part.pixels as f32 > MEASURABLE * pen * pen;
    let measured: Vec<bool> =
        parts.list.iter().map(|part| large(part) && sides(part) != (false, false)).collect();
    let widths = parts.stroke_widths(&measured);
    let foreign = |(part, (&measured, &width)): (&Part, (&bool, &f32))| {
        let (across, down) = sides(part);
        let long = |length: usize, side: usize| length as f32 > LONG * side as f32;
        let line = |length: usize, breadth: usize| length > 12 * breadth;
        // A line down the page that reaches its edge, or one along an edge.
        let upright = down && long(part.height(), mask.height) && line(part.height(), part.width());
        let beside = across && long(part.height(), mask.height) && line(part.height(), part.width());
        let level = down && !across && long(part.width(), mask.width) && line(part.width(), part.height());
        (measured && width > THICK * pen) || outermost(part) || upright || beside || level
    };
    parts.list.iter().zip(measured.iter().zip(&widths)).map(|part| !foreign(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_at_the_edge_of_paper_is_not_written() {
        // A dash at the left edge, one two pixels from it, one at the top edge, and one further inside.
        let (width, height) = (200, 200);
        let dashes = [(0, 50, 3, 20), (2, 100, 3, 20), (90, 0, 20, 3), (30, 150, 20, 3)];
        let mut ink = vec![false; width * height];
        for (left, top, wide, high) in dashes {
            for row in top..top + high {
                ink[row * width + left..][..wide].fill(true);
            }
        }
        let mask = Mask { width, height, ink };
        let parts = Parts::of(&mask, &Work::new(&|| Ok(()))).unwrap();
        let top = |part: &Part| part.rows.0;
        let kept = |frame: Frame| -> Vec<usize> {
            let written = written(&parts, &mask, 3.0, frame);
            parts
                .list
                .iter()
                .zip(written)
                .filter(|(_, written)| *written)
                .map(|(part, _)| top(part))
                .collect()
        };
        assert_eq!(kept(Frame::Anything), [0, 50, 100, 150]);
        assert_eq!(kept(Frame::Ruled), [100, 150]);
        assert_eq!(kept(Frame::Sheet), [150]);
    }

    #[test]
    fn thinning_keeps_every_part() {
        let work = Work::new(&|| Ok(()));
        for side in 1..9 {
            let inside = |at: usize| (2..2 + side).contains(&(at % 12)) && (2..2 + side).contains(&(at / 12));
            let square = Mask { width: 12, height: 12, ink: (0..144).map(inside).collect() };
            let lines = centre_lines(&square, &work).unwrap();
            assert_eq!(Parts::of(&lines, &work).unwrap().list.len(), 1, "a square of {side}");
            assert_eq!(lines.ink.iter().filter(|&&ink| ink).count(), 1, "a square of {side}");
        }
    }

    #[test]
    fn thinning_keeps_the_length_of_diagonals() {
        for pen in 1..5 {
            let mut ink = vec![false; 80 * 80];
            for step in 0..60 {
                for cell in 0..pen * pen {
                    ink[(10 + step + cell / pen) * 80 + 10 + step + cell % pen] = true;
                }
            }
            let lines = centre_lines(&Mask { width: 80, height: 80, ink }, &Work::new(&|| Ok(()))).unwrap();
            let rows = lines.ink.chunks(80).filter(|row| row.contains(&true)).count();
            assert!(rows + 2 * pen >= 60, "a pen of {pen} leaves {rows} of 60 rows");
        }
    }

    #[test]
    fn thinning_a_solid_square_costs_no_more_than_its_pixels() {
        let cost = |side: usize| {
            let work = Work::new(&|| Ok(()));
            let square = Mask { width: side, height: side, ink: vec![true; side * side] };
            centre_lines(&square, &work).unwrap();
            work.spent() as f64 / (side * side) as f64
        };
        let (small, large) = (cost(100), cost(400));
        assert!(large < 1.2 * small, "{large} visits of each pixel, {small} in a smaller square");
    }
}
