//! The steps of one direction, each with one map shaded from 0 to 1.

use comer::Image;
use comer::Token;
use comer::alignment::Direction;
use comer::alignment::{Alignment, Pass, PassStep};
use comer::internal::config::CELL_SIZE;

use super::canvas::{Canvas, Colour, mixed};

/// The side of a cell in pixels of the image.
pub const CELL: f32 = CELL_SIZE as f32;
pub const PAPER: Colour = [255; 3];
pub const INK: Colour = [16, 18, 24];
pub const GREY: Colour = [120, 126, 136];
pub const UNREAD: Colour = [214, 40, 40];
pub const REREAD: Colour = [124, 58, 237];

/// Which map to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Map {
    /// Where the decoder looked.
    Attention,
    /// What was taken off its attention's energies: the R of the paper.
    Refinement,
    /// Where it had looked before.
    Coverage,
}

impl Map {
    pub const ALL: [Self; 3] = [Self::Attention, Self::Refinement, Self::Coverage];

    pub fn name(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Refinement => "refinement",
            Self::Coverage => "coverage",
        }
    }

    pub fn of(self, step: &PassStep) -> &[f32] {
        match self {
            Self::Attention => &step.attention,
            Self::Refinement => &step.refinement,
            Self::Coverage => &step.coverage,
        }
    }

    /// The darkest tint: dark enough to distinguish shades, light enough for ink to be visible.
    pub fn tint(self) -> Colour {
        match self {
            Self::Attention => [240, 120, 20],
            Self::Refinement => [72, 92, 140],
            Self::Coverage => [30, 150, 110],
        }
    }
}

/// What to show.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub map: Map,
    /// From 0; none for the mean over all.
    pub layer: Option<usize>,
    /// From 0; none for the mean over all.
    pub head: Option<usize>,
    pub direction: Direction,
}

impl Choice {
    /// The choice in words.
    pub fn describe(&self) -> String {
        let part = |name: &str, number: Option<usize>| match number {
            Some(number) => format!("{name} {}", number + 1),
            None => format!("mean over {name}s"),
        };
        let from = match self.direction {
            Direction::LeftToRight => "left",
            Direction::RightToLeft => "right",
        };
        let (layer, head) = (part("layer", self.layer), part("head", self.head));
        format!("{}, {layer}, {head}, read from the {from}; darker = larger", self.map.name())
    }
}

/// An image as the network saw it, and its alignment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Within the size limits of the network.
    pub picture: &'a Image,
    pub tokens: &'a [Token],
    /// With all its detail.
    pub alignment: &'a Alignment,
}

/// One step, ready to be drawn.
pub struct Panel {
    pub token: String,
    /// Position of the token in the formula; none for the end token.
    pub index: Option<usize>,
    pub probability: f32,
    pub runners_up: Vec<(String, f32)>,
    /// From 0 to 1, row after row.
    pub shades: Vec<f32>,
}

impl View<'_> {
    /// The steps of the reading that was chosen.
    pub fn panels(&self, choice: &Choice) -> Vec<Panel> {
        let Some(pass) = self.alignment.passes.iter().find(|pass| pass.direction == choice.direction) else {
            return Vec::new();
        };
        let maps: Vec<Vec<f32>> =
            pass.steps.iter().map(|step| chosen(pass, choice.map.of(step), choice)).collect();
        // One scale for all steps, so that they can be compared.
        let (least, most) = range(maps.iter().flatten().copied());
        let least = if choice.map == Map::Refinement { least } else { 0.0 };
        let panel = |(step, map): (&PassStep, Vec<f32>)| Panel {
            token: shown(step),
            index: step.index,
            probability: step.token.confidence,
            runners_up: step.runners_up.iter().map(|token| (name(token), token.confidence)).collect(),
            shades: map.into_iter().map(|value| shade(choice.map, value, least, most)).collect(),
        };
        pass.steps.iter().zip(maps).map(panel).collect()
    }

    /// The attention that all tokens with ink paid together, in shades: what the regions of ink are judged by.
    pub fn total(&self) -> Vec<f32> {
        let mut sum = vec![0.0; self.alignment.height * self.alignment.width];
        for (token, map) in self.tokens.iter().zip(&self.alignment.attention) {
            if token.has_ink() {
                sum.iter_mut().zip(map).for_each(|(sum, value)| *sum += value);
            }
        }
        let (_, most) = range(sum.iter().copied());
        sum.into_iter().map(|value| shade(Map::Coverage, value, 0.0, most)).collect()
    }

    /// What was left unread and read twice, in words.
    pub fn verdict(&self) -> String {
        let ink = &self.alignment.ink;
        format!("ink never looked at {:.1} %, read twice {:.1} %", 100.0 * ink.unread, 100.0 * ink.reread)
    }

    /// Draws the picture with shades over it, `scale` pixels for each of its own.
    pub fn draw(
        &self,
        canvas: &mut Canvas,
        left: usize,
        top: usize,
        scale: f32,
        shades: &[f32],
        tint: Colour,
    ) {
        let (wide, high) = self.size(scale);
        let (columns, rows) = (self.alignment.width, self.alignment.height);
        let pixels = self.picture.pixels();
        for y in 0..high {
            for x in 0..wide {
                let (across, down) = ((x as f32 + 0.5) / scale, (y as f32 + 0.5) / scale);
                let shade = between(columns, rows, across / CELL, down / CELL, |cell| shades[cell]);
                let (width, height) = (self.picture.width(), self.picture.height());
                let ink = between(width, height, across, down, |pixel| f32::from(pixels[pixel]) / 255.0);
                let colour = mixed(mixed(PAPER, tint, shade), INK, ink);
                canvas.fill(left + x, top + y, 1, 1, colour);
            }
        }
    }

    /// Outlines the regions that were left unread, and marks those that were read twice.
    pub fn mark(&self, canvas: &mut Canvas, left: usize, top: usize, scale: f32) {
        for region in &self.alignment.ink.regions {
            let side = |start: usize, length: usize, offset: usize| {
                let (start, end) = (start as f32 - 2.0, (start + length) as f32 + 2.0);
                (offset as f32 + start * scale, offset as f32 + end * scale)
            };
            let (across, down) =
                (side(region.left, region.width, left), side(region.top, region.height, top));
            if region.is_unread() {
                canvas.frame([across.0, down.0, across.1, down.1], 2.0, UNREAD);
            }
            if region.is_reread() {
                canvas.frame([across.0, down.0, across.1, down.1], 2.0, REREAD);
                canvas.text("2x", across.0 + 3.0, (down.0 - 12.0).max(2.0), 8.0, REREAD);
            }
        }
    }

    /// The size of the picture at a scale.
    pub fn size(&self, scale: f32) -> (usize, usize) {
        let side = |side: usize| ((side as f32 * scale).round() as usize).max(1);
        (side(self.picture.width()), side(self.picture.height()))
    }
}

/// The chosen map of a step. The first layer has no refinement and is not part of its mean.
pub fn chosen(pass: &Pass, maps: &[f32], choice: &Choice) -> Vec<f32> {
    let mut map = pass.mean(maps, choice.layer, choice.head);
    if choice.map == Map::Refinement && choice.layer.is_none() && pass.layers > 1 {
        let factor = pass.layers as f32 / (pass.layers - 1) as f32;
        map.iter_mut().for_each(|value| *value *= factor);
    }
    map
}

/// Minimum and maximum.
pub fn range(values: impl Iterator<Item = f32>) -> (f32, f32) {
    values.fold((f32::MAX, f32::MIN), |(least, most), value| (least.min(value), most.max(value)))
}

/// The shade of a value, from 0 to 1.
fn shade(map: Map, value: f32, least: f32, most: f32) -> f32 {
    let share = ((value - least) / (most - least).max(1e-6)).clamp(0.0, 1.0);
    match map {
        // Attention is often spread thin: its root shows that too.
        Map::Attention => share.sqrt(),
        // Without coverage, the refinement is in the middle of its range and should be light.
        Map::Refinement => share.powf(1.7),
        Map::Coverage => share,
    }
}

/// The token of a step as text.
fn shown(step: &PassStep) -> String {
    if step.index.is_none() { "end".into() } else { step.token.text.clone() }
}

fn name(token: &Token) -> String {
    if matches!(token.text.as_str(), "<eos>" | "<sos>") { "end".into() } else { token.text.clone() }
}

/// Bilinear interpolation between the centres of cells.
fn between(columns: usize, rows: usize, x: f32, y: f32, value: impl Fn(usize) -> f32) -> f32 {
    let along = |place: f32, count: usize| {
        let place = (place - 0.5).clamp(0.0, (count - 1) as f32);
        (place as usize, (place as usize + 1).min(count - 1), place.fract())
    };
    let ((left, right, across), (top, bottom, down)) = (along(x, columns), along(y, rows));
    let mix = |a: f32, b: f32, share: f32| a + (b - a) * share;
    let row = |y: usize| mix(value(y * columns + left), value(y * columns + right), across);
    mix(row(top), row(bottom), down)
}
