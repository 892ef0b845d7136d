//! Pictures of every kind against the drawings they were made from.

mod common;
#[path = "common/synthetic.rs"]
mod synthetic;

use std::io::Read;

use comer::internal::photo::{self, Grey, Options};

/// The bitmaps of a set, by name, every `step`-th of them; `None` where they are absent.
fn bitmaps(set: &str, step: usize) -> Option<Vec<(String, Vec<u8>)>> {
    let path = common::shared("data/crohme.zip")?;
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let prefix = format!("data/{set}/img/");
    let mut names: Vec<String> = archive
        .file_names()
        .filter_map(|name| Some(name.ok()?.into_owned()))
        .filter(|name| name.starts_with(&prefix) && name.ends_with(".bmp"))
        .collect();
    names.sort();
    let mut bytes = |name: String| {
        let mut bytes = Vec::new();
        archive.by_name(&name).unwrap().read_to_end(&mut bytes).unwrap();
        (name, bytes)
    };
    Some(names.into_iter().step_by(step).map(&mut bytes).collect())
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
fn crohme_passes_untouched() {
    let Some(bitmaps) = bitmaps("2014", 1) else { return };
    assert_eq!(bitmaps.len(), 986);
    for (name, bytes) in bitmaps {
        let grey = photo::decode(&bytes).unwrap();
        let picture = photo::read(&bytes, &Options::default()).unwrap();
        assert_eq!((picture.width(), picture.height()), (grey.width, grey.height), "{name}");
        assert!(picture.pixels() == grey.levels, "{name} was changed");
        assert!(photo::is_training_drawing(&grey), "{name}");
    }
}

#[test]
fn synthetic_photographs_come_back_as_their_drawings() {
    let Some(bitmaps) = bitmaps("2014", 60) else { return };
    for scene in synthetic::SCENES {
        let (mut sum, mut ratios) = (0.0, Vec::new());
        for (number, (name, bytes)) in bitmaps.iter().enumerate() {
            let drawing = photo::decode(bytes).unwrap();
            let grey =
                synthetic::photograph(drawing.width, drawing.height, &drawing.levels, &scene, number as u64);
            let picture =
                photo::clean(&grey, &Options::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let cleaned =
                Grey { width: picture.width(), height: picture.height(), levels: picture.pixels().to_vec() };
            sum += agreement(&drawing, &cleaned, 1);
            ratios.push(((cleaned.height - 25) as f64 / (drawing.height - 25) as f64).ln());
        }
        let count = ratios.len() as f64;
        let (agreement, size) = (sum / count, ratios.iter().sum::<f64>() / count);
        let deviation = (ratios.iter().map(|ratio| (ratio - size).powi(2)).sum::<f64>() / count).sqrt();
        eprintln!("{:18} agreement {agreement:.3}, size {:.3} +- {deviation:.3}", scene.name, size.exp());
        // Dark squares are the hardest: where they run along the ink, neither can be told from the other.
        let least = if scene.name.ends_with("in dark") { 0.75 } else { 0.95 };
        assert!(agreement > least, "{}: agreement {agreement:.3}, expected over {least}", scene.name);
        assert!(
            size.abs() < 0.12 || scene.name.ends_with("in dark"),
            "{}: size {:.3}",
            scene.name,
            size.exp()
        );
    }
}
