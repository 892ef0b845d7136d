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

/// A drawing with other margins than those of the training images: 12 pixels, and 11 to the right and below.
fn with_margin(drawing: &Image, margin: usize) -> Image {
    let side = |side: usize| side - 23 + margin + margin.saturating_sub(1);
    let (width, height) = (side(drawing.width()), side(drawing.height()));
    let level = |at: usize| {
        let inside =
            |place: usize, side: usize| (place + 12).checked_sub(margin).filter(|&place| place < side);
        let place = inside(at % width, drawing.width()).zip(inside(at / width, drawing.height()));
        place.map_or(0, |(x, y)| drawing.pixels()[y * drawing.width() + x])
    };
    Image::new(width, height, (0..width * height).map(level).collect()).unwrap()
}

#[test]
fn a_training_picture_stays_as_it_is_whatever_its_margins() {
    // The second one is small and dense.
    let cross = Ink::from_json(b"[[[0,0],[10,10],[20,20]],[[20,0],[10,10],[0,20]]]").unwrap().draw().unwrap();
    for drawing in [drawing(), cross] {
        for margin in [0, 1, 12, 40, 100] {
            let drawing = with_margin(&drawing, margin);
            assert_eq!(clean(&grey(&drawing, |_, pixel| pixel), true).unwrap().0, drawing, "margin {margin}");
        }
    }
}

#[test]
fn a_drawing_in_another_pen_is_redrawn() {
    let drawing = drawing();
    let (width, height) = (drawing.width(), drawing.height());
    let ink = |x: usize, y: usize| drawing.pixels()[y * width + x] == 255;
    // One pixel more or less to the right and below.
    let wider = |at: usize, _| {
        let (x, y) = (at % width, at / width);
        let near = (x.saturating_sub(1)..=x).any(|x| (y.saturating_sub(1)..=y).any(|y| ink(x, y)));
        if near { 255 } else { 0 }
    };
    let narrower = |at: usize, _| {
        let (x, y) = (at % width, at / width);
        let all = (x..(x + 2).min(width)).all(|x| (y..(y + 2).min(height)).all(|y| ink(x, y)));
        if all { 255 } else { 0 }
    };
    let work = Work::new(&|| Ok(()));
    assert!(is_training_drawing(&grey(&drawing, |_, pixel| pixel), &work).unwrap());
    assert!(!is_training_drawing(&grey(&drawing, wider), &work).unwrap(), "4 pixels");
    assert!(!is_training_drawing(&grey(&drawing, narrower), &work).unwrap(), "2 pixels");
}

/// White on black in a round pen of 3 pixels.
fn white_lines(width: usize, height: usize, lines: &[[usize; 4]]) -> Grey {
    let mut levels = vec![0; width * height];
    for &[x, y, to_x, to_y] in lines {
        let steps = x.abs_diff(to_x).max(y.abs_diff(to_y)).max(1);
        for step in 0..=steps {
            let place =
                |from: usize, to: usize| (2 * (from * (steps - step) + to * step) + steps) / (2 * steps);
            let at = place(y, to_y) * width + place(x, to_x);
            [at, at - 1, at + 1, at - width, at + width].iter().for_each(|&at| levels[at] = 255);
        }
    }
    Grey { width, height, levels }
}

#[test]
fn light_strokes_around_a_dark_place_are_no_sheet() {
    // A wide fraction bar with strokes above and below.
    let bar = [36, 88, 496, 78];
    let (slash, other) = ([235, 12, 222, 60], [374, 26, 360, 44]);
    let letter = [[420, 26, 420, 54], [442, 26, 442, 54], [420, 40, 442, 40]];
    let lines = [&[bar, slash, other, [210, 116, 210, 142]], &letter[..]].concat();
    let picture = white_lines(509, 154, &lines);
    assert_eq!(page::find(&picture, &Work::new(&|| Ok(()))).unwrap(), None);
    assert_eq!(parts(&clean(&picture, true).unwrap().0), 5);
    // Two brackets around a fraction bar.
    let bracket = |x: usize, end: usize| [[x, 20, x, 135], [x, 20, end, 20], [x, 135, end, 135]];
    let lines = [&bracket(80, 110)[..], &bracket(480, 450), &[[150, 78, 410, 78]]].concat();
    assert_eq!(parts(&clean(&white_lines(552, 155, &lines), true).unwrap().0), 3);
}

#[test]
fn an_empty_sheet_has_no_ink() {
    let (width, height) = (800, 600);
    let level = |at: usize| {
        let (x, y) = (at % width, at / width);
        let is_sheet = (90..710).contains(&x) && (70..530).contains(&y);
        if is_sheet { 220 } else { 30 + (at * 7919 % 13) as u8 }
    };
    let picture = Grey { width, height, levels: (0..width * height).map(level).collect() };
    let found = clean(&picture, true).map(|(image, _)| (image.width(), image.height()));
    let message = found.expect_err("an empty sheet").to_string();
    assert!(message.contains("no ink found"), "{message}");
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
