//! Sinusoidal positional encodings of tokens and of picture cells (section 3.3 of the paper).

use std::f64::consts::TAU;

/// Eq. 10 of the paper: entry 2i is the sine, entry 2i + 1 the cosine of `position * 10000^(-2i / width)`.
pub fn encode(position: f64, width: usize) -> impl Iterator<Item = f32> {
    (0..width / 2).flat_map(move |i| {
        let angle = position * 10000f64.powf(-2.0 * i as f64 / width as f64);
        [angle.sin() as f32, angle.cos() as f32]
    })
}

/// Where a cell stands of which `part` of `whole` cells lie before it, itself included: an angle.
pub fn share(part: usize, whole: usize) -> f64 {
    part as f64 / (whole as f64 + 1e-6) * TAU
}
