//! Images of white ink on black, and scaling them to the size limits of the network.

use crate::error::{Error, Result};

/// A grey image of white ink on black: 255 for ink, 0 for the ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// Least and greatest height that the network takes.
pub const HEIGHT_LIMITS: (usize, usize) = (16, 256);
/// Least and greatest width that the network takes.
pub const WIDTH_LIMITS: (usize, usize) = (16, 1024);

impl Image {
    /// An image of `pixels` in rows from the top; there must be `width * height` of them, and at least one.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Result<Self> {
        match width.checked_mul(height) {
            Some(area) if area > 0 && area == pixels.len() => Ok(Self { width, height, pixels }),
            _ => {
                let reason =
                    format!("has {} pixels, expected width x height, and at least one", pixels.len());
                Err(Error::Image { width, height, reason })
            }
        }
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The pixels, in rows from the top.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The pixels, in rows from the top.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    /// The image turned clockwise by a number of quarters.
    pub fn turned(&self, quarters: usize) -> Self {
        let (width, height) = (self.width, self.height);
        let size = if quarters.is_multiple_of(2) { (width, height) } else { (height, width) };
        let pixel = |at: usize| {
            let (x, y) = (at % size.0, at / size.0);
            let (column, row) = match quarters % 4 {
                0 => (x, y),
                1 => (y, height - 1 - x),
                2 => (width - 1 - x, height - 1 - y),
                _ => (width - 1 - y, x),
            };
            self.pixels[row * width + column]
        };
        Self { width: size.0, height: size.1, pixels: (0..self.pixels.len()).map(pixel).collect() }
    }

    /// Scales the image to the size limits of the network, keeping its aspect ratio; unchanged if it is within them.
    pub fn fit(self) -> Result<Self> {
        let factor = fitting_factor(self.width, self.height)?;
        if factor == 1.0 { Ok(self) } else { self.scale(factor) }
    }

    /// Bilinear scaling with half-pixel centres and no smoothing beforehand: OpenCV's `INTER_LINEAR` given a factor.
    pub fn scale(&self, factor: f64) -> Result<Self> {
        let (width, height) = (scaled(self.width, factor), scaled(self.height, factor));
        let most = 1 << 14;
        if !factor.is_finite() || width == 0 || height == 0 || width > most || height > most {
            let reason = format!("cannot be scaled by {factor}, expected 1 to {most} pixels a side after it");
            return Err(Error::Image { width: self.width, height: self.height, reason });
        }
        let columns = taps(self.width, width, factor);
        let mut pixels = Vec::with_capacity(width * height);
        for (top, bottom, down) in taps(self.height, height, factor) {
            let (top, bottom) = (&self.pixels[top * self.width..], &self.pixels[bottom * self.width..]);
            for &(left, right, across) in &columns {
                let mix = |row: &[u8]| f32::from(row[left]) * (1.0 - across) + f32::from(row[right]) * across;
                pixels.push((mix(top) * (1.0 - down) + mix(bottom) * down).round() as u8);
            }
        }
        Ok(Self { width, height, pixels })
    }
}

#[cfg(feature = "decode")]
impl Image {
    /// The image as a PNG file.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let (width, height) = (self.width, self.height);
        let failed = |reason: String| Error::Image { width, height, reason };
        let side = |side: usize| {
            u32::try_from(side).map_err(|_| failed("a PNG has at most 2^32 pixels a side".into()))
        };
        let mut file = std::io::Cursor::new(Vec::new());
        let (kind, format) = (::image::ExtendedColorType::L8, ::image::ImageFormat::Png);
        ::image::write_buffer_with_format(&mut file, &self.pixels, side(width)?, side(height)?, kind, format)
            .map_err(|error| failed(error.to_string()))?;
        Ok(file.into_inner())
    }
}

/// What an image is scaled by to the size limits of the network.
pub(crate) fn fitting_factor(width: usize, height: usize) -> Result<f64> {
    let down = (HEIGHT_LIMITS.1 as f64 / height as f64).min(WIDTH_LIMITS.1 as f64 / width as f64);
    let up = (HEIGHT_LIMITS.0 as f64 / height as f64).max(WIDTH_LIMITS.0 as f64 / width as f64);
    let factor = if down < 1.0 { down } else { up.max(1.0) };
    let within = |side: usize, (least, most)| (least..=most).contains(&scaled(side, factor));
    if within(width, WIDTH_LIMITS) && within(height, HEIGHT_LIMITS) {
        return Ok(factor);
    }
    let reason = format!(
        "its aspect fits no size from {} x {} to {} x {}",
        WIDTH_LIMITS.0, HEIGHT_LIMITS.0, WIDTH_LIMITS.1, HEIGHT_LIMITS.1
    );
    Err(Error::Image { width, height, reason })
}

/// A side's length after scaling by `factor`.
fn scaled(side: usize, factor: f64) -> usize {
    (side as f64 * factor).round_ties_even() as usize
}

/// For each new position along one side, the two old positions to mix and the share of the second.
fn taps(old: usize, new: usize, factor: f64) -> Vec<(usize, usize, f32)> {
    let last = old - 1;
    let tap = |position: usize| {
        let centre = ((position as f64 + 0.5) / factor - 0.5).clamp(0.0, last as f64);
        let first = centre as usize;
        (first, (first + 1).min(last), (centre - first as f64) as f32)
    };
    (0..new).map(tap).collect()
}
