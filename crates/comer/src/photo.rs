//! Turns any image of handwriting into one like the training images: white ink on black, strokes 3 pixels wide.
//!
//! The steps, one module each: `decode` (bytes to grey levels), [`light`] (which side is ink, uneven light, threshold),
//! [`paper`] (ruled and squared lines), [`shape`] (specks, stroke width, symbol size), [`redraw`] (to size, in 3 pixels).

#[cfg(feature = "decode")]
mod decode;
pub mod light;
pub mod paper;
pub mod redraw;
pub mod shape;

#[cfg(feature = "decode")]
pub use decode::{MOST_PIXELS, decode, grey};

use crate::components::{Component, components};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::mapping::Mapping;

/// Grey levels in rows from the top, 0 for black, with ink of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grey {
    /// Pixels in a row, at least one.
    pub width: usize,
    /// Rows, at least one.
    pub height: usize,
    /// The levels.
    pub levels: Vec<u8>,
}

/// Which pixels are ink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// True for ink, in rows from the top.
    pub ink: Vec<bool>,
}

impl Mask {
    /// The connected components of the ink.
    pub fn components(&self) -> Vec<Component> {
        components(&self.ink, self.width)
    }
}

/// Turns any image into one like those of the training set, and maps the one onto the other. An image that is like them
/// already stays as it is.
pub fn clean(grey: &Grey, remove_lines: bool) -> Result<(Image, Mapping)> {
    if is_training_drawing(grey) {
        let image = Image::new(grey.width, grey.height, grey.levels.clone())?;
        return Ok((image, Mapping::scale(1.0, 1.0)));
    }
    let nothing = || Error::Image {
        width: grey.width,
        height: grey.height,
        reason: "no ink found, expected handwriting that stands out from its ground".into(),
    };
    let (small, shrunk) = light::shrink(grey);
    let mut strength = light::ink_strength(&small);
    let pen = |strength: &light::Strength, level: f32| {
        shape::stroke_width(&shape::without_specks(&strength.at_least(level)))
    };
    let level = light::threshold(&strength).ok_or_else(nothing)?;
    if remove_lines {
        let width = pen(&strength, level).ok_or_else(nothing)?;
        strength = paper::without_lines(&strength, level, width);
    }
    let level = light::threshold(&strength).ok_or_else(nothing)?;
    let width = pen(&strength, level).ok_or_else(nothing)?;
    let (strength, factor) = light::refine(&strength, width);
    let level = light::threshold(&strength).ok_or_else(nothing)?;
    let mask = strength.at_least(level);
    let mask = shape::without_specks(&shape::without_borders(&mask, width * factor as f32));
    let (image, redrawn) = redraw::to_training_size(&mask, &strength, level).ok_or_else(nothing)?;
    let refined = Mapping::scale(factor as f64, factor as f64);
    Ok((image, shrunk.then(refined).then(redrawn)))
}

/// Whether an image is drawn like those of the training set: white on black in a 3 by 3 pen, with their margins.
pub fn is_training_drawing(grey: &Grey) -> bool {
    let Grey { width, height, ref levels } = *grey;
    if width < 26 || height < 26 || levels.iter().any(|&level| level != 0 && level != 255) {
        return false;
    }
    let row = |y: usize| levels[y * width..(y + 1) * width].contains(&255);
    let column = |x: usize| levels.iter().skip(x).step_by(width).any(|&level| level == 255);
    let empty = (0..12).chain(height - 11..height).all(|y| !row(y))
        && (0..12).chain(width - 11..width).all(|x| !column(x));
    let full = row(12) && row(height - 12) && column(12) && column(width - 12);
    // Every pixel of ink lies in a 3 by 3 square of ink.
    let square = |x: usize, y: usize| (0..9).all(|cell| levels[(y + cell / 3) * width + x + cell % 3] == 255);
    let under_pen = |x: usize, y: usize| (0..9).any(|cell| square(x - cell % 3, y - cell / 3));
    empty && full && (0..levels.len()).all(|at| levels[at] == 0 || under_pen(at % width, at / width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::{Ink, Point, Stroke};

    /// An x over a fraction bar over an x, as a training image.
    fn drawing() -> Image {
        let stroke =
            |points: &[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        let strokes = [
            stroke(&[(10.0, 0.0), (30.0, 28.0)]),
            stroke(&[(30.0, 0.0), (10.0, 28.0)]),
            stroke(&[(0.0, 40.0), (60.0, 40.0)]),
            stroke(&[(10.0, 52.0), (30.0, 80.0)]),
            stroke(&[(30.0, 52.0), (10.0, 80.0)]),
        ];
        Ink::new(strokes.to_vec()).unwrap().draw().unwrap()
    }

    fn grey(picture: &Image, level: impl Fn(usize, u8) -> u8) -> Grey {
        let levels = picture.pixels().iter().enumerate().map(|(at, &pixel)| level(at, pixel)).collect();
        Grey { width: picture.width(), height: picture.height(), levels }
    }

    #[test]
    fn a_training_picture_stays_as_it_is() {
        let drawing = drawing();
        assert_eq!(clean(&grey(&drawing, |_, pixel| pixel), true).unwrap().0, drawing);
    }

    #[test]
    fn a_picture_without_ink_is_refused() {
        for side in [1, 2, 7, 26, 300] {
            for level in [0, 1, 128, 255] {
                let blank = Grey { width: side, height: side, levels: vec![level; side * side] };
                let message = clean(&blank, true).unwrap_err().to_string();
                assert!(message.contains("no ink found"), "{side} {level}: {message}");
            }
        }
    }

    #[test]
    fn pictures_of_a_few_pixels_do_no_harm() {
        for (width, height) in [(1, 9), (9, 1), (2, 2), (3, 5), (40, 1), (1, 400)] {
            for seed in 0..8u32 {
                let level = |at: usize| ((at as u32 + 1).wrapping_mul(2_654_435_761 ^ seed) >> 24) as u8;
                let noise = Grey { width, height, levels: (0..width * height).map(level).collect() };
                if let Ok((picture, _)) = clean(&noise, true) {
                    assert!(picture.pixels().contains(&255));
                }
            }
        }
    }

    #[test]
    fn dark_on_light_and_light_on_dark_come_out_alike() {
        let drawing = drawing();
        let dark = clean(&grey(&drawing, |_, pixel| 230 - pixel / 2), true).unwrap().0;
        let light = clean(&grey(&drawing, |_, pixel| 25 + pixel / 2), true).unwrap().0;
        for (name, picture) in [("dark", dark), ("light", light)] {
            let near = |found: usize, expected: usize| found.abs_diff(expected) * 8 <= expected;
            assert!(
                near(picture.width(), drawing.width()) && near(picture.height(), drawing.height()),
                "{name}"
            );
            assert_eq!(mask(&picture).components().len(), 3, "{name}");
        }
    }

    fn mask(picture: &Image) -> Mask {
        let ink = picture.pixels().iter().map(|&pixel| pixel > 127).collect();
        Mask { width: picture.width(), height: picture.height(), ink }
    }

    #[test]
    fn lines_of_the_paper_go_and_fraction_bars_stay() {
        let drawing = drawing();
        let width = drawing.width();
        // Two lines from edge to edge, one of them through the lower x.
        let ruled = grey(&drawing, |at, pixel| {
            if pixel == 255 {
                20
            } else if [5, 75].contains(&(at / width)) {
                60
            } else {
                230
            }
        });
        let cleaned = clean(&ruled, true).unwrap().0;
        assert_eq!(mask(&cleaned).components().len(), 3);
        let kept = clean(&ruled, false).unwrap().0;
        assert_ne!(kept, cleaned);
    }

    #[test]
    fn thick_and_thin_pens_come_out_three_pixels_wide() {
        let drawing = drawing();
        for (pen, factor) in [(1, 4), (6, 4), (20, 4)] {
            // Centre lines at four times the size, in another pen.
            let lines = shape::centre_lines(&mask(&drawing));
            let (width, height) = (lines.width * factor, lines.height * factor);
            let mut levels = vec![230; width * height];
            for (at, _) in lines.ink.iter().enumerate().filter(|(_, ink)| **ink) {
                let (x, y) = (at % lines.width * factor, at / lines.width * factor);
                for cell in 0..(pen + 3) * (pen + 3) {
                    levels[(y + cell / (pen + 3)) * width + x + cell % (pen + 3)] = 20;
                }
            }
            let picture = clean(&Grey { width, height, levels }, true).unwrap().0;
            let width = shape::stroke_width(&mask(&picture)).unwrap();
            assert!((2.5..=3.6).contains(&width), "a pen of {pen} came out {width} wide");
        }
    }
}
