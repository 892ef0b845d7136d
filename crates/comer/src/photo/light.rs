//! Finds which side of the grey levels is ink, takes uneven light out, and decides what is ink.

use super::{Grey, Mask};
use crate::mapping::Mapping;

/// An image with more pixels is worked on at a fraction of its size.
const WORKING_PIXELS: usize = 3_000_000;
/// Side of the windows in which the ground is measured, as a share of the image's shorter side.
const WINDOWS: usize = 6;
/// Least window side in pixels: several times the distance of strokes.
const LEAST_WINDOW: usize = 24;
/// Least difference of ink and ground, where 1 is black on white.
const LEAST_CONTRAST: f32 = 0.08;
/// Stroke width, in pixels, that leaves enough room for clean edges.
const COMFORTABLE_WIDTH: f32 = 6.0;

/// Deviation of the smoothing against noise, in stroke widths.
const SMOOTHING: f32 = 0.15;
/// Deviation of the surroundings that a pixel is set off against, in stroke widths.
const SURROUNDINGS: f32 = 0.45;
/// How much a pixel is set off against its surroundings.
const SHARPENING: f32 = 2.0;
/// Share of the threshold that a pixel must reach without being set off.
const FAINT: f32 = 0.8;

/// How strongly each pixel is ink, from 0 for the ground to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Strength {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The strengths, in rows from the top.
    pub values: Vec<f32>,
}

/// Averages blocks of pixels so that a large image comes to a size that is quick to work on; maps one onto the other.
pub fn shrink(grey: &Grey) -> (Grey, Mapping) {
    let side = (1..).find(|side| grey.levels.len() / (side * side) <= WORKING_PIXELS).unwrap_or(1);
    if side == 1 {
        return (grey.clone(), Mapping::scale(1.0, 1.0));
    }
    let (width, height) = ((grey.width / side).max(1), (grey.height / side).max(1));
    let (across, down) = (side.min(grey.width), side.min(grey.height));
    let block = |x: usize, y: usize| {
        let rows = (0..down).map(|row| &grey.levels[(y * down + row) * grey.width + x * across..][..across]);
        let sum: u32 = rows.flatten().map(|&level| u32::from(level)).sum();
        (sum / (across * down) as u32) as u8
    };
    let levels = (0..width * height).map(|at| block(at % width, at / width)).collect();
    (Grey { width, height, levels }, Mapping::scale(1.0 / across as f64, 1.0 / down as f64))
}

/// Measures the ground around each pixel, finds out whether ink is darker or lighter than it, and gives the distance
/// of each pixel from its ground.
pub fn ink_strength(grey: &Grey) -> Strength {
    let middle = local_quantile(grey, 0.5);
    // Ink is the minority that lies far off the ground, so the third moment has its sign.
    let moment: f64 = grey
        .levels
        .iter()
        .zip(&middle)
        .map(|(&level, ground)| f64::from(f32::from(level) - ground).powi(3))
        .sum();
    let light_ink = moment > 0.0;
    let turned = if light_ink {
        &Grey { levels: grey.levels.iter().map(|level| 255 - level).collect(), ..*grey }
    } else {
        grey
    };
    let ground = local_quantile(turned, 0.7);
    let strength = |(&level, &ground): (&u8, &f32)| ((ground - f32::from(level)) / ground.max(32.0)).max(0.0);
    let values = turned.levels.iter().zip(&ground).map(strength).collect();
    Strength { width: grey.width, height: grey.height, values }
}

/// For each pixel a quantile of the levels around it, measured in windows that overlap by half and interpolated.
fn local_quantile(grey: &Grey, share: f64) -> Vec<f32> {
    let step = (grey.width.min(grey.height) / (2 * WINDOWS)).max(LEAST_WINDOW / 2);
    let nodes = |side: usize| side.div_ceil(step) + 1;
    let (columns, rows) = (nodes(grey.width), nodes(grey.height));
    let span = |node: usize, side: usize| {
        let start = ((node * step).saturating_sub(step)).min(side - 1);
        start..(node * step + step).min(side)
    };
    let mut grid = Vec::with_capacity(columns * rows);
    for row in 0..rows {
        for column in 0..columns {
            let mut counts = [0usize; 256];
            let across = span(column, grey.width);
            for y in span(row, grey.height) {
                for &level in &grey.levels[y * grey.width..][across.clone()] {
                    counts[usize::from(level)] += 1;
                }
            }
            let wanted = (counts.iter().sum::<usize>() as f64 * share) as usize;
            let mut seen = 0;
            let quantile = counts.iter().position(|count| {
                seen += count;
                seen > wanted
            });
            grid.push(quantile.unwrap_or(255) as f32);
        }
    }
    let mut result = Vec::with_capacity(grey.levels.len());
    for y in 0..grey.height {
        let (row, down) = (y / step, (y % step) as f32 / step as f32);
        for x in 0..grey.width {
            let (column, across) = (x / step, (x % step) as f32 / step as f32);
            let node = |column: usize, row: usize| grid[row * columns + column];
            let mix = |row: usize| node(column, row) * (1.0 - across) + node(column + 1, row) * across;
            result.push(mix(row) * (1.0 - down) + mix(row + 1) * down);
        }
    }
    result
}

impl Strength {
    /// The pixels that are at least so strong.
    pub fn at_least(&self, level: f32) -> Mask {
        let ink = self.values.iter().map(|&value| value >= level).collect();
        Mask { width: self.width, height: self.height, ink }
    }

    /// The strength at a place between pixels, or at the edge for a place outside.
    pub fn between(&self, column: f32, row: f32) -> f32 {
        let tap = |place: f32, side: usize| {
            let place = place.clamp(0.0, (side - 1) as f32);
            let first = place as usize;
            (first, (first + 1).min(side - 1), place - first as f32)
        };
        let (left, right, across) = tap(column, self.width);
        let (top, bottom, down) = tap(row, self.height);
        let mix = |row: usize| {
            let row = &self.values[row * self.width..][..self.width];
            row[left] * (1.0 - across) + row[right] * across
        };
        mix(top) * (1.0 - down) + mix(bottom) * down
    }
}

/// How strong ink is at least: half as strong as the strongest of what Otsu's threshold parts from the ground; `None`
/// where ink does not stand out.
pub fn threshold(strength: &Strength) -> Option<f32> {
    const STEPS: usize = 256;
    let bin = |value: f32| ((value * STEPS as f32) as usize).min(STEPS - 1);
    let mut counts = [0.0f64; STEPS];
    strength.values.iter().for_each(|&value| counts[bin(value)] += 1.0);
    let total: f64 = counts.iter().sum();
    let sum: f64 = counts.iter().enumerate().map(|(step, count)| step as f64 * count).sum();
    let (mut below, mut sum_below) = (0.0, 0.0);
    let mut best = (0.0, 0, 0.0);
    for (step, count) in counts.iter().enumerate() {
        below += count;
        sum_below += count * step as f64;
        if below == total {
            break;
        }
        if below > 0.0 {
            let (ground, ink) = (sum_below / below, (sum - sum_below) / (total - below));
            let between = below * (total - below) * (ink - ground).powi(2);
            if between > best.0 {
                best = (between, step, (ink - ground) / STEPS as f64);
            }
        }
    }
    let (_, step, contrast) = best;
    if contrast as f32 <= LEAST_CONTRAST {
        return None;
    }
    // Otsu's threshold lies too low where edges are soft. Strokes keep their width at half of their full strength,
    // which their strongest quarter has.
    let ink: f64 = counts[step + 1..].iter().sum();
    let mut above = ink / 4.0;
    let full = (step + 1..STEPS).rev().find(|&step| {
        above -= counts[step];
        above <= 0.0
    });
    Some((full.unwrap_or(step) / 2) as f32 / STEPS as f32)
}

/// Enlarges an image whose strokes are thin, smooths out its noise and sharpens what the lens blurred, in proportion to
/// the width of the strokes; gives the enlargement too.
pub fn refine(strength: &Strength, stroke_width: f32) -> (Strength, usize) {
    let room =
        (1..=4).find(|factor| strength.values.len() * factor * factor > WORKING_PIXELS).unwrap_or(5) - 1;
    let factor = ((COMFORTABLE_WIDTH / stroke_width).ceil() as usize).clamp(1, room.max(1));
    let enlarged = enlarge(strength, factor);
    let width = stroke_width * factor as f32;
    let mut fine = blur(&enlarged, SMOOTHING * width);
    // An unsharp mask: sharp edges keep their place at half strength, narrow gaps and small dots come back.
    let coarse = blur(&fine, SURROUNDINGS * width);
    // What is faint, as thin lines of the paper are, stays so.
    let least = FAINT * threshold(&fine).unwrap_or(0.0);
    for (value, around) in fine.values.iter_mut().zip(coarse.values) {
        let sharp = (*value + SHARPENING * (*value - around)).max(0.0);
        *value = if *value < least { 0.0 } else { sharp };
    }
    (fine, factor)
}

/// Bilinear enlargement by a whole factor.
fn enlarge(strength: &Strength, factor: usize) -> Strength {
    let (width, height) = (strength.width * factor, strength.height * factor);
    let tap = |position: usize, side: usize| {
        let centre = ((position as f32 + 0.5) / factor as f32 - 0.5).clamp(0.0, (side - 1) as f32);
        let first = centre as usize;
        (first, (first + 1).min(side - 1), centre - first as f32)
    };
    let mut values = Vec::with_capacity(width * height);
    for y in 0..height {
        let (top, bottom, down) = tap(y, strength.height);
        for x in 0..width {
            let (left, right, across) = tap(x, strength.width);
            let mix = |row: usize| {
                let row = &strength.values[row * strength.width..];
                row[left] * (1.0 - across) + row[right] * across
            };
            values.push(mix(top) * (1.0 - down) + mix(bottom) * down);
        }
    }
    Strength { width, height, values }
}

/// Gaussian smoothing.
fn blur(strength: &Strength, deviation: f32) -> Strength {
    let reach = (2.5 * deviation).ceil() as isize;
    let weight = |offset: isize| (-0.5 * (offset as f32 / deviation).powi(2)).exp();
    let sum: f32 = (-reach..=reach).map(weight).sum();
    let weights: Vec<f32> = (-reach..=reach).map(|offset| weight(offset) / sum).collect();
    let pass = |values: &[f32], width: usize, height: usize, across: bool| -> Vec<f32> {
        let (side, stride) = if across { (width, 1) } else { (height, width) };
        let mut result = vec![0.0; values.len()];
        for (at, value) in result.iter_mut().enumerate() {
            let place = (if across { at % width } else { at / width }) as isize;
            let line = at - place as usize * stride;
            for (index, weight) in weights.iter().enumerate() {
                let from = (place + index as isize - reach).clamp(0, side as isize - 1) as usize;
                *value += weight * values[line + from * stride];
            }
        }
        result
    };
    let Strength { width, height, ref values } = *strength;
    let values = pass(&pass(values, width, height, true), width, height, false);
    Strength { width, height, values }
}
