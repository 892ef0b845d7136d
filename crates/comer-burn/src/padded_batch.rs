//! Pictures of different sizes as one tensor.

use comer::Image;

/// Pictures padded at the right and at the bottom to the largest of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PaddedBatch {
    /// Number of pictures.
    pub count: usize,
    /// Height of the largest.
    pub height: usize,
    /// Width of the largest.
    pub width: usize,
    /// Ink from 0.0 (none) to 1.0: `[count, height, width]`.
    pub pixels: Vec<f32>,
    /// True where padded: `[count, height, width]`.
    pub padding: Vec<bool>,
}

impl PaddedBatch {
    /// Pads `pictures`, which may be of different sizes, into one batch.
    pub fn new(pictures: &[Image]) -> Self {
        let height = pictures.iter().map(Image::height).max().unwrap_or(0);
        let width = pictures.iter().map(Image::width).max().unwrap_or(0);
        let area = height * width;
        let mut pixels = vec![0.0; pictures.len() * area];
        let mut padding = vec![true; pictures.len() * area];
        for (index, picture) in pictures.iter().enumerate() {
            for (y, row) in picture.pixels().chunks_exact(picture.width()).enumerate() {
                let start = index * area + y * width;
                padding[start..start + row.len()].fill(false);
                for (value, &pixel) in pixels[start..].iter_mut().zip(row) {
                    *value = f32::from(pixel) / 255.0;
                }
            }
        }
        Self { count: pictures.len(), height, width, pixels, padding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_padded_at_the_right_and_at_the_bottom() {
        let pictures = [Image::new(2, 1, vec![255, 51]).unwrap(), Image::new(1, 2, vec![102, 0]).unwrap()];
        let batch = PaddedBatch::new(&pictures);
        assert_eq!((batch.count, batch.height, batch.width), (2, 2, 2));
        assert_eq!(batch.pixels, [1.0, 0.2, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0]);
        assert_eq!(batch.padding, [false, false, true, true, false, true, false, true]);
    }
}
