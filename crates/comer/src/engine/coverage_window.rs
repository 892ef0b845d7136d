//! The cells that the 11 x 11 convolution over the coverage of a picture reads, as the rows of a matrix product; shared with
//! the trainer.

use crate::config::GRU_COVERAGE_KERNEL as SIDE;

/// The part of the kernel that overlaps a picture at all: the rest would only multiply zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    heads: usize,
    height: usize,
    width: usize,
    /// Cells that the kernel reaches up and down, and to either side.
    reach: (usize, usize),
}

impl Window {
    /// The window for a picture of at least one cell.
    pub fn new(heads: usize, height: usize, width: usize) -> Self {
        let reach = (SIDE / 2).min(height - 1);
        Self { heads, height, width, reach: (reach, (SIDE / 2).min(width - 1)) }
    }

    /// The cells of the picture.
    pub fn cells(&self) -> usize {
        self.height * self.width
    }

    /// Values of a row: `[heads][rows][columns]` of the window.
    pub fn taps(&self) -> usize {
        self.heads * (2 * self.reach.0 + 1) * (2 * self.reach.1 + 1)
    }

    /// The index of each tap in a kernel of `[heads][SIDE][SIDE]`.
    pub fn kernel_indices(&self) -> impl Iterator<Item = usize> + '_ {
        let around = |reach: usize| SIDE / 2 - reach..=SIDE / 2 + reach;
        (0..self.heads).flat_map(move |head| {
            around(self.reach.0)
                .flat_map(move |y| around(self.reach.1).map(move |x| (head * SIDE + y) * SIDE + x))
        })
    }

    /// Calls `each` with the index of a cell of the coverage, `[heads][cells]`, and the index in the patches,
    /// `[cells][taps]`, of each run of neighbours in a row, and its length.
    #[inline(always)]
    fn runs(&self, mut each: impl FnMut(usize, usize, usize)) {
        let (down, across) = self.reach;
        let (high, wide, taps) = (2 * down + 1, 2 * across + 1, self.taps());
        for y in 0..self.height {
            for x in 0..self.width {
                let (left, right) = (x.saturating_sub(across), (x + across).min(self.width - 1));
                for head in 0..self.heads {
                    for row in y.saturating_sub(down)..=(y + down).min(self.height - 1) {
                        let tap = (head * high + row + down - y) * wide + left + across - x;
                        let cell = head * self.cells() + row * self.width + left;
                        each(cell, (y * self.width + x) * taps + tap, right - left + 1);
                    }
                }
            }
        }
    }

    /// `[heads][cells]` to `[cells][taps]`, with zeros outside of the picture.
    pub fn patches(&self, coverage: &[f32]) -> Vec<f32> {
        let mut patches = vec![0.0; self.cells() * self.taps()];
        self.runs(|cell, tap, length| {
            patches[tap..tap + length].copy_from_slice(&coverage[cell..cell + length]);
        });
        patches
    }

    /// The part of the kernels `[outputs][heads][SIDE][SIDE]` within the window: `[outputs][taps]`.
    pub fn crop(&self, kernels: &[f32]) -> Vec<f32> {
        let indices: Vec<usize> = self.kernel_indices().collect();
        let kernels = kernels.chunks_exact(self.heads * SIDE * SIDE);
        kernels.flat_map(|kernel| indices.iter().map(|&index| kernel[index])).collect()
    }

    /// Adds the gradient of the patches to that of the coverage.
    pub fn patches_backward(&self, patches: &[f32], coverage: &mut [f32]) {
        self.runs(|cell, tap, length| {
            let sums = coverage[cell..cell + length].iter_mut();
            sums.zip(&patches[tap..]).for_each(|(sum, x)| *sum += x);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_the_neighbours_within_the_picture() {
        for (height, width) in [(1, 1), (1, 3), (2, 9), (7, 2), (13, 14)] {
            let window = Window::new(2, height, width);
            let coverage: Vec<f32> = (0..2 * height * width).map(|cell| (cell + 1) as f32).collect();
            let patches = window.patches(&coverage);
            let indices: Vec<usize> = window.kernel_indices().collect();
            assert_eq!(indices.len(), window.taps());
            for cell in 0..height * width {
                for (tap, index) in indices.iter().enumerate() {
                    let (head, dy, dx) = (index / (SIDE * SIDE), index / SIDE % SIDE, index % SIDE);
                    let (y, x) = (cell / width + dy, cell % width + dx);
                    let inside = (5..height + 5).contains(&y) && (5..width + 5).contains(&x);
                    let at = || coverage[(head * height + y - 5) * width + x - 5];
                    assert_eq!(patches[cell * window.taps() + tap], if inside { at() } else { 0.0 });
                }
            }
            let mut gradient = vec![0.0; coverage.len()];
            window.patches_backward(&vec![1.0; patches.len()], &mut gradient);
            let reads: f32 = gradient.iter().zip(&coverage).map(|(count, value)| count * value).sum();
            assert_eq!(reads, patches.iter().sum::<f32>(), "{height} x {width}");
        }
    }
}
