//! Image files of every kind, made here.

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
        (b"\n\0from a printer\n%PDF-1.7\n".to_vec(), "pdftoppm"),
        (b"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(), "rsvg-convert"),
        (b"\x1f\x8b\x08\0\0\0\0\0".to_vec(), "gunzip"),
    ] {
        let message = decode(&bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} lacks {expected:?}");
    }
}

#[test]
fn an_svg_is_known_by_its_root() {
    let comment = format!("<!-- {} -->\n", "x".repeat(5_000));
    let doctype =
        "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"svg11.dtd\" [<!ENTITY n \"http://n\">]>\n";
    for (start, root, expected) in [
        ("\u{feff}  ", "<svg>", true),
        (comment.as_str(), "<svg\nwidth='3'>", true),
        (doctype, "<svg:svg xmlns:svg='http://www.w3.org/2000/svg'/>", true),
        ("<?xml version='1.0'?>\n<!DOCTYPE svg>", "<svg/>", true),
        ("<!-- no <svg> -->", "<ink xmlns='http://www.w3.org/2003/InkML'>", false),
        ("", "<svgs/>", false),
        ("", "<ink><svg/></ink>", false),
        ("a text about ", "<svg>", false),
        ("<!-- without an end", "<svg>", false),
    ] {
        assert_eq!(is_svg(format!("{start}{root}").as_bytes()), expected, "{start:.40}{root}");
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
    assert_eq!((lenient.grey.width, lenient.grey.height), (64, 64));
    assert!(lenient.truncated && !decode_with(&jpeg, true).unwrap().truncated);
}

/// A progressive jpeg of one colour: a scan of the mean levels, then scans of other coefficients that are all zero. The code
/// of every zero is one bit, also zero.
fn progressive_jpeg(width: u16, height: u16, scans: usize) -> Vec<u8> {
    let zeros = vec![0; usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8)) / 8 + 1];
    let table =
        |class: u8, symbols: [u8; 2]| [&b"\xff\xc4\0\x15"[..], &[class, 1, 1], &[0; 14], &symbols].concat();
    let head = [
        &[&b"\xff\xd8\xff\xdb\0\x43\0"[..], &[1; 64]].concat(),
        &[&b"\xff\xc2\0\x0b\x08"[..], &height.to_be_bytes(), &width.to_be_bytes(), b"\x01\x01\x11\0"]
            .concat(),
        &table(0x00, [0, 5])[..],
        &table(0x10, [0, 0xe0]),
        b"\xff\xda\0\x08\x01\x01\0\0\0\0",
        &zeros,
    ]
    .concat();
    let scan = [&b"\xff\xda\0\x08\x01\x01\0\x01\x3f\0"[..], &zeros].concat();
    [head, scan.repeat(scans - 1), b"\xff\xd9".to_vec()].concat()
}

#[test]
fn a_jpeg_of_too_many_scans_is_refused_before_it_is_decoded() {
    // The scans of libjpeg on 12 megapixels, and more of them on few pixels.
    for (width, height, scans) in [(4000, 3000, 10), (64, 64, 90)] {
        let grey = decode(&progressive_jpeg(width, height, scans)).unwrap();
        assert_eq!((grey.width, grey.height), (usize::from(width), usize::from(height)));
    }
    let jpeg = progressive_jpeg(7000, 7000, 98);
    let message = decode(&jpeg).unwrap_err().to_string();
    assert!(message.contains("98 scans of 7000 x 7000 pixels, expected at most 16"), "{message}");
    assert!(decode_with(&jpeg[..jpeg.len() - 2], true).unwrap_err().to_string().contains("98 scans"));
    // The decoder reads five bytes of an APP0 segment of four, and does not see the segment of 64 kB after it.
    let start = jpeg.len() - 60_000;
    let hidden = [&jpeg[..200_000], b"\xff\xe0\0\x06abcd\xff\xe1\xff\xff", &jpeg[200_000..start]].concat();
    assert!(decode_with(&hidden, true).unwrap_err().to_string().contains("scans"));
}

/// A length of a png chunk, its name, its data and its checksum.
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let named = [name, data].concat();
    [&(data.len() as u32).to_be_bytes(), &named[..], &crc32fast::hash(&named).to_be_bytes()].concat()
}

#[test]
fn a_palette_png_has_the_levels_of_its_colours() {
    // 3 by 2 pixels of 2 bits: indices 0, 1, 2 and 2, 1, 0, each row after its filter (none).
    let rows = [0, 0b0001_1000, 0, 0b1001_0000];
    // A stored block of zlib, and the two sums of its checksum.
    let sums = rows.iter().fold((1u32, 0u32), |(sum, of_sums), &byte| {
        let sum = sum + u32::from(byte);
        (sum, of_sums + sum)
    });
    let checksum = (sums.1 << 16 | sums.0).to_be_bytes();
    let coded = [&[0x78, 0x01, 0x01, 4, 0, 0xfb, 0xff][..], &rows, &checksum].concat();
    let png = |alphas: &[u8]| {
        [
            b"\x89PNG\r\n\x1a\n".to_vec(),
            chunk(b"IHDR", &[0, 0, 0, 3, 0, 0, 0, 2, 2, 3, 0, 0, 0]),
            chunk(b"PLTE", &[250, 250, 250, 10, 10, 10, 99, 99, 99]),
            chunk(b"tRNS", alphas),
            chunk(b"IDAT", &coded),
            chunk(b"IEND", &[]),
        ]
        .concat()
    };
    assert_eq!(decode(&png(&[255, 255])).unwrap().levels, [250, 10, 99, 99, 10, 250]);
    // The first colour is transparent; the others are dark, so that it becomes white.
    assert_eq!(decode(&png(&[0, 255])).unwrap().levels, [255, 10, 99, 99, 10, 255]);
}

/// A jpeg of four inks with the marker that Adobe's programs write, in squares of 8 pixels that are black or blank.
fn cmyk_jpeg(columns: u8, rows: u8, black: impl Fn(u8, u8) -> bool) -> Vec<u8> {
    let mut bits = Vec::new();
    let mut push = |value: u32, count: u32| bits.extend((0..count).rev().map(|bit| (value >> bit & 1) as u8));
    let mut before = [0i32; 4];
    for square in 0..u16::from(columns) * u16::from(rows) {
        let (row, column) = (square / u16::from(columns), square % u16::from(columns));
        // 255 is no ink. The levels are around 128, and each is coded by its difference to the one before.
        let key = if black(column as u8, row as u8) { 20 } else { 255 };
        for (level, before) in [255, 255, 255, key].into_iter().zip(&mut before) {
            let difference = level - 128 - std::mem::replace(before, level - 128);
            let size = 32 - difference.unsigned_abs().leading_zeros();
            push(size, 4);
            push((difference + if difference < 0 { (1 << size) - 1 } else { 0 }) as u32, size);
            push(0, 1); // No other coefficients.
        }
    }
    bits.resize(bits.len().next_multiple_of(8), 1);
    let coded = bits.chunks(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | bit));
    let coded = coded.flat_map(|byte: u8| if byte == 255 { vec![255, 0] } else { vec![byte] });
    let (height, width) = (u16::from(rows) * 8, u16::from(columns) * 8);
    [
        &b"\xff\xd8\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0"[..],
        &[&b"\xff\xdb\0\x43\0"[..], &[8; 64]].concat(),
        &[&b"\xff\xc0\0\x14\x08"[..], &height.to_be_bytes(), &width.to_be_bytes()].concat(),
        b"\x04\x01\x11\0\x02\x11\0\x03\x11\0\x04\x11\0",
        // Nine sizes in codes of four bits, and the end of a square in a code of one bit.
        b"\xff\xc4\0\x1c\0\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08",
        b"\xff\xc4\0\x14\x10\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\xff\xda\0\x0e\x04\x01\0\x02\0\x03\0\x04\0\0\x3f\0",
        &coded.collect::<Vec<u8>>(),
        b"\xff\xd9",
    ]
    .concat()
}

#[test]
fn ink_of_a_cmyk_jpeg_is_dark() {
    let black = |column: u8, row: u8| column == row + 1;
    let grey = decode(&cmyk_jpeg(6, 4, black)).unwrap();
    assert_eq!((grey.width, grey.height), (48, 32));
    for (at, &level) in grey.levels.iter().enumerate() {
        let ink = black((at % 48 / 8) as u8, (at / 48 / 8) as u8);
        assert!(if ink { level < 40 } else { level > 240 }, "{level} at {at}, ink: {ink}");
    }
}

#[test]
fn truncated_files_are_errors_unless_asked_for() {
    // Light paper, which must not make what is missing dark.
    let noise = |x: u32, y: u32| (150 + (x * 7919 + y * 104_729) % 101) as u8;
    let grey = || GrayImage::from_fn(64, 64, |x, y| Luma([noise(x, y)]));
    let deep = ImageBuffer::<Luma<u16>, _>::from_fn(64, 64, |x, y| Luma([u16::from(noise(x, y)) * 256]));
    let rgb = || RgbImage::from_fn(64, 64, |x, y| Rgb([noise(x, y); 3]));
    let opaque = GrayAlphaImage::from_fn(64, 64, |x, y| LumaA([noise(x, y), 255]));
    for (name, bytes, partial) in [
        ("png", encoded(grey(), ImageFormat::Png), true),
        ("png", encoded(opaque, ImageFormat::Png), true),
        ("png", encoded(deep, ImageFormat::Png), true),
        ("gif", encoded(rgb(), ImageFormat::Gif), true),
        ("bmp", encoded(grey(), ImageFormat::Bmp), true),
        ("tiff", encoded(grey(), ImageFormat::Tiff), false),
        ("webp", encoded(rgb(), ImageFormat::WebP), false),
    ] {
        let whole = decode(&bytes).unwrap();
        let lenient = Decoded { grey: whole.clone(), truncated: false };
        assert_eq!(decode_with(&bytes, true).unwrap(), lenient, "{name}");
        for length in [30, bytes.len() / 4, bytes.len() / 2, bytes.len() - 100] {
            let message = decode(&bytes[..length]).unwrap_err().to_string();
            assert!(message.contains(&format!("the {name} is truncated")), "{length} bytes: {message}");
        }
        let part = decode_with(&bytes[..bytes.len() * 3 / 4], true);
        if !partial {
            let message = part.unwrap_err().to_string();
            assert!(message.contains(&format!("the {name} is truncated")), "{message}");
            continue;
        }
        // What is there is as in the whole file, and the rest is white.
        let Decoded { grey: part, truncated } = part.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(truncated, "{name}");
        let pairs = || part.levels.iter().zip(&whole.levels);
        assert!(pairs().all(|(found, whole)| found == whole || *found == 255), "{name}");
        let (read, all) = (pairs().filter(|(found, whole)| found == whole).count(), whole.levels.len());
        assert!(4 * read > all && read < all, "{name}: {read} of {all} pixels");
    }
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

#[test]
fn luminance_is_that_of_the_image_crate_but_for_rounding() {
    let levels = (0..=255u8).step_by(3);
    let colours: Vec<[u8; 3]> = levels
        .clone()
        .flat_map(|r| levels.clone().flat_map(move |g| (0..=255).step_by(5).map(move |b| [r, g, b])))
        .collect();
    let raw = colours.concat();
    let decoded = DynamicImage::ImageRgb8(image::RgbImage::from_raw(colours.len() as u32, 1, raw).unwrap());
    let (found, expected) = (grey(&decoded).levels, decoded.to_luma8().into_raw());
    // Levels about between two bytes may be rounded to the other one.
    let differences: Vec<u8> = found
        .iter()
        .zip(&expected)
        .map(|(a, b)| a.abs_diff(*b))
        .filter(|&difference| difference > 0)
        .collect();
    assert!(differences.iter().all(|&difference| difference == 1));
    assert!(differences.len() < found.len() / 30, "{} of {}", differences.len(), found.len());
    assert_eq!(grey(&DynamicImage::ImageRgba8(decoded.to_rgba8())).levels, found);
}
