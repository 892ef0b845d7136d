//! The explanation as an animation: the image with its map, the formula so far, and the next best tokens.

use std::time::Duration;

use anyhow::Result;
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, RgbaImage};

use super::canvas::{Canvas, Colour, mixed, text_width};
use super::sheet::percent;
use super::view::{Choice, GREY, INK, Map, PAPER, Panel, View};

const MARGIN: usize = 24;
const TEXT: f32 = 13.0;
const LINE: f32 = 28.0;
const BAR: f32 = 220.0;
/// Number of other tokens shown.
const OTHERS: usize = 4;
const STEP: Duration = Duration::from_millis(700);
const LAST: Duration = Duration::from_millis(3000);

/// The layout of a frame.
struct Stage {
    width: usize,
    height: usize,
    scale: f32,
    /// The corner of each token of the formula.
    words: Vec<(f32, f32)>,
    /// Where the bars start.
    bars: f32,
}

impl Stage {
    fn new(view: &View) -> Self {
        let scale = (560.0 / view.picture.width() as f32).clamp(1.0, 3.0);
        let (wide, high) = view.size(scale);
        let width = wide.max(560) + 2 * MARGIN;
        let start = (MARGIN as f32, (MARGIN + high) as f32 + 22.0);
        let mut words = Vec::new();
        let (mut x, mut y) = start;
        for token in view.tokens {
            let word = text_width(&token.text, TEXT);
            if x > start.0 && x + word > (width - MARGIN) as f32 {
                (x, y) = (start.0, y + LINE);
            }
            words.push((x, y));
            x += word + 14.0;
        }
        let bars = y + LINE + 14.0;
        let height = (bars + (OTHERS + 1) as f32 * 22.0) as usize + MARGIN;
        Self { width, height, scale, words, bars }
    }

    fn frame(&self, view: &View, shades: &[f32], tint: Colour, is_read: impl Fn(usize) -> bool) -> Canvas {
        let mut canvas = Canvas::new(self.width, self.height, PAPER);
        view.draw(&mut canvas, MARGIN, MARGIN, self.scale, shades, tint);
        for (index, (token, &(x, y))) in view.tokens.iter().zip(&self.words).enumerate() {
            let colour = if is_read(index) { INK } else { mixed(PAPER, GREY, 0.4) };
            canvas.text(&token.text, x, y, TEXT, colour);
        }
        canvas
    }

    fn bars(&self, canvas: &mut Canvas, panel: &Panel, tint: Colour) {
        let first = (panel.token.as_str(), panel.probability, INK);
        let others = panel.runners_up.iter().map(|(token, probability)| (token.as_str(), *probability, GREY));
        for (row, (token, probability, colour)) in
            std::iter::once(first).chain(others.take(OTHERS)).enumerate()
        {
            let y = self.bars + row as f32 * 22.0;
            canvas.text(token, MARGIN as f32, y, 10.0, colour);
            let (left, tall) = (MARGIN + 90, 10);
            canvas.fill(left, y as usize, BAR as usize, tall, [236, 239, 243]);
            canvas.fill(left, y as usize, (BAR * probability).round() as usize, tall, tint);
            canvas.text(&percent(probability), left as f32 + BAR + 12.0, y + 1.0, 8.0, GREY);
        }
    }
}

/// The frames and their durations.
pub fn frames(view: &View, choice: &Choice) -> Vec<(Canvas, Duration)> {
    let stage = Stage::new(view);
    let panels = view.panels(choice);
    let mut read = vec![false; view.tokens.len()];
    let mut frames = Vec::new();
    for panel in &panels {
        if let Some(index) = panel.index {
            read[index] = true;
        }
        let mut canvas = stage.frame(view, &panel.shades, choice.map.tint(), |index| read[index]);
        if let Some(&(x, y)) = panel.index.and_then(|index| stage.words.get(index)) {
            let right = x + text_width(&panel.token, TEXT);
            canvas.line(&[(x, y + 20.0), (right, y + 20.0)], 3.0, choice.map.tint());
        }
        stage.bars(&mut canvas, panel, choice.map.tint());
        frames.push((canvas, STEP));
    }
    let mut last = stage.frame(view, &view.total(), Map::Coverage.tint(), |_| true);
    view.mark(&mut last, MARGIN, MARGIN, stage.scale);
    last.text(&view.verdict(), MARGIN as f32, stage.bars, 10.0, GREY);
    frames.push((last, LAST));
    frames
}

/// The animation as a looping GIF.
pub fn gif(view: &View, choice: &Choice) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = GifEncoder::new_with_speed(&mut file, 10);
    encoder.set_repeat(Repeat::Infinite)?;
    for (canvas, time) in frames(view, choice) {
        let (width, height) = (canvas.width as u32, canvas.height as u32);
        let pixels = canvas.pixels.iter().flat_map(|[red, green, blue]| [*red, *green, *blue, 255]).collect();
        let image = RgbaImage::from_raw(width, height, pixels).expect("a canvas has all its pixels");
        encoder.encode_frame(Frame::from_parts(image, 0, 0, Delay::from_saturating_duration(time)))?;
    }
    drop(encoder);
    Ok(file)
}
