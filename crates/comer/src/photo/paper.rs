//! Removes the lines of ruled and squared paper, and leaves fraction bars and minus signs.
//!
//! What tells them apart: a line of the paper runs from one edge of the picture to the other, straight and nearly
//! level, and is fainter than ink or not alone. It is removed where nothing crosses it.

use super::Mask;
use super::light::Strength;

/// Steepest line, as rise over run: paper is seldom photographed more askew.
const STEEPEST: f32 = 0.06;
/// Least share of a line that must be seen: ink and noise hide some of it.
const LEAST_SEEN: f32 = 0.7;
/// Share of a line at each of its ends that must be seen as well as the whole.
const END: f32 = 0.08;
/// Lines at least this much fainter than the ink are the paper's even when there is only one.
const FAINTER: f32 = 0.7;

/// The ink without the lines of the paper; where there would be none left, with them.
pub fn without_lines(mask: &Mask, strength: &Strength) -> Mask {
    let mut cleared = mask.clone();
    clear_across(&mut cleared, strength);
    let mut turned = transposed(&cleared);
    clear_across(&mut turned, &transposed_strength(strength));
    let cleared = transposed(&turned);
    if cleared.ink.contains(&true) { cleared } else { mask.clone() }
}

/// A line that rises from `start` rows down at the left edge.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    start: f32,
    slope: f32,
}

impl Line {
    fn row(self, column: usize) -> isize {
        (self.start + self.slope * column as f32).round() as isize
    }
}

/// Clears the lines that run across.
fn clear_across(mask: &mut Mask, strength: &Strength) {
    let lines = find(mask);
    let typical = |pixels: &mut dyn Iterator<Item = usize>| {
        let mut values: Vec<f32> = pixels.filter(|&at| mask.ink[at]).map(|at| strength.values[at]).collect();
        values.sort_by(f32::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let mut ruled = Vec::new();
    for line in &lines {
        ruled.extend((0..mask.width).filter_map(|column| pixel(mask, line.row(column), column)));
    }
    let mut off = vec![true; mask.ink.len()];
    ruled.iter().for_each(|&at| off[at] = false);
    let ink = typical(&mut (0..mask.ink.len()).filter(|&at| off[at]));
    let faint = typical(&mut ruled.iter().copied()) < FAINTER * ink;
    if lines.len() > 1 || faint {
        for line in lines {
            clear(mask, line);
        }
    }
}

/// The index of a pixel, if it is in the picture.
fn pixel(mask: &Mask, row: isize, column: usize) -> Option<usize> {
    usize::try_from(row).ok().filter(|&row| row < mask.height).map(|row| row * mask.width + column)
}

/// Lines from edge to edge, the best seen first, no two of them touching.
fn find(mask: &Mask) -> Vec<Line> {
    let Mask { width, height, ref ink } = *mask;
    // One pixel up or down makes room for lines that are not quite straight.
    let near: Vec<bool> = (0..ink.len())
        .map(|at| ink[at] || (at >= width && ink[at - width]) || ink.get(at + width) == Some(&true))
        .collect();
    let seen = |line: Line, columns: std::ops::Range<usize>| {
        let length = columns.len().div_ceil(2).max(1) as f32;
        let met = columns
            .step_by(2)
            .filter(|&column| pixel(mask, line.row(column), column).is_some_and(|at| near[at]));
        met.count() as f32 / length >= LEAST_SEEN
    };
    let share = |line: Line| {
        let met =
            (0..width).filter(|&column| pixel(mask, line.row(column), column).is_some_and(|at| near[at]));
        met.count() as f32 / width as f32
    };
    let steps = (STEEPEST * width as f32 / 2.0).ceil() as isize;
    let end = (END * width as f32).ceil() as usize;
    let mut found: Vec<(f32, Line)> = Vec::new();
    for step in -steps..=steps {
        let slope = step as f32 * 2.0 / width as f32;
        for start in 0..height {
            let line = Line { start: start as f32, slope };
            // The ends first: hardly any place but a line of the paper passes.
            if seen(line, 0..end) && seen(line, width - end..width) && seen(line, 0..width) {
                found.push((share(line), line));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lines: Vec<Line> = Vec::new();
    for (_, line) in found {
        let close = |other: &Line| {
            let apart = |column: usize| (line.row(column) - other.row(column)).unsigned_abs();
            apart(0).min(apart(width / 2)).min(apart(width)) <= 6
        };
        if !lines.iter().any(close) {
            lines.push(line);
        }
    }
    lines
}

/// Clears a line where the ink is no thicker than the line itself.
fn clear(mask: &mut Mask, line: Line) {
    let run = |mask: &Mask, column: usize| {
        let middle = [0, -1, 1, -2, 2].map(|off| line.row(column) + off);
        let middle =
            middle.into_iter().find(|&row| pixel(mask, row, column).is_some_and(|at| mask.ink[at]))?;
        let inked = |row: isize| pixel(mask, row, column).is_some_and(|at| mask.ink[at]);
        let first = (0..=middle).rev().take_while(|&row| inked(row)).last()?;
        let last = (middle..mask.height as isize).take_while(|&row| inked(row)).last()?;
        Some((first as usize, last as usize))
    };
    let runs: Vec<Option<(usize, usize)>> = (0..mask.width).map(|column| run(mask, column)).collect();
    let mut lengths: Vec<usize> = runs.iter().flatten().map(|(first, last)| last - first + 1).collect();
    lengths.sort_unstable();
    let Some(&thickness) = lengths.get(lengths.len() / 2) else { return };
    for (column, run) in runs.into_iter().enumerate() {
        if let Some((first, last)) = run
            && (last - first + 1) * 2 <= thickness * 3 + 2
        {
            (first..=last).for_each(|row| mask.ink[row * mask.width + column] = false);
        }
    }
}

/// Rows become columns.
fn transposed(mask: &Mask) -> Mask {
    Mask { width: mask.height, height: mask.width, ink: turn(&mask.ink, mask.width, mask.height) }
}

fn transposed_strength(strength: &Strength) -> Strength {
    let values = turn(&strength.values, strength.width, strength.height);
    Strength { width: strength.height, height: strength.width, values }
}

fn turn<T: Copy>(values: &[T], width: usize, height: usize) -> Vec<T> {
    (0..values.len()).map(|at| values[at % height * width + at / height]).collect()
}
