//! Synthetic photographs of drawings (white ink on black), reproducible from a seed.
//!
//! The steps: scale, margins, ruled lines, levels of ink and paper, uneven light, blur, sensor noise.

use comer::internal::photo::Grey;

use crate::random::Random;

/// The conditions of a photograph.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Name for display.
    pub name: &'static str,
    /// Scale of the drawing.
    pub scale: f32,
    /// Distance of horizontal and vertical ruled lines, in pixels of the drawing; 0 for none.
    pub ruled: (f32, f32),
    /// Level of the ruled lines; paper is 225, ink 45.
    pub ruled_level: f32,
    /// The share of light that is lost from one corner to the opposite one.
    pub shade: f32,
    /// Standard deviation of the blur, in pixels of the photograph.
    pub blur: f32,
    /// Standard deviation of the noise, in levels.
    pub noise: f32,
}

const PLAIN: Conditions = Conditions {
    name: "paper",
    scale: 1.0,
    ruled: (0.0, 0.0),
    ruled_level: 165.0,
    shade: 0.0,
    blur: 0.0,
    noise: 0.0,
};

/// Each condition separately, and all combined.
pub const CONDITIONS: [Conditions; 12] = [
    PLAIN,
    Conditions { name: "uneven light", shade: 0.55, ..PLAIN },
    Conditions { name: "noise", noise: 10.0, ..PLAIN },
    Conditions { name: "blur", blur: 1.0, ..PLAIN },
    Conditions { name: "double size", scale: 2.0, ..PLAIN },
    Conditions { name: "half size", scale: 0.5, ..PLAIN },
    Conditions { name: "ruled", ruled: (40.0, 0.0), ..PLAIN },
    Conditions { name: "squared", ruled: (24.0, 24.0), ..PLAIN },
    Conditions { name: "ruled in dark", ruled: (40.0, 0.0), ruled_level: 90.0, ..PLAIN },
    Conditions { name: "squared in dark", ruled: (24.0, 24.0), ruled_level: 90.0, ..PLAIN },
    Conditions {
        name: "all, double size",
        scale: 2.0,
        ruled: (40.0, 0.0),
        shade: 0.5,
        blur: 1.2,
        noise: 8.0,
        ..PLAIN
    },
    Conditions {
        name: "all, half size",
        scale: 0.5,
        ruled: (40.0, 0.0),
        shade: 0.4,
        blur: 0.4,
        noise: 4.0,
        ..PLAIN
    },
];

/// The photograph of a drawing (255 for ink) of `width` by `height` pixels.
pub fn photograph(width: usize, height: usize, drawing: &[u8], conditions: &Conditions, seed: u64) -> Grey {
    let mut random = Random(seed ^ 0x9e37_79b9_7f4a_7c15);
    let sheet = |side: usize, random: &mut Random| {
        let margin = 8.0 + 40.0 * random.uniform();
        (margin, ((side as f32 + 2.0 * margin) * conditions.scale) as usize)
    };
    let (left, wide) = sheet(width, &mut random);
    let (top, high) = sheet(height, &mut random);
    let (first_across, first_down) = (20.0 * random.uniform(), 20.0 * random.uniform());
    let slope = 0.02 * (random.uniform() - 0.5);
    let sample = |x: f32, y: f32| {
        let inside = x >= 0.0 && y >= 0.0 && (x as usize) < width && (y as usize) < height;
        if inside { f32::from(drawing[y as usize * width + x as usize]) / 255.0 } else { 0.0 }
    };
    // 16 samples per pixel, for smooth edges at any scale.
    let mut levels = Vec::with_capacity(wide * high);
    for at in 0..wide * high {
        let (mut ink, mut line) = (0.0, 0.0);
        for cell in 0..16 {
            let x = ((at % wide) as f32 + (cell % 4) as f32 / 4.0 + 0.125) / conditions.scale;
            let y = ((at / wide) as f32 + (cell / 4) as f32 / 4.0 + 0.125) / conditions.scale;
            ink += sample(x - left, y - top) / 16.0;
            let on = |distance: f32, position: f32| distance > 0.0 && position.rem_euclid(distance) < 1.5;
            let ruled = on(conditions.ruled.0, y - first_across + slope * x)
                || on(conditions.ruled.1, x - first_down - slope * y);
            line += f32::from(u8::from(ruled)) / 16.0;
        }
        let paper = 225.0 + (conditions.ruled_level - 225.0) * line;
        let level = paper + (45.0 - paper) * ink;
        let corner = (at % wide) as f32 / wide as f32 * 0.6 + (at / wide) as f32 / high as f32 * 0.4;
        levels.push(level * (1.0 - conditions.shade * corner));
    }
    let mut levels = if conditions.blur > 0.0 { blur(&levels, wide, conditions.blur) } else { levels };
    levels.iter_mut().for_each(|level| *level += conditions.noise * random.normal());
    Grey {
        width: wide,
        height: high,
        levels: levels.iter().map(|&level| level.round().clamp(0.0, 255.0) as u8).collect(),
    }
}

fn blur(levels: &[f32], width: usize, deviation: f32) -> Vec<f32> {
    let height = levels.len() / width;
    let radius = (3.0 * deviation).ceil() as i64;
    let pass = |levels: &[f32], step: (i64, i64)| -> Vec<f32> {
        let at = |x: i64, y: i64| {
            levels[y.clamp(0, height as i64 - 1) as usize * width + x.clamp(0, width as i64 - 1) as usize]
        };
        let mean = |index: usize| {
            let (x, y) = ((index % width) as i64, (index / width) as i64);
            let (mut sum, mut weights) = (0.0, 0.0);
            for offset in -radius..=radius {
                let weight = (-0.5 * (offset as f32 / deviation).powi(2)).exp();
                sum += weight * at(x + offset * step.0, y + offset * step.1);
                weights += weight;
            }
            sum / weights
        };
        (0..levels.len()).map(mean).collect()
    };
    pass(&pass(levels, (1, 0)), (0, 1))
}
