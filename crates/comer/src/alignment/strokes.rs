//! Which pen strokes each token was read from.

use crate::config::CELL_SIZE;
use crate::input::Input;

/// For each token the share of each stroke in its attention to `height * width` cells; `None` without strokes.
///
/// The attention to a cell is divided among the strokes in it by their length there.
pub(super) fn shares(
    input: &Input,
    (height, width): (usize, usize),
    attention: &[Vec<f32>],
) -> Option<Vec<Vec<f32>>> {
    let count = input.ink()?.strokes().len();
    // Pixels of each stroke in each cell, and of all of them.
    let mut lengths = vec![Vec::<(usize, f32)>::new(); height * width];
    let mut totals = vec![0.0f32; height * width];
    input.pen(|stroke, [x, y]| {
        let cell = |side: usize, count: usize| (side / CELL_SIZE).min(count.saturating_sub(1));
        let at = cell(y, height) * width + cell(x, width);
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
    Some(attention.iter().map(shares).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::ink::{Ink, Point, Stroke};

    #[test]
    fn attention_goes_to_the_strokes_under_it() {
        let down = |x: f64| Stroke { points: vec![Point { x, y: 0.0 }, Point { x, y: 28.0 }] };
        // 28 pixels high and 64 apart, in a margin of 13: cells of columns 0 and 4, rows 0 to 2.
        let input = Input::from_ink(Ink::new(vec![down(0.0), down(64.0)]).unwrap()).unwrap();
        let (width, height) = (input.image().width().div_ceil(16), input.image().height().div_ceil(16));
        let map = |looks: &[(usize, f32)]| {
            let mut map = vec![0.0; width * height];
            looks.iter().for_each(|&(cell, attention)| map[cell] = attention);
            map
        };
        let attention = [
            map(&[(width, 1.0)]),
            map(&[(width + 4, 0.5), (2, 0.5)]),
            map(&[(0, 0.25), (4, 0.75)]),
            map(&[(2, 1.0)]),
        ];
        let found = shares(&input, (height, width), &attention).unwrap();
        assert_eq!(found, [[1.0, 0.0], [0.0, 1.0], [0.25, 0.75], [0.0, 0.0]]);
        let image = Input::from_image(Image::new(16, 16, vec![0; 256]).unwrap()).unwrap();
        assert_eq!(shares(&image, (1, 1), &[vec![1.0]]), None);
    }
}
