//! Augmentation of strokes: symbols of other writers, moved and scaled symbols; rotation, slant and stretch of the formula.

use std::collections::BTreeMap;

use comer::internal::TokenId;
use comer::internal::vocab::PAD;
use comer::{Ink, InkSymbol, Point, Stroke};
use rand::{Rng, RngExt};

use super::{between, factor};
use crate::recipe::Augmentation;
use crate::sample::Sample;

/// The written symbols of all samples by token, as replacements for each other.
pub struct SymbolDonors<'a> {
    symbols: BTreeMap<TokenId, Vec<(&'a Ink, &'a InkSymbol)>>,
}

impl<'a> SymbolDonors<'a> {
    /// The symbols of all samples with strokes.
    pub fn new(samples: &'a [Sample]) -> Self {
        let mut symbols: BTreeMap<TokenId, Vec<(&Ink, &InkSymbol)>> = BTreeMap::new();
        for sample in samples {
            let Some(ink) = &sample.ink else { continue };
            for symbol in ink.symbols() {
                let token = token_of(symbol, &sample.strokes);
                if token != PAD {
                    symbols.entry(token).or_default().push((ink, symbol));
                }
            }
        }
        Self { symbols }
    }

    /// The strokes of a random symbol with this token.
    fn borrow(&self, token: TokenId, random: &mut impl Rng) -> Option<Vec<Stroke>> {
        let others = self.symbols.get(&token)?;
        let (ink, symbol) = others[random.random_range(0..others.len())];
        Some(strokes_of(symbol, ink))
    }
}

fn strokes_of(symbol: &InkSymbol, ink: &Ink) -> Vec<Stroke> {
    symbol.strokes.iter().map(|&stroke| ink.strokes()[stroke].clone()).collect()
}

/// The token of a symbol, which all of its strokes have.
fn token_of(symbol: &InkSymbol, strokes: &[TokenId]) -> TokenId {
    symbol.strokes.first().map_or(PAD, |&stroke| strokes[stroke])
}

/// The augmented ink, and the symbol of each of its strokes.
pub(super) fn augment_strokes(
    ink: &Ink,
    tokens: &[TokenId],
    donors: &SymbolDonors,
    recipe: &Augmentation,
    random: &mut impl Rng,
) -> comer::Result<(Ink, Vec<TokenId>)> {
    let mut strokes: Vec<(Stroke, TokenId)> = Vec::with_capacity(tokens.len());
    let mut in_symbol = vec![false; tokens.len()];
    for symbol in ink.symbols() {
        let token = token_of(symbol, tokens);
        symbol.strokes.iter().for_each(|&stroke| in_symbol[stroke] = true);
        let mut own = strokes_of(symbol, ink);
        if recipe.borrow > 0.0
            && random.random::<f64>() < recipe.borrow
            && let Some(other) = donors.borrow(token, random)
        {
            own = fit(other, Bounds::of(&own));
        }
        if recipe.jitter > 0.0 || recipe.symbol_scale > 1.0 {
            shift(&mut own, recipe, random);
        }
        strokes.extend(own.into_iter().map(|stroke| (stroke, token)));
    }
    let others = ink.strokes().iter().zip(tokens).zip(in_symbol).filter(|(_, in_symbol)| !in_symbol);
    strokes.extend(others.map(|((stroke, &token), _)| (stroke.clone(), token)));

    let tilted = recipe.tilt_share > 0.0 && random.random::<f64>() < recipe.tilt_share;
    let most = if tilted { recipe.tilt } else { recipe.rotation };
    let angle = between(-most, most, random).to_radians();
    let slant = between(-recipe.slant, recipe.slant, random).to_radians().tan();
    let stretch = factor(recipe.stretch, random);
    let (sine, cosine) = angle.sin_cos();
    for point in strokes.iter_mut().flat_map(|(stroke, _)| &mut stroke.points) {
        let (x, y) = ((point.x + slant * point.y) * stretch, point.y);
        *point = Point { x: cosine * x - sine * y, y: sine * x + cosine * y };
    }
    let (strokes, tokens) = strokes.into_iter().unzip();
    Ok((Ink::new(strokes)?.with_scale(ink.scale()), tokens))
}

/// The bounding box of strokes.
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

/// Fits strokes into a box. Their proportions change towards those of the box by at most 1.5: a root must reach over its
/// radicand, but a digit must stay legible.
fn fit(mut strokes: Vec<Stroke>, target: Bounds) -> Vec<Stroke> {
    const MOST: f64 = 1.5;
    let own = Bounds::of(&strokes);
    let sides = [target, own].map(|bounds| bounds.width.max(bounds.height));
    // A dot has no size.
    let longest = if sides[1] > 0.0 { sides[0] / sides[1] } else { 1.0 };
    let along = |target: f64, own: f64| match target / own {
        factor if factor.is_finite() && factor > 0.0 => factor.clamp(longest / MOST, longest * MOST),
        _ => longest,
    };
    let (across, down) = (along(target.width, own.width), along(target.height, own.height));
    transform(&mut strokes, |point| Point {
        x: target.middle.x + (point.x - own.middle.x) * across,
        y: target.middle.y + (point.y - own.middle.y) * down,
    });
    strokes
}

/// Moves the strokes of one symbol and scales them about their centre.
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

    /// A symbol 7 with one stroke, a symbol 8 with two, and a stroke without a symbol.
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
    fn borrowed_symbols_have_the_position_and_size_of_the_originals() {
        let samples = [sample(10.0), sample(350.0)];
        let donors = SymbolDonors::new(&samples);
        let recipe = Augmentation { borrow: 1.0, ..Augmentation::default() };
        for seed in 0..8 {
            let (own, mut random) = (&samples[0], ChaCha8Rng::seed_from_u64(seed));
            let ink = own.ink.as_ref().unwrap();
            let (augmented, tokens) =
                augment_strokes(ink, &own.strokes, &donors, &recipe, &mut random).unwrap();
            assert_eq!(tokens, own.strokes);
            for (a, b) in augmented.strokes().iter().zip(ink.strokes()) {
                let (a, b) = (Bounds::of(std::slice::from_ref(a)), Bounds::of(std::slice::from_ref(b)));
                let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
                assert!(near(a.width, b.width) && near(a.height, b.height) && near(a.middle.x, b.middle.x));
            }
        }
    }

    #[test]
    fn a_symbol_keeps_its_proportions_within_limits() {
        let target = Bounds { middle: Point { x: 0.0, y: 0.0 }, width: 100.0, height: 10.0 };
        let bounds = Bounds::of(&fit(vec![line(&[(0.0, 0.0), (1.0, 1.0)])], target));
        assert!((bounds.width - 100.0).abs() < 1e-9 && (bounds.height - 100.0 / 1.5).abs() < 1e-9);
        let bounds = Bounds::of(&fit(vec![line(&[(5.0, 5.0), (5.0, 9.0)])], target));
        assert!(bounds.width == 0.0 && (bounds.height - 100.0 / 1.5).abs() < 1e-9, "a bar stays a bar");
        let dot = fit(vec![line(&[(3.0, 4.0)])], target);
        assert_eq!(dot, [line(&[(0.0, 0.0)])]);
    }
}
