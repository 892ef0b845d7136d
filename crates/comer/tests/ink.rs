//! Ink drawn by us against the bitmaps that the same ink was drawn to for training and tests.

use std::io::Read;

use comer::Ink;

/// A bitmap's width, height and rows from the top.
fn bitmap(bytes: &[u8]) -> (usize, usize, Vec<u8>) {
    let decoded = image::load_from_memory_with_format(bytes, image::ImageFormat::Bmp).unwrap().into_luma8();
    (decoded.width() as usize, decoded.height() as usize, decoded.into_raw())
}

/// Shared pixels over all pixels of two drawings of one size.
fn overlap(ours: &[u8], theirs: &[u8]) -> f64 {
    let count = |test: fn(u8, u8) -> bool| ours.iter().zip(theirs).filter(|&(&a, &b)| test(a, b)).count();
    count(|a, b| a > 127 && b > 127) as f64 / count(|a, b| a > 127 || b > 127).max(1) as f64
}

#[test]
fn crohme_is_drawn_as_its_bitmaps_are() {
    let (Some(pictures), Some(folder)) =
        (comer_testing::shared("data/crohme.zip"), comer_testing::unpacked_ink())
    else {
        return;
    };
    let mut archive = zip::ZipArchive::new(std::fs::File::open(pictures).unwrap()).unwrap();
    // Set, files, and how many of them may differ (see below).
    for (set, count, may_differ) in [("2014", 986, 1), ("2016", 1147, 1), ("train", 8834, 0)] {
        let mut folders = vec![folder.path().join("inkml").join(set)];
        let (mut seen, mut same_size, mut identical, mut sum) = (0, 0, 0, 0.0);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.file_stem().unwrap().to_str().unwrap();
                let Ok(mut file) = archive.by_name(&format!("data/{set}/img/{name}.bmp")) else {
                    // Two training files are broken in ways that kept them from having a bitmap.
                    continue;
                };
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                let (width, height, theirs) = bitmap(&bytes);
                let ink =
                    Ink::from_inkml(&std::fs::read(&path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(ink.latex().is_some_and(|latex| !latex.is_empty()), "{name} has no LaTeX");
                assert!(!ink.symbols().is_empty(), "{name} has no symbols");
                let ours = ink.draw().unwrap();
                seen += 1;
                if (ours.width(), ours.height()) == (width, height) {
                    same_size += 1;
                    let overlap = overlap(ours.pixels(), &theirs);
                    identical += usize::from(overlap == 1.0);
                    sum += overlap;
                }
            }
        }
        eprintln!(
            "{set}: {seen} drawn, {same_size} of the bitmap's size, {identical} identical, mean overlap {:.6}",
            sum / f64::from(seen)
        );
        // What differs: RIT_2014_225 in a few pixels; UN_124_em_538 has a negative coordinate, which shifts its scale.
        assert_eq!(seen, count, "{set}");
        assert!(identical + may_differ >= count as usize, "{set}: {identical} of {count} identical");
    }
}

#[test]
fn samples_are_whole() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "inkml") {
            continue;
        }
        let name = path.display();
        let ink =
            Ink::from_inkml(&std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        comer::internal::Vocab::crohme()
            .encode(ink.latex().unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let strokes: usize = ink.symbols().iter().map(|symbol| symbol.strokes.len()).sum();
        assert_eq!(strokes, ink.strokes().len(), "{name}: every stroke belongs to one symbol");
        ink.draw().unwrap().fit().unwrap();
        seen += 1;
    }
    assert!(seen >= 9, "{seen} samples");
}
