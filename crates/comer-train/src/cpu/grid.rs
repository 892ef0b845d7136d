//! Where the pixels of a batch lie: every channel is one row that holds all pictures, each in its own size.
//!
//! Two arrangements of a row: *compact*, one picture's pixels after the other's; and *bordered*, with zeros around each
//! picture, so that a convolution is a sum of products of shifted rows.

/// The sizes of a batch's pictures at one stage of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Height and width of each picture.
    pub sizes: Vec<(usize, usize)>,
    pictures: Vec<Place>,
    /// Pixels of all pictures together.
    pub pixels: usize,
    /// From one compact row to the next.
    pub stride: usize,
    /// From one bordered row to the next.
    pub bordered_stride: usize,
}

/// A picture's place in the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub height: usize,
    pub width: usize,
    /// Of its first pixel in a compact row.
    pub start: usize,
    /// Of its first pixel in a bordered row.
    pub bordered: usize,
}

impl Place {
    /// From one row of pixels to the next in the bordered arrangement: one zero stands between them.
    pub fn pitch(&self) -> usize {
        self.width + 1
    }

    /// The stretch of a bordered row from the first pixel to the zero after the last.
    pub fn span(&self) -> usize {
        self.height * self.pitch()
    }
}

impl Grid {
    /// The arrangement of pictures of these heights and widths.
    pub fn new(sizes: Vec<(usize, usize)>) -> Self {
        let (mut start, mut bordered) = (0, 0);
        let mut pictures = Vec::with_capacity(sizes.len());
        for &(height, width) in &sizes {
            bordered += width + 2;
            pictures.push(Place { height, width, start, bordered });
            start += height * width;
            bordered += height * (width + 1) + width + 2;
        }
        Self { sizes, pictures, pixels: start, stride: padded(start), bordered_stride: padded(bordered) }
    }

    /// The sizes after a layer that halves the pictures, rounded up.
    pub fn halved(&self) -> Self {
        Self::new(self.sizes.iter().map(|&(height, width)| (height.div_ceil(2), width.div_ceil(2))).collect())
    }

    pub(super) fn pictures(&self) -> &[Place] {
        &self.pictures
    }

    /// Copies a compact row into a bordered one, zeros between the rows of pixels included.
    #[inline(always)]
    pub(super) fn border(&self, compact: &[f32], bordered: &mut [f32]) {
        for place in &self.pictures {
            let rows = bordered[place.bordered..][..place.span()].chunks_exact_mut(place.pitch());
            let pixels = compact[place.start..][..place.height * place.width].chunks_exact(place.width);
            for (target, source) in rows.zip(pixels) {
                target[..place.width].copy_from_slice(source);
                target[place.width] = 0.0;
            }
        }
    }
}

/// A row's length in whole cache lines, an odd number of them: rows a power of two apart would fight for the same ones.
fn padded(length: usize) -> usize {
    (length.div_ceil(16) | 1) * 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_surrounded_by_zeros() {
        let grid = Grid::new(vec![(2, 3), (1, 1)]);
        assert_eq!((grid.pixels, grid.halved().sizes), (7, vec![(1, 2), (1, 1)]));
        let compact: Vec<f32> = (1..=7).map(|i| i as f32).collect();
        let mut bordered = vec![0.0; grid.bordered_stride];
        grid.border(&compact, &mut bordered);
        let place = grid.pictures()[0];
        let pixel = |y: isize, x: isize| {
            bordered[(place.bordered as isize + y * place.pitch() as isize + x) as usize]
        };
        assert_eq!(
            [pixel(0, 0), pixel(1, 2), pixel(0, 3), pixel(1, -1), pixel(-1, 0), pixel(2, 3)],
            [1.0, 6.0, 0.0, 0.0, 0.0, 0.0]
        );
    }
}
