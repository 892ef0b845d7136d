//! Sinusoidal positional encodings of tokens and of image cells (section 3.3 of the paper).

use std::f64::consts::TAU;

/// The frequency of each pair of entries of an encoding with `width` entries, falling from 1.
pub fn frequencies(width: usize) -> Vec<f64> {
    (0..width / 2).map(|pair| 10000f64.powf(-2.0 * pair as f64 / width as f64)).collect()
}

/// Equation 10 of the paper: entry 2i is the sine, entry 2i + 1 the cosine of `position` times frequency i.
pub fn encode(position: f64, frequencies: &[f64]) -> impl Iterator<Item = f32> {
    frequencies.iter().flat_map(move |frequency| {
        let (sine, cosine) = (position * frequency).sin_cos();
        [sine as f32, cosine as f32]
    })
}

/// The position of a cell as an angle, when `part` of the `whole` cells along a side come before it or are it.
pub fn share(part: usize, whole: usize) -> f64 {
    part as f64 / (whole as f64 + 1e-6) * TAU
}
