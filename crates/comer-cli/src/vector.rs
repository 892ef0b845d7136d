//! Draws files that are not pixels: PDF and SVG, each with a feature of its own.

#[cfg(feature = "pdf")]
mod pdf;
#[cfg(feature = "svg")]
mod svg;

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

/// File name extensions of what is drawn.
pub const EXTENSIONS: &[&str] = &[
    #[cfg(feature = "pdf")]
    "pdf",
    #[cfg(feature = "svg")]
    "svg",
];

/// Pixels of a drawn page: 160 dots per inch for A4.
const PIXELS: f32 = 2.5e6;
/// Most pixels of a side of a drawn page.
const LONGEST_SIDE: f32 = 8000.0;
/// Parts of a file can be nested deeply.
const STACK: usize = 64 << 20;

/// Draws the pages of a file, and sends each as an image file.
type Draw = fn(&[u8], &SyncSender<Result<Vec<u8>>>);

/// How a file is drawn; `None` if it is of another kind.
fn kind(bytes: &[u8]) -> Option<Draw> {
    #[cfg(feature = "pdf")]
    if pdf::is_pdf(bytes) {
        return Some(pdf::draw);
    }
    #[cfg(feature = "svg")]
    if comer::internal::photo::is_svg(bytes) {
        return Some(svg::draw);
    }
    None
}

/// The pages of a file as PNGs, or the bytes of a file of another kind. A page whose drawing fails or takes longer than `most` is
/// the last one, and an error.
pub fn pages(bytes: Vec<u8>, most: Duration) -> Vec<Result<Vec<u8>>> {
    let Some(draw) = kind(&bytes) else { return vec![Ok(bytes)] };
    let (send, receive) = sync_channel(1);
    // In a thread of its own, because drawing cannot be interrupted: one that takes too long is left alone until the program ends.
    let thread = match thread::Builder::new().stack_size(STACK).spawn(move || draw(&bytes, &send)) {
        Ok(thread) => thread,
        Err(error) => return vec![Err(error.into())],
    };
    let mut pages = Vec::new();
    let failed = loop {
        match receive.recv_timeout(most) {
            Ok(page) => pages.push(page),
            Err(RecvTimeoutError::Timeout) => {
                break format!("was not drawn within {} seconds", most.as_secs_f64());
            }
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Ok(()) => return pages,
                Err(_) => break "cannot be drawn".into(),
            },
        }
    };
    pages.push(Err(anyhow!("this page {failed}; it and those after it are not read")));
    pages
}

/// The factor by which a page of this size is drawn; `None` if a side would have no pixel.
fn scale(width: f32, height: f32) -> Option<f32> {
    let scale = (PIXELS / (width * height)).sqrt().min(LONGEST_SIDE / width.max(height));
    (scale.is_finite() && scale * width.min(height) >= 1.0).then_some(scale)
}
