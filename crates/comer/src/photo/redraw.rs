//! Brings clean ink to the size of the training images, with strokes as wide as theirs.
//!
//! Where stroke width and symbol size are in the training images' proportion, the ink is only scaled, which keeps its
//! shapes best: soft edges show even gaps narrower than a pixel. Otherwise its centre lines are scaled by the symbol size
//! and redrawn with a pen of 3 by 3 pixels.

use super::Mask;
use super::light::Strength;
use super::shape::{centre_lines, stroke_width};
use crate::components::{Component, mean_height};
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

/// The ink as a training image, and how it is mapped there; `None` without ink.
pub fn to_training_size(mask: &Mask, strength: &Strength, level: f32) -> Option<(Image, Mapping)> {
    let (by_height, by_width) = (scale_by_height(mask)?, STROKE_WIDTH / stroke_width(mask)?);
    let most = (LONGEST_SIDE - 2.0 * MARGIN as f32) / mask.width.max(mask.height) as f32;
    if (by_height / by_width).max(by_width / by_height) <= AGREEMENT {
        scaled(mask, strength, level, (by_height * by_width).sqrt().min(most))
    } else {
        redrawn(mask, by_height.min(most))
    }
}

/// The ink scaled as it is, with soft edges; `level` is what its pixels have at least. `None` without ink.
pub fn scaled(mask: &Mask, strength: &Strength, level: f32, factor: f32) -> Option<(Image, Mapping)> {
    let parts = mask.components();
    let left = parts.iter().map(|part| part.columns.0).min()?;
    let right = parts.iter().map(|part| part.columns.1).max()?;
    let top = parts.iter().map(|part| part.rows.0).min()?;
    let bottom = parts.iter().map(|part| part.rows.1).max()?;
    // Beside the ink its soft edge counts, up to the half strength that ink begins with: what is stronger was removed.
    let soft = |row: usize, column: usize| {
        let mut rows = row.saturating_sub(EDGE)..(row + EDGE + 1).min(mask.height);
        let columns = column.saturating_sub(EDGE)..(column + EDGE + 1).min(mask.width);
        let at = row * mask.width + column;
        let near =
            mask.ink[at] || rows.any(|row| mask.ink[row * mask.width..][columns.clone()].contains(&true));
        if near {
            (strength.values[at] / (2.0 * level)).min(if mask.ink[at] { 1.0 } else { 0.5 })
        } else {
            0.0
        }
    };
    let cut: Vec<f32> = (top..=bottom)
        .flat_map(|row| (left..=right).map(move |column| (row, column)))
        .map(|(row, column)| soft(row, column))
        .collect();
    let (wide, high) = (right - left + 1, bottom - top + 1);
    let side = |length: usize| ((length as f32 * factor).round() as usize).max(1);
    let (across, down) = (side(wide), side(high));
    const SAMPLES: usize = 8;
    let source = |pixel: usize, sample: usize, pixels: usize, length: usize| {
        let share = ((pixel * SAMPLES + sample) as f32 + 0.5) / (pixels * SAMPLES) as f32;
        ((share * length as f32) as usize).min(length - 1)
    };
    // The mean of 8 by 8 samples in each pixel.
    let mean = |at: usize| {
        let sample = |sample: usize| {
            let column = source(at % across, sample % SAMPLES, across, wide);
            cut[source(at / across, sample / SAMPLES, down, high) * wide + column]
        };
        (0..SAMPLES * SAMPLES).map(sample).sum::<f32>() / (SAMPLES * SAMPLES) as f32
    };
    let means: Vec<f32> = (0..across * down).map(mean).collect();
    // Half of the full strength makes a pixel ink, or what brings the strokes closest to the training images' 3 pixels.
    let ink = |least: f32| Mask {
        width: across,
        height: down,
        ink: means.iter().map(|&mean| mean >= least).collect(),
    };
    let off = |least: f32| stroke_width(&ink(least)).map_or(f32::INFINITY, |width| (width - 3.0).abs());
    let middle = [0.5, 0.6, 0.4, 0.7, 0.3].into_iter().min_by(|&a, &b| off(a).total_cmp(&off(b)))?;
    let (width, height) = (across + 2 * MARGIN - 3, down + 2 * MARGIN - 3);
    let mut pixels = vec![0; width * height];
    for (at, mean) in means.into_iter().enumerate() {
        let level = 0.5 + (mean - middle) * STEEPNESS;
        pixels[(at / across + MARGIN - 1) * width + at % across + MARGIN - 1] =
            (level.clamp(0.0, 1.0) * 255.0).round() as u8;
    }
    let scale = [across as f64 / wide as f64, down as f64 / high as f64];
    let margin = (MARGIN - 1) as f64;
    let mapping = Mapping::new(scale, [margin - left as f64 * scale[0], margin - top as f64 * scale[1]]);
    Some((Image::new(width, height, pixels).ok()?, mapping))
}

/// The centre lines of the ink, scaled and drawn with the training images' pen; `None` without ink.
pub fn redrawn(mask: &Mask, factor: f32) -> Option<(Image, Mapping)> {
    let lines = centre_lines(mask);
    let points: Vec<(usize, usize)> = (0..lines.ink.len())
        .filter(|&at| lines.ink[at])
        .map(|at| (at % mask.width, at / mask.width))
        .collect();
    let left = points.iter().map(|point| point.0).min()?;
    let top = points.iter().map(|point| point.1).min()?;
    let scale = |value: usize, least: usize| ((value - least) as f32 * factor).round() as usize + MARGIN;
    let width = scale(points.iter().map(|point| point.0).max()?, left) + MARGIN;
    let height = scale(points.iter().map(|point| point.1).max()?, top) + MARGIN;
    let mut pixels = vec![0; width * height];
    let mut dot = |x: usize, y: usize| {
        for row in y - 1..y + 2 {
            pixels[row * width + x - 1..row * width + x + 2].fill(255);
        }
    };
    for &(x, y) in &points {
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
    Some((Image::new(width, height, pixels).ok()?, mapping))
}

/// What brings the symbols to the size of those of the training images; `None` without ink.
pub fn scale_by_height(mask: &Mask) -> Option<f32> {
    let pen = stroke_width(mask)?;
    let size = |part: &Component| {
        let side = |(first, last): (usize, usize)| f64::from(((last - first + 1) as f32 - pen).max(0.0));
        (side(part.columns), side(part.rows))
    };
    let mean = mean_height(&mask.components().iter().map(size).collect::<Vec<_>>()) as f32;
    Some(if mean > 0.0 { MEAN_HEIGHT / mean } else { STROKE_WIDTH / pen })
}
