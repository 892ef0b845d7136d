//! What is written on a page: formulas and lines of text, in units of the page's width.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use comer_train::stroke_set::Record;

use super::random::Random;

/// Height of a page whose width is 1.
pub const HEIGHT: f64 = 1.32;
/// Space at the edges of the page.
const MARGIN: f64 = 0.08;

/// A stroke of points.
pub type Stroke = Vec<[f64; 2]>;

/// Strokes of single letters.
pub type Letters = BTreeMap<String, Vec<Vec<Stroke>>>;

/// How much to write.
pub struct Wanted {
    pub formulas: usize,
    pub text: usize,
    /// The number of the page: pages take turns with the formulas.
    pub number: usize,
}

/// A line of the page: a formula by its record, or text.
pub struct Line {
    pub record: Option<usize>,
    pub strokes: Vec<Stroke>,
}

/// A written page.
pub struct Page {
    pub lines: Vec<Line>,
    /// Mean height of a symbol.
    pub symbol: f64,
}

/// The letters that the symbols of records give.
pub fn letters(records: &[Record]) -> Letters {
    let mut letters = Letters::new();
    for record in records {
        let strokes = points(record);
        for (label, own) in &record.symbols {
            if label.len() == 1 && label.chars().all(|letter| letter.is_ascii_lowercase()) {
                let glyph: Vec<Stroke> =
                    own.iter().filter_map(|&stroke| strokes.get(stroke).cloned()).collect();
                letters.entry(label.clone()).or_default().push(glyph);
            }
        }
    }
    letters
}

fn points(record: &Record) -> Vec<Stroke> {
    let unpack = |packed: &Vec<i32>| {
        let (mut x, mut y) = (0.0, 0.0);
        let step = |step: &[i32]| {
            (x, y) = (x + f64::from(step[0]), y + f64::from(step[1]));
            [x, y]
        };
        packed.chunks_exact(2).map(step).collect()
    };
    record.strokes.iter().map(unpack).collect()
}

/// Left, top, right and bottom.
pub fn bounds<'a>(strokes: impl IntoIterator<Item = &'a Stroke>) -> [f64; 4] {
    let mut bounds = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY];
    for point in strokes.into_iter().flatten() {
        bounds = [
            bounds[0].min(point[0]),
            bounds[1].min(point[1]),
            bounds[2].max(point[0]),
            bounds[3].max(point[1]),
        ];
    }
    bounds
}

impl Page {
    /// Writes formulas from the top, with lines of text among them.
    pub fn write(
        records: &[Record],
        letters: &Letters,
        wanted: &Wanted,
        random: &mut Random,
    ) -> Result<Self> {
        let count = 1 + random.below(wanted.formulas);
        let text = if wanted.text == 0 || letters.is_empty() { 0 } else { random.below(wanted.text + 1) };
        let symbol = random.between(0.022, 0.04) * if count > 3 { 0.8 } else { 1.0 };
        let mut order: Vec<bool> = vec![true; count];
        for _ in 0..text {
            order.insert(random.below(order.len() + 1), false);
        }
        let mut lines = Vec::new();
        let mut top = MARGIN + random.between(0.0, 0.12);
        let mut taken = 0;
        for formula in order {
            let (record, strokes) = if formula {
                // Formulas are taken in turn; one that is too wide for the page leaves its place to another.
                let pick = (wanted.number * wanted.formulas + taken) % records.len();
                taken += 1;
                let fits = |record: &Record| {
                    let [left, top, right, bottom] = bounds(&points(record));
                    let scale = symbol / 112.0;
                    (right - left) * scale < 1.0 - 2.2 * MARGIN && (bottom - top) * scale < 0.3
                };
                let turn = (0..records.len()).map(|step| (pick + 7 * step) % records.len());
                let record = turn.into_iter().find(|&at| fits(&records[at]));
                let record = record.ok_or_else(|| anyhow!("no formula is narrow enough for a page"))?;
                (Some(record), points(&records[record]))
            } else {
                (None, text_line(letters, random))
            };
            // Records have 4 units to a pixel, and symbols of 28 pixels.
            let scale = symbol / 112.0 * random.between(0.92, 1.08);
            let own = bounds(&strokes);
            let (width, height) = ((own[2] - own[0]) * scale, (own[3] - own[1]) * scale);
            if top + height > HEIGHT - MARGIN && !lines.is_empty() {
                break;
            }
            let space = (1.0 - 2.0 * MARGIN - width).max(0.0);
            let left = MARGIN + random.between(0.0, space.min(0.5));
            let tilt = random.between(-0.02, 0.02);
            let place = |[x, y]: [f64; 2]| {
                let (x, y) = ((x - own[0]) * scale, (y - own[1]) * scale);
                [left + x - tilt * y, top + y + tilt * x]
            };
            let strokes = strokes.into_iter().map(|stroke| stroke.into_iter().map(place).collect()).collect();
            lines.push(Line { record, strokes });
            top += height + symbol * random.between(1.0, 2.6);
        }
        Ok(Self { lines, symbol })
    }

    /// The numbers of the records that are written.
    pub fn formulas(&self) -> impl Iterator<Item = &usize> {
        self.lines.iter().filter_map(|line| line.record.as_ref())
    }
}

/// Words of letters of various hands.
fn text_line(letters: &Letters, random: &mut Random) -> Vec<Stroke> {
    let all: Vec<&Vec<Vec<Stroke>>> = letters.values().collect();
    let mut strokes = Vec::new();
    let mut left = 0.0;
    for _ in 0..3 + random.below(4) {
        for _ in 0..2 + random.below(7) {
            let kind = all[random.below(all.len())];
            let glyph = &kind[random.below(kind.len())];
            let own = bounds(glyph);
            let scale = 80.0 / (own[3] - own[1]).max(own[2] - own[0]).max(1.0);
            for stroke in glyph {
                strokes.push(
                    stroke.iter().map(|[x, y]| [left + (x - own[0]) * scale, (y - own[3]) * scale]).collect(),
                );
            }
            left += (own[2] - own[0]) * scale + 12.0;
        }
        left += 70.0;
    }
    strokes
}
