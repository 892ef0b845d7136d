//! The contact sheet as an SVG.

use std::fmt::Write;

use anyhow::Result;
use comer_eval::html::base64;
use comer_eval::mathml::escaped;

use super::canvas::Colour;
use super::png;
use super::sheet::{Layout, SMALL, TEXT, others, percent};
use super::view::{CELL, Choice, GREY, INK, Map, REREAD, UNREAD, View};

/// The sheet.
pub fn svg(view: &View, choice: &Choice) -> Result<String> {
    let panels = view.panels(choice);
    let layout = Layout::new(view, panels.len());
    let (width, height) = (layout.width, layout.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<defs><path id=\"ink\" fill=\"{}\" d=\"{}\"/></defs>\n",
        hex(INK),
        ink_path(view),
    );
    let (mut y, line) = Layout::HEADING;
    for text in &layout.formula {
        write_text(&mut out, layout.corners[0].0 as f32, y + TEXT, TEXT, INK, text);
        y += line;
    }
    write_text(&mut out, layout.corners[0].0 as f32, y + TEXT, SMALL, GREY, &choice.describe());
    for (number, (panel, &(left, top))) in panels.iter().zip(&layout.corners).enumerate() {
        let below = (top + layout.panel.1) as f32;
        let _ = writeln!(out, "<g><title>{} {}</title>", number + 1, escaped(&panel.token));
        picture(&mut out, view, &layout, (left, top), &panel.shades, choice.map.tint(), "")?;
        write_text(&mut out, left as f32, below + 19.0, SMALL, GREY, &format!("{}", number + 1));
        write_text(&mut out, left as f32 + 26.0, below + 19.0, TEXT, INK, &panel.token);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"end\">{}</text>",
            left + layout.panel.0,
            below + 19.0,
            SMALL * 1.4,
            hex(GREY),
            percent(panel.probability)
        );
        write_text(&mut out, left as f32, below + 37.0, SMALL, GREY, &others(panel, layout.panel.0 as f32));
        out.push_str("</g>\n");
    }
    if let Some(&(left, top)) = layout.corners.last() {
        let below = (top + layout.panel.1) as f32;
        picture(&mut out, view, &layout, (left, top), &view.total(), Map::Coverage.tint(), &marks(view))?;
        write_text(&mut out, left as f32, below + 19.0, TEXT, INK, "all that was read");
        write_text(&mut out, left as f32, below + 37.0, SMALL, GREY, &view.verdict());
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// A picture with its map, in its own pixels.
fn picture(
    out: &mut String,
    view: &View,
    layout: &Layout,
    (left, top): (usize, usize),
    shades: &[f32],
    tint: Colour,
    more: &str,
) -> Result<()> {
    let (wide, high) = view.size(layout.scale);
    let (columns, rows) = (view.alignment.width, view.alignment.height);
    let map = png::tinted(shades, columns, rows, tint)?;
    let _ = writeln!(
        out,
        "<svg x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">\
         <image width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" href=\"data:image/png;base64,{}\"/>\
         <use href=\"#ink\"/>{more}</svg>\n<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" fill=\"none\" stroke=\"#d6dae0\"/>",
        view.picture.width(),
        view.picture.height(),
        columns as f32 * CELL,
        rows as f32 * CELL,
        base64(&map),
    );
    Ok(())
}

/// Outlines of ink that was left unread or read twice.
fn marks(view: &View) -> String {
    let mut out = String::new();
    for region in &view.alignment.ink.regions {
        let kinds = [(region.is_unread(), UNREAD, "unread"), (region.is_reread(), REREAD, "read twice")];
        for (_, colour, name) in kinds.into_iter().filter(|(is, ..)| *is) {
            let _ = write!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"><title>{name}</title></rect>",
                region.left as f32 - 2.0,
                region.top as f32 - 2.0,
                region.width + 4,
                region.height + 4,
                hex(colour)
            );
        }
    }
    out
}

/// The ink as one path: a box for each run in a row.
fn ink_path(view: &View) -> String {
    let mut path = String::new();
    for (y, row) in view.picture.pixels().chunks_exact(view.picture.width()).enumerate() {
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

fn write_text(out: &mut String, x: f32, y: f32, size: f32, colour: Colour, text: &str) {
    // A font's size is about 1.4 times the height of its capitals.
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\" xml:space=\"preserve\">{}</text>",
        size * 1.4,
        hex(colour),
        escaped(text)
    );
}

pub fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
