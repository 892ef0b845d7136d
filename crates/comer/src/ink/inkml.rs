//! Reads and writes InkML: the dialect of CROHME and the basics of the W3C's recommendation.
//!
//! Read: `trace` (with any number of channels, of which X and Y count), `traceFormat`, `traceGroup` and `traceView`
//! (symbols), `annotation`. Passed over: everything else, pen-up traces and views of traces that the file lacks (CROHME
//! has one) among it. Refused: values relative to the point before (`'`, `"`, `*`), and unlike channel orders in one
//! file.

mod contents;
mod points;

use std::fmt::Write as _;

use quick_xml::XmlVersion;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{Ink, check_size};
use crate::error::{Error, Result};
use contents::{Contents, Open};

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

#[cfg(test)]
mod tests;
