//! Memory layout of a batch of pictures: one after the other, each in its own size, row by row, channels last.

/// The sizes of the pictures of a batch at one stage of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Height and width of each picture.
    pub sizes: Vec<(usize, usize)>,
    pictures: Vec<Region>,
    /// Number of pixels of all pictures.
    pub pixels: usize,
}

/// The pixels of one picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Region {
    pub height: usize,
    pub width: usize,
    /// Index of its first pixel.
    pub start: usize,
}

impl Grid {
    /// The layout of pictures with these heights and widths.
    pub fn new(sizes: Vec<(usize, usize)>) -> Self {
        let mut pixels = 0;
        let mut pictures = Vec::with_capacity(sizes.len());
        for &(height, width) in &sizes {
            pictures.push(Region { height, width, start: pixels });
            pixels += height * width;
        }
        Self { sizes, pictures, pixels }
    }

    /// The layout after a layer that halves the pictures, rounding up.
    pub fn halved(&self) -> Self {
        Self::new(self.sizes.iter().map(|&(height, width)| (height.div_ceil(2), width.div_ceil(2))).collect())
    }

    pub(super) fn pictures(&self) -> &[Region] {
        &self.pictures
    }
}
