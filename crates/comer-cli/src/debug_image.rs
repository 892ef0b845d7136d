//! The image of `comer recognize --debug-image`: the page with its formulas, and below it what the network sees.

use std::io::Cursor;

use anyhow::{Context, Result};
use comer::internal::photo;
use comer::{Input, Point};
use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage};

/// Ink that was read.
const KEPT: Rgb<u8> = Rgb([0, 150, 60]);
const BOX: Rgb<u8> = Rgb([30, 100, 255]);
/// Between the images.
const SEPARATOR: Rgb<u8> = Rgb([96; 3]);
/// A box is drawn this far outside of its ink, in widths of its line.
const MARGIN: f64 = 2.0;

/// A PNG of the formulas of a file. The page is upright; ink that was read is green, so that all other ink is what was dropped,
/// and each formula has a blue box. The images that the network sees follow, one below the other.
pub fn png(bytes: &[u8], lenient: bool, formulas: &[Input]) -> Result<Vec<u8>> {
    let page = match formulas.iter().any(|formula| formula.ink().is_some()) {
        true => ink_page(&Input::from_bytes(bytes)?, formulas)?,
        false => photo_page(&photo::decode_with(bytes, lenient)?.grey, formulas)?,
    };
    let mut images = vec![page];
    for formula in formulas {
        let image = formula.image();
        images.push(colours(image.width(), image.height(), image.pixels().to_vec())?);
    }
    let mut file = Cursor::new(Vec::new());
    stacked(&images).write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}

/// All strokes as one drawing.
fn ink_page(whole: &Input, formulas: &[Input]) -> Result<RgbImage> {
    let image = whole.image();
    let levels = image.pixels().iter().map(|level| 255 - level).collect();
    let mut page = colours(image.width(), image.height(), levels)?;
    page.pixels_mut().filter(|pixel| pixel.0 == [0; 3]).for_each(|pixel| *pixel = KEPT);
    draw_boxes(&mut page, formulas, |place| whole.to_image(place));
    Ok(page)
}

fn photo_page(grey: &photo::Grey, formulas: &[Input]) -> Result<RgbImage> {
    let mut page = colours(grey.width, grey.height, grey.levels.clone())?;
    for formula in formulas {
        let bounds = formula.bounds();
        let range = |first: f64, last: f64, most: usize| {
            let side = |value: f64| value.clamp(0.0, most as f64) as u32;
            side(first.floor())..side(last.ceil())
        };
        for y in range(bounds.top, bounds.bottom, grey.height) {
            for x in range(bounds.left, bounds.right, grey.width) {
                let place = formula.to_image(Point { x: f64::from(x) + 0.5, y: f64::from(y) + 0.5 });
                if is_ink(formula, place) {
                    page.put_pixel(x, y, KEPT);
                }
            }
        }
    }
    draw_boxes(&mut page, formulas, |place| place);
    Ok(page)
}

/// Whether the network sees ink at a place of its image.
fn is_ink(formula: &Input, Point { x, y }: Point) -> bool {
    let image = formula.image();
    let inside = (0.0..image.width() as f64).contains(&x) && (0.0..image.height() as f64).contains(&y);
    inside && image.pixels()[y as usize * image.width() + x as usize] > 127
}

fn draw_boxes(page: &mut RgbImage, formulas: &[Input], to_page: impl Fn(Point) -> Point) {
    let (width, height) = page.dimensions();
    let line = f64::from((width.max(height) / 500).max(1));
    for formula in formulas {
        let bounds = formula.bounds();
        let first = to_page(Point { x: bounds.left, y: bounds.top });
        let last = to_page(Point { x: bounds.right, y: bounds.bottom });
        let (outer, inner) = ((MARGIN + 1.0) * line, MARGIN * line);
        let within = |(x, y): (f64, f64), margin: f64| {
            (first.x - margin..last.x + margin).contains(&x)
                && (first.y - margin..last.y + margin).contains(&y)
        };
        let side = |value: f64, most: u32| value.clamp(0.0, f64::from(most)) as u32;
        for y in side(first.y - outer, height)..side(last.y + outer + 1.0, height) {
            for x in side(first.x - outer, width)..side(last.x + outer + 1.0, width) {
                let place = (f64::from(x) + 0.5, f64::from(y) + 0.5);
                if within(place, outer) && !within(place, inner) {
                    page.put_pixel(x, y, BOX);
                }
            }
        }
    }
}

fn colours(width: usize, height: usize, levels: Vec<u8>) -> Result<RgbImage> {
    let grey = GrayImage::from_raw(u32::try_from(width)?, u32::try_from(height)?, levels);
    let grey = grey.context("an image has another number of pixels than its sides say")?;
    Ok(RgbImage::from_fn(grey.width(), grey.height(), |x, y| {
        let Luma([level]) = *grey.get_pixel(x, y);
        Rgb([level; 3])
    }))
}

/// Images below each other, with a line after each.
fn stacked(images: &[RgbImage]) -> RgbImage {
    let width = images.iter().map(RgbImage::width).max().unwrap_or(1);
    let height = images.iter().map(|image| image.height() + 1).sum();
    let mut sheet = RgbImage::from_pixel(width, height, SEPARATOR);
    let mut top = 0;
    for image in images {
        image::imageops::replace(&mut sheet, image, 0, i64::from(top));
        top += image.height() + 1;
    }
    sheet
}
