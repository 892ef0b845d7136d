//! Inputs of every kind, and where their places are in the image.

use super::*;
use crate::ink::Stroke;

fn stroke(points: &[(f64, f64)]) -> Stroke {
    Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() }
}

fn cross(side: f64) -> Ink {
    Ink::new(vec![stroke(&[(0.0, 0.0), (side, side)]), stroke(&[(side, 0.0), (0.0, side)])]).unwrap()
}

#[test]
fn the_content_decides_what_an_input_is() {
    let strokes = br#" [[[0, 0], [40, 40]], [[40, 0], [0, 40]]]"#;
    let from_json = Input::from_bytes(strokes).unwrap();
    let with_mark = Input::from_bytes(&[b"\xef\xbb\xbf", &strokes[..]].concat()).unwrap();
    let from_inkml = Input::from_bytes(cross(40.0).to_inkml().as_bytes()).unwrap();
    for input in [&from_json, &with_mark, &from_inkml] {
        assert_eq!(input.image(), from_json.image());
        assert_eq!(input.ink().unwrap().strokes().len(), 2);
    }
    let svg = format!("<?xml version='1.0'?><!-- {} --><svg/>", "x".repeat(5_000));
    let table = [
        (&b"<p/>"[..], "InkML"),
        (b"{}", "JSON"),
        (b"GIF", "image"),
        (b"", "image"),
        (svg.as_bytes(), "SVG files are not supported"),
    ];
    for (bytes, expected) in table {
        let message = Input::from_bytes(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn errors_of_files_name_them_and_have_a_source() {
    use std::error::Error as _;
    let error = Input::from_path("/nonexistent/x.png").unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && error.source().is_some(), "{error:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.json");
    std::fs::write(&path, "{}").unwrap();
    let error = Input::from_path(&path).unwrap_err();
    assert!(error.to_string().contains("bad.json"), "{error}");
    assert!(error.source().unwrap().to_string().contains("JSON"), "{error:?}");
}

#[test]
fn ink_is_mapped_onto_its_pixels() {
    // Whole numbers, fractions, far from zero, and so wide that the drawing is scaled to fit.
    let wide: Vec<(f64, f64)> = (0..9).map(|x| (f64::from(x) * 40.0, f64::from(x % 2) * 10.0)).collect();
    let far = stroke(&[(9e8, -9e8), (9e8 + 70.0, -9e8 + 90.0)]);
    for ink in
        [cross(60.0), cross(0.37), Ink::new(vec![far]).unwrap(), Ink::new(vec![stroke(&wide)]).unwrap()]
    {
        let input = Input::from_ink(ink).unwrap();
        let (image, drawing) = (input.image(), input.ink().unwrap().draw().unwrap());
        let factor = image.width() as f64 / drawing.width() as f64;
        let mut first = Vec::new();
        input.ink().unwrap().pen(|stroke, pixel| {
            if first.len() == stroke {
                first.push(pixel);
            }
        });
        for (stroke, pixel) in input.ink().unwrap().strokes().iter().zip(first) {
            let place = input.to_image(stroke.points[0]);
            for (found, expected) in [(place.x, pixel[0]), (place.y, pixel[1])] {
                let off = found / factor - (expected as f64 + 0.5);
                assert!(off.abs() <= 1.0, "{off} pixels off");
            }
            let back = input.to_source(place);
            let error = (back.x - stroke.points[0].x).abs().max((back.y - stroke.points[0].y).abs());
            assert!(error < 1e-3, "{error}");
        }
    }
}

#[test]
fn photographs_are_mapped_onto_their_pixels() {
    // A cross in a pen that fits its size, which is scaled, and in one that is too thin, which is redrawn.
    for (pen, side) in [(8, 90), (3, 150)] {
        let (width, height) = (400, 300);
        let mut levels = vec![230; width * height];
        for step in 0..side {
            for (x, y) in [(150 + step, 80 + step), (150 + side - step, 80 + step)] {
                for row in y..y + pen {
                    levels[row * width + x..][..pen].fill(20);
                }
            }
        }
        let input = Input::from_pixels(width, height, levels).unwrap();
        // The middle of the cross is the middle of the image that the model reads.
        let middle = 80.0 + (side + pen) as f64 / 2.0;
        let place = input.to_image(Point { x: middle + 70.0, y: middle });
        for (found, side) in [(place.x, input.image().width()), (place.y, input.image().height())] {
            assert!((found - side as f64 / 2.0).abs() < 2.0, "pen {pen}: {found} of {side}");
        }
    }
}

#[test]
fn an_input_can_be_turned() {
    let image =
        Image::new(40, 30, (0..1200).map(|at| if at % 40 == 3 && at < 400 { 255 } else { 0 }).collect());
    let input = Input::from_image(image.unwrap()).unwrap();
    let turned = input.turned(1).unwrap();
    assert_eq!((turned.image().width(), turned.image().height()), (30, 40));
    // The upper end of the line is now its right end.
    let place = turned.to_image(Point { x: 3.5, y: 0.5 });
    assert_eq!((place.x, place.y), (29.5, 3.5));
    assert_eq!(turned.image().pixels()[3 * 30 + 29], 255);
    let back = turned.to_source(place);
    assert!((back.x - 3.5).abs() < 1e-9 && (back.y - 0.5).abs() < 1e-9);
    assert_eq!(input.turned(3).unwrap().turned(1).unwrap().image(), input.image());
}

#[test]
fn raw_images_are_only_scaled() {
    let image = Image::new(2048, 64, vec![7; 2048 * 64]).unwrap();
    let options = InputOptions::new().raw(true);
    let input = Input::from_pixels_with(2048, 64, image.pixels().to_vec(), &options).unwrap();
    assert_eq!((input.image().width(), input.image().height()), (1024, 32));
    assert_eq!(input.image(), Input::from_image(image).unwrap().image());
    let corner = input.to_source(Point { x: 1024.0, y: 32.0 });
    assert_eq!((corner.x, corner.y), (2048.0, 64.0));
}

#[test]
fn cleaned_pictures_have_a_smaller_image_and_drawings_have_none() {
    let drawing = cross(60.0).draw().unwrap();
    let (width, height) = (drawing.width(), drawing.height());
    let drawn = Input::from_pixels(width, height, drawing.pixels().to_vec()).unwrap();
    assert!(drawn.smaller().is_none() && Input::from_ink(cross(60.0)).unwrap().smaller().is_none());
    let paper = drawing.pixels().iter().map(|&level| 230 - level / 5 * 4).collect();
    let cleaned = Input::from_pixels(width, height, paper).unwrap();
    let smaller = cleaned.smaller().unwrap();
    assert_eq!(smaller.bounds(), cleaned.bounds());
    // The size of the ink, without its margins.
    let side = |input: &Input| (input.image().width() - 23) as f64;
    assert!((0.75..0.9).contains(&(side(smaller) / side(&cleaned))), "{} {}", side(smaller), side(&cleaned));
    assert!(cleaned.turned(1).unwrap().smaller().is_none());
}

#[test]
fn what_is_made_of_a_file_that_ends_early_says_so() {
    let drawing = cross(60.0).draw().unwrap();
    let paper = drawing.pixels().iter().map(|&level| 230 - level / 5 * 4).collect();
    let png = Image::new(drawing.width(), drawing.height(), paper).unwrap().to_png().unwrap();
    let options = InputOptions::new().lenient(true);
    for (length, expected) in [(png.len(), false), (png.len() - 40, true)] {
        let input = Input::from_bytes_with(&png[..length], &options).unwrap();
        let all = Input::all_from_bytes(&png[..length], &options).unwrap();
        for input in [&input, &all[0], &input.turned(1).unwrap(), input.smaller().unwrap()] {
            assert_eq!(input.is_truncated(), expected, "{length} of {} bytes", png.len());
        }
    }
}

/// The bytes of a bmp file of 18 megapixels, each of three random levels.
fn large_noise() -> Vec<u8> {
    let (width, height) = (5_000u32, 3_600u32);
    let size = width * height * 3;
    let mut bytes = b"BM".to_vec();
    for number in [54 + size, 0, 54, 40, width, height, 1 | 24 << 16, 0, size, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    let mut state = 1u64;
    bytes.extend((0..size).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    }));
    bytes
}

#[test]
fn noise_of_54_megabytes_has_no_ink() {
    let bytes = large_noise();
    assert_eq!(bytes.len(), 54_000_054);
    let message = Input::from_bytes(&bytes).unwrap_err().to_string();
    assert!(message.contains("image of 5000 x 3600 pixels: no ink found"), "{message}");
}
