//! Recognition from photographs: CROHME's bitmaps on synthetic paper, read with the released weights.
//!
//! `COMER_PHOTO_SET=2014 COMER_PHOTO_STEP=3` reads more of them, or others than those that the cleaning was tried on.

use comer::internal::Vocab;
use comer::internal::checkpoint::{Hints, import};
use comer::internal::dataset::Dataset;
use comer::internal::photo::clean;
use comer::{Image, Input, RecognizeOptions, Recognizer};
use comer_testing::photo_page::{CONDITIONS, photograph};
use comer_testing::shared;
use rayon::prelude::*;

/// Every this many pictures of the set are read, unless told otherwise.
const STEP: usize = 24;
/// Points of token-match ExpRate that a scene may cost.
const MOST: f64 = 5.0;
/// Points more that one scene may cost here: with one picture worth two points, chance moves a loss by as much as three
/// pictures. The mean over the scenes, where chance evens out, has no such allowance.
const CHANCE: f64 = 6.0;

#[test]
fn photographs_cost_little() {
    let (Some(checkpoint), Some(data)) = (shared("models/released.ckpt"), shared("data/crohme.zip")) else {
        return;
    };
    let model = import(checkpoint, Vocab::crohme(), &Hints::default()).unwrap();
    let recognizer = Recognizer::new(model).unwrap();
    let told = |name: &str| std::env::var(name).ok();
    let set = told("COMER_PHOTO_SET").unwrap_or_else(|| "2016".into());
    let step = told("COMER_PHOTO_STEP").map_or(STEP, |step| step.parse().expect("a whole number"));
    let samples: Vec<_> = Dataset::open(data, &set).unwrap().samples.into_iter().step_by(step).collect();
    let rate = |pictures: Vec<Option<Image>>| {
        let blank = || Image::new(16, 16, vec![0; 256]).unwrap();
        let pictures: Vec<Image> =
            pictures.into_iter().map(|picture| picture.unwrap_or_else(blank)).collect();
        let options = RecognizeOptions::new().greedy().threads(1);
        let right = pictures.into_par_iter().zip(&samples).filter(|(picture, sample)| {
            let read = Input::from_image(picture.clone())
                .and_then(|input| recognizer.recognize_with(&input, &options));
            read.is_ok_and(|recognition| recognition.best.tokenized() == sample.caption)
        });
        100.0 * right.count() as f64 / samples.len() as f64
    };
    let own = rate(samples.iter().map(|sample| Some(sample.picture.clone())).collect());
    eprintln!("{} pictures as they are: {own:.1}", samples.len());
    let mut losses = Vec::new();
    for conditions in &CONDITIONS {
        let pictures = samples.par_iter().enumerate().map(|(index, sample)| {
            let picture = &sample.picture;
            let photo =
                photograph(picture.width(), picture.height(), picture.pixels(), conditions, index as u64);
            clean(&photo, true).ok().map(|(image, _)| image)
        });
        let found = rate(pictures.collect());
        eprintln!("{}: {found:.1}, {:+.1}", conditions.name, found - own);
        assert!(
            own - found <= MOST + CHANCE,
            "{} costs {:.1} points of {own:.1}",
            conditions.name,
            own - found
        );
        losses.push(own - found);
    }
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean <= MOST, "photographs cost {mean:.1} points of {own:.1}");
}
