//! PNG files: of a canvas, and for data URLs.

use anyhow::{Context, Result};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use super::canvas::{Canvas, Colour};

/// A canvas as a PNG.
pub fn png(canvas: &Canvas) -> Result<Vec<u8>> {
    encode(canvas.pixels.as_flattened(), canvas.width, canvas.height, ExtendedColorType::Rgb8)
}

/// One colour with the shades as its opacity.
pub fn tinted(shades: &[f32], width: usize, height: usize, [red, green, blue]: Colour) -> Result<Vec<u8>> {
    let pixels: Vec<u8> =
        shades.iter().flat_map(|shade| [red, green, blue, (shade * 255.0).round() as u8]).collect();
    encode(&pixels, width, height, ExtendedColorType::Rgba8)
}

fn encode(pixels: &[u8], width: usize, height: usize, colour: ExtendedColorType) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    PngEncoder::new_with_quality(&mut file, CompressionType::Best, FilterType::Adaptive)
        .write_image(pixels, width as u32, height as u32, colour)
        .with_context(|| format!("a picture of {width} x {height} pixels"))?;
    Ok(file)
}
