//! Finds a sheet of paper that lies on something darker, and undoes its perspective.
//!
//! The image is reduced to some two hundred cells a side, and ink is filled up. Edges that are brighter on the inner side
//! vote for straight lines (`sides`), and among all quadrilaterals of these lines and the edges of the image, the one is
//! taken whose sides are best seen and that holds most. Shadows do not matter: only the contrast along each side counts.

mod sides;

use super::light::shrink_by;
use super::{Grey, Work};
use crate::error::Result;
use crate::mapping::Mapping;
use sides::{Side, Sides};

/// Cells of the longer side of the reduced image.
const CELLS: usize = 240;
/// Cells by which ink is filled up.
const FILLED: usize = 3;
/// Share of the image that the paper has to cover.
const LEAST_AREA: f64 = 0.12;
/// Share of a side along which the paper has to be brighter than what is beside it.
const LEAST_SEEN: f64 = 0.72;
/// Mean contrast of a side, as a natural logarithm, where one or two sides are in the image: shadows have less.
const CLEAR: f64 = 0.7;
/// Least mean contrast of a side, as a natural logarithm.
const LEAST_CONTRAST: f64 = 0.14;
/// What a side on the edge of the image counts, where one that is seen all along counts 1.
const BORDER: f64 = 0.25;
/// Cells behind and before a side where the paper has to be brighter than what is beside it.
const BEHIND: f64 = 6.0;
const BEFORE: f64 = 2.5;
/// Share of a side at its ends.
const END: f64 = 0.08;
/// Cells by which the sides are moved inwards, to leave the edge of the paper out.
const INSET: f64 = 2.5;
/// How far outside the image a corner may be, as a share of its side.
const OUTSIDE: f64 = 0.12;
/// Most that the cosine of a corner's angle may be: 20 degrees off a right angle.
const MOST_COSINE: f64 = 0.35;

/// A corner, in pixels of the image.
type Corner = [f64; 2];

/// The corners of the paper, from the upper left clockwise; `None` where the image shows nothing else, or no paper.
pub fn find(grey: &Grey, work: &Work) -> Result<Option<[Corner; 4]>> {
    let side = grey.width.max(grey.height).div_ceil(CELLS);
    if grey.width.min(grey.height) < 32 * side {
        return Ok(None);
    }
    let (small, _) = shrink_by(grey, side, work)?;
    let (width, height) = (small.width as f64, small.height as f64);
    let sides = Sides::of(&small, &filled(&small), work)?;
    let mut best: Option<(f64, [Corner; 4])> = None;
    for top in sides.top.iter() {
        for bottom in sides.bottom.iter().filter(|bottom| bottom.offset > top.offset) {
            for left in sides.left.iter() {
                work.spend(200 * sides.right.len())?;
                for right in sides.right.iter().filter(|right| right.offset > left.offset) {
                    let Some((score, corners)) = judged([left, top, right, bottom], width, height) else {
                        continue;
                    };
                    if best.as_ref().is_none_or(|best| score > best.0)
                        && goes_on([left, top, right, bottom], &small)
                    {
                        best = Some((score, corners));
                    }
                }
            }
        }
    }
    Ok(best.map(|(_, corners)| corners.map(|corner| corner.map(|place| place * side as f64))))
}

/// Whether what is bright at the sides goes on behind them, before ink is filled up. Light strokes on dark do not.
fn goes_on(sides: [&Side; 4], small: &Grey) -> bool {
    let [left, top, right, bottom] = sides;
    let cell = |x: f64, y: f64| -> Option<u8> {
        let inside = x >= 0.0 && y >= 0.0 && x < small.width as f64 && y < small.height as f64;
        inside.then(|| small.levels[y as usize * small.width + x as usize])
    };
    let (middle_x, middle_y) = (small.width as f64 / 2.0, small.height as f64 / 2.0);
    let is_brighter = |side: &Side, upright: bool, sign: f64, between: (f64, f64)| {
        if side.is_border {
            return true;
        }
        let (mut seen, mut brighter) = (0, 0);
        for place in between.0.max(0.0) as usize..between.1.max(0.0) as usize {
            let place = place as f64 + 0.5;
            let across = side.offset + side.slope * (place - if upright { middle_y } else { middle_x });
            let level = |off: f64| {
                let across = across + sign * off;
                if upright { cell(across, place) } else { cell(place, across) }
            };
            if let (Some(inner), Some(outer)) = (level(BEHIND), level(-BEFORE)) {
                seen += 1;
                brighter += usize::from(inner > outer);
            }
        }
        2 * brighter > seen
    };
    let (rows, columns) = ((top.offset, bottom.offset), (left.offset, right.offset));
    is_brighter(left, true, 1.0, rows)
        && is_brighter(right, true, -1.0, rows)
        && is_brighter(top, false, 1.0, columns)
        && is_brighter(bottom, false, -1.0, columns)
}

/// How good a quadrilateral is, and its corners a little inside; `None` if it is no sheet.
fn judged(sides: [&Side; 4], width: f64, height: f64) -> Option<(f64, [Corner; 4])> {
    let [left, top, right, bottom] = sides;
    let seen = sides.iter().filter(|side| !side.is_border).count();
    if seen == 0 {
        return None;
    }
    let outer = corners(sides, 0.0, width, height)?;
    let apart = |place: f64, side: f64| place < -OUTSIDE * side || place > (1.0 + OUTSIDE) * side;
    if outer.iter().any(|corner| apart(corner[0], width) || apart(corner[1], height)) {
        return None;
    }
    let area = area(&outer);
    if area < LEAST_AREA * width * height || !has_right_angles(&outer) {
        return None;
    }
    let [a, b, c, d] = outer;
    let spans = [(left, a[1], d[1]), (top, a[0], b[0]), (right, b[1], c[1]), (bottom, d[0], c[0])];
    let mut clearness = 0.0;
    for (at, (side, from, to)) in spans.into_iter().enumerate() {
        if side.is_border {
            clearness += BORDER / 4.0;
            continue;
        }
        let (share, contrast) = side.seen_between(from, to);
        if share < LEAST_SEEN || contrast < if seen < 3 { CLEAR } else { LEAST_CONTRAST } {
            return None;
        }
        // A sheet that leaves the image is seen up to its edge.
        let (before, after) = if at % 2 == 0 { (top, bottom) } else { (left, right) };
        let end = END * (to - from);
        let ends = |beside: &Side, from: f64, to: f64| {
            beside.is_border && side.seen_between(from, to).0 < LEAST_SEEN
        };
        if ends(before, from, from + end) || ends(after, to - end, to) {
            return None;
        }
        clearness += share * share / 4.0;
    }
    let inner = corners(sides, INSET, width, height)?;
    Some((clearness * area, inner))
}

/// Where the sides meet when those that are not on the edge of the image are moved inwards: from the upper left clockwise.
fn corners(sides: [&Side; 4], inset: f64, width: f64, height: f64) -> Option<[Corner; 4]> {
    let [left, top, right, bottom] = sides;
    let (middle_x, middle_y) = (width / 2.0, height / 2.0);
    let moved = |side: &Side, by: f64| if side.is_border { side.offset } else { side.offset + by };
    // x = a + b (y - middle) and y = c + d (x - middle).
    let meet = |upright: &Side, by: f64, level: &Side, down: f64| {
        let (a, b) = (moved(upright, by), upright.slope);
        let (c, d) = (moved(level, down), level.slope);
        let weight = 1.0 - b * d;
        (weight.abs() > 0.1).then(|| {
            let x = (a + b * (c - d * middle_x - middle_y)) / weight;
            [x, c + d * (x - middle_x)]
        })
    };
    let corners = [
        meet(left, inset, top, inset)?,
        meet(right, -inset, top, inset)?,
        meet(right, -inset, bottom, -inset)?,
        meet(left, inset, bottom, -inset)?,
    ];
    let convex = (0..4).all(|at| cross(corners[at], corners[(at + 1) % 4], corners[(at + 2) % 4]) > 0.0);
    convex.then_some(corners)
}

fn cross(origin: Corner, a: Corner, b: Corner) -> f64 {
    (a[0] - origin[0]) * (b[1] - origin[1]) - (a[1] - origin[1]) * (b[0] - origin[0])
}

fn area(corners: &[Corner; 4]) -> f64 {
    let triangle = |b: usize, c: usize| cross(corners[0], corners[b], corners[c]).abs() / 2.0;
    triangle(1, 2) + triangle(2, 3)
}

/// Whether the angles are nearly right ones: the edge of a shadow mostly runs aslant across the paper.
fn has_right_angles(corners: &[Corner; 4]) -> bool {
    (0..4).all(|at| {
        let [before, corner, after] = [3, 0, 1].map(|step| corners[(at + step) % 4]);
        let (first, second) =
            ([before[0] - corner[0], before[1] - corner[1]], [after[0] - corner[0], after[1] - corner[1]]);
        let lengths = first[0].hypot(first[1]) * second[0].hypot(second[1]);
        (first[0] * second[0] + first[1] * second[1]).abs() <= MOST_COSINE * lengths
    })
}

/// The paper as it looks from above, and where the image is in it.
pub fn straightened(grey: &Grey, corners: [Corner; 4], work: &Work) -> Result<(Grey, Mapping)> {
    let length = |a: Corner, b: Corner| (a[0] - b[0]).hypot(a[1] - b[1]);
    let [a, b, c, d] = corners;
    let width = f64::midpoint(length(a, b), length(d, c)).round().max(1.0);
    let height = f64::midpoint(length(a, d), length(b, c)).round().max(1.0);
    let to_image = Mapping::scale(1.0 / width, 1.0 / height).then(Mapping::from_unit_square(corners));
    let (columns, rows) = (width as usize, height as usize);
    let mut levels = Vec::with_capacity(columns * rows);
    let level = |x: usize, y: usize| f32::from(grey.levels[y * grey.width + x]);
    for row in 0..rows {
        for column in 0..columns {
            let [x, y] = to_image.apply([column as f64 + 0.5, row as f64 + 0.5]);
            let (x, y) = ((x - 0.5) as f32, (y - 0.5) as f32);
            let (x, y) = (x.clamp(0.0, (grey.width - 1) as f32), y.clamp(0.0, (grey.height - 1) as f32));
            let (left, top) = (x as usize, y as usize);
            let (right, bottom) = ((left + 1).min(grey.width - 1), (top + 1).min(grey.height - 1));
            let (across, down) = (x - left as f32, y - top as f32);
            let above = level(left, top) * (1.0 - across) + level(right, top) * across;
            let below = level(left, bottom) * (1.0 - across) + level(right, bottom) * across;
            levels.push((above * (1.0 - down) + below * down + 0.5) as u8);
        }
        work.spend(2 * columns)?;
    }
    Ok((Grey { width: columns, height: rows, levels }, to_image.inverse()))
}

/// The levels with ink filled up: the highest around each cell, and then the lowest of those around it.
fn filled(grey: &Grey) -> Vec<u8> {
    let Grey { width, height, .. } = *grey;
    let extreme = |levels: &[u8], pick: fn(u8, u8) -> u8| -> Vec<u8> {
        let pass = |levels: &[u8], across: bool| -> Vec<u8> {
            let one = |at: usize| {
                let (x, y) = (at % width, at / width);
                let (place, side) = if across { (x, width) } else { (y, height) };
                let range = place.saturating_sub(FILLED)..(place + FILLED + 1).min(side);
                let value =
                    |place: usize| if across { levels[y * width + place] } else { levels[place * width + x] };
                range.map(value).reduce(pick).unwrap_or(levels[at])
            };
            (0..levels.len()).map(one).collect()
        };
        pass(&pass(levels, true), false)
    };
    extreme(&extreme(&grey.levels, u8::max), u8::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sheet with these corners on a darker desk, half of it in shadow.
    fn scene(corners: [Corner; 4], desk: f32) -> Grey {
        let (width, height) = (800, 600);
        let level = |at: usize| {
            let place = [(at % width) as f64 + 0.5, (at / width) as f64 + 0.5];
            let inside = (0..4).all(|side| cross(corners[side], corners[(side + 1) % 4], place) >= 0.0);
            let light = if place[0] + 0.3 * place[1] < 500.0 { 1.0 } else { 0.7 };
            let line = inside && (300..304).contains(&(at / width)) && (200..400).contains(&(at % width));
            (light
                * if line {
                    40.0
                } else if inside {
                    230.0
                } else {
                    desk
                }) as u8
        };
        Grey { width, height, levels: (0..width * height).map(level).collect() }
    }

    #[test]
    fn a_sheet_on_a_desk_is_found_and_straightened() {
        let work = Work::new(&|| Ok(()));
        let corners = [[120.0, 60.0], [690.0, 90.0], [740.0, 560.0], [60.0, 520.0]];
        for desk in [70.0, 90.0, 120.0] {
            let grey = scene(corners, desk);
            let found = find(&grey, &work).unwrap().unwrap_or_else(|| panic!("desk {desk}"));
            for (found, expected) in found.iter().zip(corners) {
                let off = (found[0] - expected[0]).hypot(found[1] - expected[1]);
                // The corners are a little inside.
                assert!(off < 22.0, "desk {desk}: {found:?}, expected {expected:?}");
            }
            let (flat, mapping) = straightened(&grey, found, &work).unwrap();
            let desk = flat.levels.iter().filter(|&&level| (60..150).contains(&level)).count();
            assert!(desk * 200 < flat.levels.len(), "{desk} pixels of the desk are left");
            let centre = mapping.apply([300.0, 302.0]);
            assert!(flat.levels[centre[1] as usize * flat.width + centre[0] as usize] < 60);
        }
    }

    #[test]
    fn a_sheet_that_fills_the_image_is_left_alone() {
        let work = Work::new(&|| Ok(()));
        let all = [[-10.0, -10.0], [900.0, -10.0], [900.0, 900.0], [-10.0, 900.0]];
        assert_eq!(find(&scene(all, 40.0), &work).unwrap(), None);
        let blank = Grey { width: 300, height: 200, levels: vec![200; 60_000] };
        assert_eq!(find(&blank, &work).unwrap(), None);
        // A sheet whose right half is outside the image has three sides.
        let half = [[120.0, 60.0], [900.0, 60.0], [900.0, 560.0], [120.0, 560.0]];
        let found = find(&scene(half, 60.0), &work).unwrap().expect("three sides");
        assert!((found[1][0] - 800.0).abs() < 8.0 && (found[0][0] - 120.0).abs() < 12.0, "{found:?}");
    }
}
