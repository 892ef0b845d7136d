//! Finds which side of the grey levels is ink, and takes uneven light out.

use super::closing::{closing, highest};
use super::strength::{MOST_THRESHOLD, Strength, WORKING_PIXELS, counts, threshold};
use super::{Grey, Work};
use crate::error::Result;
use crate::mapping::Mapping;

/// Pixels of the image in which the ink is looked for first.
const COARSE_PIXELS: usize = 700_000;
/// Widest strokes that are looked for: in pixels, and as a share of the image's shorter side.
const WIDEST: (f32, f32) = (4.0, 0.05);
/// How far the surroundings of ink reach, in stroke widths.
const SURROUNDING_INK: f32 = 8.0;
/// Share of the greatest strength that ink has.
const STRONG: f32 = 0.5;
/// Ink of full strength has this many times the threshold at least.
const FULL: f32 = 1.5;
/// How many times as much ink of full strength a wider ground may show.
const HOLLOW: usize = 2;
/// What is narrower than twice this many stroke widths is ink; what is wider is ground.
const GROUND_REACH: f32 = 2.5;
/// From this stroke width on, noise is averaged out before the ground is measured.
const SMOOTH_FROM: f32 = 4.0;

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

/// The image with dark ink on a light ground, whichever it has, and about how wide its strokes are at most; `None` where
/// nothing stands out. On a `sheet`, which is lighter than what it lies on, ink is dark: between the lines of the paper, light that falls
/// on a part of it would pass for light ink.
///
/// Ink is the narrowest thing that is about as strong as anything is: shadows are wider, and noise and the lines of the
/// paper are fainter.
pub fn dark_ink(grey: Grey, sheet: bool, work: &Work) -> Result<Option<(Grey, f32)>> {
    let side = (1..).find(|side| grey.levels.len() / (side * side) <= COARSE_PIXELS).unwrap_or(1);
    let (dark, _) = shrink_by(&grey, side, work)?;
    let light = inverted(&dark);
    let widest = WIDEST.0 + WIDEST.1 * dark.width.min(dark.height) as f32;
    let mut widths = std::iter::successors(Some(2.0), |width| Some(2.0 * width));
    // The next width of strokes with the thresholds of dark and of light ink and the strengths of the stronger one.
    let mut next = || -> Result<Option<(f32, [f32; 2], Strength)>> {
        let Some(width) = widths.next().filter(|&width| width <= widest) else { return Ok(None) };
        let found = |grey: &Grey| -> Result<(f32, Strength)> {
            let strength = ink_strength(grey, width, work)?;
            Ok((threshold(&strength).unwrap_or(0.0), strength))
        };
        let (level, strength) = found(&dark)?;
        Ok(Some(if sheet {
            (width, [level, 0.0], strength)
        } else {
            let light = found(&light)?;
            (width, [level, light.0], if level >= light.0 { strength } else { light.1 })
        }))
    };
    let (mut tried, mut strongest) = (Vec::new(), 0.0f32);
    while strongest < MOST_THRESHOLD
        && let Some(found) = next()?
    {
        strongest = strongest.max(found.1[0]).max(found.1[1]);
        tried.push(found);
    }
    let mut first = None;
    for at in 0.. {
        if tried.len() < at + 2 {
            tried.extend(next()?);
        }
        let Some((width, levels, strength)) = tried.get(at) else { break };
        if levels[0].max(levels[1]) < STRONG * strongest {
            continue;
        }
        let hollow = match tried.get(at + 1) {
            Some((_, _, next)) => is_hollow(strength, next, *width, FULL * strongest, work)?,
            None => false,
        };
        if !hollow {
            first = Some((*width, *levels));
            break;
        }
    }
    let Some((width, levels)) = first.filter(|_| strongest > 0.0) else { return Ok(None) };
    let is_dark = sheet || is_dark_on_light(&dark, &light, width, levels, work)?;
    Ok(Some((if is_dark { grey } else { inverted(&grey) }, width * side as f32)))
}

/// Whether too narrow a ground takes the middle of wide strokes for ground: with the next one there is much more ink of full
/// strength around what there is of it. Ink far from it does not count: that is a shadow or a wedge of light.
fn is_hollow(strength: &Strength, next: &Strength, width: f32, full: f32, work: &Work) -> Result<bool> {
    let ink: Vec<u8> = strength.values.iter().map(|&value| u8::from(value >= full)).collect();
    let reach = (2.0 * GROUND_REACH * width).ceil() as usize;
    let near = highest(&ink, strength.width, strength.height, reach, work)?;
    let filled = near.iter().zip(&next.values).filter(|&(&near, &value)| near > 0 && value >= full).count();
    work.spend(2 * ink.len())?;
    Ok(filled > HOLLOW * ink.iter().filter(|&&ink| ink > 0).count())
}

/// Whether what is narrow is mostly darker than its surroundings. Ink is the minority of them, so the third moment of its
/// pixels and of the gaps between them has its sign; a straight edge of a shadow has neither.
fn is_dark_on_light(dark: &Grey, light: &Grey, width: f32, levels: [f32; 2], work: &Work) -> Result<bool> {
    // Where nothing stands out, nothing is narrow.
    let [dark_ink, light_ink] = levels.map(|level| if level > 0.0 { level } else { f32::INFINITY });
    let [below, above] = [ink_strength(dark, width, work)?, ink_strength(light, width, work)?];
    // The sums of all levels above and to the left.
    let stride = dark.width + 1;
    let mut sums = vec![0u32; stride * (dark.height + 1)];
    for (row, levels) in dark.levels.chunks(dark.width).enumerate() {
        let (before, own) = sums[row * stride..][..2 * stride].split_at_mut(stride);
        let mut sum = 0;
        for (column, &level) in levels.iter().enumerate() {
            sum += u32::from(level);
            own[column + 1] = before[column + 1] + sum;
        }
    }
    work.spend(2 * dark.levels.len())?;
    let reach = (SURROUNDING_INK * width) as usize;
    let range = |place: usize, side: usize| (place.saturating_sub(reach), (place + reach + 1).min(side));
    let mut moment = 0.0;
    for (at, &own) in dark.levels.iter().enumerate() {
        if below.values[at] >= dark_ink || above.values[at] >= light_ink {
            let ((left, right), (top, bottom)) =
                (range(at % dark.width, dark.width), range(at / dark.width, dark.height));
            let sum = |row: usize| sums[row * stride + right] - sums[row * stride + left];
            let mean = (sum(bottom) - sum(top)) as f32 / ((right - left) * (bottom - top)) as f32;
            moment += f64::from((f32::from(own) - mean) / mean.max(32.0)).powi(3);
        }
    }
    work.spend(4 * dark.levels.len())?;
    Ok(moment <= 0.0)
}

fn inverted(grey: &Grey) -> Grey {
    Grey { levels: grey.levels.iter().map(|level| 255 - level).collect(), ..*grey }
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
    let ground = closing(levels, width, height, reach, work)?;
    let mut values: Vec<f32> = levels
        .iter()
        .zip(&ground)
        .map(|(&level, &ground)| below(f32::from(level), f32::from(ground)))
        .collect();
    // Noise lifts the ground; most of the image shows by how much.
    const STEPS: usize = 1024;
    let counts = counts::<STEPS>(&values);
    let mut seen = 0;
    let typical = counts.iter().position(|count| {
        seen += count;
        2 * seen as usize >= values.len()
    });
    let lift = typical.unwrap_or(0) as f32 / STEPS as f32;
    if lift > 0.0 {
        values.iter_mut().for_each(|value| *value = (*value - lift).max(0.0));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn wide_strokes_are_hollow_and_shadows_far_away_are_not() {
        let strength = |ink: fn(usize, usize) -> bool| {
            let value = |at: usize| if ink(at % 200, at / 200) { 0.8 } else { 0.0 };
            Strength { width: 200, height: 100, values: (0..200 * 100).map(value).collect() }
        };
        let edge = strength(|x, y| (20..60).contains(&x) && (20..22).contains(&y));
        let stroke = strength(|x, y| (20..60).contains(&x) && (20..30).contains(&y));
        let shadow = strength(|x, y| x > 150 || (20..60).contains(&x) && (20..22).contains(&y));
        for (next, expected) in [(&edge, false), (&stroke, true), (&shadow, false)] {
            assert_eq!(is_hollow(&edge, next, 2.0, 0.6, &Work::new(&|| Ok(()))).unwrap(), expected);
        }
    }
}
