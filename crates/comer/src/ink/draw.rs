//! Draws strokes as the bitmaps of CROHME were drawn, to the pixel: the network has seen no other drawing.
//!
//! The rule, recovered by comparing ink and bitmaps: coordinates are whole numbers (thousandths, if any has a
//! fraction). Strokes of at most a tenth of the tallest do not count; the mean height of the others, rounded down,
//! becomes 28 pixels. Points are scaled in f32, truncated, joined by Bresenham lines and drawn with a square pen of 3
//! by 3 pixels. Every training bitmap comes out identical.

use super::{Ink, Point, Stroke};
use crate::components;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::mapping::Mapping;

/// What the mean height of the strokes comes to, in pixels.
const MEAN_HEIGHT: f32 = 28.0;
/// Pixels from the edge of the image to the middle of the pen where it comes closest.
const MARGIN: usize = 13;
/// Pixels along each side of the pen that CROHME was drawn with.
pub const PEN: usize = 3;
/// The thickest pen that fits into the margin.
pub const MOST_PEN: usize = MARGIN;
/// Longest side of a drawing.
const LONGEST_SIDE: i64 = 4096;
/// Whole numbers up to this are exact in f32.
const EXACT: f64 = 16_777_216.0;
/// Coordinates whose mean height is smaller are too coarse to round; the smallest of CROHME is 9.
const LEAST_MEAN: f64 = 8.0;
/// Nothing is drawn finer than this many steps to a unit.
const FINEST: f64 = 1e12;

impl Ink {
    /// The strokes as white ink on black, as the training images were drawn. A drawing that would be longer than
    /// 4096 pixels is refused; [`Image::fit`] brings any other within the network's limits.
    pub fn draw(&self) -> Result<Image> {
        self.draw_with(PEN)
    }

    /// The same with a square pen of `pen` by `pen` pixels, at most [`MOST_PEN`].
    pub fn draw_with(&self, pen: usize) -> Result<Image> {
        if !(1..=MOST_PEN).contains(&pen) {
            let reason = format!("a pen of {pen} pixels cannot draw, expected 1 to {MOST_PEN}");
            return Err(Error::Ink { format: "ink", reason });
        }
        let (strokes, _) = pixels(self);
        let furthest = |axis: usize| strokes.iter().flatten().map(|point| point[axis]).max().unwrap_or(0);
        let side = |axis: usize| furthest(axis).saturating_add(2 * MARGIN as i64);
        let (width, height) = (side(0), side(1));
        if width.max(height) > LONGEST_SIDE {
            let reason = format!(
                "drawn with strokes {MEAN_HEIGHT} pixels high it has {width} x {height} pixels, expected at most {LONGEST_SIDE} a side"
            );
            return Err(Error::Ink { format: "ink", reason });
        }
        let (width, height) = (width as usize, height as usize);
        let mut canvas = Canvas { width, pen, pixels: vec![0; width * height] };
        walk(&strokes, |_, at| canvas.dot(at));
        Image::new(width, height, canvas.pixels)
    }

    /// How many pixels of [`Self::draw`] make a unit of the strokes' coordinates.
    #[doc(hidden)]
    pub fn pixels_per_unit(&self) -> f64 {
        let Whole { strokes, unit, .. } = Whole::new(&self.strokes);
        f64::from(factor(self, &strokes, unit)) * unit
    }

    /// Maps the strokes' coordinates onto the pixels of [`Self::draw`].
    pub(crate) fn mapping(&self) -> Mapping {
        pixels(self).1
    }

    /// Tells of every pixel of [`Self::draw`] that the middle of the pen comes to, with the number of the stroke.
    pub fn pen(&self, mut tell: impl FnMut(usize, [usize; 2])) {
        let (strokes, _) = pixels(self);
        walk(&strokes, |stroke, at| tell(stroke, at.map(|side| side as usize + MARGIN)));
    }
}

/// Every pixel of the strokes' Bresenham lines, with the number of the stroke.
fn walk(strokes: &[Vec<[i64; 2]>], mut tell: impl FnMut(usize, [i64; 2])) {
    for (number, stroke) in strokes.iter().enumerate() {
        tell(number, stroke[0]);
        for pair in stroke.windows(2) {
            line(pair[0], pair[1], |at| tell(number, at));
        }
    }
}

/// Strokes in whole numbers, fine enough for heights to be rounded down.
struct Whole {
    strokes: Vec<Vec<Point>>,
    /// How many of these make a unit of the ink.
    unit: f64,
    /// What became zero.
    origin: [f64; 2],
}

impl Whole {
    fn new(strokes: &[Stroke]) -> Self {
        let points = || strokes.iter().flat_map(|stroke| &stroke.points);
        let whole = points().all(|point| point.x.fract() == 0.0 && point.y.fract() == 0.0);
        let mut unit = if whole { 1.0 } else { 1000.0 };
        let mean = mean_height(strokes.iter().map(|stroke| stroke.points.as_slice()));
        while mean > 0.0 && mean * unit < LEAST_MEAN && unit < FINEST {
            unit *= 1000.0;
        }
        // Far from zero f32 would lose the shape, so such ink is moved there first.
        let far = points().any(|point| point.x.abs().max(point.y.abs()) * unit > EXACT);
        let least = |axis: fn(&Point) -> f64| points().map(axis).fold(f64::INFINITY, f64::min);
        let origin = if far { [least(|point| point.x), least(|point| point.y)] } else { [0.0; 2] };
        let round = |value: f64| (value * unit + 0.5).floor();
        let convert = |point: &Point| Point { x: round(point.x - origin[0]), y: round(point.y - origin[1]) };
        let strokes = strokes.iter().map(|stroke| stroke.points.iter().map(convert).collect()).collect();
        Self { strokes, unit, origin }
    }
}

/// The points of each stroke in pixels from the left and the top of the ink, and the mapping onto the drawing.
fn pixels(ink: &Ink) -> (Vec<Vec<[i64; 2]>>, Mapping) {
    let Whole { strokes, unit, origin } = Whole::new(&ink.strokes);
    let factor = factor(ink, &strokes, unit);
    let scale = |value: f64| (value as f32 * factor) as i64;
    let mut scaled: Vec<Vec<[i64; 2]>> = Vec::with_capacity(strokes.len());
    for stroke in &strokes {
        scaled.push(stroke.iter().map(|point| [scale(point.x), scale(point.y)]).collect());
    }
    let whole = unit * f64::from(factor);
    let mut offset = [0.0; 2];
    for axis in 0..2 {
        let least = scaled.iter().flatten().map(|point| point[axis]).min().unwrap_or(0);
        scaled.iter_mut().flatten().for_each(|point| point[axis] = point[axis].saturating_sub(least));
        offset[axis] = MARGIN as f64 - least as f64 - origin[axis] * whole;
    }
    (scaled, Mapping::new([whole; 2], offset))
}

/// What whole numbers, of which `unit` make a unit, are multiplied by.
fn factor(ink: &Ink, strokes: &[Vec<Point>], unit: f64) -> f32 {
    let mean = mean_height(strokes.iter().map(Vec::as_slice)).floor();
    match ink.scale {
        Some(scale) => (scale / unit) as f32,
        None if mean > 0.0 => MEAN_HEIGHT / mean as f32,
        None => 1.0,
    }
}

/// The [mean height](components::mean_height) of strokes.
fn mean_height<'a>(strokes: impl Iterator<Item = &'a [Point]>) -> f64 {
    let extent = |points: &[Point], axis: fn(&Point) -> f64| {
        let bounds =
            points.iter().map(axis).fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        bounds.1 - bounds.0
    };
    let size = |points: &[Point]| (extent(points, |point| point.x), extent(points, |point| point.y));
    components::mean_height(&strokes.map(size).collect::<Vec<_>>())
}

/// Pixels under the pen.
struct Canvas {
    width: usize,
    pen: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Draws the pen at a point; the margin is wide enough for all of it.
    fn dot(&mut self, [x, y]: [i64; 2]) {
        let before = (self.pen - 1) / 2;
        let (left, top) = (x as usize + MARGIN - before, y as usize + MARGIN - before);
        for row in top..top + self.pen {
            let start = row * self.width + left;
            self.pixels[start..start + self.pen].fill(255);
        }
    }
}

/// A Bresenham line without its first pixel.
fn line([mut x, mut y]: [i64; 2], to: [i64; 2], mut tell: impl FnMut([i64; 2])) {
    let (across, down) = ((to[0] - x).abs(), -(to[1] - y).abs());
    let (right, below) = ((to[0] - x).signum(), (to[1] - y).signum());
    let mut error = across + down;
    while [x, y] != to {
        let twice = 2 * error;
        if twice >= down {
            error += down;
            x += right;
        }
        if twice <= across {
            error += across;
            y += below;
        }
        tell([x, y]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ink(strokes: &[&[(f64, f64)]]) -> Ink {
        let stroke =
            |points: &&[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        Ink::new(strokes.iter().map(stroke).collect()).unwrap()
    }

    fn size(ink: &Ink) -> (usize, usize) {
        let picture = ink.draw().unwrap();
        (picture.width(), picture.height())
    }

    #[test]
    fn a_stroke_is_three_pixels_wide_between_its_margins() {
        let picture = ink(&[&[(5.0, 5.0), (5.0, 33.0)]]).draw().unwrap();
        assert_eq!((picture.width(), picture.height()), (26, 54));
        for (index, &pixel) in picture.pixels().iter().enumerate() {
            let (x, y) = (index % 26, index / 26);
            let inside = (12..15).contains(&x) && (12..43).contains(&y);
            assert_eq!(pixel, if inside { 255 } else { 0 }, "at {x}, {y}");
        }
    }

    #[test]
    fn mean_height_becomes_28_pixels() {
        let table: [(&str, Ink, (usize, usize)); 6] = [
            ("56 units", ink(&[&[(0.0, 0.0), (10.0, 56.0)]]), (31, 54)),
            (
                "mean 57.5 rounded down to 57",
                ink(&[&[(0.0, 0.0), (0.0, 60.0)], &[(9.0, 0.0), (9.0, 55.0)]]),
                (30, 55),
            ),
            (
                "a tenth does not count",
                ink(&[&[(0.0, 0.0), (0.0, 60.0)], &[(90.0, 0.0), (90.0, 6.0)]]),
                (68, 54),
            ),
            ("fractions", ink(&[&[(0.0, 0.0), (0.0, 0.5)], &[(0.75, 0.0), (0.75, 0.5)]]), (68, 54)),
            ("a minus sign", ink(&[&[(0.0, 0.0), (100.0, 2.0)]]), (54, 26)),
            ("a dot", ink(&[&[(7.0, 7.0)]]), (26, 26)),
        ];
        for (name, ink, expected) in table {
            assert_eq!(size(&ink), expected, "{name}");
        }
    }

    #[test]
    fn a_given_scale_replaces_the_rule() {
        let ink = ink(&[&[(0.0, 0.0), (40.0, 100.0)]]);
        assert_eq!(size(&ink), (11 + 26, 28 + 26));
        assert!((ink.pixels_per_unit() - 0.28).abs() < 1e-6);
        assert_eq!(size(&ink.clone().with_scale(Some(0.25))), (10 + 26, 25 + 26));
        assert_eq!(size(&ink.clone().with_scale(Some(0.25)).with_scale(None)), size(&ink));
    }

    #[test]
    fn place_and_unit_do_not_matter_much() {
        let shape = [(0.0, 0.0), (31.0, 62.0), (62.0, 0.0), (93.0, 62.0)];
        let near = size(&ink(&[&shape]));
        for (offset, unit) in [(9e8, 1.0), (-9e8, 1.0), (0.0, 1e-3), (0.0, 1e-6), (0.0, 1e6), (1e-3, 1e-7)] {
            let moved: Vec<_> = shape.iter().map(|(x, y)| (x * unit + offset, y * unit + offset)).collect();
            let (width, height) = size(&ink(&[&moved]));
            assert!(
                width.abs_diff(near.0) <= 1 && height.abs_diff(near.1) <= 1,
                "{offset} {unit}: {width} x {height}"
            );
        }
    }

    #[test]
    fn a_drawing_that_would_be_too_large_is_refused() {
        for height in [1.0, 1e-9, 1e-15, 1e-300] {
            let ink = ink(&[&[(-1e9, -1e9), (-1e9, -1e9 + height)], &[(1e9, 0.0), (1e9, height)]]);
            let message = ink.draw().unwrap_err().to_string();
            assert!(message.contains("expected at most 4096 a side"), "{height}: {message}");
        }
    }
}
