//! Where in the image the tokens of a formula were read.
//!
//! The search does not record attention. Once it has found a formula, the decoder is given the formula's tokens again and
//! its attention is recorded, so that a recognition without alignment costs nothing extra.

mod boxes;
mod ink;
mod strokes;

use crate::config::{Directions, ModelConfig};
pub use crate::direction::Direction;
use crate::engine::Features;
use crate::engine::any_decoder::AnyState;
use crate::engine::trace::{LayerTrace, StepTrace};
use crate::error::Result;
use crate::ink::Point;
use crate::input::Input;
use crate::token::{EOS, Token, TokenId};
use crate::vocab::Vocab;

pub use ink::{InkCoverage, LOOKED_AT, Region, SHARED};

/// How many tokens that were not written a step names.
const RUNNERS_UP: usize = 5;

/// How much of an [`Alignment`] to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlignmentDetail {
    /// No alignment.
    #[default]
    None,
    /// The attention of each token, and how much of the ink was attended to.
    Attention,
    /// Also every step of both directions, with the maps of every layer and head.
    Full,
}

/// Where in the image each token was read.
///
/// ```no_run
/// use comer::{AlignmentDetail, Input, RecognizeOptions, Recognizer};
///
/// let recognizer = Recognizer::open("model.safetensors")?;
/// let options = RecognizeOptions::new().alignment(AlignmentDetail::Full);
/// let recognition = recognizer.recognize_with(&Input::from_path("photo.jpg")?, &options)?;
/// let alignment = recognition.alignment.expect("it was asked for");
///
/// println!("{:.0} % of the ink was never attended to", 100.0 * alignment.ink.unread);
/// for pass in &alignment.passes {
///     for step in &pass.steps {
///         // What the refinement subtracted in the third layer, mean over its heads: [height, width].
///         let refinement = pass.mean(&step.refinement, Some(2), None);
///         let (cell, most) =
///             refinement.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("an image has cells");
///         println!("{}: {most} at row {}, column {}", step.token.text, cell / alignment.width, cell % alignment.width);
///     }
/// }
/// # Ok::<(), comer::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Alignment {
    /// Rows of cells; a cell is 16 x 16 pixels of [`Input::image`].
    pub height: usize,
    /// Cells in a row.
    pub width: usize,
    /// For each token its attention to the cells when written left to right, `[tokens][height * width]`: of the last
    /// layer, the mean over its heads. The attention of a token adds up to 1.
    pub attention: Vec<Vec<f32>>,
    /// For each token the share of each pen stroke in its attention, `[tokens][strokes]`, if the input has strokes. The
    /// shares of a token add up to 1, or to 0 if it attended to no ink.
    pub strokes: Option<Vec<Vec<f32>>>,
    /// For each token the most likely other ones in its place when written left to right, the most likely first.
    pub runners_up: Vec<Vec<Token>>,
    /// How much of the ink was attended to.
    pub ink: InkCoverage,
    /// How each direction of the model writes the formula, left to right first. Empty unless [`AlignmentDetail::Full`] was asked for.
    pub passes: Vec<Pass>,
}

impl Alignment {
    /// The part of [`Input::image`] that a token was read from: left, top, right and bottom in pixels. `None` if there is no
    /// such token.
    pub fn token_box(&self, token: usize) -> Option<[usize; 4]> {
        let attention = self.attention.get(token)?;
        Some(boxes::token_box(attention, self.width, &self.ink.regions))
    }

    /// As [`Self::token_box`], in the coordinates of the source of `input`: pixels of an image, units of ink.
    pub fn token_box_in_source(&self, token: usize, input: &Input) -> Option<[f64; 4]> {
        let [left, top, right, bottom] = self.token_box(token)?.map(|side| side as f64);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        let corners = corners.map(|(x, y)| input.to_source(Point { x, y }));
        let ends = |axis: fn(&Point) -> f64| {
            let ends = |(low, high): (f64, f64), point| (low.min(axis(point)), high.max(axis(point)));
            corners.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends)
        };
        let ((left, right), (top, bottom)) = (ends(|point| point.x), ends(|point| point.y));
        Some([left, top, right, bottom])
    }
}

/// How one direction writes the formula.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pass {
    /// Which direction.
    pub direction: Direction,
    /// Layers of the decoder.
    pub layers: usize,
    /// Heads of each layer.
    pub heads: usize,
    /// One for each token in the order of reading, and one that ends the formula.
    pub steps: Vec<PassStep>,
}

/// One token of a [`Pass`]. The maps are `[layers, heads, height, width]`, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PassStep {
    /// Where the token stands in [`Candidate::tokens`](crate::Candidate::tokens); `None` where the formula ends.
    pub index: Option<usize>,
    /// The token, and the probability that this direction gives to it after those that it wrote before.
    pub token: Token,
    /// The most likely tokens beside it, the most likely first.
    pub runners_up: Vec<Token>,
    /// The refined attention: where it looked. Each map adds up to 1.
    pub attention: Vec<f32>,
    /// The refinement term R of the paper's equation 9: what was taken off the attention's energies. Zero in the first
    /// layer and in models without refinement, which take nothing off.
    pub refinement: Vec<f32>,
    /// The coverage: the sum of the attention of all steps before this one.
    pub coverage: Vec<f32>,
}

impl Pass {
    /// A pass without steps, to be filled in.
    #[doc(hidden)]
    pub fn new(direction: Direction, layers: usize, heads: usize) -> Self {
        Self { direction, layers, heads, steps: Vec::new() }
    }

    /// Of maps `[layers, heads, cells]` the one of a layer and a head, or the mean over all of them where `None` is
    /// given: `[cells]`. Layers and heads count from 0.
    pub fn mean(&self, maps: &[f32], layer: Option<usize>, head: Option<usize>) -> Vec<f32> {
        let cells = maps.len() / (self.layers * self.heads).max(1);
        let mut sum = vec![0.0; cells];
        let mut count = 0;
        for (number, map) in maps.chunks_exact(cells.max(1)).enumerate() {
            let is_in = |wanted: Option<usize>, found: usize| wanted.is_none_or(|wanted| wanted == found);
            if is_in(layer, number / self.heads) && is_in(head, number % self.heads) {
                sum.iter_mut().zip(map).for_each(|(sum, value)| *sum += value);
                count += 1;
            }
        }
        sum.iter_mut().for_each(|value| *value /= count.max(1) as f32);
        sum
    }
}

/// What an alignment is computed from.
pub(crate) struct Aligner<'a, 'b> {
    pub(crate) config: &'a ModelConfig,
    pub(crate) vocab: &'a Vocab,
    pub(crate) input: &'a Input,
    pub(crate) features: &'a Features,
    pub(crate) state: &'a mut AnyState<'b>,
}

impl Aligner<'_, '_> {
    /// Aligns `tokens` with the image, in both directions for [`AlignmentDetail::Full`].
    pub(crate) fn align(&mut self, tokens: &[TokenId], detail: AlignmentDetail) -> Result<Alignment> {
        let left = self.trace(tokens, Direction::LeftToRight)?;
        let visible = |step: &usize| tokens.get(*step).is_some_and(|&token| token > EOS);
        let shown: Vec<usize> = (0..left.len()).filter(visible).collect();
        let attention: Vec<Vec<f32>> =
            shown.iter().map(|&step| left[step].attention(self.config.heads)).collect();
        let names = shown.iter().map(|&step| self.vocab.token(tokens[step]).unwrap_or_default());
        let ink = InkCoverage::new(
            self.input.image(),
            self.features.width,
            names.zip(attention.iter().map(Vec::as_slice)),
        );
        let runners_up = |&step: &usize| {
            let mut others = self.runners_up(tokens[step], &left[step]);
            others.retain(|token| self.vocab.id(&token.text).is_some_and(|id| id > EOS));
            others
        };
        let runners_up = shown.iter().map(runners_up).collect();
        let mut passes = Vec::new();
        if detail == AlignmentDetail::Full {
            passes.push(self.pass(tokens, Direction::LeftToRight, left));
            if self.config.directions == Directions::Both {
                let right = self.trace(tokens, Direction::RightToLeft)?;
                passes.push(self.pass(tokens, Direction::RightToLeft, right));
            }
        }
        let (height, width) = (self.features.height, self.features.width);
        let strokes = strokes::shares(self.input, (height, width), &attention);
        Ok(Alignment { height, width, attention, strokes, runners_up, ink, passes })
    }

    fn trace(&mut self, tokens: &[TokenId], direction: Direction) -> Result<Vec<StepTrace>> {
        let given: Vec<TokenId> = [vec![direction.ends().0], direction.order(tokens)].concat();
        self.state.trace(&given)
    }

    fn pass(&self, tokens: &[TokenId], direction: Direction, steps: Vec<StepTrace>) -> Pass {
        let (layers, heads) = (self.config.attention_layers(), self.config.heads);
        let maps = layers * heads * self.features.height * self.features.width;
        let written: Vec<TokenId> = [direction.order(tokens), vec![direction.ends().1]].concat();
        let visible_before = |place: usize| tokens[..place].iter().filter(|&&token| token > EOS).count();
        let mut coverage = vec![0.0; maps];
        let step = |(number, (step, &token)): (usize, (StepTrace, &TokenId))| {
            let place = match direction {
                Direction::LeftToRight => number,
                Direction::RightToLeft => tokens.len().wrapping_sub(number + 1),
            };
            let join = |map: fn(&LayerTrace) -> &Vec<f32>| {
                let each = maps / layers;
                let whole = |layer| {
                    let map: &Vec<f32> = map(layer);
                    if map.is_empty() { vec![0.0; each] } else { map.clone() }
                };
                step.layers.iter().flat_map(whole).collect::<Vec<f32>>()
            };
            let attention = join(|layer| &layer.attention);
            let before = coverage.clone();
            coverage.iter_mut().zip(&attention).for_each(|(sum, now)| *sum += now);
            PassStep {
                index: (number < tokens.len()).then(|| visible_before(place)),
                token: self.token(token, &step),
                runners_up: self.runners_up(token, &step),
                refinement: join(|layer| &layer.refinement),
                attention,
                coverage: before,
            }
        };
        let steps = steps.into_iter().zip(&written).enumerate().map(step).collect();
        Pass { direction, layers, heads, steps }
    }

    fn token(&self, token: TokenId, step: &StepTrace) -> Token {
        let confidence = step.log_probs[usize::from(token)].exp().min(1.0);
        Token::new(self.vocab.token(token).unwrap_or_default(), confidence)
    }

    fn runners_up(&self, written: TokenId, step: &StepTrace) -> Vec<Token> {
        let mut others: Vec<TokenId> =
            (0..step.log_probs.len() as TokenId).filter(|&token| token != written).collect();
        let log_prob = |token: &TokenId| step.log_probs[usize::from(*token)];
        others.sort_by(|a, b| log_prob(b).total_cmp(&log_prob(a)));
        others.iter().take(RUNNERS_UP).map(|&token| self.token(token, step)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_what_is_not_named() {
        let pass = Pass { direction: Direction::LeftToRight, layers: 2, heads: 2, steps: Vec::new() };
        // Two cells; the tens are the layer, the ones the head.
        let maps = [0.0, 100.0, 1.0, 101.0, 10.0, 110.0, 11.0, 111.0];
        for (layer, head, expected) in [
            (Some(1), Some(0), [10.0, 110.0]),
            (Some(0), None, [0.5, 100.5]),
            (None, Some(1), [6.0, 106.0]),
            (None, None, [5.5, 105.5]),
        ] {
            assert_eq!(pass.mean(&maps, layer, head), expected, "{layer:?} {head:?}");
        }
    }
}
