//! The model that comes with the crate: small, whole, with its story inside, and able to read.
#![cfg(feature = "bundled")]

use comer::internal::model_file::ModelFile;
use comer::{AlignmentDetail, Constraints, Image, Input, RecognizeOptions, Recognizer};

#[test]
fn it_is_small_and_tells_what_made_it() {
    // A package of the registry has at most 10 MB.
    let bytes = comer_model_crohme::MODEL.len();
    assert!(bytes < 9_500_000, "{bytes} bytes");
    let provenance = ModelFile::bundled().unwrap().provenance;
    for key in
        ["mean of", "from", "training_sets", "commit", "licence", "crohme_2014", "crohme_2016", "validation"]
    {
        assert!(provenance.contains_key(key), "{key} is missing: {provenance:#?}");
    }
    let parts = provenance["mean of"].as_array().unwrap();
    assert!(parts.len() > 1, "{parts:#?}");
    for part in parts {
        assert!(part["config"].is_string() && part["seed"].is_u64(), "{part:#}");
        assert!(
            part["weights"].is_string() || part["recipe"].is_object() && part["hours"].is_f64(),
            "{part:#}"
        );
    }
}

#[test]
fn it_reads_a_sample_of_ours() {
    let sample = include_bytes!("../../../samples/square.inkml");
    let input = Input::from_bytes(sample).unwrap();
    let recognizer = Recognizer::bundled().unwrap();
    let recognition = recognizer.recognize(&input).unwrap();
    assert_eq!(recognition.best.tokenized(), input.ink().unwrap().latex().unwrap());
    assert_eq!(recognition.latex(), "x^{2} + 1");
}

/// A correction changes the token and keeps what was read before it; the rest is read again.
#[test]
fn it_reads_under_constraints() {
    let input = Input::from_bytes(include_bytes!("../../../samples/square.inkml")).unwrap();
    let recognizer = Recognizer::bundled().unwrap();
    let options = RecognizeOptions::new().alignment(AlignmentDetail::Attention);
    let recognition = recognizer.recognize_with(&input, &options).unwrap();
    let runners_up = &recognition.alignment.unwrap().runners_up;
    assert_eq!(runners_up.len(), recognition.best.tokens.len());
    let other = runners_up[0].iter().find(|token| token.has_ink()).unwrap();
    assert_ne!(other.text, "x");
    for constraints in
        [Constraints::new().prefix([other.text.clone()]), Constraints::new().token(0, other.text.clone())]
    {
        let options = RecognizeOptions::new().constraints(constraints).nbest(3);
        let corrected = recognizer.recognize_with(&input, &options).unwrap();
        assert_eq!(corrected.latex(), format!("{}^{{2}} + 1", other.text));
        assert_eq!(corrected.best.tokens[0].confidence, 1.0);
        assert!(corrected.best.confidence > 0.5, "{}", corrected.best.confidence);
        assert!(corrected.candidates().all(|candidate| candidate.tokens[0].text == other.text));
    }
    // Well-formed LaTeX does not start with a closing brace.
    let options = RecognizeOptions::new().constraints(Constraints::new().token(0, "}"));
    let error = recognizer.recognize_with(&input, &options).unwrap_err().to_string();
    assert!(error.contains("with the fixed tokens"), "{error}");
}

/// A sample as dark ink on light paper.
fn page(sample: &[u8]) -> (Image, String) {
    let input = Input::from_bytes(sample).unwrap();
    let levels = input.image().pixels().iter().map(|&level| 235 - level / 5 * 4).collect();
    let latex = input.ink().unwrap().latex().unwrap().to_string();
    (Image::new(input.image().width(), input.image().height(), levels).unwrap(), latex)
}

/// Of 36 samples that are not upright. Some are read as another formula with more than half of the confidence, and of some the size is
/// estimated too badly from the side.
const MOST_NOT_TURNED: usize = 8;

#[test]
fn it_reads_pictures_that_are_not_upright() {
    let recognizer = Recognizer::bundled().unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "inkml") {
            continue;
        }
        let (upright, latex) = page(&std::fs::read(&path).unwrap());
        for quarters in 0..4 {
            let turned = upright.turned(quarters);
            let (width, height) = (turned.width(), turned.height());
            let input = Input::from_pixels(width, height, turned.pixels().to_vec()).unwrap();
            let formula = recognizer.recognize_formula(input, &RecognizeOptions::new().greedy()).unwrap();
            if formula.recognition.best.tokenized() != latex {
                let best = &formula.recognition.best;
                let name = path.file_name().unwrap_or_default();
                wrong.push(format!(
                    "{name:?}, {quarters} quarters: {} ({:.2})",
                    best.tokenized(),
                    best.confidence
                ));
                continue;
            }
            // Its box is that of the picture as it came.
            let bounds = formula.input.bounds();
            let wide = bounds.right - bounds.left > bounds.bottom - bounds.top;
            assert_eq!(wide, width > height, "{path:?}, {quarters} quarters: {bounds:?}");
        }
    }
    assert!(wrong.iter().all(|line| !line.contains(", 0 quarters")), "{wrong:#?}");
    assert!(wrong.len() <= MOST_NOT_TURNED, "{wrong:#?}");
}

#[test]
fn it_warns_of_pictures_with_too_few_pixels() {
    let (large, _) = page(include_bytes!("../../../samples/quadratic.inkml"));
    let (width, height) = (60, 22);
    let factor = (large.width() as f64 / width as f64).max(large.height() as f64 / height as f64);
    // The mean of the pixels that become one.
    let level = |at: usize| {
        let range = |first: usize, most: usize| {
            let side = |value: usize| ((value as f64 * factor) as usize).min(most);
            side(first)..side(first + 1)
        };
        let (rows, columns) = (range(at / width, large.height()), range(at % width, large.width()));
        let pixels: Vec<u32> = rows
            .flat_map(|row| large.pixels()[row * large.width()..][columns.clone()].iter().copied())
            .map(u32::from)
            .collect();
        if pixels.is_empty() { 235 } else { (pixels.iter().sum::<u32>() / pixels.len() as u32) as u8 }
    };
    let recognizer = Recognizer::bundled().unwrap();
    let options = RecognizeOptions::new().greedy();
    let small = Input::from_pixels(width, height, (0..width * height).map(level).collect()).unwrap();
    let warnings = recognizer.recognize_formula(small, &options).unwrap().warnings;
    assert!(
        warnings.iter().any(|warning| warning.code == "too_small" && warning.message.contains("too small")),
        "{warnings:?}"
    );
    let large = Input::from_pixels(large.width(), large.height(), large.pixels().to_vec()).unwrap();
    let warnings = recognizer.recognize_formula(large, &options).unwrap().warnings;
    assert_eq!(warnings, []);
}
