//! Isolated symbols by writer, from training expressions and glyph files.
//!
//! A glyph file has one JSON object per line: `s` the token, `w` the writer, `k` the strokes as in a stroke set, in any
//! unit.

use std::collections::BTreeMap;
use std::path::Path;

use comer::internal::{TokenId, Vocab};
use comer::{Point, Stroke};
use rand::{Rng, RngExt};
use serde::Deserialize;

use super::geometry::Rect;
use crate::error::{Error, Result};

/// The longer side of a stored glyph.
const SIDE: f64 = 200.0;
/// Number of random candidates for a writer, and for a missing glyph.
const CANDIDATES: usize = 8;

/// A line of a glyph file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    s: String,
    w: String,
    k: Vec<Vec<i32>>,
    #[serde(rename = "c")]
    _command: Option<String>,
}

/// A symbol in a compact form, as there are hundreds of thousands.
struct Glyph {
    strokes: Vec<Vec<[i16; 2]>>,
    /// The slant: the tangent of the mean angle of steep segments.
    slant: f32,
}

/// The glyphs of a writer.
#[derive(Default)]
struct Writer {
    glyphs: BTreeMap<TokenId, Vec<u32>>,
    slant: f32,
}

/// The glyphs of all writers.
#[derive(Default)]
pub struct GlyphLibrary {
    glyphs: Vec<Glyph>,
    writers: Vec<Writer>,
    names: BTreeMap<String, usize>,
    by_token: BTreeMap<TokenId, Vec<u32>>,
}

impl std::fmt::Debug for GlyphLibrary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "GlyphLibrary({} glyphs, {} writers)", self.glyphs.len(), self.writers.len())
    }
}

impl GlyphLibrary {
    /// Adds a glyph of a writer.
    pub fn add(&mut self, token: TokenId, writer: &str, strokes: &[Stroke]) {
        let bounds = Rect::of(strokes);
        let scale = if bounds.size() > 0.0 { SIDE / bounds.size() } else { 1.0 };
        let pack = |point: &Point| {
            [
                ((point.x - bounds.left) * scale).round() as i16,
                ((point.y - bounds.top) * scale).round() as i16,
            ]
        };
        let packed = strokes.iter().map(|stroke| {
            let mut points: Vec<[i16; 2]> = stroke.points.iter().map(pack).collect();
            points.dedup();
            points
        });
        let number = self.glyphs.len() as u32;
        let glyph = Glyph { strokes: packed.collect(), slant: slant(strokes) };
        self.glyphs.push(glyph);
        let writers = self.writers.len();
        let writer = *self.names.entry(writer.to_string()).or_insert(writers);
        if writer == writers {
            self.writers.push(Writer::default());
        }
        self.writers[writer].glyphs.entry(token).or_default().push(number);
        self.by_token.entry(token).or_default().push(number);
    }

    /// Adds a glyph file. Glyphs whose token is not in the vocabulary are skipped.
    pub fn read(&mut self, path: &Path, vocab: &Vocab) -> Result<()> {
        let failed = |reason| Error::File { path: path.into(), reason };
        for (number, line) in comer_files::lines(path).map_err(failed)?.enumerate() {
            let invalid =
                |reason: String| Error::Data(format!("{}, line {}: {reason}", path.display(), number + 1));
            let line: Line = serde_json::from_str(&line.map_err(failed)?)
                .map_err(|error| invalid(format!("{error}; expected a glyph with s, w and k")))?;
            if line.k.is_empty() || line.k.iter().any(|stroke| stroke.is_empty() || stroke.len() % 2 == 1) {
                return Err(invalid("expected strokes with pairs of numbers".into()));
            }
            if let Ok([token]) = vocab.encode(&line.s).as_deref() {
                let strokes: Vec<Stroke> = line.k.iter().map(|stroke| unpack(stroke)).collect();
                self.add(*token, &line.w, &strokes);
            }
        }
        Ok(())
    }

    /// Computes the slant of each writer. Call it after all glyphs are added.
    pub fn finish(&mut self) {
        for writer in &mut self.writers {
            let own = writer.glyphs.values().flatten().map(|&glyph| self.glyphs[glyph as usize].slant);
            let mut slants: Vec<f32> = own.collect();
            slants.sort_by(f32::total_cmp);
            writer.slant = slants[slants.len() / 2];
        }
        self.names = BTreeMap::new();
    }

    /// Whether there is a glyph for this token.
    pub fn has(&self, token: TokenId) -> bool {
        self.by_token.contains_key(&token)
    }

    /// A random writer with many of the needed symbols.
    pub fn choose_writer(&self, needed: &[TokenId], random: &mut impl Rng) -> GlyphWriter<'_> {
        let covered = |writer: usize| {
            needed.iter().filter(|token| self.writers[writer].glyphs.contains_key(token)).count()
        };
        let candidates = (0..CANDIDATES).map(|_| random.random_range(0..self.writers.len()));
        let mut candidates: Vec<usize> = candidates.collect();
        // The first of the best, as `max_by_key` takes the last.
        candidates.reverse();
        let writer = candidates.into_iter().max_by_key(|&writer| covered(writer)).unwrap_or(0);
        GlyphWriter { library: self, writer: &self.writers[writer], borrowed: BTreeMap::new() }
    }
}

/// Writes symbols with the glyphs of one writer; missing ones are borrowed from other writers.
pub struct GlyphWriter<'a> {
    library: &'a GlyphLibrary,
    writer: &'a Writer,
    borrowed: BTreeMap<TokenId, u32>,
}

impl GlyphWriter<'_> {
    /// The strokes of a symbol, in a box whose longer side is 200; `None` if there is no glyph.
    pub fn write(&mut self, token: TokenId, random: &mut impl Rng) -> Option<Vec<Stroke>> {
        let glyph = match (self.writer.glyphs.get(&token), self.borrowed.get(&token)) {
            (Some(own), _) => own[random.random_range(0..own.len())],
            (None, Some(&borrowed)) => borrowed,
            (None, None) => {
                let all = self.library.by_token.get(&token)?;
                let distance =
                    |&glyph: &u32| (self.library.glyphs[glyph as usize].slant - self.writer.slant).abs();
                let candidates = (0..CANDIDATES).map(|_| all[random.random_range(0..all.len())]);
                let borrowed = candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
                self.borrowed.insert(token, borrowed);
                borrowed
            }
        };
        let strokes = self.library.glyphs[glyph as usize].strokes.iter();
        let point = |&[x, y]: &[i16; 2]| Point { x: f64::from(x), y: f64::from(y) };
        Some(strokes.map(|stroke| Stroke { points: stroke.iter().map(point).collect() }).collect())
    }
}

fn unpack(packed: &[i32]) -> Stroke {
    let (mut x, mut y) = (0.0, 0.0);
    let points = packed.chunks_exact(2).map(|step| {
        (x, y) = (x + f64::from(step[0]), y + f64::from(step[1]));
        Point { x, y }
    });
    Stroke { points: points.collect() }
}

/// The tangent of the mean angle by which steep segments lean to the right.
fn slant(strokes: &[Stroke]) -> f32 {
    let (mut across, mut down) = (0.0, 0.0);
    for pair in strokes.iter().flat_map(|stroke| stroke.points.windows(2)) {
        let (x, y) = (pair[1].x - pair[0].x, pair[1].y - pair[0].y);
        if y.abs() > x.abs() {
            across -= x * y.signum();
            down += y.abs();
        }
    }
    if down > 0.0 { (across / down) as f32 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn line(points: &[(f64, f64)]) -> Stroke {
        Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() }
    }

    #[test]
    fn missing_glyphs_are_borrowed_from_a_writer_with_similar_slant() {
        let upright = [line(&[(0.0, 0.0), (0.0, 10.0)])];
        let leaning = [line(&[(5.0, 0.0), (0.0, 10.0)])];
        assert!((slant(&leaning) - 0.5).abs() < 1e-6 && slant(&upright) == 0.0);
        let mut library = GlyphLibrary::default();
        library.add(5, "anna", &leaning);
        for (writer, strokes) in [("bert", &upright), ("carl", &leaning), ("dora", &upright)] {
            library.add(6, writer, strokes);
        }
        library.finish();
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut writer = library.choose_writer(&[5], &mut random);
        let borrowed = writer.write(6, &mut random).unwrap();
        assert_eq!(borrowed, [line(&[(100.0, 0.0), (0.0, 200.0)])]);
        assert_eq!(writer.write(6, &mut random), Some(borrowed), "the same glyph again");
        assert!(writer.write(7, &mut random).is_none() && !library.has(7));
    }
}
