//! The connected parts of ink, with the stroke width of each, in one pass over the image.

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
    /// For each pixel the number of its part, counted from one, or zero.
    pub labels: Vec<u32>,
    width: usize,
    height: usize,
    /// For each pixel of ink the shorter of the runs of ink through it, across and down.
    runs: Vec<u16>,
}

impl Parts {
    /// The parts of a mask.
    pub fn of(mask: &Mask, work: &Work) -> Result<Self> {
        let Mask { width, height, ref ink } = *mask;
        let mut labels = vec![0u32; ink.len()];
        let mut list = Vec::new();
        let mut stack = Vec::new();
        for start in 0..ink.len() {
            if start % width == 0 {
                work.spend(width)?;
            }
            if !ink[start] || labels[start] != 0 {
                continue;
            }
            let label = list.len() as u32 + 1;
            let mut part = Part { columns: (usize::MAX, 0), rows: (usize::MAX, 0), pixels: 0 };
            labels[start] = label;
            stack.push(start);
            while let Some(at) = stack.pop() {
                let (x, y) = (at % width, at / width);
                part.columns = (part.columns.0.min(x), part.columns.1.max(x));
                part.rows = (part.rows.0.min(y), part.rows.1.max(y));
                part.pixels += 1;
                if part.pixels.is_multiple_of(4096) {
                    work.spend(4096)?;
                }
                for row in y.saturating_sub(1)..(y + 2).min(height) {
                    for column in x.saturating_sub(1)..(x + 2).min(width) {
                        let neighbour = row * width + column;
                        if ink[neighbour] && labels[neighbour] == 0 {
                            labels[neighbour] = label;
                            stack.push(neighbour);
                        }
                    }
                }
            }
            list.push(part);
        }
        Ok(Self { list, labels, width, height, runs: shorter_runs(mask, work)? })
    }

    /// The pixels of the parts that are kept.
    pub fn mask(&self, keep: &[bool]) -> Mask {
        let ink = self.labels.iter().map(|&label| label > 0 && keep[label as usize - 1]).collect();
        Mask { width: self.width, height: self.height, ink }
    }

    /// The stroke width of some parts together (see [`stroke_width`]).
    pub fn stroke_width(&self, counted: &[bool]) -> Option<f32> {
        let runs = self.labels.iter().zip(&self.runs);
        let runs = runs.filter(|(label, _)| **label > 0 && counted[**label as usize - 1]);
        low_mean(runs.map(|(_, &run)| run))
    }

    /// The stroke width of each of some parts; zero for the others.
    pub fn stroke_widths(&self, measured: &[bool]) -> Vec<f32> {
        let mut runs: Vec<Vec<u16>> = vec![Vec::new(); self.list.len()];
        for (&label, &run) in self.labels.iter().zip(&self.runs) {
            if label > 0 && measured[label as usize - 1] {
                runs[label as usize - 1].push(run);
            }
        }
        runs.into_iter().map(|runs| low_mean(runs.into_iter()).unwrap_or(0.0)).collect()
    }
}

/// Width of the pen in pixels; `None` without ink. Strokes that run across or down show it: there the shorter of the
/// runs of ink through a pixel, across and down, is the pen's width, and elsewhere it is longer. So the low end of the
/// shorter runs is taken, without the lowest tenth, which is noise.
pub fn stroke_width(mask: &Mask, work: &Work) -> Result<Option<f32>> {
    Ok(low_mean(shorter_runs(mask, work)?.into_iter().filter(|&run| run > 0)))
}

/// For each pixel of ink the shorter of the runs of ink through it, across and down; zero elsewhere.
fn shorter_runs(mask: &Mask, work: &Work) -> Result<Vec<u16>> {
    let Mask { width, height, ref ink } = *mask;
    // The ink above each pixel, itself included; then, from below, the whole run.
    let mut runs = vec![0u16; ink.len()];
    for at in 0..ink.len() {
        if ink[at] {
            runs[at] = if at < width { 1 } else { runs[at - width].saturating_add(1) };
        }
    }
    work.spend(2 * ink.len())?;
    for at in (0..ink.len().saturating_sub(width)).rev() {
        if ink[at] && ink[at + width] {
            runs[at] = runs[at + width];
        }
    }
    for row in 0..height {
        let (ink, runs) = (&ink[row * width..][..width], &mut runs[row * width..][..width]);
        let mut start = 0;
        for place in 0..=width {
            if place == width || !ink[place] {
                let length = (place - start).min(usize::from(u16::MAX)) as u16;
                runs[start..place].iter_mut().for_each(|run| *run = (*run).min(length));
                start = place + 1;
            }
        }
    }
    work.spend(2 * ink.len())?;
    Ok(runs)
}

/// The mean of the values between the lowest tenth and the lowest three tenths; of all, where there are few.
fn low_mean(values: impl Iterator<Item = u16>) -> Option<f32> {
    let mut counts: Vec<usize> = Vec::new();
    let mut total = 0;
    for value in values.map(usize::from) {
        if value >= counts.len() {
            counts.resize(value + 1, 0);
        }
        counts[value] += 1;
        total += 1;
    }
    let (first, last) = (total / 10, total * 3 / 10);
    let (first, last) = if first == last { (0, total) } else { (first, last) };
    let (mut before, mut sum) = (0, 0);
    for (value, &count) in counts.iter().enumerate() {
        let inside = (before + count).min(last).saturating_sub(before.max(first));
        sum += value * inside;
        before += count;
    }
    (total > 0).then(|| sum as f32 / (last - first) as f32)
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
        let values: Vec<u16> = (1..=20).collect();
        // The third to the sixth of twenty.
        assert_eq!(low_mean(values.into_iter()), Some(4.5));
        assert_eq!(low_mean([5, 7].into_iter()), Some(6.0));
        assert_eq!(low_mean(std::iter::empty()), None);
    }
}
