//! The connected parts of ink, with the stroke width of each, in one pass over the image.

use std::ops::Range;

use super::{Mask, Work};
use crate::error::Result;

/// Connected ink: pixels that touch, diagonals included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First and last column.
    pub columns: (usize, usize),
    /// First and last row.
    pub rows: (usize, usize),
    /// Pixels of ink.
    pub pixels: usize,
}

impl Part {
    /// Columns from the first to the last.
    pub fn width(&self) -> usize {
        self.columns.1 - self.columns.0 + 1
    }

    /// Rows from the first to the last.
    pub fn height(&self) -> usize {
        self.rows.1 - self.rows.0 + 1
    }
}

/// The parts of a mask, by their first pixel in reading order.
pub struct Parts {
    /// The parts.
    pub list: Vec<Part>,
    /// The ink in reading order, and the number of its part.
    pub runs: Vec<(Run, u32)>,
    width: usize,
    height: usize,
    /// For each pixel of ink the shorter of the runs of ink through it, across and down.
    shorter: Vec<u16>,
}

/// Ink of one row without a gap.
#[derive(Clone, Copy)]
pub struct Run {
    /// Its row.
    pub row: u32,
    /// First column.
    pub first: u32,
    /// The column after the last one.
    pub end: u32,
}

impl Run {
    /// The places of its pixels in an image of a width.
    pub fn places(self, width: usize) -> Range<usize> {
        let start = self.row as usize * width;
        start + self.first as usize..start + self.end as usize
    }
}

impl Parts {
    /// The parts of a mask.
    pub fn of(mask: &Mask, work: &Work) -> Result<Self> {
        let Mask { width, height, ref ink } = *mask;
        // Runs that touch those of the row above are joined: each with one that comes before it, or itself.
        let mut all: Vec<(Run, u32)> = Vec::new();
        let mut joined: Vec<u32> = Vec::new();
        let mut above = 0..0;
        for (row, ink) in ink.chunks(width).enumerate() {
            let start = all.len();
            let mut next = above.start;
            for (first, end) in runs(ink) {
                let (own, first, end) = (all.len() as u32, first as u32, end as u32);
                joined.push(own);
                while next < above.end && all[next].0.end < first {
                    next += 1;
                }
                for other in (next..above.end).take_while(|&other| all[other].0.first <= end) {
                    join(&mut joined, own, other as u32);
                }
                all.push((Run { row: row as u32, first, end }, 0));
            }
            work.spend(width + 4 * (all.len() - start))?;
            above = start..all.len();
        }
        let mut list: Vec<Part> = Vec::new();
        for at in 0..all.len() {
            let root = root(&mut joined, at as u32) as usize;
            let run = all[at].0;
            let (row, first, last) = (run.row as usize, run.first as usize, run.end as usize - 1);
            if root == at {
                all[at].1 = list.len() as u32;
                list.push(Part { columns: (first, last), rows: (row, row), pixels: 0 });
            }
            let number = all[root].1;
            all[at].1 = number;
            let part = &mut list[number as usize];
            part.columns = (part.columns.0.min(first), part.columns.1.max(last));
            part.rows.1 = row;
            part.pixels += last + 1 - first;
            work.spend(last + 1 - first)?;
        }
        Ok(Self { list, runs: all, width, height, shorter: shorter_runs(mask, work)? })
    }

    /// The pixels of the parts that are kept.
    pub fn mask(&self, keep: &[bool]) -> Mask {
        self.mask_within((0, self.width), (0, self.height), |part| keep[part])
    }

    /// The pixels of the parts that are kept, in some columns and rows.
    pub fn mask_within(
        &self,
        (left, right): (usize, usize),
        (top, bottom): (usize, usize),
        keep: impl Fn(usize) -> bool,
    ) -> Mask {
        let (width, height) = (right - left, bottom - top);
        let mut ink = vec![false; width * height];
        let from = self.runs.partition_point(|(run, _)| (run.row as usize) < top);
        for &(run, part) in self.runs[from..].iter().take_while(|(run, _)| (run.row as usize) < bottom) {
            let (first, end) = ((run.first as usize).max(left), (run.end as usize).min(right));
            if first < end && keep(part as usize) {
                let row = (run.row as usize - top) * width;
                ink[row + first - left..row + end - left].fill(true);
            }
        }
        Mask { width, height, ink }
    }

    /// The stroke width of some parts together (see [`stroke_width`]).
    pub fn stroke_width(&self, counted: &[bool]) -> Option<f32> {
        let mut counts = Counts::default();
        for &(run, _) in self.runs.iter().filter(|(_, part)| counted[*part as usize]) {
            self.shorter[run.places(self.width)].iter().for_each(|&length| counts.add(length));
        }
        counts.low_mean()
    }

    /// The stroke width of each of some parts; zero for the others.
    pub fn stroke_widths(&self, measured: &[bool]) -> Vec<f32> {
        let mut counts: Vec<Counts> = vec![Counts::default(); self.list.len()];
        for &(run, part) in self.runs.iter().filter(|(_, part)| measured[*part as usize]) {
            let counts = &mut counts[part as usize];
            self.shorter[run.places(self.width)].iter().for_each(|&length| counts.add(length));
        }
        counts.into_iter().map(|counts| counts.low_mean().unwrap_or(0.0)).collect()
    }
}

/// Width of the pen in pixels; `None` without ink. Strokes that run across or down show it: there the shorter of the
/// runs of ink through a pixel, across and down, is the pen's width, and elsewhere it is longer. So the low end of the
/// shorter runs is taken, without the lowest tenth, which is noise.
pub fn stroke_width(mask: &Mask, work: &Work) -> Result<Option<f32>> {
    let mut counts = Counts::default();
    shorter_runs(mask, work)?.into_iter().filter(|&run| run > 0).for_each(|run| counts.add(run));
    Ok(counts.low_mean())
}

/// For each pixel of ink the shorter of the runs of ink through it, across and down; zero elsewhere.
fn shorter_runs(mask: &Mask, work: &Work) -> Result<Vec<u16>> {
    let Mask { width, height, ref ink } = *mask;
    // The ink above each pixel, itself included; then, from below, the whole run.
    let mut lengths = vec![0u16; ink.len()];
    for row in 0..height {
        let (above, own) = lengths[..(row + 1) * width].split_at_mut(row * width);
        let above = above.rchunks(width).next();
        for (column, (length, &ink)) in own.iter_mut().zip(&ink[row * width..]).enumerate() {
            let above = above.map_or(0, |above| above[column]);
            *length = if ink { above.saturating_add(1) } else { 0 };
        }
    }
    work.spend(2 * ink.len())?;
    for row in (1..height).rev() {
        let (above, below) = lengths.split_at_mut(row * width);
        let above = &mut above[(row - 1) * width..];
        for (above, &below) in above.iter_mut().zip(&below[..width]) {
            *above = if *above > 0 && below > 0 { below } else { *above };
        }
    }
    for (ink, lengths) in ink.chunks(width).zip(lengths.chunks_mut(width)) {
        for (first, end) in runs(ink) {
            let across = (end - first).min(usize::from(u16::MAX)) as u16;
            lengths[first..end].iter_mut().for_each(|length| *length = (*length).min(across));
        }
    }
    work.spend(2 * ink.len())?;
    Ok(lengths)
}

/// The runs of ink of a row: first column, and the one after the last.
fn runs(row: &[bool]) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let first = from + row[from..].iter().position(|&ink| ink)?;
        let end = row[first..].iter().position(|&ink| !ink).map_or(row.len(), |length| first + length);
        from = end;
        Some((first, end))
    })
}

/// The first of those that are joined with one.
fn root(joined: &mut [u32], mut at: u32) -> u32 {
    while joined[at as usize] != at {
        let next = joined[joined[at as usize] as usize];
        joined[at as usize] = next;
        at = next;
    }
    at
}

fn join(joined: &mut [u32], one: u32, other: u32) {
    let (one, other) = (root(joined, one), root(joined, other));
    joined[one.max(other) as usize] = one.min(other);
}

/// How often each length occurs.
#[derive(Clone, Default)]
struct Counts(Vec<usize>);

impl Counts {
    fn add(&mut self, length: u16) {
        let length = usize::from(length);
        if length >= self.0.len() {
            self.0.resize(length + 1, 0);
        }
        self.0[length] += 1;
    }

    /// The mean of the lengths between the lowest tenth and the lowest three tenths; of all, where there are few.
    fn low_mean(&self) -> Option<f32> {
        let total: usize = self.0.iter().sum();
        let (first, last) = (total / 10, total * 3 / 10);
        let (first, last) = if first == last { (0, total) } else { (first, last) };
        let (mut before, mut sum) = (0, 0);
        for (length, &count) in self.0.iter().enumerate() {
            let inside = (before + count).min(last).saturating_sub(before.max(first));
            sum += length * inside;
            before += count;
        }
        (total > 0).then(|| sum as f32 / (last - first) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> Mask {
        let rows: Vec<&str> = text.split_whitespace().collect();
        let ink = rows.concat().bytes().map(|byte| byte == b'#').collect();
        Mask { width: rows[0].len(), height: rows.len(), ink }
    }

    #[test]
    fn parts_are_pixels_that_touch() {
        let parts = Parts::of(&mask("##....#. .#...#.. ..#..... #......#"), &Work::new(&|| Ok(()))).unwrap();
        let found: Vec<_> = parts.list.iter().map(|part| (part.columns, part.rows, part.pixels)).collect();
        assert_eq!(
            found,
            [((0, 2), (0, 2), 4), ((5, 6), (0, 1), 2), ((0, 0), (3, 3), 1), ((7, 7), (3, 3), 1)]
        );
        assert_eq!(parts.mask(&[false, true, false, false]).ink.iter().filter(|&&ink| ink).count(), 2);
        let cut = parts.mask_within((1, 7), (1, 3), |part| part == 0);
        assert_eq!(cut.ink, mask("#..... .#....").ink);
    }

    #[test]
    fn strokes_are_as_wide_as_their_pen() {
        let bar = mask("........ .######. .######. ........");
        assert_eq!(stroke_width(&bar, &Work::new(&|| Ok(()))).unwrap(), Some(2.0));
        let blank = Mask { width: 3, height: 2, ink: vec![false; 6] };
        assert_eq!(stroke_width(&blank, &Work::new(&|| Ok(()))).unwrap(), None);
        let both = mask("######.##### ......#####. ......#####.");
        let parts = Parts::of(&both, &Work::new(&|| Ok(()))).unwrap();
        assert_eq!(parts.list.len(), 1, "diagonals touch");
        assert_eq!(parts.stroke_widths(&[true]), [1.0]);
    }

    #[test]
    fn the_low_end_is_counted_exactly() {
        let low_mean = |lengths: &[u16]| {
            let mut counts = Counts::default();
            lengths.iter().for_each(|&length| counts.add(length));
            counts.low_mean()
        };
        // The third to the sixth of twenty.
        assert_eq!(low_mean(&(1..=20).collect::<Vec<_>>()), Some(4.5));
        assert_eq!(low_mean(&[5, 7]), Some(6.0));
        assert_eq!(low_mean(&[]), None);
    }
}
