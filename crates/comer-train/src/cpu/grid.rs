//! Where the pixels of a batch lie: one picture after the other, each in its own size, row by row. Every pixel has its
//! channels side by side.

/// The sizes of a batch's pictures at one stage of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Height and width of each picture.
    pub sizes: Vec<(usize, usize)>,
    pictures: Vec<Place>,
    /// Pixels of all pictures together.
    pub pixels: usize,
}

/// A picture's place among the pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub height: usize,
    pub width: usize,
    /// Its first pixel.
    pub start: usize,
}

impl Grid {
    /// The arrangement of pictures of these heights and widths.
    pub fn new(sizes: Vec<(usize, usize)>) -> Self {
        let mut pixels = 0;
        let mut pictures = Vec::with_capacity(sizes.len());
        for &(height, width) in &sizes {
            pictures.push(Place { height, width, start: pixels });
            pixels += height * width;
        }
        Self { sizes, pictures, pixels }
    }

    /// The sizes after a layer that halves the pictures, rounded up.
    pub fn halved(&self) -> Self {
        Self::new(self.sizes.iter().map(|&(height, width)| (height.div_ceil(2), width.div_ceil(2))).collect())
    }

    pub(super) fn pictures(&self) -> &[Place] {
        &self.pictures
    }
}
