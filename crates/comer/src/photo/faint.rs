//! Brings out strokes that are fainter than others, as those of a pen or pencil are in places.

use super::closing::{closing, highest};
use super::parts::Parts;
use super::strength::{Strength, threshold};
use super::{Mask, Work};
use crate::error::Result;

/// How far the strongest ink around a pixel is looked for, in stroke widths: across its own stroke, not to the next one.
const REACH: f32 = 0.6;
/// Ink with less than this share of the full strength stays fainter in proportion.
const FAINTEST: f32 = 0.5;
/// Half of the longest dip in the strength of a stroke that is filled up, in stroke widths.
const DIP: f32 = 0.7;
/// What a dip leaves at least of the strength around it: in a gap between strokes there is less.
const LEAST_LEFT: f32 = 0.6;

/// Strengths in proportion to the strongest ink around them, so that a faint stroke has its full width too. Ink that is
/// nowhere as strong as `level`, the threshold, stays as it is: it may be paper.
pub fn evened(mut strength: Strength, level: f32, pen: f32, work: &Work) -> Result<Strength> {
    let Strength { width, height, ref values } = strength;
    let around = highest(&coarse(values), width, height, pixels(REACH * pen), work)?;
    // The threshold is half of the full strength.
    let full = 2.0 * 255.0 * level;
    let even = |value: f32, around: u8| value / (f32::from(around) / full).clamp(FAINTEST, 1.0);
    let ink = values.iter().zip(&around).map(|(&value, &around)| even(value, around) >= level).collect();
    work.spend(3 * values.len())?;
    let parts = Parts::of(&Mask { width, height, ink }, work)?;
    let mut strong = vec![false; parts.list.len()];
    for &(run, part) in &parts.runs {
        let strong = &mut strong[part as usize];
        *strong = *strong || values[run.places(width)].iter().any(|&value| value >= level);
    }
    // What is in no part, the soft edges among it, is evened like a part with strong ink.
    let end = values.len();
    let mut start = 0;
    let weak = parts.runs.iter().filter(|(_, part)| !strong[*part as usize]);
    for stays in weak.map(|(run, _)| run.places(width)).chain(std::iter::once(end..end)) {
        let evened = start..stays.start;
        let pairs = strength.values[evened.clone()].iter_mut().zip(&around[evened]);
        pairs.for_each(|(value, &around)| *value = even(*value, around));
        start = stays.end;
    }
    work.spend(2 * end)?;
    Ok(strength)
}

/// Strengths without the dips along strokes: sharpened, they would be gaps, which make an `i` of a `1`.
pub fn bridged(mut strength: Strength, pen: f32, work: &Work) -> Result<Strength> {
    let Some(level) = threshold(&strength) else { return Ok(strength) };
    let Strength { width, height, ref values } = strength;
    let closed = closing(&coarse(values), width, height, pixels(DIP * pen), work)?;
    work.spend(2 * values.len())?;
    for (value, closed) in strength.values.iter_mut().zip(closed) {
        let closed = f32::from(closed) / 255.0;
        if closed >= level && *value >= LEAST_LEFT * closed {
            *value = value.max(closed);
        }
    }
    Ok(strength)
}

fn coarse(values: &[f32]) -> Vec<u8> {
    values.iter().map(|value| (value * 255.0).min(255.0) as u8).collect()
}

fn pixels(length: f32) -> usize {
    (length.round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dips_along_a_stroke_are_filled_up_and_gaps_are_not() {
        // A stroke four pixels wide with dips of two pixels to shares of its strength.
        let (width, height) = (100, 12);
        let shares = [0.9, 0.7, 0.5, 0.1];
        let value = |at: usize| {
            let (x, y) = (at % width, at / width);
            let dip = if x % 20 < 2 && x >= 20 { shares[x / 20 - 1] } else { 1.0 };
            if (4..8).contains(&y) { 0.8 * dip } else { 0.0 }
        };
        let strength = Strength { width, height, values: (0..width * height).map(value).collect() };
        let bridged = bridged(strength.clone(), 4.0, &Work::new(&|| Ok(()))).unwrap();
        let middle = |x: usize| bridged.values[6 * width + x];
        assert!(middle(20) > 0.79 && middle(41) > 0.79, "{} {}", middle(20), middle(41));
        assert_eq!([60, 81].map(middle), [60, 81].map(|x| strength.values[6 * width + x]));
        assert!(bridged.values[..3 * width].iter().all(|&value| value == 0.0));
    }

    /// Strokes across of full, of two fifths and of a tenth of the strength, with soft edges, and how wide each is; the second
    /// one becomes strong towards its end or not.
    fn widths(joined: bool, even: bool) -> [usize; 3] {
        let profile = [0.0, 0.3, 0.8, 0.8, 0.3, 0.0];
        let (width, height) = (200, 18);
        let value = |at: usize| {
            let (x, row) = (at % width, at / width);
            let ramp = if joined { 0.6 * (x as f32 / 100.0 - 1.0).max(0.0) } else { 0.0 };
            profile[row % 6] * [1.0, 0.4 + ramp, 0.1][row / 6]
        };
        let strength = Strength { width, height, values: (0..width * height).map(value).collect() };
        let level = threshold(&strength).unwrap();
        assert!((level - 0.4).abs() < 0.05, "{level}");
        let strength =
            if even { evened(strength, level, 2.0, &Work::new(&|| Ok(()))).unwrap() } else { strength };
        [0, 1, 2].map(|stroke| {
            let column = strength.values.iter().step_by(width).skip(6 * stroke).take(6);
            column.filter(|&&value| value >= 0.4).count()
        })
    }

    #[test]
    fn faint_strokes_come_out_as_wide_as_the_strong_ones_they_run_into() {
        assert_eq!(widths(true, false), [2, 0, 0]);
        assert_eq!(widths(true, true), [2, 2, 0]);
        assert_eq!(widths(false, true), [2, 0, 0]);
    }
}
