//! Brings clean ink to the size of the training images, with strokes as wide as theirs.
//!
//! Where stroke width and symbol size are in the training images' proportion, the ink is only scaled, which keeps its
//! shapes best: soft edges show even gaps narrower than a pixel. Otherwise its centre lines are scaled by the symbol size
//! and redrawn with a pen of 3 by 3 pixels.

use std::cell::OnceCell;

use super::parts::{Part, Parts, stroke_width};
use super::shape::centre_lines;
use super::strength::Strength;
use super::{Mask, Work};
use crate::components::mean_height;
use crate::error::Result;
use crate::image::Image;
use crate::mapping::Mapping;

/// What the mean height of the connected parts of a training image is, pen taken off: measured on CROHME.
const MEAN_HEIGHT: f32 = 30.5;
/// What [`stroke_width`] says of training images that come back from a photograph, at their own size.
const STROKE_WIDTH: f32 = 3.1;
/// Up to this ratio of the scales by width and by height, they are taken to agree.
const AGREEMENT: f32 = 1.6;
/// Pixels around the ink that belong to its soft edge.
const EDGE: usize = 2;
/// How much steeper edges become than scaling leaves them: training images have hard ones, and soft ones where they
/// were scaled; a gap too narrow for hard edges still shows in soft ones.
const STEEPNESS: f32 = 3.0;
/// Pixels from the edge of the image to the middle of the pen where it comes closest.
const MARGIN: usize = 13;
/// Longest side of the result.
const LONGEST_SIDE: f32 = 4096.0;
/// Most pixels of the result: more are averaged away before the model reads them.
const MOST_PIXELS: f32 = 2_000_000.0;

/// Ink that is brought to size, with what all sizes have in common.
pub struct Redrawing<'a> {
    mask: &'a Mask,
    strength: &'a Strength,
    /// What ink has at least.
    level: f32,
    list: Vec<Part>,
    /// Width of the strokes.
    pen: f32,
    soft: OnceCell<Soft>,
    lines: OnceCell<Mask>,
}

/// The rectangle that ink fills, with soft edges.
struct Soft {
    left: usize,
    top: usize,
    width: usize,
    values: Vec<f32>,
}

impl<'a> Redrawing<'a> {
    /// The ink of some parts: `mask` has no other, and `level` is what its pixels have at least. `None` without ink.
    pub fn new(
        mask: &'a Mask,
        (parts, kept): (&Parts, &[bool]),
        strength: &'a Strength,
        level: f32,
    ) -> Option<Self> {
        let pen = parts.stroke_width(kept)?;
        let list = parts.list.iter().zip(kept).filter(|(_, kept)| **kept).map(|(part, _)| *part).collect();
        Some(Self { mask, strength, level, list, pen, soft: OnceCell::new(), lines: OnceCell::new() })
    }

    /// The ink as a training image, and how it is mapped there; `None` without ink. `size` is 1 for the training images' size.
    pub fn at(&self, size: f32, work: &Work) -> Result<Option<(Image, Mapping)>> {
        let Self { mask, pen, .. } = *self;
        let (by_height, by_width) = (size * scale_by_height(&self.list, pen), size * STROKE_WIDTH / pen);
        let side = (LONGEST_SIDE - 2.0 * MARGIN as f32) / mask.width.max(mask.height) as f32;
        let most = side.min((MOST_PIXELS / (mask.width * mask.height) as f32).sqrt());
        if (by_height / by_width).max(by_width / by_height) <= AGREEMENT {
            let soft = filled(&self.soft, || self.soft(work))?;
            scaled(soft, (by_height * by_width).sqrt().min(most), work).map(Some)
        } else {
            let lines = filled(&self.lines, || centre_lines(mask, work))?;
            redrawn(lines, by_height.min(most), work)
        }
    }

    /// Beside the ink its soft edge counts, up to the half strength that ink begins with: what is stronger was removed.
    fn soft(&self, work: &Work) -> Result<Soft> {
        let Self { mask, strength, level, ref list, .. } = *self;
        let range = |range: fn(&Part) -> (usize, usize)| span(list.iter().map(range)).unwrap_or((0, 0));
        let ((left, right), (top, bottom)) = (range(|part| part.columns), range(|part| part.rows));
        let near = grown(mask, EDGE);
        let soft = |at: usize| {
            let most = if mask.ink[at] { 1.0 } else { 0.5 };
            if near[at] { (strength.values[at] / (2.0 * level)).min(most) } else { 0.0 }
        };
        let width = right - left + 1;
        let mut values: Vec<f32> = Vec::with_capacity(width * (bottom - top + 1));
        for row in top..=bottom {
            values.extend((row * mask.width + left..=row * mask.width + right).map(soft));
            work.spend(width)?;
        }
        Ok(Soft { left, top, width, values })
    }
}

/// What a cell holds, made when it is first asked for.
fn filled<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if cell.get().is_none() {
        let _ = cell.set(make()?);
    }
    Ok(cell.get().expect("it was filled"))
}

/// The ink scaled as it is, with soft edges.
fn scaled(soft: &Soft, factor: f32, work: &Work) -> Result<(Image, Mapping)> {
    let Soft { left, top, width: wide, ref values } = *soft;
    let high = values.len() / wide;
    let side = |length: usize| ((length as f32 * factor).round() as usize).max(1);
    let (across, down) = (side(wide), side(high));
    // The mean over the area of each pixel: first across, then down.
    let narrow: Vec<f32> = values.chunks(wide).flat_map(|row| area_means(row, across)).collect();
    work.spend(values.len() + narrow.len())?;
    let narrow = turned(&narrow, across, high);
    let means: Vec<f32> = narrow.chunks(high).flat_map(|column| area_means(column, down)).collect();
    work.spend(narrow.len() + means.len())?;
    let means = turned(&means, down, across);
    // Half of the full strength makes a pixel ink, or what brings the strokes closest to the training images' 3 pixels.
    let mut best = (f32::INFINITY, 0.5);
    for least in [0.5, 0.6, 0.4, 0.7, 0.3] {
        let ink = means.iter().map(|&mean| mean >= least).collect();
        let width = stroke_width(&Mask { width: across, height: down, ink }, work)?;
        let off = width.map_or(f32::INFINITY, |width| (width - 3.0).abs());
        if off < best.0 {
            best = (off, least);
        }
    }
    let (width, height) = (across + 2 * MARGIN - 3, down + 2 * MARGIN - 3);
    let mut pixels = vec![0; width * height];
    for (at, mean) in means.into_iter().enumerate() {
        let level = 0.5 + (mean - best.1) * STEEPNESS;
        pixels[(at / across + MARGIN - 1) * width + at % across + MARGIN - 1] =
            (level.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
    }
    let scale = [across as f64 / wide as f64, down as f64 / high as f64];
    let margin = (MARGIN - 1) as f64;
    let mapping = Mapping::new(scale, [margin - left as f64 * scale[0], margin - top as f64 * scale[1]]);
    Ok((Image::new(width, height, pixels)?, mapping))
}

/// The first and the last of all.
fn span(ranges: impl Iterator<Item = (usize, usize)>) -> Option<(usize, usize)> {
    ranges.reduce(|all, range| (all.0.min(range.0), all.1.max(range.1)))
}

/// The pixels within `reach` of ink, across and down.
pub(super) fn grown(mask: &Mask, reach: usize) -> Vec<bool> {
    let Mask { width, height, ref ink } = *mask;
    let mut across = vec![false; ink.len()];
    for (row, target) in ink.chunks(width).zip(across.chunks_mut(width)) {
        for offset in 0..(reach + 1).min(width) {
            target[offset..].iter_mut().zip(row).for_each(|(near, &ink)| *near |= ink);
            target.iter_mut().zip(&row[offset..]).for_each(|(near, &ink)| *near |= ink);
        }
    }
    let mut both = vec![false; ink.len()];
    for (row, target) in both.chunks_mut(width).enumerate() {
        for from in row.saturating_sub(reach)..(row + reach + 1).min(height) {
            target.iter_mut().zip(&across[from * width..][..width]).for_each(|(near, &ink)| *near |= ink);
        }
    }
    both
}

/// A line of values brought to another length: means over the stretches that the new values cover.
fn area_means(line: &[f32], length: usize) -> impl Iterator<Item = f32> {
    let ratio = line.len() as f32 / length as f32;
    (0..length).map(move |at| {
        let (start, end) = (at as f32 * ratio, (at + 1) as f32 * ratio);
        let first = (start as usize).min(line.len() - 1);
        let whole = end as usize;
        let last = (whole + usize::from(end > whole as f32)).clamp(first + 1, line.len());
        let (mut sum, mut weights) = (0.0, 0.0);
        for (index, value) in line[first..last].iter().enumerate() {
            let place = (first + index) as f32;
            let weight = (end.min(place + 1.0) - start.max(place)).max(0.0);
            sum += weight * value;
            weights += weight;
        }
        if weights > 0.0 { sum / weights } else { line[first] }
    })
}

/// Rows become columns.
pub(super) fn turned(values: &[f32], width: usize, height: usize) -> Vec<f32> {
    const BLOCK: usize = 16;
    let mut result = vec![0.0; values.len()];
    for top in (0..height).step_by(BLOCK) {
        for left in (0..width).step_by(BLOCK) {
            for row in top..(top + BLOCK).min(height) {
                for column in left..(left + BLOCK).min(width) {
                    result[column * height + row] = values[row * width + column];
                }
            }
        }
    }
    result
}

/// Centre lines, scaled and drawn with the training images' pen; `None` without ink.
fn redrawn(lines: &Mask, factor: f32, work: &Work) -> Result<Option<(Image, Mapping)>> {
    let points: Vec<(usize, usize)> = (0..lines.ink.len())
        .filter(|&at| lines.ink[at])
        .map(|at| (at % lines.width, at / lines.width))
        .collect();
    let Some((left, right)) = span(points.iter().map(|point| (point.0, point.0))) else { return Ok(None) };
    let Some((top, bottom)) = span(points.iter().map(|point| (point.1, point.1))) else { return Ok(None) };
    let scale = |value: usize, least: usize| ((value - least) as f32 * factor).round() as usize + MARGIN;
    let width = scale(right, left) + MARGIN;
    let height = scale(bottom, top) + MARGIN;
    let mut pixels = vec![0; width * height];
    let mut dot = |x: usize, y: usize| {
        for row in y - 1..y + 2 {
            pixels[row * width + x - 1..row * width + x + 2].fill(255);
        }
    };
    for &(x, y) in &points {
        work.spend(1)?;
        let from = (scale(x, left), scale(y, top));
        dot(from.0, from.1);
        // Neighbours to the right and below; those to the left and above have drawn their line here.
        for (across, down) in [(1isize, 0usize), (0, 1), (1, 1), (-1, 1)] {
            let Some(column) = x.checked_add_signed(across).filter(|&column| column < lines.width) else {
                continue;
            };
            let row = y + down;
            if row < lines.height && lines.ink[row * lines.width + column] {
                let to = (scale(column, left), scale(row, top));
                let steps = from.0.abs_diff(to.0).max(to.1 - from.1);
                for step in 1..steps {
                    let along =
                        |from: usize, to: usize| (from * (steps - step) + to * step + steps / 2) / steps;
                    dot(along(from.0, to.0), along(from.1, to.1));
                }
            }
        }
    }
    // The middle of a pixel goes to the middle of one.
    let offset = |least: usize| MARGIN as f64 + 0.5 - (least as f64 + 0.5) * f64::from(factor);
    let mapping = Mapping::new([f64::from(factor); 2], [offset(left), offset(top)]);
    Ok(Some((Image::new(width, height, pixels)?, mapping)))
}

/// What brings the symbols to the size of those of the training images.
fn scale_by_height(parts: &[Part], pen: f32) -> f32 {
    let side = |length: usize| f64::from((length as f32 - pen).max(0.0));
    let sizes: Vec<(f64, f64)> = parts.iter().map(|part| (side(part.width()), side(part.height()))).collect();
    let mean = mean_height(&sizes) as f32;
    if mean > 0.0 { MEAN_HEIGHT / mean } else { STROKE_WIDTH / pen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_cover_the_whole_line() {
        let line = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        for (length, expected) in
            [(1, vec![2.5]), (2, vec![1.0, 4.0]), (4, vec![1.0 / 3.0, 5.0 / 3.0, 10.0 / 3.0, 14.0 / 3.0])]
        {
            let found: Vec<f32> = area_means(&line, length).collect();
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
        }
        assert_eq!(area_means(&[1.0, 3.0], 4).collect::<Vec<_>>(), [1.0, 1.0, 3.0, 3.0]);
    }

    #[test]
    fn ink_grows_by_its_reach() {
        let mut ink = vec![false; 9 * 7];
        ink[3 * 9 + 1] = true;
        let near = grown(&Mask { width: 9, height: 7, ink }, 2);
        for (at, near) in near.into_iter().enumerate() {
            assert_eq!(near, (0..4).contains(&(at % 9)) && (1..6).contains(&(at / 9)), "{at}");
        }
    }

    #[test]
    fn rows_become_columns() {
        let values: Vec<f32> = (0..35 * 20).map(|at| at as f32).collect();
        let other = turned(&values, 35, 20);
        assert_eq!((other[1], other[20]), (35.0, 1.0));
        assert_eq!(turned(&other, 20, 35), values);
    }
}
