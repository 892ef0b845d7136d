//! Drawings and pictures made of them.

use super::*;
use crate::ink::{Ink, Point, Stroke};

fn clean(grey: &Grey, remove_lines: bool) -> Result<(Image, Mapping)> {
    super::clean(grey, remove_lines, &Work::new(&|| Ok(())))
}

/// The number of connected parts of the ink.
fn parts(picture: &Image) -> usize {
    Parts::of(&mask(picture), &Work::new(&|| Ok(()))).unwrap().list.len()
}

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
fn a_small_dense_training_picture_stays_as_it_is() {
    let cross = Ink::from_json(b"[[[0,0],[10,10],[20,20]],[[20,0],[10,10],[0,20]]]").unwrap().draw().unwrap();
    assert_eq!(clean(&grey(&cross, |_, pixel| pixel), true).unwrap().0, cross);
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
        assert!(near(picture.width(), drawing.width()) && near(picture.height(), drawing.height()), "{name}");
        assert_eq!(parts(&picture), 3, "{name}");
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
    assert_eq!(parts(&cleaned), 3);
    let kept = clean(&ruled, false).unwrap().0;
    assert_ne!(kept, cleaned);
}

#[test]
fn light_between_the_lines_of_a_sheet_is_not_ink() {
    // A ruled sheet on a dark desk, in shadow but for its right side, with faint writing.
    let drawing = drawing();
    let (width, height) = (900, 1200);
    let level = |at: usize| {
        let (x, y) = (at % width, at / width);
        if !(60..840).contains(&x) || !(60..1140).contains(&y) {
            return 40;
        }
        let ink = x.checked_sub(200).zip(y.checked_sub(250)).is_some_and(|(x, y)| {
            x / 2 < drawing.width()
                && y / 2 < drawing.height()
                && drawing.pixels()[y / 2 * drawing.width() + x / 2] == 255
        });
        let light = if x + y / 4 > 850 { 230.0 } else { 120.0 };
        let share = if ink {
            0.72
        } else if y % 40 < 2 {
            0.85
        } else {
            1.0
        };
        (light * share) as u8
    };
    let photograph = Grey { width, height, levels: (0..width * height).map(level).collect() };
    let picture = clean(&photograph, true).unwrap().0;
    assert_eq!(parts(&picture), 3);
    assert!(picture.width().abs_diff(drawing.width()) < 12, "{} pixels wide", picture.width());
}

#[test]
fn thick_and_thin_pens_come_out_three_pixels_wide() {
    let drawing = drawing();
    for (pen, factor) in [(1, 4), (6, 4), (20, 4)] {
        // Centre lines at four times the size, in another pen.
        let work = Work::new(&|| Ok(()));
        let lines = shape::centre_lines(&mask(&drawing), &work).unwrap();
        let (width, height) = (lines.width * factor, lines.height * factor);
        let mut levels = vec![230; width * height];
        for (at, _) in lines.ink.iter().enumerate().filter(|(_, ink)| **ink) {
            let (x, y) = (at % lines.width * factor, at / lines.width * factor);
            for cell in 0..(pen + 3) * (pen + 3) {
                levels[(y + cell / (pen + 3)) * width + x + cell % (pen + 3)] = 20;
            }
        }
        let picture = clean(&Grey { width, height, levels }, true).unwrap().0;
        let width = parts::stroke_width(&mask(&picture), &work).unwrap().unwrap();
        assert!((2.5..=3.6).contains(&width), "a pen of {pen} came out {width} wide");
    }
}
