//! Which pen strokes each token was read from.

use super::Alignment;
use crate::config::CELL_SIZE;
use crate::error::Result;
use crate::ink::Ink;

impl Alignment {
    /// For each token the share of each stroke of `ink`, whose drawing was read, in its attention.
    ///
    /// A cell's attention is divided among the strokes in it by their length there. The shares of a token add up to 1,
    /// or to 0 where it looked at no ink at all.
    pub fn strokes(&self, ink: &Ink) -> Result<Vec<Vec<f32>>> {
        let drawing = ink.draw()?;
        let width = drawing.width() as f32;
        let factor = drawing.fit()?.width() as f32 / width;
        let (count, cells) = (ink.strokes().len(), self.height * self.width);
        let cell = |side: usize, most: usize| {
            ((side as f32 * factor / CELL_SIZE as f32) as usize).min(most.saturating_sub(1))
        };
        // Pixels of each stroke in each cell, and of all of them.
        let mut lengths = vec![Vec::<(usize, f32)>::new(); cells];
        let mut totals = vec![0.0f32; cells];
        ink.pen(|stroke, [x, y]| {
            let at = cell(y, self.height) * self.width + cell(x, self.width);
            totals[at] += 1.0;
            match lengths[at].last_mut() {
                Some((last, length)) if *last == stroke => *length += 1.0,
                _ => lengths[at].push((stroke, 1.0)),
            }
        });
        let shares = |attention: &Vec<f32>| {
            let mut shares = vec![0.0; count];
            for ((attention, lengths), total) in attention.iter().zip(&lengths).zip(&totals) {
                for (stroke, length) in lengths {
                    shares[*stroke] += attention * length / total;
                }
            }
            let sum: f32 = shares.iter().sum();
            if sum > 0.0 {
                shares.iter_mut().for_each(|share| *share /= sum);
            }
            shares
        };
        Ok(self.attention.iter().map(shares).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::InkReading;
    use crate::ink::{Point, Stroke};

    #[test]
    fn attention_goes_to_the_strokes_under_it() {
        let down = |x: f64| Stroke { points: vec![Point { x, y: 0.0 }, Point { x, y: 28.0 }] };
        // 28 pixels high and 64 apart, in a margin of 13: cells of columns 0 and 4, rows 0 to 2.
        let ink = Ink::new(vec![down(0.0), down(64.0)]).unwrap();
        let drawing = ink.draw().unwrap();
        let (width, height) = (drawing.width().div_ceil(16), drawing.height().div_ceil(16));
        let map = |looks: &[(usize, f32)]| {
            let mut map = vec![0.0; width * height];
            looks.iter().for_each(|&(cell, attention)| map[cell] = attention);
            map
        };
        let attention = vec![
            map(&[(width, 1.0)]),
            map(&[(width + 4, 0.5), (2, 0.5)]),
            map(&[(0, 0.25), (4, 0.75)]),
            map(&[(2, 1.0)]),
        ];
        let shares = Alignment { height, width, attention, ink: InkReading::default(), passes: Vec::new() }
            .strokes(&ink)
            .unwrap();
        assert_eq!(shares, [[1.0, 0.0], [0.0, 1.0], [0.25, 0.75], [0.0, 0.0]]);
    }
}
