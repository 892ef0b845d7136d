//! Varies a picture's pixels, whatever they come from: as a camera or a scanner would.

use comer::Image;
use rand::{Rng, RngExt};

use crate::recipe::Augmentation;

/// The picture, blurred and noisy by chance up to what the recipe allows.
pub fn spoil(picture: Image, recipe: &Augmentation, random: &mut impl Rng) -> comer::Result<Image> {
    if recipe.blur == 0.0 && recipe.noise == 0.0 {
        return Ok(picture);
    }
    let (width, height) = (picture.width(), picture.height());
    let share = (recipe.blur * random.random::<f64>()) as f32;
    let deviation = (recipe.noise * random.random::<f64>()) as f32;
    let mut pixels: Vec<f32> = picture.pixels().iter().map(|&pixel| f32::from(pixel)).collect();
    if share > 0.0 {
        pixels = spread(&pixels, height, width, 1, share);
        pixels = spread(&pixels, width, 1, width, share);
    }
    if deviation > 0.0 {
        // Three uniform numbers together have the variance 1/4 and are near enough to normal.
        let mut normal = || (0..3).map(|_| random.random::<f32>() - 0.5).sum::<f32>() * 2.0;
        pixels.iter_mut().for_each(|pixel| *pixel += deviation * normal());
    }
    Image::new(width, height, pixels.iter().map(|pixel| pixel.round().clamp(0.0, 255.0) as u8).collect())
}

/// Gives a share of each pixel to either neighbour along a line; what would leave the picture stays. `lines` lines
/// begin `between` numbers apart, and their pixels are `apart` numbers apart.
fn spread(pixels: &[f32], lines: usize, between: usize, apart: usize, share: f32) -> Vec<f32> {
    let length = pixels.len() / lines;
    let mut result = vec![0.0; pixels.len()];
    for line in 0..lines {
        let place = |index: usize| line * between + index * apart;
        for index in 0..length {
            let left = pixels[place(index.saturating_sub(1))];
            let right = pixels[place((index + 1).min(length - 1))];
            let own = pixels[place(index)];
            result[place(index)] = own + share * (left + right - 2.0 * own);
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
    fn blur_spreads_ink_evenly_to_all_sides() {
        let recipe = Augmentation { blur: 0.3, ..Augmentation::default() };
        let blurred = spoil(dot(), &recipe, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let at = |x: usize, y: usize| i32::from(blurred.pixels()[y * 7 + x]);
        assert!((1..240).contains(&at(3, 2)) && at(3, 1) > at(2, 1) && at(2, 1) > 0, "{blurred:?}");
        assert_eq!([at(3, 1), at(2, 2), at(4, 2)], [at(3, 3); 3]);
        let sum: i32 = blurred.pixels().iter().map(|&pixel| i32::from(pixel)).sum();
        assert!((sum - 240).abs() <= 9, "{sum}");
    }

    #[test]
    fn noise_stays_within_what_was_asked_for() {
        let recipe = Augmentation { noise: 20.0, ..Augmentation::default() };
        let gray = Image::new(100, 100, vec![128; 10_000]).unwrap();
        let noisy = spoil(gray, &recipe, &mut ChaCha8Rng::seed_from_u64(3)).unwrap();
        let square = |&pixel: &u8| (f64::from(pixel) - 128.0).powi(2);
        let deviation = (noisy.pixels().iter().map(square).sum::<f64>() / 1e4).sqrt();
        assert!((0.5..20.5).contains(&deviation), "{deviation}");
        assert_eq!(spoil(dot(), &Augmentation::default(), &mut ChaCha8Rng::seed_from_u64(3)).unwrap(), dot());
    }
}
