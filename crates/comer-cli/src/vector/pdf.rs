//! Draws the pages of a PDF file.

use std::sync::mpsc::SyncSender;

use anyhow::{Context, Result, anyhow};
use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::hayro_syntax::page::Page;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};

/// Most pages of a file.
const MOST_PAGES: usize = 100;
/// A PDF file may have a preamble of this length.
const PREAMBLE: usize = 1024;

pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(PREAMBLE)].windows(5).any(|window| window == b"%PDF-")
}

/// Each page on white. Text whose font is not in the file is left out.
pub fn draw(bytes: &[u8], send: &SyncSender<Result<Vec<u8>>>) {
    let refuse = |reason: String| drop(send.send(Err(anyhow!("cannot read the PDF: {reason}"))));
    let pdf = match Pdf::new(bytes.to_vec()) {
        Ok(pdf) => pdf,
        Err(error) => return refuse(format!("{error:?}").to_lowercase()),
    };
    let pages = pdf.pages();
    if !(1..=MOST_PAGES).contains(&pages.len()) {
        return refuse(format!("it has {} pages, expected 1 to {MOST_PAGES}", pages.len()));
    }
    let cache = RenderCache::new();
    for page in pages.iter() {
        if send.send(draw_page(page, &cache)).is_err() {
            return;
        }
    }
}

fn draw_page<'a>(page: &'a Page<'a>, cache: &RenderCache<'a>) -> Result<Vec<u8>> {
    let (width, height) = page.render_dimensions();
    let scale = super::scale(width, height)
        .with_context(|| format!("the page has {width} x {height} points, expected a larger one"))?;
    let settings = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let drawn = render(page, cache, &InterpreterSettings::default(), &RenderSettings::default(), &settings);
    Ok(drawn.into_png()?)
}
