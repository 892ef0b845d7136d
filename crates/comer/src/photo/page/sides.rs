//! Straight lines along which an image is brighter on one side: candidates for the sides of a sheet of paper.
//!
//! Every cell that is brighter than the one before it votes for the lines through it (a Hough transform), for each of the
//! four sides of its own. The lines with most votes are kept, with the contrast that is seen along them.

use super::super::{Grey, Work};
use crate::error::Result;

/// Cells from one whose level is compared to the other.
const STEP: usize = 2;
/// Least contrast of an edge, as a natural logarithm.
const LEAST: f32 = 0.1;
/// Contrast from which an edge does not count more.
const MOST: f32 = 0.7;
/// Steepest side, as columns for each row or rows for each column.
const STEEPEST: f64 = 0.36;
/// Steps of the slope to one side.
const SLOPES: isize = 36;
/// Lines kept for each side.
const KEPT: usize = 8;
/// Cells that two lines have to be apart at one of their ends.
const APART: f64 = 5.0;
/// Cells by which an edge may be off a straight line.
const BEND: isize = 2;
/// Below this level, light is noise.
const DARKEST: u8 = 12;

/// A line `offset + slope * (place - middle)`: columns by rows for the left and right side, rows by columns for the others.
pub struct Side {
    pub offset: f64,
    pub slope: f64,
    /// Whether it is the edge of the image, which needs no contrast.
    pub is_border: bool,
    /// How many of the places before each one have an edge, and the sum of their contrast.
    seen: Vec<(f64, f64)>,
}

/// Candidates for each side, the edge of the image among them.
pub struct Sides {
    pub left: Vec<Side>,
    pub top: Vec<Side>,
    pub right: Vec<Side>,
    pub bottom: Vec<Side>,
}

impl Sides {
    /// The sides of an image whose ink is filled up in `levels`.
    pub fn of(grey: &Grey, levels: &[u8], work: &Work) -> Result<Self> {
        let Grey { width, height, .. } = *grey;
        let logarithm = |&level: &u8| f32::from(level.max(DARKEST)).ln();
        let upright = Field { width, height, values: levels.iter().map(logarithm).collect() };
        let turned = (0..levels.len()).map(|at| upright.values[at % height * width + at / height]).collect();
        let level = Field { width: height, height: width, values: turned };
        Ok(Self {
            left: upright.lines(1.0, work)?,
            right: upright.lines(-1.0, work)?,
            top: level.lines(1.0, work)?,
            bottom: level.lines(-1.0, work)?,
        })
    }
}

impl Side {
    /// The share of the places between two that have an edge, and their mean contrast; what is outside does not count.
    pub fn seen_between(&self, from: f64, to: f64) -> (f64, f64) {
        let last = self.seen.len() - 1;
        let place = |place: f64| (place.max(0.0) as usize).min(last);
        let (first, last) = (place(from.min(to)), place(from.max(to)));
        let length = (last - first).max(1) as f64;
        let (count, sum) = (self.seen[last].0 - self.seen[first].0, self.seen[last].1 - self.seen[first].1);
        (count / length, sum / count.max(1.0))
    }
}

/// Logarithms of levels, so that differences are contrasts whatever the light.
struct Field {
    width: usize,
    height: usize,
    values: Vec<f32>,
}

impl Field {
    /// Lines down the field that have a brighter right side, or left side for a `sign` of -1.
    fn lines(&self, sign: f32, work: &Work) -> Result<Vec<Side>> {
        let (width, height) = (self.width, self.height);
        let middle = height as f64 / 2.0;
        let slope = |step: isize| step as f64 * STEEPEST / SLOPES as f64;
        let slopes = 2 * SLOPES as usize + 1;
        let mut votes = vec![0.0f32; slopes * width];
        for y in 0..height {
            for x in STEP..width - STEP {
                let contrast = self.contrast(x, y, sign);
                // The strongest place of an edge that is several cells wide.
                let weaker = |other: usize| self.contrast(other, y, sign) <= contrast;
                if contrast < LEAST || !weaker((x - 1).max(STEP)) || !weaker((x + 1).min(width - STEP - 1)) {
                    continue;
                }
                for step in -SLOPES..=SLOPES {
                    let offset = x as f64 - slope(step) * (y as f64 - middle);
                    if offset >= 0.0 && offset < width as f64 {
                        votes[(step + SLOPES) as usize * width + offset as usize] += contrast.min(MOST);
                    }
                }
            }
            work.spend(4 * width)?;
        }
        let border = if sign > 0.0 { 0.0 } else { width as f64 };
        let mut sides =
            vec![Side { offset: border, slope: 0.0, is_border: true, seen: vec![(0.0, 0.0); height + 1] }];
        // Neighbours share the votes of an edge that is not quite straight.
        let around = |at: usize| {
            let column = at % width;
            votes[at]
                + if column > 0 { votes[at - 1] } else { 0.0 }
                + if column + 1 < width { votes[at + 1] } else { 0.0 }
        };
        let mut order: Vec<(f32, usize)> =
            (0..votes.len()).map(|at| (around(at), at)).filter(|vote| vote.0 > 1.0).collect();
        work.spend(4 * votes.len())?;
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (_, at) in order {
            let (offset, slope) = ((at % width) as f64 + 0.5, slope((at / width) as isize - SLOPES));
            let close = |side: &Side| {
                let apart = |half: f64| (side.offset - offset + (side.slope - slope) * half).abs();
                !side.is_border && apart(-middle).max(apart(middle)) < APART
            };
            if sides.iter().any(close) {
                continue;
            }
            let (offset, slope) = self.fitted(offset, slope, sign);
            if !sides.iter().any(|side| !side.is_border && side.offset == offset && side.slope == slope) {
                let seen = self.seen(offset, slope, sign);
                sides.push(Side { offset, slope, is_border: false, seen });
            }
            work.spend(40 * height)?;
            if sides.len() > KEPT {
                break;
            }
        }
        Ok(sides)
    }

    /// How much brighter it is to the right, or to the left for a `sign` of -1.
    fn contrast(&self, x: usize, y: usize, sign: f32) -> f32 {
        let row = &self.values[y * self.width..][..self.width];
        sign * (row[x + STEP] - row[x - STEP])
    }

    /// The strongest edge within some cells of a place, and its contrast.
    fn strongest(&self, x: f64, y: usize, reach: isize, sign: f32) -> Option<(f64, f32)> {
        let x = x.round() as isize;
        let inside = |x: &isize| *x >= STEP as isize && x + (STEP as isize) < self.width as isize;
        let near = (x - reach..=x + reach).filter(inside);
        let all = near.map(|x| (x as f64, self.contrast(x as usize, y, sign)));
        let best = all.clone().map(|edge| edge.1).fold(f32::NEG_INFINITY, f32::max);
        // A sharp edge is equally strong in several cells: its middle counts.
        let strong = all.filter(|edge| edge.1 > 0.9 * best).map(|edge| edge.0);
        let (sum, count) = strong.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
        (best >= LEAST).then(|| (sum / count, best))
    }

    /// The line through the strongest edges near a line, by least squares; those far from it have no say.
    fn fitted(&self, offset: f64, slope: f64, sign: f32) -> (f64, f64) {
        let middle = self.height as f64 / 2.0;
        let (mut offset, mut slope) = (offset, slope);
        for reach in [4, 2, 2] {
            let (mut weights, mut places, mut squares, mut edges, mut products) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for y in 0..self.height {
                let place = y as f64 - middle;
                let Some((x, contrast)) = self.strongest(offset + slope * place, y, reach, sign) else {
                    continue;
                };
                let weight = f64::from(contrast.min(MOST));
                weights += weight;
                places += weight * place;
                squares += weight * place * place;
                edges += weight * x;
                products += weight * place * x;
            }
            let area = weights * squares - places * places;
            if area < 1e-6 {
                break;
            }
            slope = (weights * products - places * edges) / area;
            offset = (edges - slope * places) / weights;
        }
        (offset, slope)
    }

    /// What is seen along a line, summed up.
    fn seen(&self, offset: f64, slope: f64, sign: f32) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0)];
        let (mut count, mut sum) = (0.0, 0.0);
        for y in 0..self.height {
            let place = y as f64 - self.height as f64 / 2.0;
            if let Some((_, contrast)) = self.strongest(offset + slope * place, y, BEND, sign) {
                (count, sum) = (count + 1.0, sum + f64::from(contrast));
            }
            sums.push((count, sum));
        }
        sums
    }
}
