//! Turns any image of handwriting into images like those of the training set: white ink on black, strokes 3 pixels wide,
//! one for each formula.
//!
//! The steps, one module each: `decode` (bytes to grey levels), [`page`] (a sheet on a desk, its perspective), [`light`]
//! (which side is ink, uneven light), [`strength`] (threshold, sharpening), [`paper`] (ruled and squared lines), [`parts`] and
//! [`shape`] (connected ink, specks, edges, stroke width), [`layout`] (which ink is one formula), `faint` (strokes that are
//! faint in places), [`redraw`] (to size, in 3 pixels). `drawing` takes images that are like those of the training set
//! already, and `closing` fills up what is dark and narrow. The cost of each is linear in the pixels; [`work`] counts it.

mod closing;
#[cfg(feature = "decode")]
mod decode;
mod drawing;
mod faint;
pub mod layout;
pub mod light;
pub mod page;
pub mod paper;
pub mod parts;
pub mod redraw;
pub mod shape;
pub mod strength;
mod work;

#[cfg(feature = "decode")]
pub use decode::{Decoded, MOST_PIXELS, decode, decode_after, decode_with, grey, is_svg};
pub use drawing::is_training_drawing;
pub use work::Work;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::mapping::Mapping;
use layout::{Extent, Gaps};
use parts::Parts;
use redraw::Redrawing;
use shape::Frame;
use strength::Strength;

/// Grey levels in rows from the top, 0 for black, with ink of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grey {
    /// Pixels in a row, at least one.
    pub width: usize,
    /// Rows, at least one.
    pub height: usize,
    /// The levels.
    pub levels: Vec<u8>,
}

/// Which pixels are ink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// True for ink, in rows from the top.
    pub ink: Vec<bool>,
}

/// How an image is cleaned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaning {
    /// Whether ruled and squared lines of the paper are removed.
    pub remove_lines: bool,
    /// Space that separates formulas; without it all ink is one formula.
    pub gaps: Option<Gaps>,
}

/// A formula of an image.
#[derive(Clone, Debug)]
pub struct Cleaned {
    /// Its ink, like an image of the training set.
    pub image: Image,
    /// Where a place of the source is in the image.
    pub mapping: Mapping,
    /// The same at a smaller size, for a second reading; `None` if the image is a drawing that stays as it is.
    pub smaller: Option<(Image, Mapping)>,
    /// What its ink fills in the source.
    pub extent: Extent,
}

/// Without decoders every XML file is ink.
#[cfg(not(feature = "decode"))]
pub fn is_svg(_: &[u8]) -> bool {
    false
}

/// Pixels around a formula that may belong to its soft edges, in stroke widths.
const SOFT_EDGE: f32 = 2.0;
/// Up to this unevenness of the ground, strokes that are faint in places are brought out.
const MOST_NOISE: f32 = 0.03;
/// Size of the smaller image. The size of symbols can only be estimated, and a formula that is too large for the model may
/// be read at this one.
const SMALLER: f32 = 0.82;
/// Outside of these ratios to the estimate that the ground was measured with, the ground and the stroke width are measured
/// again: too wide a ground keeps edges of shadows, too narrow a one hollows out where strokes cross.
const AGREEMENT: (f32, f32) = (0.6, 1.25);

/// Turns any image into one like those of the training set, and maps the one onto the other. An image that is like them
/// already stays as it is.
pub fn clean(grey: &Grey, remove_lines: bool, work: &Work) -> Result<(Image, Mapping)> {
    let cleaning = Cleaning { remove_lines, gaps: None };
    let formula = clean_all(grey, &cleaning, work)?.into_iter().next().ok_or_else(|| nothing(grey))?;
    Ok((formula.image, formula.mapping))
}

fn nothing(grey: &Grey) -> Error {
    Error::Image {
        width: grey.width,
        height: grey.height,
        reason: "no ink found, expected handwriting that stands out from its ground".into(),
    }
}

/// The formulas of an image, in reading order; at least one.
pub fn clean_all(grey: &Grey, cleaning: &Cleaning, work: &Work) -> Result<Vec<Cleaned>> {
    if is_training_drawing(grey, work)? {
        return drawing::formulas(grey, cleaning, work);
    }
    let nothing = || nothing(grey);
    let (mut small, mut mapping) = light::shrink(grey, work)?;
    let mut frame = Frame::Anything;
    if let Some(corners) = page::find(&small, work)? {
        let (flat, straight) = page::straightened(&small, corners, work)?;
        (small, mapping) = (flat, mapping.then(straight));
        frame = Frame::Sheet;
    }
    // A first estimate of the width of the strokes, then the ground between them, then the width again.
    let (small, mut pen) = light::dark_ink(small, frame == Frame::Sheet, work)?.ok_or_else(nothing)?;
    let mut strength = light::ink_strength(&small, pen, work)?;
    let mut counted = None;
    for _ in 0..3 {
        let Some(found) = pen_width(&strength, frame, work)? else { break };
        let done = (AGREEMENT.0..AGREEMENT.1).contains(&(found.0 / pen));
        pen = found.0;
        counted = Some(found);
        if done {
            break;
        }
        strength = light::ink_strength(&small, pen, work)?;
    }
    if cleaning.remove_lines {
        let level = strength::threshold(&strength).ok_or_else(nothing)?;
        if let Some(cleared) = paper::without_lines(&strength, level, pen, work)? {
            strength = cleared;
            if frame == Frame::Anything {
                frame = Frame::Ruled;
            }
            counted = pen_width(&strength, frame, work)?;
        }
    }
    let (pen, (parts, written)) = counted.ok_or_else(nothing)?;
    let mut kept: Vec<usize> = (0..written.len()).filter(|&part| written[part]).collect();
    let near = layout::without_isolated(&extents(&parts, &kept), work)?;
    let mut near = near.into_iter();
    kept.retain(|_| near.next() == Some(true));
    let extents = extents(&parts, &kept);
    let groups = match cleaning.gaps {
        Some(gaps) => layout::groups(&extents, gaps, work)?,
        None => vec![(0..kept.len()).collect()],
    };
    let mut formulas = Vec::new();
    for group in groups {
        let mut own = vec![false; parts.list.len()];
        group.iter().for_each(|&at| own[kept[at]] = true);
        let Some(bounds) = group.iter().map(|&at| extents[at]).reduce(Extent::join) else { continue };
        let look = Look { strength: &strength, parts: &parts, pen, mapping };
        let Some(found) = formula(&look, &own, bounds, work)? else { continue };
        // The rectangle of all of them would be too large in a source that is turned or in perspective.
        let extent = group.iter().map(|&at| in_source(extents[at], mapping)).reduce(Extent::join);
        formulas.push(Cleaned { extent: extent.unwrap_or(found.extent), ..found });
    }
    if formulas.is_empty() { Err(nothing()) } else { Ok(formulas) }
}

/// The width of the strokes, with the parts of the ink and which of them are written; `None` without ink.
#[expect(clippy::type_complexity, reason = "used three times in one function")]
fn pen_width(strength: &Strength, frame: Frame, work: &Work) -> Result<Option<(f32, (Parts, Vec<bool>))>> {
    let Some(level) = strength::threshold(strength) else { return Ok(None) };
    work.spend(strength.values.len())?;
    let mask = strength.at_least(level);
    let parts = Parts::of(&mask, work)?;
    let all = shape::without_specks(&parts, &vec![true; parts.list.len()]);
    let Some(pen) = shape::main_stroke_width(&parts, &all) else { return Ok(None) };
    // What is at the edge of the image may be wide; what is inside says how wide strokes are.
    let inside = shape::written(&parts, &mask, pen, frame);
    let both: Vec<bool> = all.iter().zip(&inside).map(|(all, inside)| *all && *inside).collect();
    let Some(pen) = shape::main_stroke_width(&parts, &both) else { return Ok(Some((pen, (parts, all)))) };
    Ok(Some((pen, (parts, both))))
}

fn extent(part: &parts::Part) -> Extent {
    let range = |(first, last): (usize, usize)| (first as f64, last as f64 + 1.0);
    Extent { columns: range(part.columns), rows: range(part.rows) }
}

fn extents(parts: &Parts, kept: &[usize]) -> Vec<Extent> {
    kept.iter().map(|&part| extent(&parts.list[part])).collect()
}

/// What all formulas of an image have in common.
struct Look<'a> {
    strength: &'a Strength,
    parts: &'a Parts,
    /// Width of the strokes.
    pen: f32,
    mapping: Mapping,
}

/// One formula: its ink cut out, cleaned of what is not its own, sharpened and brought to size; `None` where nothing is left.
fn formula(look: &Look, own: &[bool], bounds: Extent, work: &Work) -> Result<Option<Cleaned>> {
    let Look { strength, parts, pen, mapping } = *look;
    let edge = (SOFT_EDGE * pen).ceil() as usize + 1;
    let side = |(first, last): (f64, f64), most: usize| {
        ((first as usize).saturating_sub(edge), (last as usize + edge).min(most))
    };
    let ((left, right), (top, bottom)) =
        (side(bounds.columns, strength.width), side(bounds.rows, strength.height));
    let (width, height) = (right - left, bottom - top);
    let mut cut = strength.cut(left, top, width, height);
    let mask_of = |wanted: bool| parts.mask_within((left, right), (top, bottom), |part| own[part] == wanted);
    let other = mask_of(false);
    if other.ink.contains(&true) {
        let reach = (pen.ceil() as usize).clamp(1, 8);
        let (near_own, near_other) = (redraw::grown(&mask_of(true), reach), redraw::grown(&other, reach));
        for (value, (own, other)) in cut.values.iter_mut().zip(near_own.into_iter().zip(near_other)) {
            if other && !own {
                *value = 0.0;
            }
        }
        work.spend((4 * reach + 7) * width * height)?;
    }
    work.spend(width * height)?;
    // In noisy images, evening out would bring out the noise.
    work.spend(2 * cut.values.len())?;
    if let Some(level) = strength::threshold(&cut)
        && strength::noise(&cut, level) <= MOST_NOISE
    {
        cut = faint::bridged(faint::evened(cut, level, pen, work)?, pen, work)?;
    }
    let (fine, factor) = strength::refine(cut, pen, work)?;
    let Some(level) = strength::threshold(&fine) else { return Ok(None) };
    let mask = fine.at_least(level);
    let parts = Parts::of(&mask, work)?;
    let kept = shape::without_specks(&parts, &vec![true; parts.list.len()]);
    let mask = parts.mask(&kept);
    let Some(redrawing) = Redrawing::new(&mask, (&parts, &kept), &fine, level) else { return Ok(None) };
    let refined = Mapping::new(
        [f64::from(factor); 2],
        [-(left as f64), -(top as f64)].map(|at| at * f64::from(factor)),
    );
    let mapped = |size: f32| -> Result<Option<(Image, Mapping)>> {
        let found = redrawing.at(size, work)?;
        Ok(found.map(|(image, redrawn)| (image, mapping.then(refined).then(redrawn))))
    };
    let Some((image, whole)) = mapped(1.0)? else { return Ok(None) };
    let (smaller, extent) = (mapped(SMALLER)?, in_source(bounds, mapping));
    Ok(Some(Cleaned { image, mapping: whole, smaller, extent }))
}

/// What holds a rectangle of the target of a mapping in its source.
fn in_source(extent: Extent, mapping: Mapping) -> Extent {
    let Extent { columns, rows } = extent;
    let corners = [(columns.0, rows.0), (columns.1, rows.0), (columns.1, rows.1), (columns.0, rows.1)];
    let places = corners.map(|(x, y)| mapping.invert([x, y]));
    let range = |axis: usize| {
        let values = places.iter().map(|place| place[axis]);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    Extent { columns: range(0), rows: range(1) }
}

#[cfg(test)]
mod tests;
