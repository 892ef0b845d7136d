//! A canvas: heat maps, ink, anti-aliased lines and text.

use super::font;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// Rows of pixels from the top.
#[derive(Clone)]
pub struct Canvas {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<Colour>,
}

impl Canvas {
    pub fn new(width: usize, height: usize, colour: Colour) -> Self {
        Self { width, height, pixels: vec![colour; width * height] }
    }

    /// Mixes a colour in, `share` of 0..=1 of it.
    pub fn mix(&mut self, x: usize, y: usize, colour: Colour, share: f32) {
        if x < self.width && y < self.height {
            let pixel = &mut self.pixels[y * self.width + x];
            *pixel = mixed(*pixel, colour, share);
        }
    }

    pub fn fill(&mut self, left: usize, top: usize, width: usize, height: usize, colour: Colour) {
        for y in top..(top + height).min(self.height) {
            for x in left..(left + width).min(self.width) {
                self.pixels[y * self.width + x] = colour;
            }
        }
    }

    /// A line through points with round ends.
    pub fn line(&mut self, points: &[(f32, f32)], thickness: f32, colour: Colour) {
        let reach = thickness / 2.0 + 1.0;
        let bound = |of: fn(&(f32, f32)) -> f32| {
            let values = points.iter().map(of);
            let (least, most) =
                values.fold((f32::MAX, f32::MIN), |(a, b), value| (a.min(value), b.max(value)));
            ((least - reach).max(0.0) as usize, (most + reach).max(0.0) as usize)
        };
        let ((left, right), (top, bottom)) = (bound(|point| point.0), bound(|point| point.1));
        for y in top..=bottom.min(self.height.saturating_sub(1)) {
            for x in left..=right.min(self.width.saturating_sub(1)) {
                let here = (x as f32 + 0.5, y as f32 + 0.5);
                let distances = points.windows(2).map(|ends| distance(here, ends[0], ends[1]));
                let share = (0.5 + thickness / 2.0 - distances.fold(f32::MAX, f32::min)).clamp(0.0, 1.0);
                if share > 0.0 {
                    self.mix(x, y, colour, share);
                }
            }
        }
    }

    /// The outline of a box.
    pub fn frame(&mut self, [left, top, right, bottom]: [f32; 4], thickness: f32, colour: Colour) {
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.line(&corners, thickness, colour);
    }

    /// Writes a text whose capitals are `size` pixels high, their top at `top`. Returns the right end.
    pub fn text(&mut self, text: &str, left: f32, top: f32, size: f32, colour: Colour) -> f32 {
        let scale = size / font::CAPITAL;
        let mut x = left;
        for character in text.chars() {
            let glyph = font::glyph(character);
            for stroke in &glyph.strokes {
                let points: Vec<(f32, f32)> =
                    stroke.iter().map(|&(across, down)| (x + across * scale, top + down * scale)).collect();
                self.line(&points, (size / 7.0).max(1.2), colour);
            }
            x += (glyph.width + font::GAP) * scale;
        }
        x
    }
}

/// The width of a text in pixels.
pub fn text_width(text: &str, size: f32) -> f32 {
    font::width(text) * size / font::CAPITAL
}

pub fn mixed(from: Colour, to: Colour, share: f32) -> Colour {
    let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share).round() as u8;
    [mix(from[0], to[0]), mix(from[1], to[1]), mix(from[2], to[2])]
}

/// The distance of a point from a line segment.
fn distance(point: (f32, f32), from: (f32, f32), to: (f32, f32)) -> f32 {
    let (across, down) = (to.0 - from.0, to.1 - from.1);
    let length = across * across + down * down;
    let along = ((point.0 - from.0) * across + (point.1 - from.1) * down) / length.max(1e-9);
    let along = along.clamp(0.0, 1.0);
    (point.0 - from.0 - along * across).hypot(point.1 - from.1 - along * down)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Colour = [255; 3];
    const BLACK: Colour = [0; 3];

    #[test]
    fn a_line_is_as_thick_as_it_should_be_and_stays_on_the_canvas() {
        let mut canvas = Canvas::new(20, 9, WHITE);
        canvas.line(&[(-5.0, 4.5), (40.0, 4.5)], 3.0, BLACK);
        let column: Vec<u8> = (0..9).map(|y| canvas.pixels[y * 20 + 10][0]).collect();
        assert_eq!(column, [255, 255, 255, 0, 0, 0, 255, 255, 255]);
        canvas.line(&[(100.0, 100.0), (200.0, 200.0)], 3.0, BLACK);
        canvas.line(&[(-100.0, -100.0), (-50.0, -60.0)], 3.0, BLACK);
        canvas.fill(15, 5, 100, 100, BLACK);
    }

    #[test]
    fn text_is_as_wide_as_it_says() {
        let mut canvas = Canvas::new(200, 40, WHITE);
        let end = canvas.text(r"\frac", 5.0, 5.0, 14.0, BLACK);
        assert!((end - font::GAP - 5.0 - text_width(r"\frac", 14.0)).abs() < 1e-3);
        let dark = |x: usize| (0..40).any(|y| canvas.pixels[y * 200 + x][0] < 128);
        let last = (0..200).filter(|&x| dark(x)).max().unwrap() as f32;
        assert!((last - (5.0 + text_width(r"\frac", 14.0))).abs() < 2.0);
    }
}
