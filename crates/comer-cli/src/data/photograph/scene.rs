//! A page under a camera: paper, desk, pen, perspective, shadows, blur and noise.

use super::page::{HEIGHT, Page, bounds};
use super::random::{Random, hash};

/// What photographs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Style {
    /// Paper fills the image; even light.
    Plain,
    /// Paper fills the image; shadows.
    Shadow,
    /// A sheet on a desk, with its edges, perspective and shadows.
    Desk,
    /// Other paper, desks, pens and shadows than those of the other styles, to test with.
    Other,
}

/// A finished photograph, with the boxes of what is written: left, top, right, bottom.
pub struct Photograph {
    pub width: usize,
    pub height: usize,
    /// Red, green and blue, in rows from the top.
    pub pixels: Vec<u8>,
    pub quality: u8,
    pub formulas: Vec<[f64; 4]>,
    pub text: Vec<[f64; 4]>,
}

type Colour = [f32; 3];

/// Where a page is in the image: corners, as a mapping from page coordinates.
struct Camera([f64; 8]);

impl Camera {
    /// From the places of the corners of a page of width 1: upper left, upper right, lower right, lower left.
    fn new(corners: [[f64; 2]; 4]) -> Self {
        let [a, b, c, d] = corners;
        let sum = [0, 1].map(|axis| a[axis] - b[axis] + c[axis] - d[axis]);
        let (first, second) = ([0, 1].map(|axis| b[axis] - c[axis]), [0, 1].map(|axis| d[axis] - c[axis]));
        let area = first[0] * second[1] - second[0] * first[1];
        let g = (sum[0] * second[1] - second[0] * sum[1]) / area;
        let h = (first[0] * sum[1] - sum[0] * first[1]) / area;
        let row = |axis: usize| {
            [b[axis] - a[axis] + g * b[axis], (d[axis] - a[axis] + h * d[axis]) / HEIGHT, a[axis]]
        };
        let (x, y) = (row(0), row(1));
        Self([x[0], x[1], x[2], y[0], y[1], y[2], g, h / HEIGHT])
    }

    fn place(&self, [u, v]: [f64; 2]) -> [f64; 2] {
        let m = &self.0;
        let weight = m[6] * u + m[7] * v + 1.0;
        [(m[0] * u + m[1] * v + m[2]) / weight, (m[3] * u + m[4] * v + m[5]) / weight]
    }

    /// Where a place of the image is on the page.
    fn on_page(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let m = &self.0;
        let (a, b, c) = (m[0] - x * m[6], m[1] - x * m[7], x - m[2]);
        let (d, e, f) = (m[3] - y * m[6], m[4] - y * m[7], y - m[5]);
        let area = a * e - b * d;
        [(c * e - b * f) / area, (a * f - c * d) / area]
    }
}

/// Lines and colours of paper.
struct Paper {
    colour: Colour,
    line: Colour,
    /// Distance of lines across and down; zero for none.
    rows: f64,
    columns: f64,
    /// A line down the left side.
    margin: bool,
    dots: bool,
}

/// A shadow on one side of a line.
struct Shadow {
    normal: [f64; 2],
    offset: f64,
    softness: f64,
    light: f64,
}

/// Takes a photograph.
pub fn photograph(page: &Page, style: Style, side: usize, random: &mut Random) -> Photograph {
    let (width, height) = (side * 3 / 4, side);
    let (w, h) = (width as f64, height as f64);
    let on_desk = matches!(style, Style::Desk | Style::Other);
    let corner = |x: f64, y: f64, random: &mut Random| {
        let slack = if style == Style::Other { 0.07 } else { 0.045 };
        if on_desk {
            let inset = random.between(0.03, 0.03 + 2.0 * slack);
            let skew = random.between(0.03, 0.03 + 2.0 * slack);
            [w * if x == 0.0 { inset } else { 1.0 - inset }, h * if y == 0.0 { skew } else { 1.0 - skew }]
        } else {
            let out = [random.between(0.0, 0.05), random.between(0.0, 0.05)];
            [
                w * if x == 0.0 { -out[0] } else { 1.0 + out[0] },
                h * if y == 0.0 { -out[1] } else { 1.0 + out[1] },
            ]
        }
    };
    let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)].map(|(x, y)| corner(x, y, random));
    let camera = Camera::new(corners);
    let paper = paper(page, style, random);
    let mut pixels = ground(&camera, &paper, style, width, height, random);
    let (formulas, text) = write(page, &camera, style, &mut pixels, width, height, random);
    let mut shadows = Vec::new();
    let count = match style {
        Style::Plain => 0,
        Style::Shadow | Style::Desk => 1 + random.below(2),
        Style::Other => 1 + random.below(3),
    };
    for _ in 0..count {
        let angle = random.between(0.0, std::f64::consts::TAU);
        let normal = [angle.cos(), angle.sin()];
        let through = [w * random.between(0.15, 0.85), h * random.between(0.15, 0.85)];
        let hard = random.uniform() < 0.5;
        shadows.push(Shadow {
            normal,
            offset: normal[0] * through[0] + normal[1] * through[1],
            softness: h * if hard { random.between(0.002, 0.01) } else { random.between(0.05, 0.3) },
            light: if style == Style::Other { random.between(0.4, 0.8) } else { random.between(0.5, 0.85) },
        });
    }
    light(&mut pixels, width, &shadows, style, random);
    for _ in 0..1 + random.below(if style == Style::Other { 4 } else { 3 }) {
        blur(&mut pixels, width, height);
    }
    let noise = random.between(1.0, if style == Style::Other { 7.0 } else { 5.0 }) as f32;
    let seed = random.next();
    for (at, level) in pixels.iter_mut().enumerate() {
        // The sum of four uniform draws is nearly normal, with a deviation of 0.577.
        let draws = hash(seed ^ at as u64).to_le_bytes();
        let sum: f32 = draws[..4].iter().map(|&draw| f32::from(draw) / 128.0 - 1.0).sum();
        *level = (f32::from(*level) + noise * sum).clamp(0.0, 255.0) as u8;
    }
    let quality = random.between(70.0, 94.0) as u8;
    Photograph { width, height, pixels, quality, formulas, text }
}

fn paper(page: &Page, style: Style, random: &mut Random) -> Paper {
    let bright = random.between(215.0, 245.0) as f32;
    let tint = if style == Style::Other { [1.0, 0.97, 0.86] } else { [1.0, 1.0, 0.985] };
    let colour = tint.map(|share| bright * share);
    let faint = random.between(0.55, 0.85) as f32;
    let line = [0.8, 0.92, 1.0].map(|share| bright * faint * share);
    let distance = page.symbol * random.between(1.0, 2.2);
    let (rows, columns, dots) = match (style, random.below(3)) {
        (Style::Other, 0) => (page.symbol * 0.8, page.symbol * 0.8, true),
        (_, 0) => (0.0, 0.0, false),
        (_, 1) => (distance, 0.0, false),
        _ => (distance.min(0.035), distance.min(0.035), false),
    };
    Paper { colour, line, rows, columns, dots, margin: random.uniform() < 0.3 }
}

/// Paper where the page is and the desk elsewhere.
fn ground(
    camera: &Camera,
    paper: &Paper,
    style: Style,
    width: usize,
    height: usize,
    random: &mut Random,
) -> Vec<u8> {
    let wood: Colour = match (style, random.below(3)) {
        (Style::Other, 0) => [60.0, 62.0, 70.0],
        (Style::Other, 1) => [140.0, 130.0, 135.0],
        (Style::Other, _) => [70.0, 100.0, 80.0],
        (_, 0) => [150.0, 110.0, 75.0],
        (_, 1) => [95.0, 70.0, 50.0],
        _ => [55.0, 50.0, 48.0],
    };
    let seed = random.next();
    let grain = random.between(0.05, 0.2) as f32;
    let tiles = random.between(0.1, 0.3);
    // Noise between points of a grid.
    let noise = |x: f64, y: f64| {
        let (left, top) = (x.floor(), y.floor());
        let node = |x: f64, y: f64| {
            (hash(seed ^ (x as i64 as u64).wrapping_mul(0x9e37_79b9) ^ ((y as i64 as u64) << 32)) >> 40)
                as f64
                / (1 << 24) as f64
        };
        let (across, down) = (x - left, y - top);
        let mix = |y: f64| node(left, y) * (1.0 - across) + node(left + 1.0, y) * across;
        (mix(top) * (1.0 - down) + mix(top + 1.0) * down) as f32
    };
    let thin = 0.0012;
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let [u, v] = camera.on_page([x as f64 + 0.5, y as f64 + 0.5]);
            let colour = if (0.0..1.0).contains(&u) && (0.0..HEIGHT).contains(&v) {
                let near = |place: f64, distance: f64| distance > 0.0 && place.rem_euclid(distance) < thin;
                let (row, column) = (near(v, paper.rows), near(u, paper.columns));
                let ruled = if paper.dots { row && column } else { row || column };
                if paper.margin && (u - 0.06).abs() < thin {
                    [paper.colour[0] * 0.9, paper.colour[1] * 0.6, paper.colour[2] * 0.6]
                } else if ruled {
                    paper.line
                } else {
                    paper.colour
                }
            } else if style == Style::Other {
                let dark = (u.div_euclid(tiles) + v.div_euclid(tiles)) as i64 % 2 == 0;
                wood.map(|level| {
                    level
                        * if dark { 0.85 } else { 1.0 }
                        * (1.0 + grain * (noise(u * 200.0, v * 200.0) - 0.5))
                })
            } else {
                // The paper throws a narrow shadow.
                let beside = (u - 1.0).max(v - HEIGHT).max(-u).max(-v);
                let shade = if beside < 0.006 { 0.6 } else { 1.0 };
                let ring = (noise(u * 4.0, v * 60.0) * 20.0).sin();
                wood.map(|level| {
                    level * shade * (1.0 + grain * ring + 0.1 * (noise(u * 150.0, v * 700.0) - 0.5))
                })
            };
            pixels.extend(colour.map(|level| level.clamp(0.0, 255.0) as u8));
        }
    }
    pixels
}

/// Writes the lines of the page, and gives the boxes of formulas and of text.
fn write(
    page: &Page,
    camera: &Camera,
    style: Style,
    pixels: &mut [u8],
    width: usize,
    height: usize,
    random: &mut Random,
) -> (Vec<[f64; 4]>, Vec<[f64; 4]>) {
    let ink: Colour = match (style, random.below(3)) {
        (Style::Other, 0) => [150.0, 30.0, 35.0],
        (Style::Other, 1) => [110.0, 110.0, 112.0],
        (_, 0) => [35.0, 35.0, 40.0],
        (_, 1) => [35.0, 50.0, 130.0],
        _ => [95.0, 95.0, 98.0],
    };
    let pen = page.symbol * random.between(0.06, 0.13);
    let mut coverage = vec![0u8; width * height];
    let (mut formulas, mut text) = (Vec::new(), Vec::new());
    for line in &page.lines {
        let place =
            |stroke: &Vec<[f64; 2]>| stroke.iter().map(|&point| camera.place(point)).collect::<Vec<_>>();
        let strokes: Vec<Vec<[f64; 2]>> = line.strokes.iter().map(place).collect();
        let [left, top, right, bottom] = bounds(&strokes);
        let [u, v] = line.strokes[0][0];
        let ([x, y], [across, _]) = (camera.place([u, v]), camera.place([u + 0.01, v]));
        let scale = (across - x).abs() / 0.01;
        let radius = (pen * scale / 2.0).max(0.6);
        let _ = y;
        for stroke in &strokes {
            for pair in stroke.windows(2) {
                segment(&mut coverage, width, height, pair[0], pair[1], radius);
            }
            segment(&mut coverage, width, height, stroke[0], stroke[0], radius);
        }
        let bounds = [left - radius, top - radius, right + radius, bottom + radius].map(|side| side.round());
        if line.record.is_some() { formulas.push(bounds) } else { text.push(bounds) }
    }
    let opacity = random.between(0.85, 1.0) as f32;
    for (pixel, &covered) in pixels.chunks_exact_mut(3).zip(&coverage) {
        if covered > 0 {
            let share = opacity * f32::from(covered) / 255.0;
            for (level, ink) in pixel.iter_mut().zip(ink) {
                *level = (f32::from(*level) * (1.0 - share) + ink.min(f32::from(*level)) * share) as u8;
            }
        }
    }
    (formulas, text)
}

/// Covers what is within `radius` of a line, with soft edges.
fn segment(coverage: &mut [u8], width: usize, height: usize, from: [f64; 2], to: [f64; 2], radius: f64) {
    let side = |axis: usize, most: usize| {
        let low = (from[axis].min(to[axis]) - radius - 1.0).clamp(0.0, most as f64) as usize;
        let high = (from[axis].max(to[axis]) + radius + 2.0).clamp(0.0, most as f64) as usize;
        low..high
    };
    let along = [to[0] - from[0], to[1] - from[1]];
    let length = (along[0] * along[0] + along[1] * along[1]).max(1e-9);
    for y in side(1, height) {
        for x in side(0, width) {
            let place = [x as f64 + 0.5 - from[0], y as f64 + 0.5 - from[1]];
            let share = ((place[0] * along[0] + place[1] * along[1]) / length).clamp(0.0, 1.0);
            let distance = (place[0] - share * along[0]).hypot(place[1] - share * along[1]);
            let covered = ((radius + 0.5 - distance).clamp(0.0, 1.0) * 255.0) as u8;
            let cell = &mut coverage[y * width + x];
            *cell = (*cell).max(covered);
        }
    }
}

/// Uneven light and shadows.
fn light(pixels: &mut [u8], width: usize, shadows: &[Shadow], style: Style, random: &mut Random) {
    let height = pixels.len() / 3 / width;
    let slope = [random.between(-0.25, 0.25), random.between(-0.25, 0.25)];
    let exposure = random.between(0.85, 1.02);
    let vignette = if style == Style::Other { random.between(0.1, 0.5) } else { random.between(0.0, 0.2) };
    for (at, pixel) in pixels.chunks_exact_mut(3).enumerate() {
        let (x, y) = ((at % width) as f64, (at / width) as f64);
        let (across, down) = (x / width as f64 - 0.5, y / height as f64 - 0.5);
        let mut light = exposure
            * (1.0 + slope[0] * across + slope[1] * down)
            * (1.0 - vignette * (across * across + down * down));
        for shadow in shadows {
            let distance = shadow.normal[0] * x + shadow.normal[1] * y - shadow.offset;
            let inside = (distance / shadow.softness + 0.5).clamp(0.0, 1.0);
            light *= 1.0 - (1.0 - shadow.light) * inside;
        }
        pixel.iter_mut().for_each(|level| *level = (f64::from(*level) * light).min(255.0) as u8);
    }
}

/// A weight of a half for each pixel and of a quarter for its neighbours, across and down.
fn blur(pixels: &mut [u8], width: usize, height: usize) {
    let mix = |a: u8, b: u8, c: u8| ((u16::from(a) + 2 * u16::from(b) + u16::from(c) + 2) / 4) as u8;
    let stride = 3 * width;
    let mut line = vec![0u8; stride];
    for row in pixels.chunks_exact_mut(stride) {
        line.copy_from_slice(row);
        for at in 3..stride - 3 {
            row[at] = mix(line[at - 3], line[at], line[at + 3]);
        }
    }
    let mut above = pixels[..stride].to_vec();
    for row in 1..height - 1 {
        line.copy_from_slice(&pixels[row * stride..][..stride]);
        for at in 0..stride {
            pixels[row * stride + at] = mix(above[at], line[at], pixels[(row + 1) * stride + at]);
        }
        std::mem::swap(&mut above, &mut line);
    }
}
