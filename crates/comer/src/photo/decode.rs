//! Bytes of an image file to upright grey levels, with limits checked before anything is decoded.

use std::cell::Cell;
use std::io::{Cursor, ErrorKind};

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, GrayImage, ImageDecoder, ImageError, ImageReader, ImageResult, Limits};

use super::Grey;
use crate::error::{Error, Result};

/// Most pixels that an image file may have.
pub const MOST_PIXELS: u64 = 50_000_000;
/// Most bytes that decoding may take.
const MOST_BYTES: u64 = 256 << 20;
/// Most pixels in all scans of a jpeg, because each scan costs time for every pixel, however few bytes it has. Progressive
/// jpegs usually have 10 scans, and up to 13.
const MOST_SCANNED: u64 = 16 * MOST_PIXELS;

/// Decodes a png, jpeg, bmp, webp, tiff or gif (its first frame), turned as its EXIF orientation says. What is
/// transparent becomes white behind dark ink and black behind light ink.
pub fn decode(bytes: &[u8]) -> Result<Grey> {
    Ok(decode_with(bytes, false)?.grey)
}

/// As [`decode`], of an image of at most so many pixels. `before` is told their number before anything is decoded.
pub fn decode_after(bytes: &[u8], most: u64, before: impl FnOnce(u64)) -> Result<Grey> {
    Ok(decoded(bytes, false, most, before)?.grey)
}

/// What a file shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Its grey levels.
    pub grey: Grey,
    /// Whether it ends early, so that a part is missing.
    pub truncated: bool,
}

/// As [`decode`]; a file that ends early is an error unless `lenient`. Then what is missing is white. Of webp and tiff
/// files that end early nothing can be decoded.
pub fn decode_with(bytes: &[u8], lenient: bool) -> Result<Decoded> {
    decoded(bytes, lenient, MOST_PIXELS, |_| ())
}

fn decoded(bytes: &[u8], lenient: bool, most: u64, before: impl FnOnce(u64)) -> Result<Decoded> {
    let refused = |reason: String| Error::Decode { reason, source: None };
    if bytes.is_empty() {
        return Err(refused("the file is empty".into()));
    }
    if let Some(reason) = unsupported(bytes) {
        return Err(refused(reason.into()));
    }
    let is_jpeg = bytes.starts_with(&[0xff, 0xd8, 0xff]);
    let truncated = Cell::new(false);
    let bytes = match is_jpeg.then(|| jpeg_end(bytes)) {
        // The decoder does not see what the scans are not counted in.
        Some(Some(end)) => &bytes[..end],
        Some(None) if !lenient => {
            return Err(refused("the jpeg is truncated: it ends before its end marker".into()));
        }
        Some(None) => {
            truncated.set(true);
            bytes
        }
        None => bytes,
    };
    let truncated_webp = is_truncated_webp(bytes);
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| refused(error.to_string()))?;
    let Some(format) = reader.format() else {
        let start = &bytes[..bytes.len().min(PDF_START)];
        if start.windows(4).any(|window| window == b"%PDF") {
            return Err(refused(PDF.into()));
        }
        return Err(refused(
            "its first bytes are of no known kind, expected png, jpeg, bmp, webp, tiff or gif".into(),
        ));
    };
    let unreadable = |error: ImageError| {
        let reason = if ends_early(&error) || truncated_webp {
            let name = format.extensions_str().first().copied().unwrap_or("image");
            format!("the {name} is truncated: it ends before its last pixel")
        } else {
            error.to_string()
        };
        Error::Decode { reason, source: Some(error.into()) }
    };
    if truncated_webp && !lenient {
        return Err(refused("the webp is truncated: it is shorter than its header says".into()));
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > most || decoder.total_bytes() > MOST_BYTES {
        return Err(refused(format!(
            "it has {width} x {height} pixels in {} bytes, expected at least one and at most {most} in {MOST_BYTES}",
            decoder.total_bytes()
        )));
    }
    let scans = if is_jpeg { most_scans(bytes) } else { 1 };
    if pixels * scans > MOST_SCANNED {
        return Err(refused(format!(
            "the jpeg has {scans} scans of {width} x {height} pixels, expected at most {} of this size; save it as a baseline jpeg",
            MOST_SCANNED / pixels
        )));
    }
    before(pixels);
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let decoded = if lenient {
        DynamicImage::from_decoder(Lenient(decoder, &truncated))
    } else {
        DynamicImage::from_decoder(decoder)
    };
    let Grey { width, height, levels } = grey(&decoded.map_err(unreadable)?);
    // Turned last, because that makes a copy.
    let levels = GrayImage::from_raw(width as u32, height as u32, levels);
    let mut upright = DynamicImage::ImageLuma8(levels.unwrap_or_default());
    upright.apply_orientation(orientation);
    let (width, height) = (upright.width() as usize, upright.height() as usize);
    let grey = Grey { width, height, levels: upright.into_bytes() };
    Ok(Decoded { grey, truncated: truncated.get() })
}

fn ends_early(error: &ImageError) -> bool {
    match error {
        ImageError::IoError(error) => error.kind() == ErrorKind::UnexpectedEof,
        // The error of gif files has no kind.
        ImageError::Decoding(error) => error.to_string().ends_with("Unexpected End of File"),
        _ => false,
    }
}

/// Whether a webp is shorter than its header says.
fn is_truncated_webp(bytes: &[u8]) -> bool {
    match bytes {
        [b'R', b'I', b'F', b'F', a, b, c, d, b'W', b'E', b'B', b'P', ..] => {
            (bytes.len() as u64) < 8 + u64::from(u32::from_le_bytes([*a, *b, *c, *d]))
        }
        _ => false,
    }
}

/// A decoder that keeps the pixels before the end of a file that ends early, and says so. The others are white.
struct Lenient<'a, D>(D, &'a Cell<bool>);

impl<D: ImageDecoder> ImageDecoder for Lenient<'_, D> {
    fn dimensions(&self) -> (u32, u32) {
        self.0.dimensions()
    }

    fn color_type(&self) -> ColorType {
        self.0.color_type()
    }

    fn read_image(self, pixels: &mut [u8]) -> ImageResult<()> {
        let colours = self.color_type();
        pixels.fill(255);
        match self.0.read_image(pixels) {
            Err(error) if ends_early(&error) && pixels.iter().any(|&byte| byte != 255) => {
                self.1.set(true);
                // Only png files have 16 bits; the decoder gives them the order of the machine at the end.
                if matches!(colours, ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16)
                {
                    let (pairs, _) = pixels.as_chunks_mut::<2>();
                    pairs.iter_mut().for_each(|pair| *pair = u16::from_be_bytes(*pair).to_ne_bytes());
                }
                Ok(())
            }
            result => result,
        }
    }

    fn read_image_boxed(self: Box<Self>, pixels: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(pixels)
    }
}

/// The grey levels of an image of any kind.
pub fn grey(decoded: &DynamicImage) -> Grey {
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let levels = if decoded.color().has_alpha() {
        match decoded {
            DynamicImage::ImageRgba8(pixels) => {
                let pixels = pixels.as_raw().as_chunks().0.iter();
                on_ground(pixels.map(|&[r, g, b, alpha]| [luma([r, g, b]), alpha]))
            }
            other => on_ground(other.to_luma_alpha8().as_raw().as_chunks().0.iter().copied()),
        }
    } else {
        match decoded {
            DynamicImage::ImageRgb8(pixels) => {
                pixels.as_raw().as_chunks().0.iter().map(|&rgb| luma(rgb)).collect()
            }
            other => other.to_luma8().into_raw(),
        }
    };
    Grey { width, height, levels }
}

/// Levels with their opacity on a ground that they stand out from. Pixels are visited twice and not kept.
fn on_ground(pixels: impl Iterator<Item = [u8; 2]> + Clone) -> Vec<u8> {
    let (mut ink, mut weight) = (0u64, 0u64);
    for [level, alpha] in pixels.clone() {
        ink += u64::from(level) * u64::from(alpha);
        weight += u64::from(alpha);
    }
    let ground = if ink >= 128 * weight.max(1) { 0 } else { 255 };
    let over = |[level, alpha]: [u8; 2]| {
        let alpha = u32::from(alpha);
        ((u32::from(level) * alpha + ground * (255 - alpha) + 127) / 255) as u8
    };
    pixels.map(over).collect()
}

/// The luminance of an sRGB colour. The general conversion of the crate `image` takes nearly half of the time that a photograph of 12
/// megapixels takes.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    const ONE: u32 = 1 << 24;
    // 0.2126 and 0.0722; green has the rest.
    const RED: u32 = 3_566_837;
    const BLUE: u32 = 1_211_315;
    let sum = RED * u32::from(red) + (ONE - RED - BLUE) * u32::from(green) + BLUE * u32::from(blue);
    ((sum + ONE / 2) / ONE) as u8
}

/// What to do about a PDF file.
const PDF: &str = "PDF files are not supported; convert its pages first, for example with `pdftoppm -r 200 -png file.pdf page`";
/// Within so many bytes readers of PDF files look for their first line.
const PDF_START: usize = 1024;

/// What to do about a file of a kind that is known but not read.
fn unsupported(bytes: &[u8]) -> Option<&'static str> {
    const BRANDS: [&[u8]; 8] = [b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"];
    if bytes.get(4..8) == Some(b"ftyp") {
        return Some(match bytes.get(8..12) {
            Some(brand) if BRANDS.contains(&brand) => {
                "HEIC images are not supported; convert it first, for example with `heif-convert photo.heic photo.jpg`, \
                 or with `sips -s format jpeg photo.heic --out photo.jpg` on macOS"
            }
            Some(b"avif" | b"avis") => {
                "AVIF images are not supported; convert it first, for example with `avifdec image.avif image.png`"
            }
            _ => "it is a video or another ISO media file, expected png, jpeg, bmp, webp, tiff or gif",
        });
    }
    if bytes.starts_with(b"%PDF") {
        return Some(PDF);
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Some(
            "gzip files are not supported; unpack it first with `gunzip`, or convert an SVG image, for example with \
             `rsvg-convert --width 2000 file.svgz -o file.png`",
        );
    }
    is_svg(bytes).then_some(
        "SVG files are not supported; convert it first, for example with `rsvg-convert --width 2000 file.svg -o file.png`",
    )
}

/// Whether a file is an SVG document: whether that is the name of its root element.
pub fn is_svg(bytes: &[u8]) -> bool {
    let after = |text: &mut &[u8], end: &[u8]| {
        let at = text.windows(end.len()).position(|window| window == end);
        *text = at.map_or(&[], |at| &text[at + end.len()..]);
    };
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"<?") {
            after(&mut rest, b"?>");
        } else if rest.starts_with(b"<!--") {
            after(&mut rest, b"-->");
        } else if rest.starts_with(b"<!") {
            // The entities of a document type are in brackets.
            if rest.iter().find(|byte| b"[>".contains(byte)) == Some(&b'[') {
                after(&mut rest, b"]");
            }
            after(&mut rest, b">");
        } else {
            break;
        }
    }
    let Some(root) = rest.strip_prefix(b"<") else { return false };
    let end = root.iter().position(|byte| byte.is_ascii_whitespace() || b"/>".contains(byte));
    let name = &root[..end.unwrap_or(root.len())];
    name.rsplit(|&byte| byte == b':').next() == Some(b"svg")
}

/// Where a jpeg ends: after the end marker that follows its last scan. `None` if it has none.
fn jpeg_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 2;
    while let Some(&[first, marker]) = bytes.get(at..at + 2) {
        match (first, marker) {
            (0xff, 0xd9) => return Some(at + 2),
            // Fill bytes, and markers without a segment: restarts, and the start of the image.
            (0xff, 0xff) => at += 1,
            (0xff, 0x01 | 0xd0..=0xd8) => at += 2,
            (0xff, 0x02..=0xfe) => {
                let &[high, low] = bytes.get(at + 2..at + 4)? else { return None };
                at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
                if marker == 0xda {
                    // Coded data goes on to the next marker that is no stuffing and no restart.
                    let coded = bytes.get(at..).unwrap_or_default();
                    let ends = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7 | 0xff);
                    at += coded.windows(2).position(ends)?;
                }
            }
            // Not a marker: broken in another way, which the decoder reports.
            _ => return Some(bytes.len()),
        }
    }
    None
}

/// How many scans a jpeg has at most: its scan markers, wherever they are. Coded data has none, and a thumbnail one or two.
fn most_scans(bytes: &[u8]) -> u64 {
    bytes.windows(2).filter(|pair| pair == b"\xff\xda").count() as u64
}

#[cfg(test)]
mod tests;
