//! Reads strokes from JSON, in the forms that drawing pages and tablets write.
//!
//! A file is a list of strokes, or an object with that list under `strokes`. A stroke is a list of points, or an
//! object with the lists `x` and `y`, or with the list `points`. A point is a list `[x, y, ...]` or an object with `x`
//! and `y`. Other fields (times, pressures, colours) are ignored. An object may name its LaTeX under
//! `latex`.

use serde_json::Value;

use super::{Ink, MOST_POINTS, MOST_STROKES, Point, Stroke, check_size};
use crate::error::{Error, Result};

impl Ink {
    /// Reads JSON strokes: `[[[x, y], ...], ...]`, `{"strokes": [{"x": [...], "y": [...]}, ...]}` and mixtures.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        check_size("JSON strokes", bytes)?;
        read(bytes).map_err(|reason| Error::Ink { format: "JSON strokes", reason })
    }
}

fn read(bytes: &[u8]) -> Result<Ink, String> {
    let file: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    let list = file.get("strokes").unwrap_or(&file);
    let list = list.as_array().ok_or_else(|| format!("found {}, expected a list of strokes", kind(list)))?;
    if list.len() > MOST_STROKES {
        return Err(format!("there are {} strokes, expected at most {MOST_STROKES}", list.len()));
    }
    let mut strokes = Vec::with_capacity(list.len());
    let mut left = MOST_POINTS;
    for (number, value) in list.iter().enumerate() {
        let points = stroke(value, left).map_err(|reason| format!("stroke {number}: {reason}"))?;
        left -= points.len();
        strokes.push(Stroke { points });
    }
    super::check(&strokes)?;
    let mut annotations = Vec::new();
    if let Some(latex) = file.get("latex").and_then(Value::as_str) {
        annotations.push(("truth".to_string(), latex.to_string()));
    }
    Ok(Ink { strokes, symbols: Vec::new(), annotations, scale: None })
}

fn stroke(value: &Value, most: usize) -> Result<Vec<Point>, String> {
    let list = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .ok_or_else(|| format!("found {}, expected the list {name}", kind(value)))
    };
    let too_many = || format!("with it there are more than {MOST_POINTS} points");
    if value.get("x").is_some() {
        let (x, y) = (list(value, "x")?, list(value, "y")?);
        if x.len() != y.len() {
            return Err(format!("x has {} values but y has {}", x.len(), y.len()));
        }
        if x.len() > most {
            return Err(too_many());
        }
        let point = |(index, (x, y))| Ok(Point { x: number(x, index)?, y: number(y, index)? });
        return x.iter().zip(&y).enumerate().map(point).collect();
    }
    let points = value.get("points").unwrap_or(value);
    let points = points.as_array().ok_or_else(|| {
        format!("found {}, expected a list of points, or an object with x and y or points", kind(points))
    })?;
    if points.len() > most {
        return Err(too_many());
    }
    let axis = |point: &Value, place: usize, name: &str, index: usize| {
        let value = point.get(place).or_else(|| point.get(name));
        value
            .ok_or_else(|| {
                format!("point {index} is {}, expected [x, y] or an object with x and y", kind(point))
            })
            .and_then(|value| number(value, index))
    };
    let point = |(index, point)| Ok(Point { x: axis(point, 0, "x", index)?, y: axis(point, 1, "y", index)? });
    points.iter().enumerate().map(point).collect()
}

fn number(value: &Value, index: usize) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("point {index} has {}, expected a number", kind(value)))
}

/// The kind of a value, for error messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(list) if list.is_empty() => "an empty list",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object without them",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_gives_the_same_strokes() {
        let table = [
            "[[[1, 2], [3.5, -4]], [[5, 6]]]",
            "[[[1, 2, 0.1, 77], [3.5, -4, 0.2, 78]], [[5, 6]]]",
            r#"{"strokes": [[[1, 2], [3.5, -4]], [[5, 6]]], "colour": "red"}"#,
            r#"{"strokes": [{"x": [1, 3.5], "y": [2, -4], "t": [0, 1]}, {"x": [5], "y": [6]}]}"#,
            r#"[{"points": [{"x": 1, "y": 2}, {"x": 3.5, "y": -4}]}, {"points": [[5, 6]]}]"#,
            r#"[[{"x": 1, "y": 2, "pressure": 0.5}, {"x": 3.5, "y": -4}], [{"x": 5, "y": 6}]]"#,
        ];
        for text in table {
            let ink = Ink::from_json(text.as_bytes()).unwrap();
            let points: Vec<Vec<(f64, f64)>> = ink
                .strokes()
                .iter()
                .map(|stroke| stroke.points.iter().map(|point| (point.x, point.y)).collect())
                .collect();
            assert_eq!(points, [vec![(1.0, 2.0), (3.5, -4.0)], vec![(5.0, 6.0)]], "{text}");
        }
        let ink = Ink::from_json(br#"{"latex": "x", "strokes": [[[1, 2]]]}"#).unwrap();
        assert_eq!(ink.latex(), Some("x"));
    }

    #[test]
    fn bad_files_are_refused_with_their_reason() {
        let table = [
            ("", "it is not JSON"),
            ("[[[1, 2]]", "it is not JSON"),
            ("[]", "no strokes"),
            ("{}", "found an object without them, expected a list of strokes"),
            ("7", "found a number, expected a list of strokes"),
            (r#"{"strokes": null}"#, "found null"),
            ("[[]]", "stroke 0 has no points"),
            ("[[[1, 2]], 3]", "stroke 1: found a number, expected a list of points"),
            ("[[1, 2]]", "stroke 0: point 0 is a number, expected [x, y]"),
            ("[[[1]]]", "point 0 is a list, expected [x, y]"),
            ("[[[1, \"a\"]]]", "point 0 has a text, expected a number"),
            (r#"[{"x": [1], "y": [1, 2]}]"#, "stroke 0: x has 1 values but y has 2"),
            (r#"[{"x": [1]}]"#, "expected the list y"),
            ("[[[1, 1e300]]]", "expected a number within 1e9"),
            ("[[[1, 1e999]]]", "it is not JSON: number out of range"),
            ("[[[1, NaN]]]", "it is not JSON"),
        ];
        for (text, expected) in table {
            let message = Ink::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(message.starts_with("JSON strokes: ") && message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn too_much_is_refused() {
        let cases = [
            (format!("[{}[[1,2]]]", "[[1,2]],".repeat(100_000)), "100001 strokes, expected at most 5000"),
            (format!("[[{}[1,2]]]", "[1,2],".repeat(200_000)), "more than 200000 points"),
            (format!("[{{\"x\":[{0}1],\"y\":[{0}1]}}]", "1,".repeat(200_000)), "more than 200000 points"),
            ("[".repeat(1_000_000), "recursion limit"),
        ];
        for (text, expected) in cases {
            let message = Ink::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Ink::from_json(&bytes);
        }

        #[test]
        fn anything_like_strokes_is_read_and_drawn_or_refused(text in r#"[\[{]{1,3}(1|-2e9|"x":|"y":|,|\[|\]|\{|\}){0,20}"#) {
            let _ = Ink::from_json(text.as_bytes()).map(|ink| ink.draw());
        }

        #[test]
        fn any_strokes_are_drawn_or_refused(strokes in prop::collection::vec(prop::collection::vec((any::<f64>(), -1e9..1e9), 1..5), 1..4)) {
            let text = serde_json::to_string(&strokes).unwrap();
            let _ = Ink::from_json(text.as_bytes()).map(|ink| ink.draw());
        }
    }
}
