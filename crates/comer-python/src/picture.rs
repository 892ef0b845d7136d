//! How a recognition looks in Jupyter: its formula, and for each symbol where the model looked.

use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use comer::{Alignment, Candidate, Image};
use comer_eval::mathml::{escaped, mathml};

/// The side of a cell in pixels of the image.
const CELL: usize = 16;
/// The least share of the strongest attention that is drawn.
const VISIBLE: f32 = 0.02;

/// The formula as MathML, the image with unread ink outlined, and one panel for each token with ink.
pub fn html(image: &Image, best: &Candidate, alignment: &Alignment) -> String {
    // All results of a notebook share one document.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let id = format!("comer-ink-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let formula = mathml(&best.latex).unwrap_or_else(|_| format!("<code>{}</code>", escaped(&best.latex)));
    let (width, height) = (image.width(), image.height());
    let mut out = format!(
        "<div style=\"display:inline-block;background:#fff;color:#10121a;padding:8px;max-width:100%\">\
         <div style=\"font-size:140%\">{formula}</div>\
         <div style=\"font:12px monospace;margin:4px 0\">{} <span style=\"color:#6b7280\">confidence {:.1} %, \
         unread ink {:.1} %</span></div>\
         <svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" style=\"max-width:100%\">\
         <defs><path id=\"{id}\" fill=\"#10121a\" d=\"{}\"/></defs><use href=\"#{id}\"/>{}</svg>\
         <div style=\"display:flex;flex-wrap:wrap;gap:6px\">",
        escaped(&best.latex),
        100.0 * best.confidence,
        100.0 * alignment.ink.unread,
        ink(image),
        unread(alignment),
    );
    // Small panels: what matters is where the attention is.
    let scale = (120.0 / width as f32).min(60.0 / height as f32).min(1.0);
    let (wide, high) = (width as f32 * scale, height as f32 * scale);
    for (token, attention) in
        best.tokens.iter().zip(&alignment.attention).filter(|(token, _)| token.has_ink())
    {
        let _ = write!(
            out,
            "<figure style=\"margin:0\"><svg width=\"{wide:.0}\" height=\"{high:.0}\" viewBox=\"0 0 {width} {height}\" \
             style=\"border:1px solid #d6dae0\">{}<use href=\"#{id}\"/></svg>\
             <figcaption style=\"font:11px monospace;text-align:center\">{} \
             <span style=\"color:#6b7280\">{:.0} %</span></figcaption></figure>",
            heat(attention, alignment.width),
            escaped(&token.text),
            100.0 * token.confidence,
        );
    }
    out.push_str("</div></div>");
    out
}

/// The attention of a token: a square for each cell, the strongest opaque. Its root also shows attention that is spread.
fn heat(attention: &[f32], columns: usize) -> String {
    let most = attention.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let mut out = String::new();
    for (cell, share) in attention.iter().map(|value| value / most).enumerate() {
        if share >= VISIBLE {
            let (x, y) = (cell % columns * CELL, cell / columns * CELL);
            let _ = write!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"#f07814\" opacity=\"{:.2}\"/>",
                share.sqrt()
            );
        }
    }
    out
}

/// Outlines of ink that no token attended to.
fn unread(alignment: &Alignment) -> String {
    let mut out = String::new();
    for region in alignment.ink.regions.iter().filter(|region| region.is_unread()) {
        let _ = write!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#d62828\" stroke-width=\"1.5\">\
             <title>unread</title></rect>",
            region.left as f32 - 2.0,
            region.top as f32 - 2.0,
            region.width + 4,
            region.height + 4
        );
    }
    out
}

/// The ink as one path: a box for each run in a row.
fn ink(image: &Image) -> String {
    let mut path = String::new();
    for (y, row) in image.pixels().chunks_exact(image.width()).enumerate() {
        let mut x = 0;
        while x < row.len() {
            let run = row[x..].iter().take_while(|&&pixel| pixel >= 128).count();
            if run > 0 {
                let _ = write!(path, "M{x} {y}h{run}v1h-{run}z");
            }
            x += run.max(1);
        }
    }
    path
}
