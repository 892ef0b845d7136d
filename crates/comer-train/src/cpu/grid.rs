//! Where the pixels of a batch lie: every channel is one row that holds all pictures, each in its own size.
//!
//! Two arrangements of a row: *compact*, one picture's pixels after the other's; and *bordered*, with zeros before and
//! after each picture, so that a convolution may look beyond its first and last row.

/// Numbers in a cache line.
pub(super) const LINE: usize = 16;

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

impl Grid {
    /// The arrangement of pictures of these heights and widths.
    pub fn new(sizes: Vec<(usize, usize)>) -> Self {
        let (mut start, mut bordered) = (0, 0);
        let mut pictures = Vec::with_capacity(sizes.len());
        for &(height, width) in &sizes {
            bordered += width + 1;
            pictures.push(Place { height, width, start, bordered });
            start += height * width;
            bordered += height * width + width + 1;
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

    /// Zeros for `count` compact rows, and for a line that starts with the last number.
    pub(super) fn compact(&self, count: usize) -> Vec<f32> {
        vec![0.0; count * self.stride + LINE]
    }

    /// Zeros for `count` bordered rows, and for a line that starts with the last number.
    pub(super) fn bordered(&self, count: usize) -> Vec<f32> {
        vec![0.0; count * self.bordered_stride + LINE]
    }

    /// Copies a compact row into a bordered one.
    #[inline(always)]
    pub(super) fn border(&self, compact: &[f32], bordered: &mut [f32]) {
        for place in &self.pictures {
            let pixels = place.height * place.width;
            bordered[place.bordered..][..pixels].copy_from_slice(&compact[place.start..][..pixels]);
        }
    }
}

/// A row's length in whole cache lines, an odd number of them: rows a power of two apart would fight for the same ones.
fn padded(length: usize) -> usize {
    (length.div_ceil(LINE) | 1) * LINE
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
        let (first, second) = (grid.pictures()[0].bordered, grid.pictures()[1].bordered);
        assert_eq!(bordered[first..][..6], compact[..6]);
        assert_eq!(bordered[second], 7.0);
        // A row and a pixel of zeros on both sides.
        assert_eq!((first, second), (4, 4 + 6 + 4 + 2));
        assert_eq!(bordered.iter().filter(|&&x| x != 0.0).count(), 7);
    }
}
