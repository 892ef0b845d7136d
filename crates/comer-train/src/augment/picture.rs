//! Augmentation of pixels: blur and noise.

use comer::Image;
use rand::{Rng, RngExt};

use crate::recipe::Augmentation;

/// The picture with random blur and noise, up to the limits of the recipe.
pub fn augment_pixels(picture: Image, recipe: &Augmentation, random: &mut impl Rng) -> comer::Result<Image> {
    if recipe.blur == 0.0 && recipe.noise == 0.0 {
        return Ok(picture);
    }
    let (width, height) = (picture.width(), picture.height());
    let share = (recipe.blur * random.random::<f64>()) as f32;
    let deviation = (recipe.noise * random.random::<f64>()) as f32;
    let mut pixels: Vec<f32> = picture.pixels().iter().map(|&pixel| f32::from(pixel)).collect();
    if share > 0.0 {
        pixels = blur_lines(&pixels, height, width, 1, share);
        pixels = blur_lines(&pixels, width, 1, width, share);
    }
    if deviation > 0.0 {
        // The sum of three uniform numbers has the variance 1/4 and is approximately normal.
        let mut normal = || (0..3).map(|_| random.random::<f32>() - 0.5).sum::<f32>() * 2.0;
        pixels.iter_mut().for_each(|pixel| *pixel += deviation * normal());
    }
    Image::new(width, height, pixels.iter().map(|pixel| pixel.round().clamp(0.0, 255.0) as u8).collect())
}

/// Blurs along lines: a share of each pixel goes to either neighbour; nothing leaves the picture. The starts of the
/// lines are `line_stride` apart, their pixels `pixel_stride`.
fn blur_lines(pixels: &[f32], lines: usize, line_stride: usize, pixel_stride: usize, share: f32) -> Vec<f32> {
    let length = pixels.len() / lines;
    let mut result = vec![0.0; pixels.len()];
    for line in 0..lines {
        let at = |index: usize| line * line_stride + index * pixel_stride;
        for index in 0..length {
            let left = pixels[at(index.saturating_sub(1))];
            let right = pixels[at((index + 1).min(length - 1))];
            let own = pixels[at(index)];
            result[at(index)] = own + share * (left + right - 2.0 * own);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn dot() -> Image {
        let mut pixels = vec![0; 5 * 7];
        pixels[2 * 7 + 3] = 240;
        Image::new(7, 5, pixels).unwrap()
    }

    #[test]
    fn blur_is_symmetric() {
        let recipe = Augmentation { blur: 0.3, ..Augmentation::default() };
        let blurred = augment_pixels(dot(), &recipe, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let at = |x: usize, y: usize| i32::from(blurred.pixels()[y * 7 + x]);
        assert!((1..240).contains(&at(3, 2)) && at(3, 1) > at(2, 1) && at(2, 1) > 0, "{blurred:?}");
        assert_eq!([at(3, 1), at(2, 2), at(4, 2)], [at(3, 3); 3]);
        let sum: i32 = blurred.pixels().iter().map(|&pixel| i32::from(pixel)).sum();
        assert!((sum - 240).abs() <= 9, "{sum}");
    }

    #[test]
    fn noise_has_at_most_the_given_deviation() {
        let recipe = Augmentation { noise: 20.0, ..Augmentation::default() };
        let gray = Image::new(100, 100, vec![128; 10_000]).unwrap();
        let noisy = augment_pixels(gray, &recipe, &mut ChaCha8Rng::seed_from_u64(3)).unwrap();
        let square = |&pixel: &u8| (f64::from(pixel) - 128.0).powi(2);
        let deviation = (noisy.pixels().iter().map(square).sum::<f64>() / 1e4).sqrt();
        assert!((0.5..20.5).contains(&deviation), "{deviation}");
        assert_eq!(
            augment_pixels(dot(), &Augmentation::default(), &mut ChaCha8Rng::seed_from_u64(3)).unwrap(),
            dot()
        );
    }
}
