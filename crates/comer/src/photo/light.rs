//! Finds which side of the grey levels is ink, takes uneven light out, and decides what is ink.

use super::{Grey, Mask, Work};
use crate::error::Result;
use crate::mapping::Mapping;

/// An image with more pixels is worked on at a fraction of its size.
const WORKING_PIXELS: usize = 3_000_000;
/// Side of the windows in which the ground is first measured, as a share of the image's shorter side.
const WINDOWS: usize = 6;
/// Least window side in pixels: several times the distance of strokes.
const LEAST_WINDOW: usize = 24;
/// Least difference of ink and ground, where 1 is black on white.
const LEAST_CONTRAST: f32 = 0.08;
/// Stroke width, in pixels, that leaves enough room for clean edges.
const COMFORTABLE_WIDTH: f32 = 6.0;
/// What is narrower than twice this many stroke widths is ink; what is wider is ground.
const GROUND_REACH: f32 = 2.5;
/// From this stroke width on, noise is averaged out before the ground is measured.
const SMOOTH_FROM: f32 = 4.0;

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
pub fn shrink(grey: &Grey, work: &Work) -> Result<(Grey, Mapping)> {
    let side = (1..).find(|side| grey.levels.len() / (side * side) <= WORKING_PIXELS).unwrap_or(1);
    shrink_by(grey, side, work)
}

/// Averages blocks of `side` by `side` pixels.
pub fn shrink_by(grey: &Grey, side: usize, work: &Work) -> Result<(Grey, Mapping)> {
    if side == 1 {
        return Ok((grey.clone(), Mapping::scale(1.0, 1.0)));
    }
    let (across, down) = (side.min(grey.width), side.min(grey.height));
    let (width, height) = (grey.width / across, grey.height / down);
    let mut levels = Vec::with_capacity(width * height);
    let mut sums = vec![0u32; width];
    for row in 0..height {
        sums.fill(0);
        for line in grey.levels[row * down * grey.width..].chunks(grey.width).take(down) {
            for (sum, block) in sums.iter_mut().zip(line.chunks_exact(across)) {
                *sum += block.iter().map(|&level| u32::from(level)).sum::<u32>();
            }
        }
        levels.extend(sums.iter().map(|sum| (sum / (across * down) as u32) as u8));
        work.spend(down * grey.width)?;
    }
    Ok((Grey { width, height, levels }, Mapping::scale(1.0 / across as f64, 1.0 / down as f64)))
}

/// The image with dark ink on a light ground, whichever it has.
pub fn dark_ink(grey: Grey, work: &Work) -> Result<Grey> {
    let middle = local_quantile(&grey, 0.5, work)?;
    // Ink is the minority that lies far off the ground, so the third moment has its sign.
    let moment: f64 = grey
        .levels
        .iter()
        .zip(&middle)
        .map(|(&level, ground)| f64::from(f32::from(level) - ground).powi(3))
        .sum();
    work.spend(grey.levels.len())?;
    if moment <= 0.0 {
        return Ok(grey);
    }
    Ok(Grey { levels: grey.levels.iter().map(|level| 255 - level).collect(), ..grey })
}

/// How far each pixel is below the typical level of its wide surroundings: a first look, for the width of the strokes.
pub fn rough_strength(grey: &Grey, work: &Work) -> Result<Strength> {
    let ground = local_quantile(grey, 0.7, work)?;
    let values =
        grey.levels.iter().zip(&ground).map(|(&level, &ground)| below(f32::from(level), ground)).collect();
    work.spend(grey.levels.len())?;
    Ok(Strength { width: grey.width, height: grey.height, values })
}

fn below(level: f32, ground: f32) -> f32 {
    ((ground - level) / ground.max(32.0)).max(0.0)
}

/// How far each pixel is below its ground, which is what remains when all that is narrower than a few strokes is filled
/// up: edges of shadows and of the paper are ground, whichever way they run.
pub fn ink_strength(grey: &Grey, pen: f32, work: &Work) -> Result<Strength> {
    let Grey { width, height, .. } = *grey;
    let smooth;
    let levels = if pen >= SMOOTH_FROM {
        smooth = box_mean(grey, work)?;
        &smooth
    } else {
        &grey.levels
    };
    let reach = ((GROUND_REACH * pen).ceil() as usize).min(width.max(height) / 4).max(1);
    let invert = |levels: Vec<u8>| -> Vec<u8> { levels.into_iter().map(|level| 255 - level).collect() };
    let ground = highest(levels, width, height, reach, work)?;
    let ground = invert(highest(&invert(ground), width, height, reach, work)?);
    let mut values: Vec<f32> = levels
        .iter()
        .zip(&ground)
        .map(|(&level, &ground)| below(f32::from(level), f32::from(ground)))
        .collect();
    // Noise lifts the ground; most of the image shows by how much.
    const STEPS: usize = 1024;
    let mut counts = [0usize; STEPS];
    values.iter().for_each(|&value| counts[((value * STEPS as f32) as usize).min(STEPS - 1)] += 1);
    let mut seen = 0;
    let typical = counts.iter().position(|count| {
        seen += count;
        2 * seen >= values.len()
    });
    let lift = typical.unwrap_or(0) as f32 / STEPS as f32;
    values.iter_mut().for_each(|value| *value = (*value - lift).max(0.0));
    work.spend(3 * values.len())?;
    Ok(Strength { width, height, values })
}

/// The mean of each pixel and its eight neighbours.
fn box_mean(grey: &Grey, work: &Work) -> Result<Vec<u8>> {
    let Grey { width, height, ref levels } = *grey;
    let mut mean = Vec::with_capacity(levels.len());
    let mut sums = vec![0u16; width + 2];
    for row in 0..height {
        let line = |row: usize| &levels[row * width..][..width];
        let (above, here, under) = (line(row.saturating_sub(1)), line(row), line((row + 1).min(height - 1)));
        for (at, sum) in sums[1..=width].iter_mut().enumerate() {
            *sum = u16::from(above[at]) + u16::from(here[at]) + u16::from(under[at]);
        }
        (sums[0], sums[width + 1]) = (sums[1], sums[width]);
        mean.extend(sums.windows(3).map(|sums| ((sums[0] + sums[1] + sums[2] + 4) / 9) as u8));
        work.spend(width)?;
    }
    Ok(mean)
}

/// The highest level within a square around each pixel that reaches `reach` pixels to each side.
fn highest(levels: &[u8], width: usize, height: usize, reach: usize, work: &Work) -> Result<Vec<u8>> {
    let window = 2 * reach + 1;
    // Windows of 1, 2, 4, ... pixels are joined; at last two of them that overlap.
    let span = 1 << window.ilog2();
    let raise = |into: &mut [u8], from: &[u8]| {
        into.iter_mut().zip(from).for_each(|(into, &from)| *into = (*into).max(from));
    };
    let stride = width + 2 * reach;
    let mut line = vec![0u8; stride];
    let mut rows = vec![0u8; width * (height + 2 * reach)];
    for row in 0..height {
        line.fill(0);
        line[reach..][..width].copy_from_slice(&levels[row * width..][..width]);
        let mut length = 1;
        while length < span {
            for at in 0..stride - length {
                line[at] = line[at].max(line[at + length]);
            }
            length *= 2;
        }
        let target = &mut rows[(row + reach) * width..][..width];
        target.copy_from_slice(&line[..width]);
        raise(target, &line[window - span..][..width]);
        work.spend(width)?;
    }
    let mut length = 1;
    while length < span {
        for row in 0..height + 2 * reach - length {
            let (into, from) = rows.split_at_mut((row + length) * width);
            raise(&mut into[row * width..][..width], &from[..width]);
        }
        work.spend(levels.len())?;
        length *= 2;
    }
    let mut result = rows[..width * height].to_vec();
    raise(&mut result, &rows[(window - span) * width..][..width * height]);
    Ok(result)
}

/// For each pixel a quantile of the levels around it, measured in windows that overlap by half and interpolated.
fn local_quantile(grey: &Grey, share: f64, work: &Work) -> Result<Vec<f32>> {
    let step = (grey.width.min(grey.height) / (2 * WINDOWS)).max(LEAST_WINDOW / 2);
    let nodes = |side: usize| side.div_ceil(step) + 1;
    let (columns, rows) = (nodes(grey.width), nodes(grey.height));
    // Counts of blocks of a step, four of which make a window.
    let mut blocks = vec![[0u32; 256]; (columns + 1) * 2];
    let mut grid = Vec::with_capacity(columns * rows);
    for row in 0..rows {
        // The blocks below this row of nodes; those above it were counted with the row before.
        let (above, below) = blocks.split_at_mut(columns + 1);
        above.swap_with_slice(below);
        below.iter_mut().for_each(|counts| counts.fill(0));
        for y in row * step..((row + 1) * step).min(grey.height) {
            for (block, levels) in grey.levels[y * grey.width..][..grey.width].chunks(step).enumerate() {
                let counts = &mut below[block + 1];
                levels.iter().for_each(|&level| counts[usize::from(level)] += 1);
            }
            work.spend(grey.width)?;
        }
        for column in 0..columns {
            let window = [&above[column], &above[column + 1], &below[column], &below[column + 1]];
            let total: u32 = window.iter().map(|counts| counts.iter().sum::<u32>()).sum();
            let wanted = (f64::from(total) * share) as u32;
            let mut seen = 0;
            let quantile = (0..256).find(|&level| {
                seen += window.iter().map(|counts| counts[level]).sum::<u32>();
                seen > wanted
            });
            grid.push(quantile.unwrap_or(255) as f32);
        }
        work.spend(columns * 256)?;
    }
    let mut result = Vec::with_capacity(grey.levels.len());
    let mut line = vec![0.0; columns];
    for y in 0..grey.height {
        let (row, down) = (y / step, (y % step) as f32 / step as f32);
        for (column, value) in line.iter_mut().enumerate() {
            *value = grid[row * columns + column] * (1.0 - down) + grid[(row + 1) * columns + column] * down;
        }
        for (column, nodes) in line.windows(2).enumerate() {
            let count = grey.width.saturating_sub(column * step).min(step);
            let mix = |at: usize| nodes[0] + (nodes[1] - nodes[0]) * (at as f32 / step as f32);
            result.extend((0..count).map(mix));
        }
        work.spend(grey.width)?;
    }
    Ok(result)
}

impl Strength {
    /// The pixels that are at least so strong.
    pub fn at_least(&self, level: f32) -> Mask {
        let ink = self.values.iter().map(|&value| value >= level).collect();
        Mask { width: self.width, height: self.height, ink }
    }

    /// A part of the image, given by its first column and row and its size.
    pub fn cut(&self, left: usize, top: usize, width: usize, height: usize) -> Self {
        let rows = self.values.chunks(self.width).skip(top).take(height);
        Self { width, height, values: rows.flat_map(|row| &row[left..left + width]).copied().collect() }
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

/// Brings an image to strokes of a comfortable width, smooths out its noise and sharpens what the lens blurred, in
/// proportion to the width of the strokes; gives the enlargement too.
pub fn refine(strength: &Strength, stroke_width: f32, work: &Work) -> Result<(Strength, f32)> {
    let wanted = COMFORTABLE_WIDTH / stroke_width;
    let (scaled, factor) = if wanted <= 0.5 {
        let side = (1.0 / wanted) as usize;
        (reduce(strength, side, work)?, 1.0 / side as f32)
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
fn enlarge(strength: &Strength, factor: usize, work: &Work) -> Result<Strength> {
    if factor == 1 {
        return Ok(strength.clone());
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
    let mut across = vec![0.0; values.len()];
    let mut line = vec![0.0; width + 2 * reach];
    for (row, target) in values.chunks(width).zip(across.chunks_mut(width)) {
        line[..reach].fill(row[0]);
        line[reach..reach + width].copy_from_slice(row);
        line[reach + width..].fill(row[width - 1]);
        for (offset, &weight) in weights.iter().enumerate() {
            add(target, &line[offset..][..width], weight)?;
        }
    }
    let mut both = vec![0.0; values.len()];
    for (row, target) in both.chunks_mut(width).enumerate() {
        for (offset, &weight) in weights.iter().enumerate() {
            let from = (row + offset).saturating_sub(reach).min(height - 1);
            add(target, &across[from * width..][..width], weight)?;
        }
    }
    Ok(Strength { width, height, values: both })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_level_is_that_of_the_square_around() {
        let (width, height) = (23, 17);
        let level = |at: usize| ((at as u32 + 7).wrapping_mul(2_654_435_761) >> 24) as u8;
        let levels: Vec<u8> = (0..width * height).map(level).collect();
        for reach in [0, 1, 2, 3, 7, 30] {
            let found = highest(&levels, width, height, reach, &Work::new(&|| Ok(()))).unwrap();
            for (at, &found) in found.iter().enumerate() {
                let rows = (at / width).saturating_sub(reach)..(at / width + reach + 1).min(height);
                let columns = (at % width).saturating_sub(reach)..(at % width + reach + 1).min(width);
                let all = rows.flat_map(|row| &levels[row * width..][columns.clone()]);
                assert_eq!(found, *all.max().unwrap(), "{reach} {at}");
            }
        }
    }

    #[test]
    fn edges_of_shadows_are_ground_and_strokes_are_not() {
        let (width, height) = (200, 120);
        let stroke =
            |x: usize, y: usize| (97..101).contains(&y) && (20..180).contains(&x) || (60..64).contains(&x);
        let level = |at: usize| {
            let (x, y) = (at % width, at / width);
            // The edge of the shadow is a few pixels wide.
            let light = 230.0 - 120.0 * ((x as f32 + y as f32 / 2.0 - 120.0) / 6.0).clamp(0.0, 1.0);
            (light * if stroke(x, y) { 0.3 } else { 1.0 }) as u8
        };
        let grey = Grey { width, height, levels: (0..width * height).map(level).collect() };
        let strength = ink_strength(&grey, 3.5, &Work::new(&|| Ok(()))).unwrap();
        for (at, &value) in strength.values.iter().enumerate() {
            let (x, y) = (at % width, at / width);
            // At the edge of the image, less of the ground is seen.
            let inside = (10..width - 10).contains(&x) && (10..height - 10).contains(&y);
            let expected = if stroke(x, y) { value > 0.35 } else { value < 0.4 };
            assert!(expected || !inside, "{x} {y}: {value}");
        }
    }
}
