//! Augmentation of samples: strokes (if available), size and pixels.

mod picture;
mod strokes;

use std::borrow::Cow;

use comer::Image;
use comer::internal::TokenId;
use comer::internal::ink::PEN;
use rand::{Rng, RngExt};
pub use strokes::SymbolDonors;

use crate::error::Result;
use crate::recipe::Augmentation;
use crate::sample::Sample;
use crate::symbols;

/// The augmented picture of a sample and the symbol of each of its cells. `size` is the size factor of the epoch.
pub fn augment_sample(
    sample: &Sample,
    donors: &SymbolDonors,
    recipe: &Augmentation,
    size: f64,
    random: &mut impl Rng,
) -> Result<(Image, Vec<TokenId>)> {
    let drawn = match &sample.ink {
        // If the augmented strokes cannot be drawn, the stored picture is used.
        Some(ink) if changes_strokes(recipe) && random.random::<f64>() < recipe.share => {
            let augmented = strokes::augment_strokes(ink, &sample.strokes, donors, recipe, random);
            let pen = pen(recipe, random);
            augmented.and_then(|(ink, strokes)| Ok((ink.draw_with(pen)?, ink, strokes))).ok()
        }
        _ => None,
    };
    let [least, most] = recipe.scale;
    let factor = between(least, most, random) * size;
    let fitted = |picture: &Image| match factor {
        1.0 => picture.clone().fit(),
        _ => picture.scale(factor)?.fit(),
    };
    // The stored picture fits the network; an augmented one may not.
    let drawn = drawn.and_then(|drawn| Some((fitted(&drawn.0).ok()?, drawn)));
    let (seen, size, ink, strokes) = match drawn {
        Some((seen, (picture, ink, strokes))) => {
            let size = (picture.width(), picture.height());
            (seen, size, Some(Cow::Owned(ink)), Cow::Owned(strokes))
        }
        None => {
            let stored = sample.picture()?;
            let seen = fitted(&stored).or_else(|_| stored.fit())?;
            (seen, sample.size, sample.ink.as_ref().map(Cow::Borrowed), Cow::Borrowed(&sample.strokes))
        }
    };
    let seen = picture::augment_pixels(seen, recipe, random)?;
    let symbols = match ink {
        Some(ink) => symbols::cell_symbols(&seen, &ink, size, &strokes),
        None => symbols::unknown_symbols(&seen),
    };
    Ok((seen, symbols))
}

fn changes_strokes(recipe: &Augmentation) -> bool {
    recipe.rotation > 0.0
        || recipe.tilt_share > 0.0
        || recipe.slant > 0.0
        || recipe.stretch > 1.0
        || recipe.jitter > 0.0
        || recipe.symbol_scale > 1.0
        || recipe.borrow > 0.0
        || recipe.pen != [PEN; 2]
}

/// The width of the pen.
fn pen(recipe: &Augmentation, random: &mut impl Rng) -> usize {
    let [thinnest, thickest] = recipe.pen;
    if thinnest == thickest { thinnest } else { random.random_range(thinnest..=thickest) }
}

fn between(least: f64, most: f64, random: &mut impl Rng) -> f64 {
    least + (most - least) * random.random::<f64>()
}

/// A factor from `1 / most` to `most`, log-uniform.
fn factor(most: f64, random: &mut impl Rng) -> f64 {
    most.powf(between(-1.0, 1.0, random))
}

#[cfg(test)]
mod tests {
    use comer::{Ink, InkSymbol, Point, Stroke};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// No symbols to borrow.
    fn donors() -> SymbolDonors<'static> {
        SymbolDonors::new(&[])
    }

    fn sample() -> Sample {
        let line =
            |points: &[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        let strokes =
            vec![line(&[(0.0, 0.0), (40.0, 100.0)]), line(&[(90.0, 0.0), (90.0, 120.0), (130.0, 60.0)])];
        let symbols = [0, 1].map(|stroke| InkSymbol { label: "x".into(), strokes: vec![stroke] }).to_vec();
        let ink = Ink::new(strokes).unwrap().with_symbols(symbols).unwrap();
        Sample::with_ink("two".into(), vec![5, 6], ink, vec![5, 6]).unwrap()
    }

    #[test]
    fn equal_seeds_give_equal_pictures() {
        let all = Augmentation {
            rotation: 5.0,
            slant: 10.0,
            stretch: 1.2,
            jitter: 0.1,
            symbol_scale: 1.1,
            ..Augmentation::default()
        };
        let sample = sample();
        let draw = |seed| {
            augment_sample(&sample, &donors(), &all, 1.0, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn without_augmentation_the_stored_picture_is_scaled_to_the_size_of_the_epoch() {
        let none = Augmentation { scale: [1.0, 1.0], ..Augmentation::default() };
        let (sample, mut random) = (sample(), ChaCha8Rng::seed_from_u64(0));
        assert_eq!(
            augment_sample(&sample, &donors(), &none, 1.0, &mut random).unwrap().0,
            sample.picture().unwrap()
        );
        let (half, _) = augment_sample(&sample, &donors(), &none, 0.5, &mut random).unwrap();
        assert_eq!(half.width(), (sample.size.0 as f64 / 2.0).round_ties_even() as usize);
    }

    #[test]
    fn rotation_changes_the_picture() {
        let mut sample = sample();
        let bar = Stroke { points: vec![Point { x: 0.0, y: 0.0 }, Point { x: 100.0, y: 0.0 }] };
        let post = Stroke { points: vec![Point { x: 0.0, y: 0.0 }, Point { x: 0.0, y: 100.0 }] };
        sample.ink = Some(Ink::new(vec![bar, post]).unwrap());
        let widths = |recipe: Augmentation| -> Vec<usize> {
            let recipe = Augmentation { scale: [1.0, 1.0], ..recipe };
            let draw = |seed| {
                augment_sample(&sample, &donors(), &recipe, 1.0, &mut ChaCha8Rng::seed_from_u64(seed))
                    .unwrap()
                    .0
            };
            (0..8).map(|seed| draw(seed).width()).collect()
        };
        let varies = |widths: Vec<usize>| widths.iter().any(|&width| width != widths[0]);
        let none = Augmentation::default();
        assert!(varies(widths(Augmentation { rotation: 45.0, ..none.clone() })));
        assert!(varies(widths(Augmentation { tilt: 45.0, tilt_share: 0.5, ..none.clone() })));
        assert!(!varies(widths(Augmentation { tilt: 45.0, ..none })));
    }

    #[test]
    fn a_thicker_pen_draws_more_ink() {
        let sample = sample();
        let ink_of = |side: usize| {
            let pen = Augmentation { pen: [side, side], scale: [1.0, 1.0], ..Augmentation::default() };
            let (picture, symbols) =
                augment_sample(&sample, &donors(), &pen, 1.0, &mut ChaCha8Rng::seed_from_u64(2)).unwrap();
            assert_eq!((picture.width(), picture.height()), sample.size);
            assert!(symbols.contains(&5) && symbols.contains(&6));
            picture.pixels().iter().filter(|&&pixel| pixel > 0).count()
        };
        let inks = [1, 2, 3, 4, 5].map(ink_of);
        assert!(inks.is_sorted_by(|a, b| a < b), "{inks:?}");
    }
}
