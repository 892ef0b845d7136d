//! Pen strokes, with the symbols and annotations of their file.

mod draw;
mod inkml;
mod json;

pub use draw::{MOST_PEN, PEN};

use crate::error::{Error, Result};

/// Most strokes that one ink may have; the largest of CROHME has 115.
pub const MOST_STROKES: usize = 5_000;
/// Most points that one ink may have, over all strokes; the largest of CROHME has 6 581.
pub const MOST_POINTS: usize = 200_000;
/// Greatest distance of a coordinate from zero.
pub const GREATEST_COORDINATE: f64 = 1e9;
/// Most bytes that a file of strokes may have.
pub const MOST_BYTES: usize = 32 << 20;

/// A position of the pen: x to the right, y down, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The horizontal position.
    pub x: f64,
    /// The vertical position, growing downwards.
    pub y: f64,
}

/// The path of the pen between touching and leaving the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Stroke {
    /// At least one point.
    pub points: Vec<Point>,
}

/// A written symbol: which strokes belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InkSymbol {
    /// Its name in the file: usually a LaTeX token, but `<` may be `\lt`.
    pub label: String,
    /// Its strokes, as indices into [`Ink::strokes`].
    pub strokes: Vec<usize>,
}

/// Pen strokes of a formula, with the symbols and annotations of their file.
///
/// Read them with [`Ink::from_inkml`] or [`Ink::from_json`], write them with [`Ink::to_inkml`], recognise them with
/// [`Input::from_ink`](crate::Input::from_ink).
#[derive(Clone, Debug, PartialEq)]
pub struct Ink {
    strokes: Vec<Stroke>,
    symbols: Vec<InkSymbol>,
    annotations: Vec<(String, String)>,
    scale: Option<f64>,
}

impl Ink {
    /// Ink of `strokes`. An error if there are none, too many (5000 strokes, 200 000 points), or coordinates beyond 1e9.
    pub fn new(strokes: Vec<Stroke>) -> Result<Self> {
        check(&strokes).map_err(|reason| Error::Ink { format: "ink", reason })?;
        Ok(Self { strokes, symbols: Vec::new(), annotations: Vec::new(), scale: None })
    }

    /// The same ink, drawn with `scale` pixels to a unit instead of by the mean height of its strokes: for strokes that
    /// were traced from an image, whose heights say nothing.
    pub fn with_scale(mut self, scale: Option<f64>) -> Self {
        self.scale = scale;
        self
    }

    /// Pixels to a unit, where they do not follow from the strokes.
    pub fn scale(&self) -> Option<f64> {
        self.scale
    }

    /// Sets the symbols. An error if one has no stroke, or a stroke that does not exist.
    pub fn with_symbols(mut self, symbols: Vec<InkSymbol>) -> Result<Self> {
        let most = self.strokes.len();
        for symbol in &symbols {
            if symbol.strokes.is_empty() || symbol.strokes.iter().any(|&stroke| stroke >= most) {
                let reason = format!(
                    "symbol {:?} has the strokes {:?}, expected some of 0..{most}",
                    symbol.label, symbol.strokes
                );
                return Err(Error::Ink { format: "ink", reason });
            }
        }
        self.symbols = symbols;
        Ok(self)
    }

    /// Adds an annotation, such as `truth`, `writer` or `UI`.
    pub fn with_annotation(mut self, kind: impl Into<String>, text: impl Into<String>) -> Self {
        self.annotations.push((kind.into(), text.into()));
        self
    }

    /// The strokes in the order of writing.
    pub fn strokes(&self) -> &[Stroke] {
        &self.strokes
    }

    /// The symbols, if the file has them.
    pub fn symbols(&self) -> &[InkSymbol] {
        &self.symbols
    }

    /// The annotations of the whole formula: kind and text, in the order of the file.
    pub fn annotations(&self) -> &[(String, String)] {
        &self.annotations
    }

    /// The first annotation of a kind.
    pub fn annotation(&self, kind: &str) -> Option<&str> {
        self.annotations.iter().find(|(name, _)| name == kind).map(|(_, text)| text.as_str())
    }

    /// The LaTeX of the annotation `truth`, without dollar signs.
    pub fn latex(&self) -> Option<&str> {
        self.annotation("truth").map(|text| trim(text.trim().trim_matches('$')))
    }
}

/// LaTeX without surrounding white space, except for a space that belongs to a final backslash.
fn trim(text: &str) -> &str {
    let text = text.trim_start();
    let trimmed = text.trim_end();
    let slashes = trimmed.bytes().rev().take_while(|&byte| byte == b'\\').count();
    let space = text[trimmed.len()..].chars().next().filter(|_| slashes % 2 == 1);
    &text[..trimmed.len() + space.map_or(0, char::len_utf8)]
}

/// Checks strokes against the limits.
fn check(strokes: &[Stroke]) -> Result<(), String> {
    if strokes.is_empty() {
        return Err("there are no strokes, expected at least one".into());
    }
    if strokes.len() > MOST_STROKES {
        return Err(format!("there are {} strokes, expected at most {MOST_STROKES}", strokes.len()));
    }
    let points: usize = strokes.iter().map(|stroke| stroke.points.len()).sum();
    if points > MOST_POINTS {
        return Err(format!("there are {points} points, expected at most {MOST_POINTS}"));
    }
    for (number, stroke) in strokes.iter().enumerate() {
        if stroke.points.is_empty() {
            return Err(format!("stroke {number} has no points, expected at least one"));
        }
        for (index, point) in stroke.points.iter().enumerate() {
            for (axis, value) in [("x", point.x), ("y", point.y)] {
                if value.is_nan() || value.abs() > GREATEST_COORDINATE {
                    return Err(format!(
                        "stroke {number}, point {index}: {axis} is {value}, expected a number within {GREATEST_COORDINATE:e}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Checks the size of a file of strokes.
fn check_size(format: &'static str, bytes: &[u8]) -> Result<()> {
    if bytes.len() > MOST_BYTES {
        let reason = format!("the file has {} bytes, expected at most {MOST_BYTES}", bytes.len());
        return Err(Error::Ink { format, reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stroke(points: &[(f64, f64)]) -> Stroke {
        Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let dot = || stroke(&[(1.0, 2.0)]);
        let table: [(Vec<Stroke>, &str); 7] = [
            (vec![], "no strokes"),
            (vec![dot(), stroke(&[])], "stroke 1 has no points"),
            (vec![stroke(&[(0.0, 0.0), (f64::NAN, 0.0)])], "stroke 0, point 1: x is NaN"),
            (vec![stroke(&[(0.0, f64::INFINITY)])], "y is inf"),
            (vec![stroke(&[(0.0, -2e9)])], "expected a number within 1e9"),
            (vec![dot(); MOST_STROKES + 1], "5001 strokes, expected at most 5000"),
            (vec![stroke(&vec![(0.0, 0.0); MOST_POINTS + 1])], "200001 points"),
        ];
        for (strokes, expected) in table {
            let message = Ink::new(strokes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
    }

    #[test]
    fn symbols_are_of_strokes_that_exist() {
        let ink = Ink::new(vec![stroke(&[(0.0, 0.0)]); 2]).unwrap();
        let symbol = |strokes: &[usize]| vec![InkSymbol { label: "x".into(), strokes: strokes.to_vec() }];
        assert_eq!(ink.clone().with_symbols(symbol(&[1, 0])).unwrap().symbols().len(), 1);
        for strokes in [&[][..], &[2]] {
            let message = ink.clone().with_symbols(symbol(strokes)).unwrap_err().to_string();
            assert!(message.contains("symbol \"x\""), "{message}");
        }
    }

    #[test]
    fn truth_is_given_without_dollars() {
        let bare = Ink::new(vec![stroke(&[(0.0, 0.0)])]).unwrap();
        let ink = bare.clone().with_annotation("truth", " $ x^2$ ");
        assert_eq!(ink.latex(), Some("x^2"));
        for (text, expected) in [(r"$ x \  $", r"x \ "), (r" x \\ ", r"x \\"), ("\\", "\\"), ("$$", "")] {
            assert_eq!(bare.clone().with_annotation("truth", text).latex(), Some(expected));
        }
        assert_eq!(ink.annotation("writer"), None);
    }
}
