//! Images that are drawn like those of the training set, which stay as they are.

use super::layout::{self, Extent};
use super::parts::Parts;
use super::{Cleaned, Cleaning, Grey, Mask, Work};
use crate::error::Result;
use crate::image::Image;
use crate::mapping::Mapping;

/// Most pixels of a drawing that is taken as it is.
const MOST_DRAWN: usize = 4_000_000;
/// Pixels around the ink of a drawing.
const DRAWN_MARGIN: usize = 12;
/// Share of the ink of a drawing that may lie in squares of 4 by 4 pixels: up to 0.65 where strokes of the training images
/// cross or are close, and all of it in a wider pen.
const MOST_WIDER: f32 = 0.8;

/// The formulas of a drawing; one that is alone stays as it is.
pub fn formulas(grey: &Grey, cleaning: &Cleaning, work: &Work) -> Result<Vec<Cleaned>> {
    let mask = Mask {
        width: grey.width,
        height: grey.height,
        ink: grey.levels.iter().map(|&level| level == 255).collect(),
    };
    let parts = Parts::of(&mask, work)?;
    let extents: Vec<Extent> = parts.list.iter().map(super::extent).collect();
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
            return Ok(vec![Cleaned { image, mapping: Mapping::scale(1.0, 1.0), smaller: None, extent }]);
        }
        let mut own = vec![false; parts.list.len()];
        group.iter().for_each(|&part| own[part] = true);
        let (left, top) = (extent.columns.0 as usize, extent.rows.0 as usize);
        let (wide, high) = (extent.width() as usize, extent.height() as usize);
        let (width, height) = (wide + 2 * DRAWN_MARGIN - 1, high + 2 * DRAWN_MARGIN - 1);
        let mut pixels = vec![0; width * height];
        let cut = parts.mask_within((left, left + wide), (top, top + high), |part| own[part]);
        for (row, ink) in cut.ink.chunks(wide).enumerate() {
            let pixels = &mut pixels[(row + DRAWN_MARGIN) * width + DRAWN_MARGIN..];
            pixels.iter_mut().zip(ink).for_each(|(pixel, &ink)| *pixel = if ink { 255 } else { 0 });
            work.spend(wide)?;
        }
        let offset = [left, top].map(|first| DRAWN_MARGIN as f64 - first as f64);
        formulas.push(Cleaned {
            image: Image::new(width, height, pixels)?,
            mapping: Mapping::new([1.0; 2], offset),
            smaller: None,
            extent,
        });
    }
    Ok(formulas)
}

/// Whether an image is drawn like those of the training set: white on black in a pen of 3 by 3 pixels, whatever its
/// margins.
pub fn is_training_drawing(grey: &Grey, work: &Work) -> Result<bool> {
    let levels = &grey.levels;
    let binary = |&level: &u8| level == 0 || level == 255;
    if levels.len() > MOST_DRAWN || !levels.iter().all(binary) {
        return Ok(false);
    }
    let ink = levels.iter().filter(|&&level| level == 255).count();
    if ink == 0 || 2 * ink > levels.len() || in_squares(grey, 3, work)? < ink {
        return Ok(false);
    }
    Ok(in_squares(grey, 4, work)? as f32 <= MOST_WIDER * ink as f32)
}

/// How many pixels lie in a square of ink of `side` by `side` pixels.
fn in_squares(grey: &Grey, side: usize, work: &Work) -> Result<usize> {
    let Grey { width, height, ref levels } = *grey;
    if width < side || height < side {
        return Ok(0);
    }
    let mut inside = vec![false; levels.len()];
    // For each column, how many pixels of ink are above one another up to this row.
    let mut above = vec![0usize; width];
    for row in 0..height {
        for (above, &level) in above.iter_mut().zip(&levels[row * width..]) {
            *above = if level == 255 { *above + 1 } else { 0 };
        }
        let mut across = 0;
        for column in 0..width {
            across = if above[column] >= side { across + 1 } else { 0 };
            if across >= side {
                for row in row + 1 - side..=row {
                    inside[row * width + column + 1 - side..=row * width + column].fill(true);
                }
            }
        }
        work.spend(4 * width)?;
    }
    Ok(inside.iter().filter(|&&inside| inside).count())
}
