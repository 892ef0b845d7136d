//! Recognition from photographs: CROHME's bitmaps on synthetic paper, read with the released weights.
//!
//! `COMER_PHOTO_SET=2014 COMER_PHOTO_STEP=3` reads more of them, or others than those that the cleaning was tried on.

use comer::internal::Vocab;
use comer::internal::checkpoint::{Hints, import};
use comer::internal::dataset::Dataset;
use comer::internal::photo::{Work, clean};
use comer::{Image, Input, RecognizeOptions, Recognizer};
use comer_testing::photo_page::{CONDITIONS, photograph};
use comer_testing::shared;
use rayon::prelude::*;

/// Every this many images of the split are recognised, unless told otherwise: 48 of 2016.
const STEP: usize = 24;
/// Formulas of the 48 that any conditions may cost. Measured: one for uneven light, none for the others.
const MAX_LOST: usize = 2;
/// Formulas that all twelve conditions together may cost. Measured: a gain of four.
const MAX_LOST_IN_ALL: usize = 3;

#[test]
fn photographs_are_recognised_like_drawings() {
    let (Some(checkpoint), Some(data)) = (shared("models/released.ckpt"), shared("data/crohme.zip")) else {
        return;
    };
    let model = import(checkpoint, Vocab::crohme(), &Hints::default()).unwrap();
    let recognizer = Recognizer::new(model).unwrap();
    let told = |name: &str| std::env::var(name).ok();
    let set = told("COMER_PHOTO_SET").unwrap_or_else(|| "2016".into());
    let step = told("COMER_PHOTO_STEP").map_or(STEP, |step| step.parse().expect("a whole number"));
    let samples: Vec<_> = Dataset::open(data, &set).unwrap().samples.into_iter().step_by(step).collect();
    let count_right = |pictures: Vec<Option<Image>>| {
        let blank = || Image::new(16, 16, vec![0; 256]).unwrap();
        let pictures: Vec<Image> =
            pictures.into_iter().map(|picture| picture.unwrap_or_else(blank)).collect();
        let options = RecognizeOptions::new().greedy().threads(1);
        let right = pictures.into_par_iter().zip(&samples).filter(|(picture, sample)| {
            let read = Input::from_image(picture.clone())
                .and_then(|input| recognizer.recognize_with(&input, &options));
            read.is_ok_and(|recognition| recognition.best.tokenized() == sample.caption)
        });
        right.count()
    };
    let drawings: Vec<Image> = samples.iter().map(|sample| sample.image.decode().unwrap()).collect();
    let drawn = count_right(drawings.iter().cloned().map(Some).collect());
    eprintln!("{drawn} of {} drawings", samples.len());
    assert!(2 * drawn > samples.len(), "{drawn} of {} drawings are recognised", samples.len());
    let (mut lost, mut gained) = (0, 0);
    for conditions in &CONDITIONS {
        let pictures = drawings.par_iter().enumerate().map(|(index, picture)| {
            let photo =
                photograph(picture.width(), picture.height(), picture.pixels(), conditions, index as u64);
            clean(&photo, true, &Work::new(&|| Ok(()))).ok().map(|(image, _)| image)
        });
        let found = count_right(pictures.collect());
        eprintln!("{}: {found}", conditions.name);
        // With another number of images, the limits grow alike.
        let limit = (MAX_LOST * samples.len()).div_ceil(48);
        assert!(drawn <= found + limit, "{}: {found} instead of {drawn}", conditions.name);
        lost += drawn.saturating_sub(found);
        gained += found.saturating_sub(drawn);
    }
    let limit = gained + (MAX_LOST_IN_ALL * samples.len()).div_ceil(48);
    assert!(lost <= limit, "all conditions together cost {lost} formulas and gain {gained}");
}
