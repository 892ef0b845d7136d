//! Draws an SVG file.

use std::io::Cursor;
use std::sync::mpsc::SyncSender;

use anyhow::{Context, Result};
use image::{ImageFormat, RgbaImage};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// What is drawn, on a transparent ground. Text and embedded images are left out, and nothing is loaded from elsewhere.
pub fn draw(bytes: &[u8], send: &SyncSender<Result<Vec<u8>>>) {
    drop(send.send(png(bytes).context("cannot read the SVG")));
}

fn png(bytes: &[u8]) -> Result<Vec<u8>> {
    let tree = Tree::from_data_nested(bytes, &Options::default())?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let size = || format!("it has {width} x {height} units, expected a larger one");
    let scale = super::scale(width, height).with_context(size)?;
    let [width, height] = [width, height].map(|side| (side * scale) as u32);
    let mut drawn = Pixmap::new(width, height).with_context(size)?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut drawn.as_mut());
    let image = RgbaImage::from_raw(width, height, drawn.take_demultiplied()).with_context(size)?;
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}
