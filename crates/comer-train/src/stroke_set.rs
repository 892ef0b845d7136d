//! Stroke sets: handwritten expressions with their strokes, one JSON object per line.
//!
//! ```json
//! {"id":"e1","tokens":"x ^ { 2 }","strokes":[[0,40,30,60],[30,0,-30,60],[80,10,20,-10]],"symbols":[["x",[0,1]],["2",[2]]],"writer":"a/7"}
//! ```
//!
//! | field | |
//! |---|---|
//! | `id` | names the expression in messages |
//! | `tokens` | the caption: tokens of the vocabulary, separated by single spaces |
//! | `strokes` | each `[x, y, dx, dy, dx, dy, ...]` in quarter pixels of CROHME's drawing, y down |
//! | `symbols` | token and strokes of each symbol; optional |
//! | `writer` | the writer; optional |
//! | `pen` | for strokes traced from a picture: the width of the real pen in pixels. Such strokes keep their scale; all others are scaled by CROHME's rule (see [`comer::Ink::draw`]) |

use std::path::Path;

use comer::internal::vocab::PAD;
use comer::internal::{TokenId, Vocab};
use comer::{Ink, InkSymbol, Point, Stroke};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Units per pixel.
pub const UNITS: f64 = 4.0;

/// A handwritten expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Names the expression in messages.
    pub id: String,
    /// The caption.
    pub tokens: String,
    /// The start of each stroke, then differences.
    pub strokes: Vec<Vec<i32>>,
    /// The token and the strokes of each symbol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<(String, Vec<usize>)>,
    /// The writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// The width of the real pen in pixels, if the strokes were traced from a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pen: Option<f64>,
}

impl Record {
    /// The record of an ink, in quarter pixels of its drawing.
    pub fn of(id: &str, tokens: &str, ink: &Ink) -> Self {
        let scale = UNITS * ink.pixels_per_unit();
        let points = || ink.strokes().iter().flat_map(|stroke| &stroke.points);
        let left = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
        let top = points().map(|point| point.y).fold(f64::INFINITY, f64::min);
        let round = |value: f64| (value * scale).round() as i32;
        let pack = |stroke: &Stroke| {
            let mut packed = Vec::with_capacity(2 * stroke.points.len());
            let mut last = [0, 0];
            for point in &stroke.points {
                let at = [round(point.x - left), round(point.y - top)];
                if packed.is_empty() || at != last {
                    packed.extend([at[0] - last[0], at[1] - last[1]]);
                    last = at;
                }
            }
            packed
        };
        let symbols = ink.symbols().iter();
        Self {
            id: id.into(),
            tokens: tokens.into(),
            strokes: ink.strokes().iter().map(pack).collect(),
            symbols: symbols.map(|symbol| (symbol.label.clone(), symbol.strokes.clone())).collect(),
            writer: None,
            pen: None,
        }
    }

    /// The strokes and symbols as ink.
    pub fn ink(&self) -> Result<Ink, String> {
        let unpack = |(number, packed): (usize, &Vec<i32>)| {
            if packed.is_empty() || packed.len() % 2 == 1 {
                return Err(format!(
                    "stroke {number} has {} numbers, expected an even number of at least 2",
                    packed.len()
                ));
            }
            let (mut x, mut y) = (0.0, 0.0);
            let points = packed.chunks_exact(2).map(|step| {
                (x, y) = (x + f64::from(step[0]), y + f64::from(step[1]));
                Point { x, y }
            });
            Ok(Stroke { points: points.collect() })
        };
        let strokes = self.strokes.iter().enumerate().map(unpack).collect::<Result<Vec<_>, _>>()?;
        let symbols = self.symbols.iter();
        let symbols =
            symbols.map(|(label, strokes)| InkSymbol { label: label.clone(), strokes: strokes.clone() });
        let ink = Ink::new(strokes).and_then(|ink| ink.with_symbols(symbols.collect()));
        let scale = self.pen.map(|_| UNITS.recip());
        ink.map(|ink| ink.with_scale(scale)).map_err(|error| error.to_string())
    }

    /// Validates the record. Returns its tokens, its ink and the symbol of each stroke.
    pub fn read(&self, vocab: &Vocab) -> Result<(Vec<TokenId>, Ink, Vec<TokenId>), String> {
        let tokens = vocab.encode(&self.tokens).map_err(|error| format!("tokens: {error}"))?;
        if tokens.is_empty() {
            return Err("tokens: empty, expected at least one".into());
        }
        if self.pen.is_some_and(|pen| pen.is_nan() || pen <= 0.0) {
            return Err(format!("pen = {:?}: expected a width above 0", self.pen));
        }
        let ink = self.ink()?;
        let mut strokes = vec![PAD; ink.strokes().len()];
        for (label, own) in &self.symbols {
            let token = match vocab.encode(label).as_deref() {
                Ok(&[token]) => token,
                _ => return Err(format!("symbol {label:?}: expected one token of the vocabulary")),
            };
            for &stroke in own {
                if strokes[stroke] != PAD {
                    return Err(format!("stroke {stroke} is in two symbols, expected one at most"));
                }
                strokes[stroke] = token;
            }
        }
        Ok((tokens, ink, strokes))
    }
}

/// Reads a set. An invalid line is an error that names it.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let failed = |reason| Error::File { path: path.into(), reason };
    let mut records = Vec::new();
    for (number, line) in comer_files::lines(path).map_err(failed)?.enumerate() {
        let line = line.map_err(failed)?;
        let record = serde_json::from_str(&line).map_err(|error| {
            let hint = "expected a record of a stroke set, as `comer data import` writes them";
            Error::Data(format!("{}, line {}: {error}; {hint}", path.display(), number + 1))
        })?;
        records.push(record);
    }
    Ok(records)
}

/// Writes a set atomically.
pub fn write(path: &Path, records: &[Record]) -> Result<()> {
    let mut text = String::new();
    for record in records {
        text += &serde_json::to_string(record).expect("a record has a JSON form");
        text.push('\n');
    }
    comer_files::write_atomic(path, text.as_bytes())
        .map_err(|reason| Error::File { path: path.into(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let line = r#"{"id":"e1","tokens":"x ^ { 2 }","strokes":[[0,40,30,60],[30,40,-30,60],[80,10,20,-10]],
            "symbols":[["x",[0,1]],["2",[2]]],"writer":"a/7"}"#;
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn sets_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.jsonl");
        let traced = Record { pen: Some(3.5), symbols: Vec::new(), writer: None, ..record() };
        let records = [record(), traced];
        write(&path, &records).unwrap();
        assert_eq!(read(&path).unwrap(), records);
        let (tokens, ink, strokes) = record().read(&Vocab::crohme()).unwrap();
        assert_eq!(tokens.len(), 5);
        assert_eq!(strokes, [tokens[0], tokens[0], tokens[3]]);
        assert_eq!(ink.strokes()[1].points, [Point { x: 30.0, y: 40.0 }, Point { x: 0.0, y: 100.0 }]);
        assert_eq!((ink.scale(), records[1].ink().unwrap().scale()), (None, Some(0.25)));
    }

    #[test]
    fn ink_is_stored_at_the_scale_of_its_drawing() {
        let line =
            |points: &[(f64, f64)]| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
        let ink =
            Ink::new(vec![line(&[(5.0, 5.0), (5.0, 5.001), (5.0, 61.0)]), line(&[(61.0, 5.0)])]).unwrap();
        let record = Record::of("a", "1 .", &ink);
        assert_eq!(record.strokes, [vec![0, 0, 0, 112], vec![112, 0]]);
        assert_eq!(record.ink().unwrap().draw().unwrap(), ink.draw().unwrap());
    }

    #[test]
    fn errors_name_the_fault() {
        let vocab = Vocab::crohme();
        type Change = fn(&mut Record);
        let table: [(Change, &str); 7] = [
            (|record| record.tokens = "x \\wrong".into(), "\\wrong"),
            (|record| record.tokens.clear(), "tokens: empty"),
            (|record| record.strokes[1] = vec![1, 2, 3], "stroke 1 has 3 numbers"),
            (|record| record.strokes.clear(), "no strokes"),
            (|record| record.symbols[0].1 = vec![7], "expected some of 0..3"),
            (|record| record.symbols[1].1 = vec![1], "stroke 1 is in two symbols"),
            (|record| record.symbols[0].0 = "COMMA".into(), "symbol \"COMMA\""),
        ];
        for (change, expected) in table {
            let mut record = record();
            change(&mut record);
            let message = record.read(&vocab).unwrap_err();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.jsonl");
        std::fs::write(&path, "{\"id\":\"a\",\"tokens\":\"x\",\"strokes\":[[0,0]],\"colour\":1}\n").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("line 1: unknown field `colour`"), "{message}");
        std::fs::write(&path, vec![0; (16 << 20) + 1]).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(
            message.contains("set.jsonl") && message.contains("line 1 is larger than the limit"),
            "{message}"
        );
    }
}
