//! Finds a sheet of paper that lies on something darker, and undoes its perspective.
//!
//! The image is reduced to some two hundred cells a side, and ink is filled up. For several thresholds, the largest
//! bright region is taken, its convex hull is reduced to four corners, and the sides are examined: along each of them the
//! paper has to be brighter than what is beside it, whatever the light. A side on the edge of the image needs no proof.

use super::light::shrink_by;
use super::{Grey, Work};
use crate::error::Result;
use crate::mapping::Mapping;

/// Cells of the longer side of the reduced image.
const CELLS: usize = 240;
/// Cells by which ink is filled up.
const FILLED: usize = 3;
/// Share of the image that the paper has to cover.
const LEAST_AREA: f64 = 0.12;
/// Least share of the corners' quadrilateral that is bright.
const LEAST_FILL: f64 = 0.9;
/// How much brighter the paper has to be than what is beside it, on the whole and at most places.
const LEAST_CONTRAST: f32 = 0.1;
/// How much brighter the paper has to be where only one or two of its sides are in the image: shadows are not so dark.
const SHADOW: f32 = 0.55;
/// Share of the places along a side that have to be brighter inside.
const LEAST_BRIGHTER: f32 = 0.75;
/// Cells by which the sides are moved inwards, to leave the edge of the paper out.
const INSET: f64 = 2.0;
/// Distance from the edge of the image, in cells, up to which a side lies on it.
const ON_EDGE: f64 = 2.5;

/// Most that the cosine of a corner's angle may be off zero: 15 degrees off a right angle.
const MOST_COSINE: f64 = 0.26;

/// A corner, in pixels of the image.
type Corner = [f64; 2];

/// The corners of the paper, from the upper left clockwise; `None` where the image shows nothing else, or no paper.
pub fn find(grey: &Grey, work: &Work) -> Result<Option<[Corner; 4]>> {
    let side = grey.width.max(grey.height).div_ceil(CELLS);
    if grey.width.min(grey.height) < 32 * side {
        return Ok(None);
    }
    let (small, _) = shrink_by(grey, side, work)?;
    let (width, height) = (small.width, small.height);
    let levels = filled(&small);
    work.spend(levels.len() * 20)?;
    let mut sorted = levels.clone();
    sorted.sort_unstable();
    let (low, high) = (f32::from(sorted[sorted.len() / 50]), f32::from(sorted[sorted.len() * 49 / 50]));
    // The largest sheet: a part of it may be brighter than the rest, which is in shadow.
    let mut best: Option<(f64, [Corner; 4])> = None;
    for step in 1..10 {
        let threshold = low + (high - low) * step as f32 / 10.0;
        let bright: Vec<bool> = levels.iter().map(|&level| f32::from(level) >= threshold).collect();
        work.spend(10 * levels.len())?;
        let Some(region) = largest(&bright, width, height) else { continue };
        if (region.len() as f64) < LEAST_AREA * levels.len() as f64 {
            continue;
        }
        let Some(corners) = corners(&region, width) else { continue };
        let area = area(&corners);
        if !has_right_angles(&corners) {
            continue;
        }
        if (region.len() as f64) < LEAST_FILL * area || area > 1.12 * region.len() as f64 {
            continue;
        }
        if stands_out(&levels, width, height, &corners) && best.as_ref().is_none_or(|best| area > best.0) {
            best = Some((area, corners));
        }
    }
    let Some((_, corners)) = best else { return Ok(None) };
    let corners = inset(&corners, width, height);
    Ok(Some(ordered(corners.map(|corner| corner.map(|place| place * side as f64)))))
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

/// The cells of the largest region of bright ones that touch along their sides.
fn largest(bright: &[bool], width: usize, height: usize) -> Option<Vec<usize>> {
    let mut seen = vec![false; bright.len()];
    let mut best: Vec<usize> = Vec::new();
    for start in 0..bright.len() {
        if !bright[start] || seen[start] {
            continue;
        }
        seen[start] = true;
        let mut region = vec![start];
        let mut next = 0;
        while let Some(&at) = region.get(next) {
            next += 1;
            let (x, y) = (at % width, at / width);
            let sides = [
                (x > 0).then(|| at - 1),
                (x + 1 < width).then_some(at + 1),
                (y > 0).then(|| at - width),
                (y + 1 < height).then_some(at + width),
            ];
            for neighbour in sides.into_iter().flatten() {
                if bright[neighbour] && !seen[neighbour] {
                    seen[neighbour] = true;
                    region.push(neighbour);
                }
            }
        }
        if region.len() > best.len() {
            best = region;
        }
    }
    (!best.is_empty()).then_some(best)
}

/// The four corners around a region of cells: those of its convex hull, with sides taken out that cost the least area.
fn corners(region: &[usize], width: usize) -> Option<[Corner; 4]> {
    let mut hull = hull(region, width);
    while hull.len() > 4 {
        let count = hull.len();
        // Without a side, its neighbours are prolonged until they meet.
        let prolonged = |side: usize| {
            let [before, from, to, after] = [count - 1, 0, 1, 2].map(|step| hull[(side + step) % count]);
            let meeting = meeting(before, from, to, after)?;
            Some((triangle(from, meeting, to), side, meeting))
        };
        let (_, side, corner) = (0..count).filter_map(prolonged).min_by(|a, b| a.0.total_cmp(&b.0))?;
        hull[side] = corner;
        hull.remove((side + 1) % count);
    }
    hull.try_into().ok()
}

/// The convex hull of cells, clockwise as seen with y down.
fn hull(region: &[usize], width: usize) -> Vec<Corner> {
    let mut rows: Vec<(usize, usize, usize)> = Vec::new();
    let mut spans = std::collections::BTreeMap::new();
    for &at in region {
        let span = spans.entry(at / width).or_insert((usize::MAX, 0));
        *span = (span.0.min(at % width), span.1.max(at % width));
    }
    rows.extend(spans.into_iter().map(|(row, (first, last))| (row, first, last)));
    let mut points: Vec<Corner> = Vec::new();
    for (row, first, last) in rows {
        for (x, y) in [(first, row), (last + 1, row), (first, row + 1), (last + 1, row + 1)] {
            points.push([x as f64, y as f64]);
        }
    }
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    let half = |points: &mut dyn Iterator<Item = Corner>| {
        let mut chain: Vec<Corner> = Vec::new();
        for point in points {
            while let [.., a, b] = chain[..] {
                if cross(a, b, point) > 0.0 {
                    break;
                }
                chain.pop();
            }
            chain.push(point);
        }
        chain.pop();
        chain
    };
    let mut chain = half(&mut points.iter().copied());
    chain.extend(half(&mut points.iter().rev().copied()));
    chain
}

fn cross(origin: Corner, a: Corner, b: Corner) -> f64 {
    (a[0] - origin[0]) * (b[1] - origin[1]) - (a[1] - origin[1]) * (b[0] - origin[0])
}

fn triangle(a: Corner, b: Corner, c: Corner) -> f64 {
    cross(a, b, c).abs() / 2.0
}

fn area(corners: &[Corner; 4]) -> f64 {
    triangle(corners[0], corners[1], corners[2]) + triangle(corners[0], corners[2], corners[3])
}

/// Where the line through `a` and `b` meets that through `c` and `d`, beyond `b` and before `c`.
fn meeting(a: Corner, b: Corner, c: Corner, d: Corner) -> Option<Corner> {
    let (first, second) = ([b[0] - a[0], b[1] - a[1]], [d[0] - c[0], d[1] - c[1]]);
    let area = first[0] * second[1] - first[1] * second[0];
    let along = ((c[0] - a[0]) * second[1] - (c[1] - a[1]) * second[0]) / area;
    (area.abs() > 1e-9 && along >= 1.0).then(|| [a[0] + along * first[0], a[1] + along * first[1]])
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

/// Whether the inside is brighter than the outside along all sides that are not on the edge of the image.
fn stands_out(levels: &[u8], width: usize, height: usize, corners: &[Corner; 4]) -> bool {
    let mut contrasts = Vec::new();
    for side in 0..4 {
        let (from, to) = (corners[side], corners[(side + 1) % 4]);
        if on_edge(from, to, width, height) {
            continue;
        }
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let inwards = [-(to[1] - from[1]) / length, (to[0] - from[0]) / length];
        let level = |place: Corner| {
            let inside =
                place[0] >= 0.0 && place[1] >= 0.0 && place[0] < width as f64 && place[1] < height as f64;
            inside.then(|| f32::from(levels[place[1] as usize * width + place[0] as usize]))
        };
        let steps = (length as usize).max(1);
        let (mut sum, mut brighter, mut count) = (0.0, 0, 0);
        for step in 0..steps {
            let share = (step as f64 + 0.5) / steps as f64;
            let at = |distance: f64| {
                level(
                    [0, 1]
                        .map(|axis| from[axis] + (to[axis] - from[axis]) * share + inwards[axis] * distance),
                )
            };
            if let (Some(inside), Some(outside)) = (at(3.0), at(-3.0)) {
                let contrast = (inside - outside) / inside.max(16.0);
                sum += contrast;
                brighter += usize::from(contrast > LEAST_CONTRAST / 2.0);
                count += 1;
            }
        }
        if count == 0 {
            continue;
        }
        let mean = sum / count as f32;
        if mean < LEAST_CONTRAST || (brighter as f32) < LEAST_BRIGHTER * count as f32 {
            return false;
        }
        contrasts.push(mean);
    }
    // One or two sides may be those of a shadow.
    let least = if contrasts.len() < 3 { SHADOW } else { LEAST_CONTRAST };
    !contrasts.is_empty() && contrasts.iter().all(|&contrast| contrast >= least)
}

/// Whether a side lies on the edge of the image.
fn on_edge(from: Corner, to: Corner, width: usize, height: usize) -> bool {
    let near = |place: fn(Corner) -> f64, edge: f64| {
        (place(from) - edge).abs() <= ON_EDGE && (place(to) - edge).abs() <= ON_EDGE
    };
    let (x, y): (fn(Corner) -> f64, fn(Corner) -> f64) = (|corner| corner[0], |corner| corner[1]);
    near(x, 0.0) || near(x, width as f64) || near(y, 0.0) || near(y, height as f64)
}

/// The corners with the sides moved inwards, but for those on the edge of the image.
fn inset(corners: &[Corner; 4], width: usize, height: usize) -> [Corner; 4] {
    let moved: Vec<(Corner, Corner)> = (0..4)
        .map(|side| {
            let (from, to) = (corners[side], corners[(side + 1) % 4]);
            if on_edge(from, to, width, height) {
                return (from, to);
            }
            let length = (to[0] - from[0]).hypot(to[1] - from[1]).max(1e-9);
            let by = [-(to[1] - from[1]) / length * INSET, (to[0] - from[0]) / length * INSET];
            ([from[0] + by[0], from[1] + by[1]], [to[0] + by[0], to[1] + by[1]])
        })
        .collect();
    std::array::from_fn(|corner| {
        let (before, after) = (moved[(corner + 3) % 4], moved[corner]);
        let (first, second) = (
            [before.1[0] - before.0[0], before.1[1] - before.0[1]],
            [after.1[0] - after.0[0], after.1[1] - after.0[1]],
        );
        let area = first[0] * second[1] - first[1] * second[0];
        if area.abs() < 1e-9 {
            return corners[corner];
        }
        let along = ((after.0[0] - before.0[0]) * second[1] - (after.0[1] - before.0[1]) * second[0]) / area;
        [
            (before.0[0] + along * first[0]).clamp(0.0, width as f64),
            (before.0[1] + along * first[1]).clamp(0.0, height as f64),
        ]
    })
}

/// The corners from the upper left one on, clockwise.
fn ordered(mut corners: [Corner; 4]) -> [Corner; 4] {
    let upper_left = (0..4)
        .min_by(|&a, &b| corners[a].iter().sum::<f64>().total_cmp(&corners[b].iter().sum()))
        .unwrap_or(0);
    corners.rotate_left(upper_left);
    corners
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
                assert!(off < 16.0, "desk {desk}: {found:?}, expected {expected:?}");
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
