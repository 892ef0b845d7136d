//! Writes ink anew, as another hand might have: symbols borrowed from others, moved and resized, the whole turned,
//! slanted and stretched.

use std::collections::BTreeMap;

use comer::internal::TokenId;
use comer::internal::vocab::PAD;
use comer::{Ink, InkSymbol, Point, Stroke};
use rand::{Rng, RngExt};

use super::{between, factor};
use crate::recipe::Augmentation;
use crate::sample::Sample;

/// Every written symbol of the samples by its name, to be borrowed.
pub struct Hands<'a> {
    symbols: BTreeMap<TokenId, Vec<(&'a Ink, &'a InkSymbol)>>,
}

impl<'a> Hands<'a> {
    /// The symbols of all samples that have strokes.
    pub fn of(samples: &'a [Sample]) -> Self {
        let mut symbols: BTreeMap<TokenId, Vec<(&Ink, &InkSymbol)>> = BTreeMap::new();
        for sample in samples {
            let Some(ink) = &sample.ink else { continue };
            for symbol in ink.symbols() {
                let name = name(symbol, &sample.strokes);
                if name != PAD {
                    symbols.entry(name).or_default().push((ink, symbol));
                }
            }
        }
        Self { symbols }
    }

    /// Any hand's strokes of a symbol.
    fn borrow(&self, name: TokenId, random: &mut impl Rng) -> Option<Vec<Stroke>> {
        let others = self.symbols.get(&name)?;
        let (ink, symbol) = others[random.random_range(0..others.len())];
        Some(strokes_of(symbol, ink))
    }
}

fn strokes_of(symbol: &InkSymbol, ink: &Ink) -> Vec<Stroke> {
    symbol.strokes.iter().map(|&stroke| ink.strokes()[stroke].clone()).collect()
}

/// The name of a symbol, which all of its strokes have.
fn name(symbol: &InkSymbol, strokes: &[TokenId]) -> TokenId {
    symbol.strokes.first().map_or(PAD, |&stroke| strokes[stroke])
}

/// Ink as another hand might have written it, and the symbol that each of its strokes belongs to.
pub(super) fn rewrite(
    ink: &Ink,
    names: &[TokenId],
    hands: &Hands,
    recipe: &Augmentation,
    random: &mut impl Rng,
) -> comer::Result<(Ink, Vec<TokenId>)> {
    let mut strokes: Vec<(Stroke, TokenId)> = Vec::with_capacity(names.len());
    let mut taken = vec![false; names.len()];
    for symbol in ink.symbols() {
        let name = name(symbol, names);
        symbol.strokes.iter().for_each(|&stroke| taken[stroke] = true);
        let mut written = strokes_of(symbol, ink);
        if recipe.borrow > 0.0
            && random.random::<f64>() < recipe.borrow
            && let Some(other) = hands.borrow(name, random)
        {
            written = fit(other, Bounds::of(&written));
        }
        if recipe.jitter > 0.0 || recipe.symbol_scale > 1.0 {
            shift(&mut written, recipe, random);
        }
        strokes.extend(written.into_iter().map(|stroke| (stroke, name)));
    }
    let loose = ink.strokes().iter().zip(names).zip(taken).filter(|(_, taken)| !taken);
    strokes.extend(loose.map(|((stroke, &name), _)| (stroke.clone(), name)));

    let angle = between(-recipe.rotation, recipe.rotation, random).to_radians();
    let slant = between(-recipe.slant, recipe.slant, random).to_radians().tan();
    let stretch = factor(recipe.stretch, random);
    let (sine, cosine) = angle.sin_cos();
    for point in strokes.iter_mut().flat_map(|(stroke, _)| &mut stroke.points) {
        let (x, y) = ((point.x + slant * point.y) * stretch, point.y);
        *point = Point { x: cosine * x - sine * y, y: sine * x + cosine * y };
    }
    let (strokes, names) = strokes.into_iter().unzip();
    Ok((Ink::new(strokes)?.with_scale(ink.scale()), names))
}

/// The box around strokes.
#[derive(Clone, Copy)]
struct Bounds {
    middle: Point,
    width: f64,
    height: f64,
}

impl Bounds {
    fn of(strokes: &[Stroke]) -> Self {
        let points = || strokes.iter().flat_map(|stroke| &stroke.points);
        let bounds = |axis: fn(&Point) -> f64| {
            points().map(axis).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
        };
        let ((left, right), (top, bottom)) = (bounds(|point| point.x), bounds(|point| point.y));
        let middle = Point { x: (left + right) / 2.0, y: (top + bottom) / 2.0 };
        Self { middle, width: right - left, height: bottom - top }
    }
}

/// Brings strokes into a box, in their own proportions where these are not too far from the box's: a root must reach
/// over what it is of, and a digit should stay one.
fn fit(mut strokes: Vec<Stroke>, place: Bounds) -> Vec<Stroke> {
    const MOST: f64 = 1.5;
    let own = Bounds::of(&strokes);
    let sides = [place, own].map(|bounds| bounds.width.max(bounds.height));
    // A dot has no size to change.
    let longest = if sides[1] > 0.0 { sides[0] / sides[1] } else { 1.0 };
    let along = |place: f64, own: f64| match place / own {
        factor if factor.is_finite() && factor > 0.0 => factor.clamp(longest / MOST, longest * MOST),
        _ => longest,
    };
    let (across, down) = (along(place.width, own.width), along(place.height, own.height));
    transform(&mut strokes, |point| Point {
        x: place.middle.x + (point.x - own.middle.x) * across,
        y: place.middle.y + (point.y - own.middle.y) * down,
    });
    strokes
}

/// Moves and resizes the strokes of one symbol about their middle.
fn shift(strokes: &mut [Stroke], recipe: &Augmentation, random: &mut impl Rng) {
    let Bounds { middle, width, height } = Bounds::of(strokes);
    let scale = factor(recipe.symbol_scale, random);
    let most = recipe.jitter * width.max(height);
    let (right, down) = (between(-most, most, random), between(-most, most, random));
    transform(strokes, |point| Point {
        x: middle.x + right + (point.x - middle.x) * scale,
        y: middle.y + down + (point.y - middle.y) * scale,
    });
}

fn transform(strokes: &mut [Stroke], change: impl Fn(Point) -> Point) {
    strokes.iter_mut().flat_map(|stroke| &mut stroke.points).for_each(|point| *point = change(*point));
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn line(points: &[(f64, f64)]) -> Stroke {
        Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() }
    }

    /// A symbol 7 of one stroke and a symbol 8 of two, and a stroke of which nothing is known.
    fn sample(size: f64) -> Sample {
        let strokes = [
            &[(0.0, 0.0), (1.0, 2.0)][..],
            &[(3.0, 0.0), (4.0, 1.0)],
            &[(3.0, 1.0), (4.0, 0.0)],
            &[(6.0, 0.0), (6.0, 1.0)],
        ];
        let scaled = |points: &&[(f64, f64)]| {
            line(&points.iter().map(|&(x, y)| (size * x, size * y)).collect::<Vec<_>>())
        };
        let symbol = |strokes: &[usize]| InkSymbol { label: "x".into(), strokes: strokes.to_vec() };
        let ink = Ink::new(strokes.iter().map(scaled).collect()).unwrap();
        let ink = ink.with_symbols(vec![symbol(&[0]), symbol(&[1, 2])]).unwrap();
        Sample::with_ink(String::new(), vec![7, 8], ink, vec![7, 8, 8, PAD]).unwrap()
    }

    #[test]
    fn borrowed_symbols_take_the_place_and_the_size_of_the_own_ones() {
        let samples = [sample(10.0), sample(350.0)];
        let hands = Hands::of(&samples);
        let recipe = Augmentation { borrow: 1.0, ..Augmentation::default() };
        for seed in 0..8 {
            let (own, mut random) = (&samples[0], ChaCha8Rng::seed_from_u64(seed));
            let ink = own.ink.as_ref().unwrap();
            let (written, names) = rewrite(ink, &own.strokes, &hands, &recipe, &mut random).unwrap();
            assert_eq!(names, own.strokes);
            for (a, b) in written.strokes().iter().zip(ink.strokes()) {
                let (a, b) = (Bounds::of(std::slice::from_ref(a)), Bounds::of(std::slice::from_ref(b)));
                let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
                assert!(near(a.width, b.width) && near(a.height, b.height) && near(a.middle.x, b.middle.x));
            }
        }
    }

    #[test]
    fn a_symbol_keeps_its_proportions_within_limits() {
        let place = Bounds { middle: Point { x: 0.0, y: 0.0 }, width: 100.0, height: 10.0 };
        let bounds = Bounds::of(&fit(vec![line(&[(0.0, 0.0), (1.0, 1.0)])], place));
        assert!((bounds.width - 100.0).abs() < 1e-9 && (bounds.height - 100.0 / 1.5).abs() < 1e-9);
        let bounds = Bounds::of(&fit(vec![line(&[(5.0, 5.0), (5.0, 9.0)])], place));
        assert!(bounds.width == 0.0 && (bounds.height - 100.0 / 1.5).abs() < 1e-9, "a bar stays one");
        let dot = fit(vec![line(&[(3.0, 4.0)])], place);
        assert_eq!(dot, [line(&[(0.0, 0.0)])]);
    }
}
