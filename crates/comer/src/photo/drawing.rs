//! Images that are drawn like those of the training set, which stay as they are.

use super::layout::{self, Extent};
use super::parts::{self, Parts};
use super::{Cleaned, Cleaning, Grey, Mask, Work};
use crate::error::Result;
use crate::image::Image;
use crate::mapping::Mapping;

/// Most pixels of a drawing that is taken as it is.
const MOST_DRAWN: usize = 4_000_000;
/// Pixels around the ink of a drawing.
const DRAWN_MARGIN: usize = 12;

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
            smaller: None,
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
