//! How strongly each pixel of an image is ink: the threshold, and a finer image of the same ink.

use super::{Mask, Work};
use crate::error::Result;

/// An image with more pixels is worked on at a fraction of its size.
pub const WORKING_PIXELS: usize = 3_000_000;
/// What [`threshold`] is at most: half of the full strength.
pub const MOST_THRESHOLD: f32 = 127.0 / 256.0;
/// Least difference of ink and ground, where 1 is black on white.
const LEAST_CONTRAST: f32 = 0.08;
/// Stroke width, in pixels, that leaves enough room for clean edges.
const COMFORTABLE_WIDTH: f32 = 6.0;
/// Deviation of the smoothing against noise, in stroke widths.
const SMOOTHING: f32 = 0.15;
/// Deviation of the surroundings that a pixel is set off against, in stroke widths.
const SURROUNDINGS: f32 = 0.45;
/// How much a pixel is set off against them.
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

impl Strength {
    /// The pixels that are at least so strong.
    pub fn at_least(&self, level: f32) -> Mask {
        let ink = self.values.iter().map(|&value| value >= level).collect();
        Mask { width: self.width, height: self.height, ink }
    }

    /// A part of the image, given by its first column and row and its size.
    pub fn cut(&self, left: usize, top: usize, width: usize, height: usize) -> Self {
        let mut values = Vec::with_capacity(width * height);
        for row in self.values.chunks(self.width).skip(top).take(height) {
            values.extend_from_slice(&row[left..left + width]);
        }
        Self { width, height, values }
    }

    /// The strength between two pixels of a column, or at the edge for a place outside; as [`Self::between`].
    pub fn within_column(&self, column: usize, row: f32) -> f32 {
        let row = row.clamp(0.0, (self.height - 1) as f32);
        let (top, down) = (row as usize, row - (row as usize) as f32);
        let value = |row: usize| self.values[row * self.width + column];
        value(top) * (1.0 - down) + value((top + 1).min(self.height - 1)) * down
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

/// How many values lie in each of equal steps from 0 to 1.
pub fn counts<const STEPS: usize>(values: &[f32]) -> [u32; STEPS] {
    // Several tables: equal values in a row would wait for one another.
    const TABLES: usize = 4;
    let mut tables = [[0u32; STEPS]; TABLES];
    for values in values.chunks(16 * TABLES) {
        let mut bins = [0u16; 16 * TABLES];
        let bin = |value: f32| (value * STEPS as f32).min((STEPS - 1) as f32) as u16;
        bins.iter_mut().zip(values).for_each(|(target, &value)| *target = bin(value));
        for (at, &bin) in bins[..values.len()].iter().enumerate() {
            tables[at % TABLES][usize::from(bin)] += 1;
        }
    }
    std::array::from_fn(|step| tables.iter().map(|table| table[step]).sum())
}

/// How strong ink is at least: half as strong as the strongest of what Otsu's threshold parts from the ground; `None`
/// where ink does not stand out.
pub fn threshold(strength: &Strength) -> Option<f32> {
    const STEPS: usize = 256;
    let counts = counts::<STEPS>(&strength.values).map(f64::from);
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

/// Brings an image to strokes of a comfortable width, smooths out its noise and sharpens what the lens blurred, in
/// proportion to the width of the strokes; gives the enlargement too.
pub fn refine(strength: Strength, stroke_width: f32, work: &Work) -> Result<(Strength, f32)> {
    let wanted = COMFORTABLE_WIDTH / stroke_width;
    let (scaled, factor) = if wanted <= 0.5 {
        let side = (1.0 / wanted) as usize;
        (reduce(&strength, side, work)?, 1.0 / side as f32)
    } else {
        let room =
            (1..=4).find(|factor| strength.values.len() * factor * factor > WORKING_PIXELS).unwrap_or(5) - 1;
        let factor = (wanted.ceil() as usize).clamp(1, room.max(1));
        (enlarge(strength, factor, work)?, factor as f32)
    };
    let width = stroke_width * factor;
    let mut fine = blur(&scaled, SMOOTHING * width, work)?;
    // An unsharp mask: sharp edges keep their place at half strength, narrow gaps and small dots come back.
    let coarse = blur(&fine, SURROUNDINGS * width, work)?;
    // What is faint, as thin lines of the paper are, stays so.
    let least = FAINT * threshold(&fine).unwrap_or(0.0);
    for (value, around) in fine.values.iter_mut().zip(coarse.values) {
        let sharp = (*value + SHARPENING * (*value - around)).max(0.0);
        *value = if *value < least { 0.0 } else { sharp };
    }
    work.spend(2 * fine.values.len())?;
    Ok((fine, factor))
}

/// The means of blocks of pixels.
fn reduce(strength: &Strength, side: usize, work: &Work) -> Result<Strength> {
    let (across, down) = (side.min(strength.width), side.min(strength.height));
    let (width, height) = (strength.width / across, strength.height / down);
    let mut values = vec![0.0; width * height];
    let share = 1.0 / (across * down) as f32;
    for (row, line) in strength.values.chunks(strength.width).take(height * down).enumerate() {
        let target = &mut values[row / down * width..][..width];
        for (value, block) in target.iter_mut().zip(line.chunks_exact(across)) {
            *value += block.iter().sum::<f32>() * share;
        }
        work.spend(strength.width)?;
    }
    Ok(Strength { width, height, values })
}

/// Bilinear enlargement by a whole factor.
fn enlarge(strength: Strength, factor: usize, work: &Work) -> Result<Strength> {
    if factor == 1 {
        return Ok(strength);
    }
    let (width, height) = (strength.width * factor, strength.height * factor);
    let tap = |position: usize, side: usize| {
        let centre = ((position as f32 + 0.5) / factor as f32 - 0.5).clamp(0.0, (side - 1) as f32);
        let first = centre as usize;
        (first, (first + 1).min(side - 1), centre - first as f32)
    };
    let columns: Vec<(usize, usize, f32)> = (0..width).map(|x| tap(x, strength.width)).collect();
    let mut values = Vec::with_capacity(width * height);
    let mut mixed = vec![0.0; strength.width];
    for y in 0..height {
        let (top, bottom, down) = tap(y, strength.height);
        let row = |row: usize| &strength.values[row * strength.width..][..strength.width];
        for (value, (above, below)) in mixed.iter_mut().zip(row(top).iter().zip(row(bottom))) {
            *value = above * (1.0 - down) + below * down;
        }
        values.extend(
            columns.iter().map(|&(left, right, across)| mixed[left] * (1.0 - across) + mixed[right] * across),
        );
        work.spend(width)?;
    }
    Ok(Strength { width, height, values })
}

/// Gaussian smoothing.
fn blur(strength: &Strength, deviation: f32, work: &Work) -> Result<Strength> {
    let reach = (2.5 * deviation).ceil() as usize;
    let weight = |offset: usize| (-0.5 * ((offset as f32 - reach as f32) / deviation).powi(2)).exp();
    let sum: f32 = (0..=2 * reach).map(weight).sum();
    let weights: Vec<f32> = (0..=2 * reach).map(|offset| weight(offset) / sum).collect();
    let Strength { width, height, ref values } = *strength;
    let add = |into: &mut [f32], from: &[f32], weight: f32| -> Result<()> {
        into.iter_mut().zip(from).for_each(|(into, from)| *into += weight * from);
        work.spend(into.len())
    };
    // Of the rows that are smoothed across, only those that the next one needs are kept.
    let mut across = vec![0.0; (2 * reach + 1) * width];
    let place = |row: usize| row % (2 * reach + 1) * width;
    let mut line = vec![0.0; width + 2 * reach];
    let mut rows = values.chunks(width).enumerate();
    let mut both = vec![0.0; values.len()];
    for (row, target) in both.chunks_mut(width).enumerate() {
        for (from, values) in rows.by_ref().take(if row == 0 { reach + 1 } else { 1 }) {
            line[..reach].fill(values[0]);
            line[reach..reach + width].copy_from_slice(values);
            line[reach + width..].fill(values[width - 1]);
            let target = &mut across[place(from)..][..width];
            target.fill(0.0);
            for (offset, &weight) in weights.iter().enumerate() {
                add(target, &line[offset..][..width], weight)?;
            }
        }
        for (offset, &weight) in weights.iter().enumerate() {
            let from = (row + offset).saturating_sub(reach).min(height - 1);
            add(target, &across[place(from)..][..width], weight)?;
        }
    }
    Ok(Strength { width, height, values: both })
}

/// How uneven the ground is: the mean strength of what is not ink, as a share of the threshold.
pub fn noise(strength: &Strength, level: f32) -> f32 {
    let ground = strength.values.iter().filter(|&&value| value < 0.5 * level);
    let (count, sum) =
        ground.fold((0usize, 0f64), |(count, sum), &value| (count + 1, sum + f64::from(value)));
    (sum / count.max(1) as f64) as f32 / level
}
