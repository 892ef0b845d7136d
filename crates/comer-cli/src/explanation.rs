//! Renders how a formula was read: attention, refinement and coverage of each step.

pub mod animation;
pub mod canvas;
mod font;
pub mod html;
pub mod png;
pub mod sheet;
pub mod svg;
#[cfg(test)]
mod tests;
pub mod view;

use anyhow::{Context, Result};
#[cfg(test)]
use comer::Token;
use comer::alignment::Direction;
use comer::{Input, Recognition, Recognizer};

use view::{Choice, Map, View};

/// The page of a recognition with its full alignment.
pub fn page(recognizer: &Recognizer, input: &Input, recognition: &Recognition) -> Result<String> {
    let refined = recognizer.config().is_refined();
    let map = if refined { Map::Refinement } else { Map::Attention };
    let choice = Choice { map, layer: None, head: None, direction: Direction::LeftToRight };
    let alignment = recognition.alignment.as_ref().context("no alignment was made")?;
    let view = View { picture: input.image(), tokens: &recognition.best.tokens, alignment };
    html::html("Where the model looked", &view, &choice)
}
