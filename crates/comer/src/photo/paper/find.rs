//! Finds straight lines that run across an image from edge to edge.

use std::ops::Range;

use super::super::Work;
use super::super::strength::Strength;
use super::ends::Ends;
use crate::error::Result;

/// Steepest line, as rise over run: paper is seldom photographed more askew.
const STEEPEST: f32 = 0.06;
/// Least share of a line that must be seen: ink and noise hide some of it.
const LEAST_SEEN: f32 = 0.7;
/// Share of a line at each of its ends that must be seen as well as the whole.
const END: f32 = 0.08;
/// Columns over which the row of a line is measured.
const STRETCH: usize = 16;
/// Stretches before and after one that its row is averaged over.
const AROUND: usize = 4;
/// Up to this many times the strength of its faintest quarter, a stretch holds nothing but the line.
const INKLESS: f32 = 1.3;
/// Rows that a line may be off a straight one.
const BEND: f32 = 0.75;
/// Where more of the image is dark, it shows no paper.
const DARKEST: f32 = 0.45;
/// Visits of pixels, for each pixel, that the search may take; an image that needs more shows no paper.
const MOST_VISITS: usize = 10;
/// More lines than any paper has.
const MOST_LINES: usize = 160;
/// Places where a line may be, for each line that there may be.
const MOST_PLACES: usize = 100 * MOST_LINES;
/// Columns from one that a line is measured in to the next.
const SPARSE: usize = 4;

/// A line that begins `start` rows down at the left edge and falls by `slope` for each column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    start: f32,
    slope: f32,
}

impl Line {
    fn row(self, column: usize) -> f32 {
        self.start + self.slope * column as f32
    }

    /// The columns in which it is inside an image.
    fn inside(self, width: usize, height: usize) -> Range<usize> {
        let (top, bottom) = (-0.5, height as f32 - 0.5);
        let inside = |column: &usize| (top..bottom).contains(&self.row(*column));
        if self.slope == 0.0 {
            return if inside(&0) { 0..width } else { 0..0 };
        }
        if inside(&0) && inside(&(width - 1)) {
            return 0..width;
        }
        // Where it meets the upper and the lower edge, but for rounding.
        let meets = |row: f32| ((row - self.start) / self.slope).clamp(0.0, width as f32) as usize;
        let (one, other) = (meets(top), meets(bottom));
        let (first, last) = (one.min(other).saturating_sub(2), (one.max(other) + 3).min(width));
        let Some(first) = (first..last).find(inside) else { return 0..0 };
        let last = (first..last).rev().find(inside).unwrap_or(first);
        first..last + 1
    }
}

/// Lines from edge to edge whose pixels have at least a strength of `visible`, no two of them within `pen` pixels. Lines
/// that leave the image above or below count where whole ones run the same way. Gives the row of the middle of each line
/// in every column, to a fraction of a pixel.
pub(super) fn find(strength: &Strength, visible: f32, pen: f32, work: &Work) -> Result<Vec<Vec<f32>>> {
    let Strength { width, height, ref values } = *strength;
    // One pixel up or down allows for lines that are not quite straight.
    let dark = strength.at_least(visible).ink;
    let mut near = dark.clone();
    let either = |(near, &dark): (&mut bool, &bool)| *near |= dark;
    near.iter_mut().skip(width).zip(&dark).for_each(either);
    near.iter_mut().zip(dark.iter().skip(width)).for_each(either);
    work.spend(3 * values.len())?;
    if near.iter().filter(|&&near| near).count() as f32 > DARKEST * values.len() as f32 {
        return Ok(Vec::new());
    }
    // Whether a line is seen in some columns, and in how many of them that was asked.
    let seen = |line: Line, columns: Range<usize>| {
        let (mut misses, mut visits) = (allowed(columns.len()), 0);
        for column in columns.step_by(2) {
            visits += 1;
            // Rounded: the row of a line inside is at least -0.5.
            let row = (line.row(column) + 0.5) as usize;
            if !near[row.min(height - 1) * width + column] {
                if misses == 0 {
                    return (false, visits);
                }
                misses -= 1;
            }
        }
        (true, visits)
    };
    let rise = (STEEPEST * width as f32 / 2.0).ceil() as isize;
    let end = (END * width as f32).ceil() as usize;
    let mut found: Vec<(bool, f32, Line)> = Vec::new();
    let mut visits = 0;
    let mut ends = Ends::new(&near, width, end, allowed(end));
    for step in -rise..=rise {
        let slope = step as f32 * 2.0 / width as f32;
        let whole = |start: &usize| Line { start: *start as f32, slope }.inside(width, height).len() == width;
        let starts = (0..height)
            .find(whole)
            .map_or(0..0, |first| first..(first..height).rev().find(whole).map_or(first, |last| last + 1));
        let mut left_ends = ends.seen(slope, starts);
        for start in -2 * rise..height as isize + 2 * rise {
            let line = Line { start: start as f32, slope };
            let inside = line.inside(width, height);
            let Range { start: first, end: last } = inside;
            if inside.len() < end {
                continue;
            }
            // The ends first: hardly any place but a line of the paper passes.
            let left = if inside.len() == width { left_ends.next() } else { None };
            let (mut met, mut count) = left.unwrap_or_else(|| seen(line, first..first + end));
            for columns in [last - end..last, inside.clone()] {
                if met {
                    let found = seen(line, columns);
                    (met, count) = (found.0, count + found.1);
                }
            }
            work.spend(count)?;
            visits += count;
            if met {
                work.spend(inside.len())?;
                found.push((inside.len() == width, darkness(strength, line, f32::INFINITY), line));
            }
            if visits > MOST_VISITS * values.len() || found.len() > MOST_PLACES {
                return Ok(Vec::new());
            }
        }
    }
    found.sort_by(|a, b| (b.0, b.1).partial_cmp(&(a.0, a.1)).unwrap_or(std::cmp::Ordering::Equal));
    let mut lines: Vec<Line> = Vec::new();
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for (whole, _, line) in found {
        let close = |other: &Line| {
            let apart = |column: usize| (line.row(column) - other.row(column)).abs();
            apart(0).min(apart(width / 2)).min(apart(width)) <= pen.max(3.0)
        };
        if lines.iter().any(close) {
            continue;
        }
        if whole {
            (least, most) = (least.min(line.slope), most.max(line.slope));
        } else if lines.len() < 2
            || line.slope < least - 2.0 / width as f32
            || line.slope > most + 2.0 / width as f32
        {
            continue;
        }
        lines.push(line);
        if lines.len() > MOST_LINES {
            return Ok(Vec::new());
        }
    }
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        work.spend(100 * width)?;
        rows.push(tracked(strength, fitted(strength, line), pen));
    }
    Ok(rows)
}

/// How many of the columns of a line may be missed, of which every other one is looked at: rounded as the share of what is seen is.
fn allowed(columns: usize) -> usize {
    let length = columns.div_ceil(2).max(1);
    length - (LEAST_SEEN * length as f32).ceil() as usize
}

/// The darkest line near a line, to a fraction of a pixel.
fn fitted(strength: &Strength, line: Line) -> Line {
    let width = strength.width as f32;
    // Ink beside the line counts no more than the line.
    let columns = line.inside(strength.width, strength.height).step_by(SPARSE);
    let most = middle(columns.map(|column| around(strength, line, column)).collect());
    let mut best = (darkness(strength, line, most), line);
    for start in -6..=6 {
        for end in -6..=6 {
            let (start, end) = (start as f32 / 4.0, end as f32 / 4.0);
            let near = Line { start: line.start + start, slope: line.slope + (end - start) / width };
            let darkness = darkness(strength, near, most);
            if darkness > best.0 {
                best = (darkness, near);
            }
        }
    }
    best.1
}

/// The row of the middle of a line in every column.
fn tracked(strength: &Strength, line: Line, pen: f32) -> Vec<f32> {
    let Strength { width, height, ref values } = *strength;
    let reach = (pen / 2.0).ceil() as isize + 1;
    let off = |first: usize| {
        let columns = first..(first + STRETCH).min(width);
        let straight = line.row((columns.start + columns.end) / 2);
        let (mut sum, mut moment) = (0.0, 0.0);
        for row in straight.round() as isize - reach..=straight.round() as isize + reach {
            if (0..height as isize).contains(&row) {
                let value =
                    middle(columns.clone().map(|column| values[row as usize * width + column]).collect());
                sum += value;
                moment += value * (row as f32 - straight);
            }
        }
        (sum, if sum > 0.0 { (moment / sum).clamp(-BEND, BEND) } else { 0.0 })
    };
    let measured: Vec<(f32, f32)> = (0..width).step_by(STRETCH).map(off).collect();
    // Ink draws a stretch to its side: those that hold more than the line does have no say.
    let mut sums: Vec<f32> = measured.iter().map(|stretch| stretch.0).collect();
    sums.sort_by(f32::total_cmp);
    let most = INKLESS * sums[sums.len() / 4];
    let bare: Vec<(usize, f32)> = measured
        .iter()
        .enumerate()
        .filter(|(_, stretch)| stretch.0 <= most)
        .map(|(at, stretch)| (at, stretch.1))
        .collect();
    let pairs = bare
        .iter()
        .enumerate()
        .flat_map(|(count, last)| bare[..count].iter().map(move |first| (first, last)));
    let turn = middle(pairs.map(|(first, last)| (last.1 - first.1) / (last.0 - first.0) as f32).collect());
    let steady = |at: usize| {
        let before = bare.partition_point(|stretch| stretch.0 < at);
        let first = before.saturating_sub(AROUND).min(bare.len().saturating_sub(2 * AROUND + 1));
        let around = &bare[first..(first + 2 * AROUND + 1).min(bare.len())];
        middle(around.iter().map(|stretch| stretch.1 - turn * stretch.0 as f32).collect()) + turn * at as f32
    };
    let steady: Vec<f32> = (0..measured.len()).map(steady).collect();
    let row = |column: usize| {
        let place = (column as f32 / STRETCH as f32 - 0.5).clamp(0.0, (steady.len() - 1) as f32);
        let (first, share) = (place as usize, place.fract());
        let last = (first + 1).min(steady.len() - 1);
        line.row(column) + steady[first] * (1.0 - share) + steady[last] * share
    };
    (0..width).map(row).collect()
}

/// The strength along a line, where each column counts up to `most`.
fn darkness(strength: &Strength, line: Line, most: f32) -> f32 {
    let columns = line.inside(strength.width, strength.height).step_by(SPARSE);
    columns.map(|column| around(strength, line, column).min(most)).sum()
}

/// The strength of a line in a column: that of the two rows nearest to it.
fn around(strength: &Strength, line: Line, column: usize) -> f32 {
    let row = line.row(column);
    strength.within_column(column, row - 0.5) + strength.within_column(column, row + 0.5)
}

pub(super) fn middle(mut values: Vec<f32>) -> f32 {
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_inside_where_its_rows_are() {
        for (width, height) in [(1, 1), (2, 40), (300, 20), (5000, 80)] {
            for slope in (-12..=12).map(|step| step as f32 * 2.0 / width as f32) {
                for start in -30..height as i32 + 30 {
                    let line = Line { start: start as f32, slope };
                    let rows = |column: &usize| (-0.5..height as f32 - 0.5).contains(&line.row(*column));
                    let columns: Vec<usize> = (0..width).filter(rows).collect();
                    assert!(line.inside(width, height).eq(columns), "{line:?} {width} x {height}");
                }
            }
        }
    }
}
