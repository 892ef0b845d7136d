//! Brings clean ink to the size of the training images, with strokes as wide as theirs.
//!
//! The centre lines of the ink are scaled by the size of the symbols and drawn with a pen of 3 by 3 pixels. The width of the
//! strokes does not count: pens are thin or thick whatever the size of the writing.

use super::parts::{Part, Parts};
use super::shape::centre_lines;
use super::{Mask, Work};
use crate::components::mean_height;
use crate::error::Result;
use crate::image::Image;
use crate::mapping::Mapping;

/// What the mean height of the connected parts comes to, pen taken off. Of the strokes of training images it is 28 pixels
/// and of their parts 29, where strokes touch; scans have strokes in pieces.
const MEAN_HEIGHT: f32 = 27.5;
/// What a pen comes to where nothing has a height.
const STROKE_WIDTH: f32 = 3.1;
/// Pixels from the edge of the image to the middle of the pen where it comes closest.
const MARGIN: usize = 13;
/// Longest side of the result.
const LONGEST_SIDE: f32 = 4096.0;
/// Most pixels of the result: more are averaged away before the model reads them.
const MOST_PIXELS: f32 = 2_000_000.0;

/// The ink as a training image, and how it is mapped there; `None` without ink.
pub fn to_training_size(mask: &Mask, work: &Work) -> Result<Option<(Image, Mapping)>> {
    let parts = Parts::of(mask, work)?;
    let Some(pen) = parts.stroke_width(&vec![true; parts.list.len()]) else { return Ok(None) };
    let side = (LONGEST_SIDE - 2.0 * MARGIN as f32) / mask.width.max(mask.height) as f32;
    let most = side.min((MOST_PIXELS / (mask.width * mask.height) as f32).sqrt());
    redrawn(mask, scale_by_height(&parts.list, pen).min(most), work)
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

/// The centre lines of the ink, scaled and drawn with the training images' pen; `None` without ink.
fn redrawn(mask: &Mask, factor: f32, work: &Work) -> Result<Option<(Image, Mapping)>> {
    let lines = centre_lines(mask, work)?;
    let points: Vec<(usize, usize)> = (0..lines.ink.len())
        .filter(|&at| lines.ink[at])
        .map(|at| (at % mask.width, at / mask.width))
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
            let Some(column) = x.checked_add_signed(across).filter(|&column| column < mask.width) else {
                continue;
            };
            let row = y + down;
            if row < mask.height && lines.ink[row * mask.width + column] {
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
