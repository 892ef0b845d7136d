//! Pictures on their way to the network: scaling as OpenCV does it, the size limits.

use comer::Error;
use comer::Image;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    width: usize,
    height: usize,
    factor: f64,
    scaled: [usize; 2],
    step: usize,
    pixels: Vec<u8>,
}

/// The pattern of `data/make_opencv_scaling.py`.
fn pattern(width: usize, height: usize) -> Image {
    let value = |x: u32, y: u32| {
        x.wrapping_mul(2654435761)
            .wrapping_add(y.wrapping_mul(2246822519))
            .wrapping_add(x.wrapping_mul(y).wrapping_mul(3266489917))
    };
    let pixels = (0..width * height).map(|i| (value((i % width) as u32, (i / width) as u32) >> 24) as u8);
    Image::new(width, height, pixels.collect()).unwrap()
}

#[test]
fn scaling_agrees_with_opencv_to_one_grey_level() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/opencv-scaling.json")).unwrap();
    for case in cases {
        let scaled = pattern(case.width, case.height).scale(case.factor).unwrap();
        let name = format!("{} x {} by {}", case.width, case.height, case.factor);
        assert_eq!([scaled.width(), scaled.height()], case.scaled, "{name}");
        let worst = scaled
            .pixels()
            .iter()
            .step_by(case.step)
            .zip(&case.pixels)
            .map(|(a, b)| a.abs_diff(*b))
            .max()
            .unwrap();
        eprintln!("{name}: largest difference {worst}");
        assert!(worst <= 1, "{name}: off by {worst} grey levels");
    }
}

#[test]
fn pictures_are_brought_within_the_limits() {
    for (width, height, expected) in [
        (300, 100, Some((300, 100))),
        (1024, 256, Some((1024, 256))),
        (16, 16, Some((16, 16))),
        (2048, 256, Some((1024, 128))),
        (300, 512, Some((150, 256))),
        (8, 30, Some((16, 60))),
        (1, 1, Some((16, 16))),
        (5000, 60, None), // down to 1024 x 12
        (1000, 10, None), // up to 1600 x 16
        (10, 5000, None),
    ] {
        let fitted = Image::new(width, height, vec![0; width * height]).unwrap().fit();
        match (fitted, expected) {
            (Ok(fitted), Some(size)) => assert_eq!((fitted.width(), fitted.height()), size),
            (Err(Error::Image { .. }), None) => {}
            (found, _) => panic!("{width} x {height}: {found:?}"),
        }
    }
}

#[test]
fn impossible_pictures_and_factors_are_refused() {
    assert!(Image::new(0, 5, vec![]).is_err());
    assert!(Image::new(3, 3, vec![0; 8]).is_err());
    assert!(Image::new(usize::MAX, 2, vec![0; 8]).is_err());
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(pattern(4, 4).scale(factor).is_err(), "{factor}");
    }
}
