//! What the elements of an InkML file hold, gathered as they start and end.

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use super::VERSION;
use super::points::{Channels, points};
use crate::ink::{Ink, InkSymbol, MOST_POINTS, MOST_STROKES, Stroke, check};

/// What the elements read so far have given.
#[derive(Default)]
pub(super) struct Contents {
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
pub(super) enum Open {
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

impl Contents {
    /// What an element that starts here is, given those around it.
    pub(super) fn start(&mut self, open: &mut [Open], start: &BytesStart) -> Result<Open, String> {
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
    pub(super) fn end(&mut self, element: Open, characters: &str) -> Result<(), String> {
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

    pub(super) fn finish(self) -> Result<Ink, String> {
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
                symbols.push(InkSymbol { label, strokes });
            }
        }
        check(&self.strokes)?;
        Ok(Ink { strokes: self.strokes, symbols, annotations: self.annotations, scale: None })
    }
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
