//! Pictures of every kind against the drawings they were made from.

use comer::internal::dataset::LabelledImage;
use comer::internal::photo::{self, Grey};
use comer_testing::photo_page::{CONDITIONS, photograph};
use comer_testing::thread_cpu_time;

/// Every `step`-th drawing of a split of CROHME; `None` where it is absent.
fn drawings(split: &str, step: usize) -> Option<Vec<(String, Grey)>> {
    let set = comer_testing::crohme(split)?;
    let grey = |sample: LabelledImage| {
        let (width, height) = (sample.picture.width(), sample.picture.height());
        (sample.name, Grey { width, height, levels: sample.picture.pixels().to_vec() })
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

#[test]
fn crohme_is_not_changed() {
    let Some(drawings) = drawings("2014", 1) else { return };
    assert_eq!(drawings.len(), 986);
    for (name, grey) in drawings {
        let (picture, _) = photo::clean(&grey, true).unwrap();
        assert_eq!((picture.width(), picture.height()), (grey.width, grey.height), "{name}");
        assert!(picture.pixels() == grey.levels, "{name} was changed");
        assert!(photo::is_training_drawing(&grey), "{name}");
    }
}

#[test]
fn synthetic_photographs_are_cleaned_to_their_drawings() {
    let Some(drawings) = drawings("2014", 60) else { return };
    for conditions in CONDITIONS {
        let (mut sum, mut ratios) = (0.0, Vec::new());
        for (number, (name, drawing)) in drawings.iter().enumerate() {
            let grey = photograph(drawing.width, drawing.height, &drawing.levels, &conditions, number as u64);
            let (picture, _) = photo::clean(&grey, true).unwrap_or_else(|error| panic!("{name}: {error}"));
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

/// A line from end to end with a dash across it.
fn strip(width: usize, height: usize) -> Grey {
    let level = |at: usize| {
        let (x, y) = (at % width, at / width);
        let (along, across) = if width > height { (x, y) } else { (y, x) };
        if across == 0 || (40..44).contains(&along) { 20 } else { 230 }
    };
    Grey { width, height, levels: (0..width * height).map(level).collect() }
}

/// The search for lines was once cubic in the length of a strip, which took minutes.
#[test]
fn a_strip_costs_little_more_than_a_square_of_its_area() {
    let cost = |width: usize, height: usize| {
        let grey = strip(width, height);
        let run = || {
            let start = thread_cpu_time();
            let result = photo::clean(&grey, true);
            (thread_cpu_time() - start, result.map(|_| ()))
        };
        let (first, result) = run();
        (first.min(run().0).as_secs_f64(), result)
    };
    let (square, _) = cost(775, 775);
    for (width, height) in [(1, 600_000), (20_000, 30), (6_000, 100), (146, 4_096)] {
        let (time, result) = cost(width, height);
        assert!(time < 8.0 * square, "{width} x {height}: {time:.3} s of CPU, a square {square:.3} s");
        if let Err(error) = result {
            assert!(error.to_string().contains("no ink found"), "{width} x {height}: {error}");
        }
    }
}
