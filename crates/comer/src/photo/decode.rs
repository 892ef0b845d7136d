//! Bytes of an image file to upright grey levels, with limits checked before anything is decoded.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

use super::Grey;
use crate::error::{Error, Result};

/// Most pixels that an image file may have.
pub const MOST_PIXELS: u64 = 50_000_000;
/// Most bytes that decoding may take.
const MOST_BYTES: u64 = 256 << 20;

/// Decodes a png, jpeg, bmp, webp, tiff or gif (its first frame), turned as its EXIF orientation says. What is
/// transparent becomes white behind dark ink and black behind light ink.
pub fn decode(bytes: &[u8]) -> Result<Grey> {
    decode_with(bytes, false)
}

/// As [`decode`]; a jpeg that ends early is an error unless `lenient`.
pub fn decode_with(bytes: &[u8], lenient: bool) -> Result<Grey> {
    let refused = |reason: String| Error::Decode { reason, source: None };
    if bytes.is_empty() {
        return Err(refused("the file is empty".into()));
    }
    if let Some(reason) = unsupported(bytes) {
        return Err(refused(reason.into()));
    }
    if !lenient && is_truncated_jpeg(bytes) {
        return Err(refused("the jpeg is truncated: it ends before its end marker".into()));
    }
    let unreadable =
        |error: image::ImageError| Error::Decode { reason: error.to_string(), source: Some(error.into()) };
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| refused(error.to_string()))?;
    if reader.format().is_none() {
        return Err(refused(
            "its first bytes are of no known kind, expected png, jpeg, bmp, webp, tiff or gif".into(),
        ));
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 || pixels > MOST_PIXELS || decoder.total_bytes() > MOST_BYTES {
        return Err(refused(format!(
            "it has {width} x {height} pixels in {} bytes, expected at least one and at most {MOST_PIXELS} in {MOST_BYTES}",
            decoder.total_bytes()
        )));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    decoded.apply_orientation(orientation);
    Ok(grey(&decoded))
}

/// The grey levels of an image of any kind.
pub fn grey(decoded: &DynamicImage) -> Grey {
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let levels = if decoded.color().has_alpha() {
        let pixels = decoded.to_luma_alpha8();
        let (mut ink, mut weight) = (0u64, 0u64);
        for pixel in pixels.pixels() {
            ink += u64::from(pixel[0]) * u64::from(pixel[1]);
            weight += u64::from(pixel[1]);
        }
        let ground = if ink >= 128 * weight.max(1) { 0 } else { 255 };
        let over = |[level, alpha]: [u8; 2]| {
            let alpha = u32::from(alpha);
            ((u32::from(level) * alpha + ground * (255 - alpha) + 127) / 255) as u8
        };
        pixels.pixels().map(|pixel| over(pixel.0)).collect()
    } else {
        decoded.to_luma8().into_raw()
    };
    Grey { width, height, levels }
}

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
        return Some(
            "PDF files are not supported; convert its pages first, for example with `pdftoppm -r 200 -png file.pdf page`",
        );
    }
    is_svg(bytes).then_some(
        "SVG files are not supported; convert it first, for example with `rsvg-convert --width 2000 file.svg -o file.png`",
    )
}

/// Whether a file is an SVG document, whatever precedes its root element.
pub fn is_svg(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(4096)];
    start.trim_ascii_start().starts_with(b"<") && start.windows(4).any(|window| window == b"<svg")
}

/// Whether a jpeg has no end marker after its last scan.
fn is_truncated_jpeg(bytes: &[u8]) -> bool {
    if !bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        return false;
    }
    let mut at = 2;
    while let Some(&[first, marker]) = bytes.get(at..at + 2) {
        match (first, marker) {
            (0xff, 0xd9) => return false,
            // Fill bytes, and markers without a segment: restarts, and the start of the image.
            (0xff, 0xff) => at += 1,
            (0xff, 0x01 | 0xd0..=0xd8) => at += 2,
            (0xff, 0x02..=0xfe) => {
                let Some(&[high, low]) = bytes.get(at + 2..at + 4) else { return true };
                at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
                if marker == 0xda {
                    // Coded data goes on to the next marker that is no stuffing and no restart.
                    let coded = bytes.get(at..).unwrap_or_default();
                    let ends = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7 | 0xff);
                    let Some(length) = coded.windows(2).position(ends) else { return true };
                    at += length;
                }
            }
            // Not a marker: broken in another way, which the decoder reports.
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayAlphaImage, GrayImage, ImageBuffer, ImageFormat, Luma, LumaA, Rgb, RgbImage};

    fn encoded(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.into().write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// 3 by 2 pixels, each of its own level.
    fn ramp() -> GrayImage {
        GrayImage::from_fn(3, 2, |x, y| Luma([(x * 20 + y * 100) as u8]))
    }

    const RAMP: [u8; 6] = [0, 20, 40, 100, 120, 140];

    #[test]
    fn every_format_gives_its_levels() {
        let rgb = || RgbImage::from_fn(3, 2, |x, y| Rgb([(x * 20 + y * 100) as u8; 3]));
        let deep = ImageBuffer::<Luma<u16>, _>::from_fn(3, 2, |x, y| Luma([(x * 20 + y * 100) as u16 * 257]));
        let table = [
            ("png", encoded(ramp(), ImageFormat::Png), 0),
            ("png, 16 bits", encoded(deep, ImageFormat::Png), 0),
            ("bmp", encoded(ramp(), ImageFormat::Bmp), 0),
            ("tiff", encoded(ramp(), ImageFormat::Tiff), 0),
            ("webp", encoded(rgb(), ImageFormat::WebP), 1),
            ("gif", encoded(rgb(), ImageFormat::Gif), 1),
            ("jpeg", encoded(ramp(), ImageFormat::Jpeg), 12),
        ];
        for (name, bytes, tolerance) in table {
            let grey = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((grey.width, grey.height), (3, 2), "{name}");
            for (found, expected) in grey.levels.iter().zip(RAMP) {
                assert!(found.abs_diff(expected) <= tolerance, "{name}: {:?}", grey.levels);
            }
        }
    }

    #[test]
    fn what_is_transparent_becomes_the_ground() {
        for (ink, ground) in [(0, 255), (255, 0)] {
            let mut picture = GrayAlphaImage::from_pixel(2, 1, LumaA([ink, 0]));
            picture.put_pixel(1, 0, LumaA([ink, 255]));
            assert_eq!(decode(&encoded(picture, ImageFormat::Png)).unwrap().levels, [ground, ink]);
        }
    }

    #[test]
    fn exif_says_which_side_is_up() {
        // A jpeg with an EXIF block (tag 0x112, orientation 6: turned by a quarter) before its other segments.
        let jpeg = encoded(ramp(), ImageFormat::Jpeg);
        let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let length = (exif.len() as u16 + 2).to_be_bytes();
        let turned = [&jpeg[..2], &[0xff, 0xe1], &length, exif, &jpeg[2..]].concat();
        let grey = decode(&turned).unwrap();
        assert_eq!((grey.width, grey.height), (2, 3));
        assert!(grey.levels[0] > 80 && grey.levels[1] < 30, "{:?}", grey.levels);
    }

    #[test]
    fn known_kinds_that_are_not_read_say_how_to_convert_them() {
        let media = |brand: &[u8]| [b"\0\0\0\x18ftyp", brand, b"\0\0\0\0"].concat();
        for (bytes, expected) in [
            (media(b"heic"), "heif-convert"),
            (media(b"mif1"), "heif-convert"),
            (media(b"avif"), "avifdec"),
            (media(b"mp42"), "video"),
            (b"%PDF-1.7\n".to_vec(), "pdftoppm"),
            (
                b"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(),
                "rsvg-convert",
            ),
        ] {
            let message = decode(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
    }

    #[test]
    fn a_truncated_jpeg_is_an_error_unless_asked_for() {
        let picture = GrayImage::from_fn(64, 64, |x, y| Luma([((x * y) % 251) as u8]));
        let jpeg = encoded(picture, ImageFormat::Jpeg);
        assert!(decode(&jpeg).is_ok());
        // What follows the end of the picture does not matter.
        assert!(decode(&[&jpeg[..], &[0; 100]].concat()).is_ok());
        for length in [jpeg.len() - 2, jpeg.len() * 3 / 4] {
            let message = decode(&jpeg[..length]).unwrap_err().to_string();
            assert!(message.contains("truncated"), "{length} of {}: {message}", jpeg.len());
        }
        let lenient = decode_with(&jpeg[..jpeg.len() - 2], true).unwrap();
        assert_eq!((lenient.width, lenient.height), (64, 64));
    }

    #[test]
    fn bad_files_are_refused_with_their_reason() {
        let png = encoded(ramp(), ImageFormat::Png);
        let jpeg = encoded(GrayImage::new(64, 64), ImageFormat::Jpeg);
        let bmp = encoded(ramp(), ImageFormat::Bmp);
        // The sides are in the header of a png, at bytes 16 to 24, with a checksum at 29.
        let sized = |width: u32, height: u32| {
            let mut bytes = png.clone();
            bytes[16..20].copy_from_slice(&width.to_be_bytes());
            bytes[20..24].copy_from_slice(&height.to_be_bytes());
            let checksum = crc32fast::hash(&bytes[12..29]);
            bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
            bytes
        };
        let table: [(&str, Vec<u8>, &str); 8] = [
            ("nothing", vec![], "the file is empty"),
            ("a text", b"hello, this is no picture".to_vec(), "of no known kind, expected png, jpeg"),
            ("a png cut short", png[..png.len() / 2].to_vec(), "not a readable image"),
            ("a jpeg cut short", jpeg[..40].to_vec(), "not a readable image"),
            ("a bmp cut short", bmp[..bmp.len() - 4].to_vec(), "not a readable image"),
            ("no width", sized(0, 2), "not a readable image"),
            ("30000 x 30000", sized(30_000, 30_000), "it has 30000 x 30000 pixels"),
            ("the largest of all", sized(u32::MAX >> 1, u32::MAX >> 1), "not a readable image"),
        ];
        for (name, bytes, expected) in table {
            let message = decode(&bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{name}: {message}");
        }
    }
}
