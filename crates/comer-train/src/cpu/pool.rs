//! Halving pictures, one channel's compact row at a time: the maximum or the mean of 2 x 2 pixels, windows cut by the
//! border included.

use super::grid::{Grid, Place};

/// The maximum of each window.
#[inline(always)]
pub(super) fn max_forward(from: &Grid, to: &Grid, input: &[f32], output: &mut [f32]) {
    windows(from, to, |window, place| {
        output[place] = window.iter().map(|&i| input[i]).fold(f32::NEG_INFINITY, f32::max);
    });
}

/// The gradient goes to the first maximum of each window.
#[inline(always)]
pub(super) fn max_backward(from: &Grid, to: &Grid, input: &[f32], gradient: &[f32], result: &mut [f32]) {
    result.fill(0.0);
    windows(from, to, |window, place| {
        let best = window.iter().copied().reduce(|best, i| if input[i] > input[best] { i } else { best });
        if let Some(best) = best {
            result[best] = gradient[place];
        }
    });
}

/// The mean of each window, over the pixels that exist.
#[inline(always)]
pub(super) fn mean_forward(from: &Grid, to: &Grid, input: &[f32], output: &mut [f32]) {
    windows(from, to, |window, place| {
        output[place] = window.iter().map(|&i| input[i]).sum::<f32>() / window.len() as f32;
    });
}

#[inline(always)]
pub(super) fn mean_backward(from: &Grid, to: &Grid, gradient: &[f32], result: &mut [f32]) {
    windows(from, to, |window, place| {
        let share = gradient[place] / window.len() as f32;
        window.iter().for_each(|&i| result[i] = share);
    });
}

/// Calls `each` with the places of a window's pixels, in reading order, and the place of what becomes of them.
#[inline(always)]
fn windows(from: &Grid, to: &Grid, mut each: impl FnMut(&[usize], usize)) {
    for (big, small) in from.pictures().iter().zip(to.pictures()) {
        let Place { height, width, start, .. } = *big;
        for y in 0..small.height {
            for x in 0..small.width {
                let place = small.start + y * small.width + x;
                let corner = start + 2 * y * width + 2 * x;
                match (2 * y + 1 < height, 2 * x + 1 < width) {
                    (true, true) => each(&[corner, corner + 1, corner + width, corner + width + 1], place),
                    (true, false) => each(&[corner, corner + width], place),
                    (false, true) => each(&[corner, corner + 1], place),
                    (false, false) => each(&[corner], place),
                }
            }
        }
    }
}
