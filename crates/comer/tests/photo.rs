//! Pictures of every kind against the drawings they were made from.

use std::cell::Cell;

use comer::internal::dataset::LabelledImage;
use comer::internal::photo::{self, Grey};
use comer_testing::photo_page::{CONDITIONS, photograph};

/// Every `step`-th drawing of a split of CROHME; `None` where it is absent.
fn drawings(split: &str, step: usize) -> Option<Vec<(String, Grey)>> {
    let set = comer_testing::crohme(split)?;
    let grey = |sample: LabelledImage| {
        let (width, height) = (sample.image.width(), sample.image.height());
        (sample.name, Grey { width, height, levels: sample.image.decode().unwrap().into_pixels() })
    };
    Some(set.samples.into_iter().step_by(step).map(grey).collect())
}

/// Share of the ink of each picture that has ink of the other within `reach`, after the second is brought to the size
/// of the first: the harmonic mean of both.
fn agreement(first: &Grey, second: &Grey, reach: isize) -> f64 {
    let near = |picture: &Grey, x: isize, y: isize| {
        (-reach..=reach).any(|down| {
            (-reach..=reach).any(|across| {
                let (x, y) = (x + across, y + down);
                x >= 0
                    && y >= 0
                    && (x as usize) < picture.width
                    && (y as usize) < picture.height
                    && picture.levels[y as usize * picture.width + x as usize] > 127
            })
        })
    };
    let covered = |of: &Grey, by: &Grey| {
        let (mut ink, mut met) = (0, 0);
        for at in (0..of.levels.len()).filter(|&at| of.levels[at] > 127) {
            let place = |value: usize, from: usize, to: usize| {
                ((value as f64 - 12.0) * (to as f64 - 25.0) / (from as f64 - 25.0).max(1.0) + 12.0).round()
                    as isize
            };
            ink += 1;
            met += usize::from(near(
                by,
                place(at % of.width, of.width, by.width),
                place(at / of.width, of.height, by.height),
            ));
        }
        met as f64 / f64::from(ink).max(1.0)
    };
    let (there, back) = (covered(first, second), covered(second, first));
    2.0 * there * back / (there + back).max(1e-9)
}

/// A drawing with other margins than those of CROHME: 12 pixels, and 11 to the right and below.
fn with_margin(drawing: &Grey, margin: usize) -> Grey {
    let side = |side: usize| side - 23 + margin + margin.saturating_sub(1);
    let (width, height) = (side(drawing.width), side(drawing.height));
    let mut levels = vec![0; width * height];
    for row in 12..drawing.height - 11 {
        let ink = &drawing.levels[row * drawing.width..][12..drawing.width - 11];
        levels[(row - 12 + margin) * width + margin..][..ink.len()].copy_from_slice(ink);
    }
    Grey { width, height, levels }
}

#[test]
fn crohme_is_not_changed() {
    let Some(drawings) = drawings("2014", 1) else { return };
    assert_eq!(drawings.len(), 986);
    for (name, drawing) in drawings {
        for margin in [0, 12, 40, 100] {
            let grey = with_margin(&drawing, margin);
            assert!(margin != 12 || grey == drawing, "{name} has other margins than 12");
            let (picture, _) = photo::clean(&grey, true, &photo::Work::new(&|| Ok(()))).unwrap();
            let size = (picture.width(), picture.height());
            assert_eq!(size, (grey.width, grey.height), "{name}, margin {margin}");
            assert!(picture.pixels() == grey.levels, "{name} was changed, margin {margin}");
        }
    }
}

#[test]
fn synthetic_photographs_are_cleaned_to_their_drawings() {
    let Some(drawings) = drawings("2014", 60) else { return };
    for conditions in CONDITIONS {
        let (mut sum, mut ratios) = (0.0, Vec::new());
        for (number, (name, drawing)) in drawings.iter().enumerate() {
            let grey = photograph(drawing.width, drawing.height, &drawing.levels, &conditions, number as u64);
            let (picture, _) = photo::clean(&grey, true, &photo::Work::new(&|| Ok(())))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let cleaned =
                Grey { width: picture.width(), height: picture.height(), levels: picture.pixels().to_vec() };
            sum += agreement(drawing, &cleaned, 1);
            ratios.push(((cleaned.height - 25) as f64 / (drawing.height - 25) as f64).ln());
        }
        let count = ratios.len() as f64;
        let (agreement, size) = (sum / count, ratios.iter().sum::<f64>() / count);
        let name = conditions.name;
        // Where dark squares run along the ink, neither can be told from the other.
        let least = if name.ends_with("in dark") { 0.75 } else { 0.95 };
        assert!(agreement > least, "{name}: agreement {agreement:.3}, expected over {least}");
        assert!(size.abs() < 0.12 || name.ends_with("in dark"), "{name}: size {:.3}", size.exp());
    }
}

/// 24 random bits for each pixel.
fn noise(x: usize, y: usize) -> u64 {
    let mut hash = (y * 65_536 + x) as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..2 {
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    }
    hash >> 40
}

/// A pattern that has cost more than its pixels are worth, before cleaning was linear.
fn patterns() -> Vec<(&'static str, Grey)> {
    let make = |width: usize, height: usize, dark: &dyn Fn(usize, usize) -> bool| {
        let level = |at: usize| if dark(at % width, at / width) { 20 } else { 230 };
        Grey { width, height, levels: (0..width * height).map(level).collect() }
    };
    let wave = |x: usize, y: usize| (y as f32 + 6.0 * (x as f32 / 40.0).sin()).rem_euclid(16.0) < 6.0;
    vec![
        ("a strip", make(1, 100_000, &|_, y| (40..44).contains(&y))),
        ("a long strip", make(6_000, 60, &|x, y| y == 0 || (40..44).contains(&x))),
        ("noise", make(700, 500, &|x, y| noise(x, y) % 10 < 5)),
        ("sparse noise", make(700, 500, &|x, y| noise(x, y) % 10 < 1)),
        ("waves with a gap", make(700, 500, &|x, y| wave(x, y) && x % 300 > 4)),
        ("stripes with a gap", make(700, 500, &|x, y| y % 16 < 4 && x % 400 > 3)),
        ("columns with a gap", make(700, 500, &|x, y| x % 16 < 6 && y % 300 > 3)),
        ("dots", make(700, 500, &|x, y| x % 6 < 3 && y % 6 < 3)),
        ("squares", make(700, 500, &|x, y| x % 100 < 45 && y % 100 < 45)),
        ("a large square", make(700, 500, &|x, y| (200..500).contains(&x) && (100..400).contains(&y))),
        ("stairs", make(700, 500, &|x, y| x / 10 == y / 10 && x % 10 < 5 && y % 10 < 5)),
    ]
}

/// More than the 3 million pixels that are cleaned without being reduced.
fn large_noise() -> Grey {
    let (width, height) = (2_400, 1_600);
    let level = |at: usize| noise(at % width, at / width) as u8;
    Grey { width, height, levels: (0..width * height).map(level).collect() }
}

/// Visits of pixels for each pixel of an image of ordinary size. Small images are enlarged before they are cleaned.
const MOST_WORK: f64 = 700.0;

#[test]
fn the_work_of_cleaning_is_bounded_by_the_pixels() {
    for (name, grey) in patterns().into_iter().chain([("noise that is reduced first", large_noise())]) {
        let unlimited = || Ok(());
        let work = photo::Work::new(&unlimited);
        if let Err(error) = photo::clean_all(&grey, &CLEANING, &work) {
            assert!(error.to_string().contains("no ink found"), "{name}: {error}");
        }
        let each = work.spent() as f64 / grey.levels.len() as f64;
        assert!(each < MOST_WORK, "{name}: {each:.0} visits of each pixel, expected at most {MOST_WORK}");
    }
}

/// Where the narrowest ink is of full strength, wider ink is not looked for.
#[test]
fn the_work_of_black_on_white_is_less() {
    let (width, height) = (2_000, 1_500);
    let level = |at: usize| {
        let (x, y) = ((at % width) as f32, (at / width) as f32);
        let is_ink = (y + 20.0 * (x / 80.0).sin()).rem_euclid(40.0) < 12.0 && (x - 1_000.0).abs() > 15.0;
        if is_ink { 0 } else { 255 }
    };
    let grey = Grey { width, height, levels: (0..width * height).map(level).collect() };
    let unlimited = || Ok(());
    let work = photo::Work::new(&unlimited);
    photo::clean_all(&grey, &CLEANING, &work).unwrap();
    let each = work.spent() / grey.levels.len() as u64;
    assert!(each < MOST_PLAIN_WORK, "{each} visits of each pixel, expected at most {MOST_PLAIN_WORK}");
}

/// Visits of pixels for each pixel; with all widths of strokes there are 11 more.
const MOST_PLAIN_WORK: u64 = 126;

/// As the fuzz target `clean`, for some tiles.
#[test]
fn the_work_of_repeated_tiles_is_bounded() {
    let mut random = comer_testing::Random(5);
    let mut uniform = |most: usize| (random.uniform() * most as f32) as usize;
    for turn in 0..60 {
        let (columns, rows) = (1 + uniform(255), 1 + uniform(60));
        let share = 2 + uniform(30);
        let level = |_| if uniform(share) == 0 { 30 } else { 220 + (turn % 2 * uniform(36)) as u8 };
        let tile: Vec<u8> = (0..columns * rows).map(level).collect();
        let level = |at: usize| tile[at / 400 % rows * columns + at % 400 % columns];
        let grey = Grey { width: 400, height: 300, levels: (0..400 * 300).map(level).collect() };
        let unlimited = || Ok(());
        let work = photo::Work::new(&unlimited);
        let _ = photo::clean_all(&grey, &CLEANING, &work);
        let each = work.spent() / (400 * 300);
        assert!(each < MOST_TILE_WORK, "tile of {columns} x {rows}: {each} visits of each pixel");
    }
}

/// Visits of pixels for each pixel of an image of 400 x 300, which is enlarged before it is cleaned. These
/// tiles take up to 1300.
const MOST_TILE_WORK: u64 = 4_000;

#[test]
fn cleaning_stops_where_it_is_interrupted() {
    for (name, grey) in patterns() {
        let unlimited = || Ok(());
        let whole = photo::Work::new(&unlimited);
        let _ = photo::clean_all(&grey, &CLEANING, &whole);
        // After each tenth of the work, the next question ends it.
        for tenth in 0..10 {
            let limit = whole.spent() * tenth / 10;
            let (asked, last) = (Cell::new(0u64), Cell::new(0u64));
            let interrupt = || {
                asked.set(asked.get() + 1);
                if asked.get() > last.get() { Err(comer::Error::Cancelled) } else { Ok(()) }
            };
            // Questions come at least every million visits.
            last.set(limit / 1_000_000);
            let work = photo::Work::new(&interrupt);
            let result = photo::clean_all(&grey, &CLEANING, &work);
            let early = work.spent() <= (last.get() + 1) * 20_000_000;
            assert!(
                early && (result.is_err() || work.spent() < 2_000_000),
                "{name}: {} visits",
                work.spent()
            );
        }
    }
}

const CLEANING: photo::Cleaning =
    photo::Cleaning { remove_lines: true, gaps: Some(photo::layout::Gaps::USUAL) };
