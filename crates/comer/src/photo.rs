//! Turns any image of handwriting into images like those of the training set: white ink on black, strokes 3 pixels wide,
//! one for each formula.
//!
//! The steps, one module each: `decode` (bytes to grey levels), [`page`] (a sheet on a desk, its perspective), [`light`]
//! (which side is ink, uneven light, threshold), [`paper`] (ruled and squared lines), [`parts`] and [`shape`] (connected
//! ink, specks, edges, stroke width), [`layout`] (which ink is one formula), [`redraw`] (to size, in 3 pixels). The cost of
//! each is linear in the pixels; [`work`] counts it.

#[cfg(feature = "decode")]
mod decode;
pub mod layout;
pub mod light;
pub mod page;
pub mod paper;
pub mod parts;
pub mod redraw;
pub mod shape;
mod work;

#[cfg(feature = "decode")]
pub use decode::{MOST_PIXELS, decode, decode_with, grey, is_svg};
pub use work::Work;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::mapping::Mapping;
use layout::{Extent, Gaps};
use light::{Grain, Strength};
use parts::Parts;

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
/// Most pixels of a drawing that is taken as it is.
const MOST_DRAWN: usize = 4_000_000;
/// Outside of these ratios to the estimate that the ground was measured with, the ground and the stroke width are measured
/// again: too wide a ground keeps edges of shadows, too narrow a one hollows out where strokes cross.
const AGREEMENT: (f32, f32) = (0.6, 1.25);
/// Pixels around the ink of a drawing.
const DRAWN_MARGIN: usize = 12;

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
        return drawn(grey, cleaning, work);
    }
    let nothing = || nothing(grey);
    let (mut small, mut mapping) = light::shrink(grey, work)?;
    if let Some(corners) = page::find(&small, work)? {
        let (flat, straight) = page::straightened(&small, corners, work)?;
        (small, mapping) = (flat, mapping.then(straight));
    }
    // A first estimate of the width of the strokes, then the ground between them, then the width again.
    let (small, mut pen) = light::dark_ink(small, work)?.ok_or_else(nothing)?;
    let mut strength = light::ink_strength(&small, pen, work)?;
    let mut counted = None;
    for _ in 0..3 {
        let Some(found) = pen_width(&strength, work)? else { break };
        let done = (AGREEMENT.0..AGREEMENT.1).contains(&(found.0 / pen));
        pen = found.0;
        counted = Some(found);
        if done {
            break;
        }
        strength = light::ink_strength(&small, pen, work)?;
    }
    if cleaning.remove_lines {
        let level = light::threshold(&strength).ok_or_else(nothing)?;
        if let Some(cleared) = paper::without_lines(&strength, level, pen, work)? {
            strength = cleared;
            counted = pen_width(&strength, work)?;
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
        let look = Look { strength: &strength, parts: &parts, pen, grain: Grain::PHOTOGRAPH, mapping };
        formulas.extend(formula(&look, &own, bounds, work)?);
    }
    if formulas.is_empty() { Err(nothing()) } else { Ok(formulas) }
}

/// The width of the strokes, with the parts of the ink and which of them are written; `None` without ink.
#[expect(clippy::type_complexity, reason = "used three times in one function")]
fn pen_width(strength: &Strength, work: &Work) -> Result<Option<(f32, (Parts, Vec<bool>))>> {
    let Some(level) = light::threshold(strength) else { return Ok(None) };
    work.spend(strength.values.len())?;
    let mask = strength.at_least(level);
    let parts = Parts::of(&mask, work)?;
    let all = shape::without_specks(&parts, &vec![true; parts.list.len()]);
    let Some(pen) = shape::main_stroke_width(&parts, &all) else { return Ok(None) };
    // What is at the edge of the image may be wide; what is inside says how wide strokes are.
    let inside = shape::written(&parts, &mask, pen);
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
    grain: Grain,
    mapping: Mapping,
}

/// One formula: its ink cut out, cleaned of what is not its own, sharpened and brought to size; `None` where nothing is left.
fn formula(look: &Look, own: &[bool], bounds: Extent, work: &Work) -> Result<Option<Cleaned>> {
    let Look { strength, parts, pen, grain, mapping } = *look;
    let edge = (SOFT_EDGE * pen).ceil() as usize + 1;
    let side = |(first, last): (f64, f64), most: usize| {
        ((first as usize).saturating_sub(edge), (last as usize + edge).min(most))
    };
    let ((left, right), (top, bottom)) =
        (side(bounds.columns, strength.width), side(bounds.rows, strength.height));
    let (width, height) = (right - left, bottom - top);
    let mut cut = strength.cut(left, top, width, height);
    let mask_of = |wanted: bool| {
        let rows = parts.labels.chunks(strength.width).skip(top).take(height);
        let ink = rows.flat_map(|row| &row[left..right]);
        let ink = ink.map(|&label| label > 0 && own[label as usize - 1] == wanted).collect();
        Mask { width, height, ink }
    };
    let reach = (pen.ceil() as usize).clamp(1, 8);
    let (near_own, near_other) =
        (redraw::grown(&mask_of(true), reach), redraw::grown(&mask_of(false), reach));
    for (value, (own, other)) in cut.values.iter_mut().zip(near_own.into_iter().zip(near_other)) {
        if other && !own {
            *value = 0.0;
        }
    }
    work.spend((4 * reach + 8) * width * height)?;
    let (fine, factor) = light::refine(&cut, pen, grain, work)?;
    let Some(level) = light::threshold(&fine).map(|level| grain.faintest * level) else { return Ok(None) };
    let mask = fine.at_least(level);
    let parts = Parts::of(&mask, work)?;
    let mask = parts.mask(&shape::without_specks(&parts, &vec![true; parts.list.len()]));
    let Some((image, redrawn)) = redraw::to_training_size(&mask, &fine, level, work)? else {
        return Ok(None);
    };
    let refined = Mapping::new(
        [f64::from(factor); 2],
        [-(left as f64), -(top as f64)].map(|at| at * f64::from(factor)),
    );
    Ok(Some(Cleaned {
        image,
        extent: in_source(bounds, mapping),
        mapping: mapping.then(refined).then(redrawn),
    }))
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

/// The formulas of a drawing; one that is alone stays as it is.
fn drawn(grey: &Grey, cleaning: &Cleaning, work: &Work) -> Result<Vec<Cleaned>> {
    let mask = Mask {
        width: grey.width,
        height: grey.height,
        ink: grey.levels.iter().map(|&level| level == 255).collect(),
    };
    let parts = Parts::of(&mask, work)?;
    let extents: Vec<Extent> = parts.list.iter().map(extent).collect();
    let groups = match cleaning.gaps {
        Some(gaps) => layout::groups(&extents, gaps, work)?,
        None => vec![(0..extents.len()).collect()],
    };
    let whole = groups.len() == 1;
    let mut formulas = Vec::new();
    for group in groups {
        let Some(extent) = group.iter().map(|&part| extents[part]).reduce(Extent::join) else { continue };
        if whole {
            let image = Image::new(grey.width, grey.height, grey.levels.clone())?;
            return Ok(vec![Cleaned { image, mapping: Mapping::scale(1.0, 1.0), extent }]);
        }
        let mut own = vec![false; parts.list.len()];
        group.iter().for_each(|&part| own[part] = true);
        let (left, top) = (extent.columns.0 as usize, extent.rows.0 as usize);
        let (wide, high) = (extent.width() as usize, extent.height() as usize);
        let (width, height) = (wide + 2 * DRAWN_MARGIN - 1, high + 2 * DRAWN_MARGIN - 1);
        let mut pixels = vec![0; width * height];
        for row in 0..high {
            for column in 0..wide {
                let label = parts.labels[(top + row) * grey.width + left + column] as usize;
                if label > 0 && own[label - 1] {
                    pixels[(row + DRAWN_MARGIN) * width + column + DRAWN_MARGIN] = 255;
                }
            }
            work.spend(wide)?;
        }
        let offset = [left, top].map(|first| DRAWN_MARGIN as f64 - first as f64);
        formulas.push(Cleaned {
            image: Image::new(width, height, pixels)?,
            mapping: Mapping::new([1.0; 2], offset),
            extent,
        });
    }
    Ok(formulas)
}

/// Whether an image is drawn like those of the training set: white on black in a pen of 3 by 3 pixels, whatever its
/// margins.
pub fn is_training_drawing(grey: &Grey, work: &Work) -> Result<bool> {
    let Grey { width, height, ref levels } = *grey;
    let binary = |&level: &u8| level == 0 || level == 255;
    if width < 3 || height < 3 || levels.len() > MOST_DRAWN || !levels.iter().all(binary) {
        return Ok(false);
    }
    let ink = Mask { width, height, ink: levels.iter().map(|&level| level == 255).collect() };
    let share = ink.ink.iter().filter(|&&ink| ink).count();
    if share == 0 || 2 * share > levels.len() {
        return Ok(false);
    }
    // Every pixel of ink lies in a 3 by 3 square of ink.
    let square = |x: usize, y: usize| {
        x + 2 < width && y + 2 < height && (0..3).all(|row| levels[(y + row) * width + x..][..3] == [255; 3])
    };
    let under_pen = |at: usize| {
        let (x, y) = (at % width, at / width);
        (0..9).any(|cell| x >= cell % 3 && y >= cell / 3 && square(x - cell % 3, y - cell / 3))
    };
    for row in 0..height {
        work.spend(9 * width)?;
        if (row * width..(row + 1) * width).any(|at| levels[at] != 0 && !under_pen(at)) {
            return Ok(false);
        }
    }
    // Small, dense drawings have wide runs; their margins are those of the training set.
    let rows: Vec<usize> =
        (0..height).filter(|&row| ink.ink[row * width..][..width].contains(&true)).collect();
    let columns = ink.ink.iter().enumerate().filter(|(_, ink)| **ink).map(|(at, _)| at % width);
    let (left, right) = columns.fold((width, 0), |(left, right), x| (left.min(x), right.max(x)));
    work.spend(2 * levels.len())?;
    let margins = [left, rows[0], width - right, height - rows[rows.len() - 1]] == [DRAWN_MARGIN; 4];
    Ok(margins || parts::stroke_width(&ink, work)?.is_some_and(|pen| pen < 3.3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::{Ink, Point, Stroke};

    fn clean(grey: &Grey, remove_lines: bool) -> Result<(Image, Mapping)> {
        super::clean(grey, remove_lines, &Work::new(&|| Ok(())))
    }

    /// The number of connected parts of the ink.
    fn parts(picture: &Image) -> usize {
        Parts::of(&mask(picture), &Work::new(&|| Ok(()))).unwrap().list.len()
    }

    /// An x over a fraction bar over an x, as a training image.
    fn drawing() -> Image {
        let stroke =
            |points: &[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        let strokes = [
            stroke(&[(10.0, 0.0), (30.0, 28.0)]),
            stroke(&[(30.0, 0.0), (10.0, 28.0)]),
            stroke(&[(0.0, 40.0), (60.0, 40.0)]),
            stroke(&[(10.0, 52.0), (30.0, 80.0)]),
            stroke(&[(30.0, 52.0), (10.0, 80.0)]),
        ];
        Ink::new(strokes.to_vec()).unwrap().draw().unwrap()
    }

    fn grey(picture: &Image, level: impl Fn(usize, u8) -> u8) -> Grey {
        let levels = picture.pixels().iter().enumerate().map(|(at, &pixel)| level(at, pixel)).collect();
        Grey { width: picture.width(), height: picture.height(), levels }
    }

    #[test]
    fn a_training_picture_stays_as_it_is() {
        let drawing = drawing();
        assert_eq!(clean(&grey(&drawing, |_, pixel| pixel), true).unwrap().0, drawing);
    }

    #[test]
    fn a_small_dense_training_picture_stays_as_it_is() {
        let cross =
            Ink::from_json(b"[[[0,0],[10,10],[20,20]],[[20,0],[10,10],[0,20]]]").unwrap().draw().unwrap();
        assert_eq!(clean(&grey(&cross, |_, pixel| pixel), true).unwrap().0, cross);
    }

    #[test]
    fn a_picture_without_ink_is_refused() {
        for side in [1, 2, 7, 26, 300] {
            for level in [0, 1, 128, 255] {
                let blank = Grey { width: side, height: side, levels: vec![level; side * side] };
                let message = clean(&blank, true).unwrap_err().to_string();
                assert!(message.contains("no ink found"), "{side} {level}: {message}");
            }
        }
    }

    #[test]
    fn pictures_of_a_few_pixels_do_no_harm() {
        for (width, height) in [(1, 9), (9, 1), (2, 2), (3, 5), (40, 1), (1, 400)] {
            for seed in 0..8u32 {
                let level = |at: usize| ((at as u32 + 1).wrapping_mul(2_654_435_761 ^ seed) >> 24) as u8;
                let noise = Grey { width, height, levels: (0..width * height).map(level).collect() };
                if let Ok((picture, _)) = clean(&noise, true) {
                    assert!(picture.pixels().contains(&255));
                }
            }
        }
    }

    #[test]
    fn dark_on_light_and_light_on_dark_come_out_alike() {
        let drawing = drawing();
        let dark = clean(&grey(&drawing, |_, pixel| 230 - pixel / 2), true).unwrap().0;
        let light = clean(&grey(&drawing, |_, pixel| 25 + pixel / 2), true).unwrap().0;
        for (name, picture) in [("dark", dark), ("light", light)] {
            let near = |found: usize, expected: usize| found.abs_diff(expected) * 8 <= expected;
            assert!(
                near(picture.width(), drawing.width()) && near(picture.height(), drawing.height()),
                "{name}"
            );
            assert_eq!(parts(&picture), 3, "{name}");
        }
    }

    fn mask(picture: &Image) -> Mask {
        let ink = picture.pixels().iter().map(|&pixel| pixel > 127).collect();
        Mask { width: picture.width(), height: picture.height(), ink }
    }

    #[test]
    fn lines_of_the_paper_go_and_fraction_bars_stay() {
        let drawing = drawing();
        let width = drawing.width();
        // Two lines from edge to edge, one of them through the lower x.
        let ruled = grey(&drawing, |at, pixel| {
            if pixel == 255 {
                20
            } else if [5, 75].contains(&(at / width)) {
                60
            } else {
                230
            }
        });
        let cleaned = clean(&ruled, true).unwrap().0;
        assert_eq!(parts(&cleaned), 3);
        let kept = clean(&ruled, false).unwrap().0;
        assert_ne!(kept, cleaned);
    }

    #[test]
    fn thick_and_thin_pens_come_out_three_pixels_wide() {
        let drawing = drawing();
        for (pen, factor) in [(1, 4), (6, 4), (20, 4)] {
            // Centre lines at four times the size, in another pen.
            let work = Work::new(&|| Ok(()));
            let lines = shape::centre_lines(&mask(&drawing), &work).unwrap();
            let (width, height) = (lines.width * factor, lines.height * factor);
            let mut levels = vec![230; width * height];
            for (at, _) in lines.ink.iter().enumerate().filter(|(_, ink)| **ink) {
                let (x, y) = (at % lines.width * factor, at / lines.width * factor);
                for cell in 0..(pen + 3) * (pen + 3) {
                    levels[(y + cell / (pen + 3)) * width + x + cell % (pen + 3)] = 20;
                }
            }
            let picture = clean(&Grey { width, height, levels }, true).unwrap().0;
            let width = parts::stroke_width(&mask(&picture), &work).unwrap().unwrap();
            assert!((2.5..=3.6).contains(&width), "a pen of {pen} came out {width} wide");
        }
    }
}
