//! Reads and writes InkML: the dialect of CROHME and the basics of the W3C's recommendation.
//!
//! Read: `trace` (with any number of channels, of which X and Y count), `traceFormat`, `traceGroup` and `traceView`
//! (symbols), `annotation`. Passed over: everything else, pen-up traces and views of traces that the file lacks (CROHME
//! has one) among it. Refused: values relative to the point before (`'`, `"`, `*`), and unlike channel orders in one
//! file.

use std::collections::HashMap;
use std::fmt::Write as _;

use quick_xml::XmlVersion;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{Ink, MOST_POINTS, MOST_STROKES, Point, Stroke, Symbol, check_size};
use crate::error::{Error, Result};

/// Deepest nesting of elements; CROHME's MathML stays under 30.
const DEEPEST: usize = 256;
/// Line ends are read as XML 1.0 says.
const VERSION: XmlVersion = XmlVersion::Implicit1_0;

impl Ink {
    /// Reads InkML. Bytes that are not UTF-8 are replaced: they can only be in annotations.
    pub fn from_inkml(bytes: &[u8]) -> Result<Self> {
        check_size("InkML", bytes)?;
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        read(text).map_err(|reason| Error::Ink { format: "InkML", reason })
    }

    /// Writes InkML that [`Ink::from_inkml`] reads back equal.
    pub fn to_inkml(&self) -> String {
        let mut text = String::from("<ink xmlns=\"http://www.w3.org/2003/InkML\">\n<traceFormat>\n");
        for channel in ["X", "Y"] {
            text += &format!("  <channel name=\"{channel}\" type=\"decimal\"/>\n");
        }
        text += "</traceFormat>\n";
        for (kind, value) in &self.annotations {
            text += &annotation(kind, value);
        }
        for (number, stroke) in self.strokes.iter().enumerate() {
            let points: Vec<String> =
                stroke.points.iter().map(|point| format!("{} {}", point.x, point.y)).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "<trace id=\"{number}\">{}</trace>", points.join(", "));
        }
        if !self.symbols.is_empty() {
            text += "<traceGroup>\n";
            for symbol in &self.symbols {
                text += &format!("<traceGroup>\n{}", annotation("truth", &symbol.label));
                for stroke in &symbol.strokes {
                    text += &format!("<traceView traceDataRef=\"{stroke}\"/>\n");
                }
                text += "</traceGroup>\n";
            }
            text += "</traceGroup>\n";
        }
        text + "</ink>\n"
    }
}

fn annotation(kind: &str, value: &str) -> String {
    format!("<annotation type=\"{}\">{}</annotation>\n", escape(kind), escape(value))
}

/// Which of a point's values are X and Y.
#[derive(Clone, Copy, PartialEq)]
struct Channels {
    x: usize,
    y: usize,
}

/// What the elements read so far have given.
#[derive(Default)]
struct Contents {
    strokes: Vec<Stroke>,
    points: usize,
    /// The stroke of each trace's identifier; `None` for a pen-up trace.
    traces: HashMap<String, Option<usize>>,
    annotations: Vec<(String, String)>,
    groups: Vec<Group>,
    symbols: Vec<(String, Vec<Reference>)>,
    format: Option<Channels>,
}

/// A trace group whose end is still to come.
#[derive(Default)]
struct Group {
    label: Option<String>,
    members: Vec<Reference>,
}

/// A stroke of a symbol: written inside the group, or named.
enum Reference {
    Stroke(usize),
    Name(String),
}

/// An element that is open, with what is kept of it until its end.
enum Open {
    Trace {
        name: Option<String>,
        skip: bool,
    },
    Annotation {
        kind: Option<String>,
    },
    Group,
    Format(Vec<String>),
    /// Channels in here are not in every point: they come after the regular ones.
    Intermittent,
    /// Foreign content, such as MathML, whose children are passed over.
    Foreign,
    Other,
}

fn read(text: &str) -> Result<Ink, String> {
    let mut reader = Reader::from_str(text);
    let mut contents = Contents::default();
    let mut open: Vec<Open> = Vec::new();
    let mut characters = String::new();
    let mut root = false;
    loop {
        let event = reader.read_event().map_err(|error| {
            format!("at byte {} it is not well-formed XML: {error}", reader.error_position())
        })?;
        match event {
            Event::Start(start) => {
                root = accept_root(root, &start)?;
                if open.len() == DEEPEST {
                    return Err(format!("elements are nested deeper than {DEEPEST}"));
                }
                let element = contents.start(&mut open, &start)?;
                open.push(element);
                characters.clear();
            }
            Event::Empty(start) => {
                root = accept_root(root, &start)?;
                let element = contents.start(&mut open, &start)?;
                contents.end(element, "")?;
            }
            Event::Text(text) => characters += &text.xml_content(VERSION),
            Event::CData(text) => characters += &text.xml_content(VERSION),
            Event::GeneralRef(reference) => {
                match reference.resolve_char_ref().map_err(|error| error.to_string())? {
                    Some(character) => characters.push(character),
                    None => {
                        let name: &str = &reference;
                        characters += resolve_predefined_entity(name).ok_or_else(|| {
                            format!("the entity &{name}; is not known, expected one of XML's own five")
                        })?;
                    }
                }
            }
            Event::End(_) => {
                if let Some(element) = open.pop() {
                    contents.end(element, &characters)?;
                }
                characters.clear();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !open.is_empty() {
        return Err("the file ends inside an element: it is cut short".into());
    }
    if !root {
        return Err("there is no element, expected <ink>".into());
    }
    contents.finish()
}

/// Checks that the first element is `<ink>`.
fn accept_root(seen: bool, start: &BytesStart) -> Result<bool, String> {
    let name = start.local_name();
    if !seen && name.as_ref() != "ink" {
        return Err(format!("the root is <{}>, expected <ink>", name.as_ref()));
    }
    Ok(true)
}

/// An attribute's value, whatever the prefix of its name.
fn attribute(start: &BytesStart, wanted: &str) -> Result<Option<String>, String> {
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| format!("an attribute cannot be read: {error}"))?;
        if attribute.key.local_name().as_ref() == wanted {
            let value = attribute
                .normalized_value(VERSION)
                .map_err(|error| format!("attribute {wanted}: {error}"))?;
            return Ok(Some(value.into_owned()));
        }
    }
    Ok(None)
}

impl Contents {
    /// What an element that starts here is, given those around it.
    fn start(&mut self, open: &mut [Open], start: &BytesStart) -> Result<Open, String> {
        if matches!(open.last(), Some(Open::Foreign)) {
            return Ok(Open::Foreign);
        }
        Ok(match start.local_name().as_ref() {
            "annotationXML" => Open::Foreign,
            "trace" => {
                let skip = attribute(start, "type")?.is_some_and(|kind| kind == "penUp");
                if attribute(start, "continuation")?.is_some() {
                    return Err(
                        "a trace is split by the attribute continuation, expected whole traces".into()
                    );
                }
                Open::Trace { name: attribute(start, "id")?, skip }
            }
            "annotation" => Open::Annotation { kind: attribute(start, "type")? },
            "traceGroup" => {
                self.groups.push(Group::default());
                Open::Group
            }
            "traceView" => {
                if let (Some(group), Some(name)) = (self.groups.last_mut(), attribute(start, "traceDataRef")?)
                {
                    group.members.push(Reference::Name(name.trim_start_matches('#').to_string()));
                }
                Open::Other
            }
            "traceFormat" => Open::Format(Vec::new()),
            "intermittentChannels" => Open::Intermittent,
            "channel" => {
                if let Some(Open::Format(channels)) = open.last_mut() {
                    channels.push(attribute(start, "name")?.unwrap_or_default());
                }
                Open::Other
            }
            _ => Open::Other,
        })
    }

    /// Keeps what an element held.
    fn end(&mut self, element: Open, characters: &str) -> Result<(), String> {
        match element {
            Open::Trace { name, skip } => self.trace(name, skip, characters)?,
            Open::Annotation { kind: Some(kind) } => match self.groups.last_mut() {
                Some(group) if kind == "truth" => group.label = Some(characters.trim().to_string()),
                Some(_) => {}
                None => self.annotations.push((kind, characters.trim().to_string())),
            },
            Open::Group => {
                if let Some(Group { label: Some(label), members }) = self.groups.pop()
                    && !members.is_empty()
                {
                    self.symbols.push((label, members));
                }
            }
            Open::Format(channels) if !channels.is_empty() => {
                let place = |name: &str| {
                    channels.iter().position(|channel| channel == name).ok_or_else(|| {
                        format!("the trace format has the channels {channels:?}, expected X and Y among them")
                    })
                };
                let format = Channels { x: place("X")?, y: place("Y")? };
                if self.format.is_some_and(|known| known != format) {
                    return Err("there are trace formats with X or Y in unlike places, expected one".into());
                }
                self.format = Some(format);
            }
            _ => {}
        }
        Ok(())
    }

    fn trace(&mut self, name: Option<String>, skip: bool, characters: &str) -> Result<(), String> {
        let number = self.strokes.len();
        if number == MOST_STROKES {
            return Err(format!("there are more than {MOST_STROKES} traces"));
        }
        let shown = name.clone().unwrap_or_else(|| number.to_string());
        if let Some(name) = name {
            self.traces.insert(name, (!skip).then_some(number));
        }
        if skip {
            return Ok(());
        }
        let channels = self.format.unwrap_or(Channels { x: 0, y: 1 });
        let points = points(characters, channels, MOST_POINTS - self.points)
            .map_err(|reason| format!("trace {shown}: {reason}"))?;
        self.points += points.len();
        self.strokes.push(Stroke { points });
        if let Some(group) = self.groups.last_mut() {
            group.members.push(Reference::Stroke(number));
        }
        Ok(())
    }

    fn finish(self) -> Result<Ink, String> {
        if self.strokes.is_empty() {
            return Err("there are no traces, expected at least one".into());
        }
        let mut symbols = Vec::with_capacity(self.symbols.len());
        for (label, members) in self.symbols {
            let stroke = |member| match member {
                Reference::Stroke(stroke) => Some(stroke),
                Reference::Name(name) => self.traces.get(&name).copied().flatten(),
            };
            let strokes: Vec<usize> = members.into_iter().filter_map(stroke).collect();
            if !strokes.is_empty() {
                symbols.push(Symbol { label, strokes });
            }
        }
        super::check(&self.strokes)?;
        Ok(Ink { strokes: self.strokes, symbols, annotations: self.annotations })
    }
}

/// The points of a trace's text: values apart by white space, points by commas.
fn points(text: &str, channels: Channels, most: usize) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    for (number, values) in text.trim().trim_end_matches(',').split(',').enumerate() {
        if number == most {
            return Err(format!("there are more than {MOST_POINTS} points"));
        }
        let named = |reason: String| format!("point {number}: {reason}");
        let mut point = [None; 2];
        for (place, value) in Values(values).enumerate() {
            let value = value.map_err(named)?;
            for (slot, channel) in point.iter_mut().zip([channels.x, channels.y]) {
                if place == channel {
                    *slot = Some(parse(value).map_err(named)?);
                }
            }
        }
        let [Some(x), Some(y)] = point else {
            let expected = channels.x.max(channels.y) + 1;
            return Err(named(format!(
                "{:?} has too few values, expected at least {expected}",
                values.trim()
            )));
        };
        points.push(Point { x, y });
    }
    Ok(points)
}

/// The values of one point. A sign starts a new one even without white space before it: `3-5` is 3 and -5.
struct Values<'a>(&'a str);

impl<'a> Iterator for Values<'a> {
    type Item = Result<&'a str, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0 = self.0.trim_start();
        let first = self.0.chars().next()?;
        if let '\'' | '"' | '*' | '?' | '!' = first {
            self.0 = "";
            return Some(Err(format!(
                "has the modifier {first}, expected plain values: relative ones are not read"
            )));
        }
        let mut before = first;
        let ends = |(_, next): &(usize, char)| {
            let sign = matches!(next, '-' | '+') && !matches!(before, 'e' | 'E');
            before = *next;
            sign || next.is_whitespace() || matches!(next, '\'' | '"' | '*' | '?' | '!')
        };
        let end = self.0.char_indices().skip(1).find(ends).map_or(self.0.len(), |(index, _)| index);
        let (value, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(Ok(value))
    }
}

/// A decimal number, perhaps with an exponent.
fn parse(value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{value:?} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coordinates(ink: &Ink) -> Vec<Vec<(f64, f64)>> {
        ink.strokes()
            .iter()
            .map(|stroke| stroke.points.iter().map(|point| (point.x, point.y)).collect())
            .collect()
    }

    fn ink(body: &str) -> Result<Ink> {
        Ink::from_inkml(format!("<ink xmlns=\"http://www.w3.org/2003/InkML\">{body}</ink>").as_bytes())
    }

    #[test]
    fn values_of_a_trace() {
        let xyt = "<traceFormat><channel name='X'/><channel name='Y'/><channel name='T'/></traceFormat>";
        let fyx = "<definitions><context><inkSource><traceFormat><channel name='F'/><channel name='Y'/>\
                   <channel name='X'/></traceFormat></inkSource></context></definitions>";
        let penup = "<intermittentChannels><channel name='P'/></intermittentChannels>";
        type Expected = &'static [(f64, f64)];
        let table: [(&str, String, Expected); 9] = [
            ("whole", "<trace>1 2, 3 4</trace>".into(), &[(1.0, 2.0), (3.0, 4.0)]),
            ("one point", "<trace> 1 2 </trace>".into(), &[(1.0, 2.0)]),
            ("fractions, signs", "<trace>-1.5 +2,\n.25 -0</trace>".into(), &[(-1.5, 2.0), (0.25, 0.0)]),
            ("exponents", "<trace>1e-3 2.5E+2</trace>".into(), &[(0.001, 250.0)]),
            ("a sign parts values", "<trace>3-5,7 -3</trace>".into(), &[(3.0, -5.0), (7.0, -3.0)]),
            ("a last comma", "<trace>1 2,3 4,</trace>".into(), &[(1.0, 2.0), (3.0, 4.0)]),
            ("a third channel", format!("{xyt}<trace>1 2 99,3 4 100</trace>"), &[(1.0, 2.0), (3.0, 4.0)]),
            ("another order", format!("{fyx}<trace>T 2 1,F 4 3</trace>"), &[(1.0, 2.0), (3.0, 4.0)]),
            (
                "intermittent channels",
                format!(
                    "<traceFormat><channel name='X'/><channel name='Y'/>{penup}</traceFormat><trace>1 2,3 4 9</trace>"
                ),
                &[(1.0, 2.0), (3.0, 4.0)],
            ),
        ];
        for (name, body, expected) in table {
            assert_eq!(coordinates(&ink(&body).unwrap()), [expected], "{name}");
        }
    }

    #[test]
    fn symbols_and_annotations() {
        let body = "<annotation type='truth'>$a&lt;b&#x21;$</annotation><annotation type='writer'>w 1</annotation>\
            <annotationXML type='truth'><math><annotation type='truth'>no</annotation></math></annotationXML>\
            <trace id='t0'>0 0</trace><trace xml:id='t1' type='penUp'>5 5</trace><trace xml:id='t2'>1 1</trace>\
            <traceGroup><annotation type='truth'>Segmentation</annotation>\
            <traceGroup><annotation type='truth'>a</annotation><traceView traceDataRef='#t2'/>\
            <traceView traceDataRef='t0'/><traceView traceDataRef='t1'/><traceView traceDataRef='t9'/></traceGroup>\
            <traceGroup><annotation type='truth'>\\lt</annotation><trace>2 2</trace></traceGroup></traceGroup>";
        let ink = ink(body).unwrap();
        assert_eq!(ink.latex(), Some("a<b!"));
        assert_eq!(ink.annotation("writer"), Some("w 1"));
        assert_eq!(coordinates(&ink), [[(0.0, 0.0)], [(1.0, 1.0)], [(2.0, 2.0)]]);
        let expected = [("a", vec![1, 0]), ("\\lt", vec![2])]
            .map(|(label, strokes)| Symbol { label: label.into(), strokes });
        assert_eq!(ink.symbols(), expected);
    }

    #[test]
    fn bad_files_are_refused_with_their_reason() {
        let table: [(&str, &str); 20] = [
            ("", "no traces"),
            ("<traceGroup/>", "no traces"),
            ("<trace></trace>", "trace 0: point 0: \"\" has too few values, expected at least 2"),
            ("<trace id='a'>1 2, 3</trace>", "trace a: point 1: \"3\" has too few values"),
            ("<trace>1 2,,3 4</trace>", "point 1: \"\" has too few values"),
            ("<trace>1 two</trace>", "\"two\" is not a number"),
            ("<trace>#1F 2</trace>", "\"#1F\" is not a number"),
            ("<trace>1125 18432,'23'43</trace>", "point 1: has the modifier '"),
            ("<trace>1 2,\"7 8</trace>", "modifier \""),
            ("<trace>1 2,* 8</trace>", "modifier *"),
            ("<trace>1 2,? 8</trace>", "modifier ?"),
            ("<trace>1 NaN</trace>", "y is NaN, expected a number within 1e9"),
            ("<trace>inf 1</trace>", "x is inf"),
            ("<trace>1e300 1</trace>", "expected a number within 1e9"),
            ("<trace>1e999 1</trace>", "x is inf"),
            (
                "<traceFormat><channel name='X'/></traceFormat><trace>1 2</trace>",
                "expected X and Y among them",
            ),
            (
                "<traceFormat><channel name='X'/><channel name='Y'/></traceFormat>\
                 <traceFormat><channel name='Y'/><channel name='X'/></traceFormat><trace>1 2</trace>",
                "unlike places",
            ),
            ("<trace continuation='begin'>1 2</trace>", "expected whole traces"),
            ("<trace>1 2</trace><trace>", "not well-formed XML"),
            ("<annotation type='truth'>&bomb;</annotation><trace>1 2</trace>", "&bomb; is not known"),
        ];
        for (body, expected) in table {
            let message = ink(body).unwrap_err().to_string();
            assert!(message.starts_with("InkML: ") && message.contains(expected), "{body}: {message}");
        }
        let whole: [(&[u8], &str); 6] = [
            (b"", "no element, expected <ink>"),
            (b"x", "no element, expected <ink>"),
            (b"<svg><trace>1 2</trace></svg>", "the root is <svg>, expected <ink>"),
            (b"<ink><trace>1 2</trace>", "cut short"),
            (b"<ink><trace>1 2</tr", "not well-formed"),
            (b"\xff\xfe<\0i\0", "not well-formed"),
        ];
        for (bytes, expected) in whole {
            let message = Ink::from_inkml(bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn too_much_is_refused_in_bounded_time() {
        let cases = [
            ("<trace>1 2</trace>".repeat(100_000), "more than 5000 traces"),
            (format!("<trace>{}</trace>", "1 2,".repeat(300_000)), "more than 200000 points"),
            ("<a>".repeat(100_000), "nested deeper"),
            (" ".repeat(super::super::MOST_BYTES), "expected at most 33554432"),
        ];
        let start = std::time::Instant::now();
        for (body, expected) in cases {
            let message = ink(&body).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        assert!(start.elapsed().as_secs() < 10);
    }

    #[test]
    fn not_utf_8_in_an_annotation_is_no_obstacle() {
        let bytes = b"<ink><annotation type='writer'>Andr\xe9</annotation><trace>1 2</trace></ink>";
        assert_eq!(Ink::from_inkml(bytes).unwrap().annotation("writer"), Some("Andr\u{fffd}"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Ink::from_inkml(&bytes);
        }

        #[test]
        fn anything_like_ink_is_read_or_refused(body in "(<trace>|</trace>|<traceGroup>|</traceGroup>|[0-9 ,.'e-]|&#x?[0-9]{1,3};|<annotation type=\"truth\">|</annotation>){0,30}") {
            let _ = ink(&body);
        }

        #[test]
        fn what_is_written_is_read_back(
            strokes in prop::collection::vec(prop::collection::vec((-1e6..1e6, -1e6..1e6), 1..9), 1..6),
            label in "[a-z<>&\"'\\\\]{1,6}",
            latex in "[ -~]{0,12}",
        ) {
            let stroke = |points: &Vec<(f64, f64)>| Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() };
            let last = strokes.len() - 1;
            let ink = Ink::new(strokes.iter().map(stroke).collect()).unwrap()
                .with_symbols(vec![Symbol { label, strokes: vec![last] }]).unwrap()
                .with_annotation("truth", latex.trim());
            prop_assert_eq!(Ink::from_inkml(ink.to_inkml().as_bytes()).unwrap(), ink);
        }
    }
}
