//! The contact sheet, as in the paper's figure: one panel per step, and one for the result.

use super::canvas::{Canvas, Colour, text_width};
use super::view::{Choice, GREY, INK, Map, PAPER, Panel, View};

const MARGIN: usize = 28;
const GAP: usize = 22;
/// The height of capitals.
pub const TEXT: f32 = 11.0;
pub const SMALL: f32 = 8.0;
const LINE: usize = 22;
const FRAME: Colour = [214, 218, 224];
/// Minimum width of a panel, for its text.
const NARROWEST: usize = 170;
const WIDEST_SHEET: usize = 2200;

/// The layout of a sheet.
pub struct Layout {
    pub width: usize,
    pub height: usize,
    /// Pixels of the sheet for each of the picture.
    pub scale: f32,
    /// The formula, in lines that fit.
    pub formula: Vec<String>,
    /// The corners of the panels' pictures.
    pub corners: Vec<(usize, usize)>,
    /// The width of a panel, and the height of its picture.
    pub panel: (usize, usize),
}

impl Layout {
    /// The first line of the heading, and the distance to the next.
    pub const HEADING: (f32, f32) = (MARGIN as f32, LINE as f32);

    /// A layout for the steps and one panel more.
    pub fn new(view: &View, steps: usize) -> Self {
        let scale = (300.0 / view.picture.width() as f32).clamp(0.6, 2.0);
        let (wide, high) = view.size(scale);
        let panel = (wide.max(NARROWEST), high);
        let (each_wide, each_high) = (panel.0 + GAP, high + 2 * LINE + GAP);
        let count = steps + 1;
        // About three wide to two high.
        let best = (1.5 * count as f32 * each_high as f32 / each_wide as f32).sqrt().ceil() as usize;
        let columns = best.clamp(1, (WIDEST_SHEET / each_wide).max(1)).min(count);
        let width = (2 * MARGIN + columns * each_wide - GAP).max(640);
        let words: Vec<&str> = view.tokens.iter().map(|token| token.text.as_str()).collect();
        let formula = wrapped(&words, (width - 2 * MARGIN) as f32, TEXT);
        let top = MARGIN + (formula.len() + 1) * LINE + GAP / 2;
        let corner =
            |number: usize| (MARGIN + number % columns * each_wide, top + number / columns * each_high);
        let height = top + count.div_ceil(columns) * each_high + MARGIN - GAP;
        Self { width, height, scale, formula, corners: (0..count).map(corner).collect(), panel }
    }
}

/// Draws the sheet.
pub fn sheet(view: &View, choice: &Choice) -> Canvas {
    let panels = view.panels(choice);
    let layout = Layout::new(view, panels.len());
    let mut canvas = Canvas::new(layout.width, layout.height, PAPER);
    let (mut y, line) = Layout::HEADING;
    for text in &layout.formula {
        canvas.text(text, MARGIN as f32, y, TEXT, INK);
        y += line;
    }
    canvas.text(&choice.describe(), MARGIN as f32, y, SMALL, GREY);
    for (number, (panel, &corner)) in panels.iter().zip(&layout.corners).enumerate() {
        picture(&mut canvas, view, &layout, corner, &panel.shades, choice.map.tint());
        caption(&mut canvas, &layout, corner, number + 1, panel);
    }
    if let Some(&corner) = layout.corners.last() {
        picture(&mut canvas, view, &layout, corner, &view.total(), Map::Coverage.tint());
        view.mark(&mut canvas, corner.0, corner.1, layout.scale);
        let (left, top) = (corner.0 as f32, (corner.1 + layout.panel.1) as f32 + 8.0);
        canvas.text("all that was read", left, top, TEXT, INK);
        let ink = &view.alignment.ink;
        let verdict =
            format!("never {:.1} %, twice {:.1} % of the ink", 100.0 * ink.unread, 100.0 * ink.reread);
        canvas.text(&verdict, left, top + LINE as f32 - 2.0, SMALL, GREY);
    }
    canvas
}

fn picture(
    canvas: &mut Canvas,
    view: &View,
    layout: &Layout,
    (left, top): (usize, usize),
    shades: &[f32],
    tint: Colour,
) {
    view.draw(canvas, left, top, layout.scale, shades, tint);
    let (wide, high) = view.size(layout.scale);
    let side = |start: usize, length: usize| (start as f32 - 0.5, (start + length) as f32 + 0.5);
    let ((x, right), (y, bottom)) = (side(left, wide), side(top, high));
    canvas.frame([x, y, right, bottom], 1.0, FRAME);
}

fn caption(canvas: &mut Canvas, layout: &Layout, (left, top): (usize, usize), number: usize, panel: &Panel) {
    let (left, width) = (left as f32, layout.panel.0 as f32);
    let top = (top + layout.panel.1) as f32 + 8.0;
    let end = canvas.text(&format!("{number}"), left, top + TEXT - SMALL, SMALL, GREY);
    let percent = percent(panel.probability);
    let right = left + width - text_width(&percent, SMALL);
    let token = shortened(&panel.token, right - end - 16.0, TEXT);
    canvas.text(&token, end + 5.0, top, TEXT, INK);
    canvas.text(&percent, right, top + TEXT - SMALL, SMALL, GREY);
    canvas.text(&others(panel, width), left, top + LINE as f32 - 2.0, SMALL, GREY);
}

/// A probability as text.
pub fn percent(probability: f32) -> String {
    format!("{:.1} %", 100.0 * probability)
}

/// The most likely alternatives with their percentages, as many as fit.
pub fn others(panel: &Panel, width: f32) -> String {
    let mut text = String::new();
    for (token, probability) in panel.runners_up.iter().filter(|(_, probability)| *probability >= 0.0005) {
        let more = format!("{}{token} {:.1}", if text.is_empty() { "" } else { "   " }, 100.0 * probability);
        if text_width(&text, SMALL) + text_width(&more, SMALL) > width {
            break;
        }
        text += &more;
    }
    text
}

/// Words in lines of at most `width` pixels.
pub fn wrapped(words: &[&str], width: f32, size: f32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words {
        let word = shortened(word, width, size);
        let last = lines.last_mut().expect("there is always a line");
        let longer = if last.is_empty() { word.clone() } else { format!("{last} {word}") };
        if text_width(&longer, size) <= width {
            *last = longer;
        } else {
            lines.push(word);
        }
    }
    lines
}

/// A text cut off where it would be too wide.
fn shortened(text: &str, width: f32, size: f32) -> String {
    if text_width(text, size) <= width {
        return text.to_string();
    }
    let mut short: String = text.to_string();
    while !short.is_empty() && text_width(&format!("{short}..."), size) > width {
        short.pop();
    }
    short + "..."
}
