//! Reads strokes from JSON, in the forms that drawing pages and tablets write.
//!
//! A file is a list of strokes, or an object with that list under `strokes`. A stroke is a list of points, or an
//! object with the lists `x` and `y`, or with the list `points`. A point is a list `[x, y, ...]` or an object with `x`
//! and `y`. Other fields (times, pressures, colours) are ignored. An object may name its LaTeX under
//! `latex`.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

use super::{Ink, MOST_POINTS, MOST_STROKES, Point, Stroke, check_size};
use crate::error::{Error, Result};

/// Most values that are kept, lists and objects among them: enough for all points with a time and a pressure each.
const MOST_VALUES: usize = 1 << 20;

impl Ink {
    /// Reads JSON strokes: `[[[x, y], ...], ...]`, `{"strokes": [{"x": [...], "y": [...]}, ...]}` and mixtures.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        check_size("JSON strokes", bytes)?;
        read(bytes).map_err(|reason| Error::Ink { format: "JSON strokes", reason })
    }
}

/// A value with only what strokes may have.
enum Node {
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Object(Box<Fields>),
    /// Anything else, by its name in messages.
    Other(&'static str),
}

#[derive(Default)]
struct Fields {
    x: Option<Node>,
    y: Option<Node>,
    points: Option<Node>,
    strokes: Option<Node>,
    latex: Option<Node>,
}

/// Reads nodes as long as there is room for them: each takes more memory than the bytes that it is written in.
#[derive(Clone, Copy)]
struct Reader<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Node;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| D::Error::custom(format!("more than {MOST_VALUES} values")))?);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("strokes")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other("null"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other("true or false"))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            if list.is_empty() {
                // Most lists are points.
                list.reserve_exact(2);
            }
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut fields: Option<Box<Fields>> = None;
        while let Some(key) = entries.next_key::<String>()? {
            type Place = fn(&mut Fields) -> &mut Option<Node>;
            let place: Place = match key.as_str() {
                "x" => |fields| &mut fields.x,
                "y" => |fields| &mut fields.y,
                "points" => |fields| &mut fields.points,
                "strokes" => |fields| &mut fields.strokes,
                "latex" => |fields| &mut fields.latex,
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *place(fields.get_or_insert_default()) = Some(entries.next_value_seed(self)?);
        }
        Ok(fields.map_or(Node::Other(WITHOUT), Node::Object))
    }
}

const WITHOUT: &str = "an object without them";

impl Node {
    fn field(&self, field: impl FnOnce(&Fields) -> &Option<Node>) -> Option<&Node> {
        if let Node::Object(fields) = self { field(fields).as_ref() } else { None }
    }

    fn list(&self) -> Option<&[Node]> {
        if let Node::List(list) = self { Some(list) } else { None }
    }

    /// The kind of a value, for error messages.
    fn kind(&self) -> &'static str {
        match self {
            Node::Number(_) => "a number",
            Node::Text(_) => "a text",
            Node::List(list) if list.is_empty() => "an empty list",
            Node::List(_) => "a list",
            Node::Object(_) => WITHOUT,
            Node::Other(name) => name,
        }
    }
}

fn read(bytes: &[u8]) -> Result<Ink, String> {
    let left = Cell::new(MOST_VALUES);
    let mut json = Deserializer::from_slice(bytes);
    let file = Reader { left: &left }.deserialize(&mut json).and_then(|file| json.end().map(|()| file));
    let file = file.map_err(|error| match error.is_data() {
        true => format!("it has {error}"),
        false => format!("it is not JSON: {error}"),
    })?;
    let list = file.field(|fields| &fields.strokes).unwrap_or(&file);
    let list = list.list().ok_or_else(|| format!("found {}, expected a list of strokes", list.kind()))?;
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
    if let Some(Node::Text(latex)) = file.field(|fields| &fields.latex) {
        annotations.push(("truth".to_string(), latex.clone()));
    }
    Ok(Ink { strokes, symbols: Vec::new(), annotations, scale: None })
}

fn stroke(value: &Node, most: usize) -> Result<Vec<Point>, String> {
    let too_many = || format!("with it there are more than {MOST_POINTS} points");
    if let Some(x) = value.field(|fields| &fields.x) {
        let missing = |name| format!("found {}, expected the list {name}", value.kind());
        let x = x.list().ok_or_else(|| missing("x"))?;
        let y = value.field(|fields| &fields.y).and_then(Node::list).ok_or_else(|| missing("y"))?;
        if x.len() != y.len() {
            return Err(format!("x has {} values but y has {}", x.len(), y.len()));
        }
        if x.len() > most {
            return Err(too_many());
        }
        let point = |(index, (x, y))| Ok(Point { x: number(x, index)?, y: number(y, index)? });
        return x.iter().zip(y).enumerate().map(point).collect();
    }
    let points = value.field(|fields| &fields.points).unwrap_or(value);
    let points = points.list().ok_or_else(|| {
        format!("found {}, expected a list of points, or an object with x and y or points", points.kind())
    })?;
    if points.len() > most {
        return Err(too_many());
    }
    let point = |(index, point): (usize, &Node)| {
        let (x, y) = match point {
            Node::List(list) => (list.first(), list.get(1)),
            _ => (point.field(|fields| &fields.x), point.field(|fields| &fields.y)),
        };
        let (Some(x), Some(y)) = (x, y) else {
            let kind = point.kind();
            return Err(format!("point {index} is {kind}, expected [x, y] or an object with x and y"));
        };
        Ok(Point { x: number(x, index)?, y: number(y, index)? })
    };
    points.iter().enumerate().map(point).collect()
}

fn number(value: &Node, index: usize) -> Result<f64, String> {
    match value {
        Node::Number(number) => Ok(*number),
        _ => Err(format!("point {index} has {}, expected a number", value.kind())),
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
            (format!("[{}1]", "1,".repeat(MOST_VALUES)), "it has more than 1048576 values"),
            (format!("[{}1]", r#"{"":0},"#.repeat(1 << 17)), "131073 strokes, expected at most 5000"),
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
