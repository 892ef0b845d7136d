//! Brings out strokes that are fainter than others, as those of a pencil are in places.

use super::light::highest;
use super::parts::Parts;
use super::strength::{Strength, threshold};
use super::{Mask, Work};
use crate::error::Result;

/// How far the strongest ink around a pixel is looked for, in stroke widths: across its own stroke, not to the next one.
const REACH: f32 = 0.6;
/// Ink with less than this share of the full strength stays fainter in proportion.
const FAINTEST: f32 = 0.5;

/// Strengths in proportion to the strongest ink around them, so that a faint stroke has its full width too. Ink that is
/// nowhere as strong as the threshold stays as it is: it may be paper.
pub fn evened(mut strength: Strength, pen: f32, work: &Work) -> Result<Strength> {
    let Some(level) = threshold(&strength) else { return Ok(strength) };
    let Strength { width, height, ref values } = strength;
    let coarse: Vec<u8> = values.iter().map(|value| (value * 255.0).min(255.0) as u8).collect();
    let reach = ((REACH * pen).round() as usize).max(1);
    let around = highest(&coarse, width, height, reach, work)?;
    // The threshold is half of the full strength.
    let full = 2.0 * 255.0 * level;
    let even = |value: f32, around: u8| value / (f32::from(around) / full).clamp(FAINTEST, 1.0);
    let ink = values.iter().zip(&around).map(|(&value, &around)| even(value, around) >= level).collect();
    work.spend(3 * values.len())?;
    let parts = Parts::of(&Mask { width, height, ink }, work)?;
    // What is in no part, the soft edges among it, is kept like a part with ink.
    let mut strong = vec![false; parts.list.len() + 1];
    strong[0] = true;
    for (&label, &value) in parts.labels.iter().zip(values) {
        strong[label as usize] |= value >= level;
    }
    for ((value, around), &label) in strength.values.iter_mut().zip(around).zip(&parts.labels) {
        if strong[label as usize] {
            *value = even(*value, around);
        }
    }
    work.spend(2 * parts.labels.len())?;
    Ok(strength)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let strength = if even { evened(strength, 2.0, &Work::new(&|| Ok(()))).unwrap() } else { strength };
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
