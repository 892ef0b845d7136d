//! Parses requests: the query parameters, and the image or ink in the body.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::http::{HeaderMap, StatusCode, header};
use comer::internal::config::{SearchConfig, Strategy};
use comer::{AlignmentDetail, Constraints, Ink, Input, InputOptions, Stroke, Warning};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::data_url;
use super::limits::Limits;
use super::problem::Problem;
use crate::reading::{Formulas, prepare, prepare_ink};

/// The query parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    pub search: SearchConfig,
    pub alignment: AlignmentDetail,
    pub constraints: Constraints,
    /// Whether to add MathML.
    pub mathml: bool,
    /// Whether images are white ink on black already.
    pub raw: bool,
    /// Whether to add the image that the network sees.
    pub image: bool,
    /// Whether to respond with an explanation page.
    pub explain: bool,
    /// Which formulas to read.
    pub formulas: Formulas,
}

/// The type of an upload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Image,
    InkMl,
    Json,
    /// Determined by the content.
    Any,
    /// An item of a batch in JSON: a data URL, an object with one, or strokes.
    Item,
}

/// An upload before it is decoded.
pub struct Upload {
    pub kind: Kind,
    pub bytes: Bytes,
}

impl Wanted {
    /// Parses the query.
    pub fn new(pairs: &[(String, String)], limits: &Limits) -> Result<Self, Problem> {
        let mut wanted = Self { formulas: Formulas::One, ..Self::default() };
        for (name, value) in pairs {
            let wrong = |expected: &str| {
                Problem::bad_request(format!("parameter {name} is {value:?}, expected {expected}"))
            };
            let number = |most: usize| {
                let number = value.parse().ok().filter(|number| (1..=most).contains(number));
                number.ok_or_else(|| wrong(&format!("a whole number from 1 to {most}")))
            };
            let flag = || match value.as_str() {
                "1" | "true" => Ok(true),
                "0" | "false" => Ok(false),
                _ => Err(wrong("0 or 1")),
            };
            let search = &mut wanted.search;
            match name.as_str() {
                "nbest" => search.answers = number(limits.answers)?,
                "beam" => search.beam = number(limits.beam)?,
                "greedy" => search.strategy = if flag()? { Strategy::Greedy } else { Strategy::Joint },
                "alignment" => {
                    let detail = if flag()? { AlignmentDetail::Attention } else { AlignmentDetail::None };
                    wanted.alignment = detail;
                }
                "constraints" => {
                    let constraints = Constraints::from_json(value);
                    wanted.constraints =
                        constraints.map_err(|error| Problem::bad_request(error.to_string()))?;
                }
                "mathml" => wanted.mathml = flag()?,
                "raw" => wanted.raw = flag()?,
                "image" => wanted.image = flag()?,
                "explain" => wanted.explain = flag()?,
                "formulas" => {
                    wanted.formulas = match value.as_str() {
                        "one" => Formulas::One,
                        "auto" => Formulas::Auto,
                        "all" => Formulas::All,
                        _ => return Err(wrong("one, auto or all")),
                    };
                }
                _ => {
                    let known =
                        "nbest, beam, greedy, alignment, constraints, mathml, image, raw, explain, formulas";
                    return Err(Problem::bad_request(format!(
                        "unknown parameter {name:?}, expected {known}"
                    )));
                }
            }
        }
        Ok(wanted)
    }
}

/// The media type without parameters; none without the header.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?;
    let text = String::from_utf8_lossy(value.as_bytes());
    Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn kind_of(media_type: &str) -> Option<Kind> {
    match media_type {
        "application/json" => Some(Kind::Json),
        "application/inkml+xml" | "application/xml" | "text/xml" => Some(Kind::InkMl),
        // The message of a PDF file names a program that converts it.
        "application/octet-stream" | "application/pdf" | "" => Some(Kind::Any),
        _ => media_type.starts_with("image/").then_some(Kind::Image),
    }
}

/// Checks the media type, so that an unsupported body need not be received.
pub fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    match media_type(headers) {
        Some(name) if name != "multipart/form-data" && kind_of(&name).is_none() => {
            let detail = format!(
                "the body is {name:?}, expected image/*, application/inkml+xml, application/json or multipart/form-data"
            );
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
        _ => Ok(()),
    }
}

/// Extracts the image or ink from a body. JSON is parsed later, on one of the cores for recognition.
pub async fn upload(headers: &HeaderMap, bytes: Bytes) -> Result<Upload, Problem> {
    check_type(headers)?;
    let name = media_type(headers).unwrap_or_default();
    let upload = if name == "multipart/form-data" {
        parts(headers, bytes).await?.swap_remove(0)
    } else {
        Upload { kind: kind_of(&name).unwrap_or(Kind::Any), bytes }
    };
    if upload.bytes.is_empty() {
        return Err(Problem::bad_request("the body is empty, expected a picture, InkML or strokes as JSON"));
    }
    Ok(upload)
}

/// A body like `{"src": "data:image/png;base64,..."}`.
#[derive(Deserialize)]
struct Body {
    src: Option<String>,
    strokes: Option<IgnoredAny>,
}

/// The type of a batch: a form, or JSON.
pub fn batch_type(headers: &HeaderMap) -> Result<Kind, Problem> {
    let name = media_type(headers).unwrap_or_default();
    match name.as_str() {
        "multipart/form-data" => Ok(Kind::Any),
        "application/json" | "" => Ok(Kind::Json),
        _ => {
            let detail = format!("the body is {name:?}, expected application/json or multipart/form-data");
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// The parts `image` and `file` of a form, at least one.
pub async fn parts(headers: &HeaderMap, bytes: Bytes) -> Result<Vec<Upload>, Problem> {
    let mut request = Request::new(axum::body::Body::from(bytes));
    *request.headers_mut() = headers.clone();
    // The body was received within our own limit; the extractor's default of 2 MB is below it.
    DefaultBodyLimit::disable().apply(&mut request);
    let broken = |reason: String| Problem::bad_request(format!("cannot parse the form: {reason}"));
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|error| broken(error.body_text()))?;
    let (mut uploads, mut names) = (Vec::new(), Vec::new());
    while let Some(field) = form.next_field().await.map_err(|error| broken(error.body_text()))? {
        let name = field.name().unwrap_or_default().to_string();
        if name != "image" && name != "file" {
            names.push(name);
            continue;
        }
        let kind = field.content_type().and_then(kind_of).unwrap_or(Kind::Any);
        let bytes = field.bytes().await.map_err(|error| broken(error.body_text()))?;
        uploads.push(Upload { kind, bytes });
    }
    if uploads.is_empty() {
        let detail = format!("the form has the parts {names:?}, expected one called image or file");
        return Err(Problem::bad_request(detail));
    }
    Ok(uploads)
}

impl Upload {
    /// The file of a data URL in JSON, or none for what is a file itself.
    fn embedded(&self) -> Result<Option<Vec<u8>>, Problem> {
        let text = self.bytes.trim_ascii_start();
        // Strokes are parsed elsewhere; a whole parse to find out would cost as much again.
        let is_likely = || text.windows(5).take(1000).any(|window| window == b"\"src\"");
        let source = match (self.kind, text.first()) {
            (Kind::Item, Some(b'"')) => serde_json::from_slice(text).ok(),
            (Kind::Item, Some(b'[')) => return Ok(None),
            (Kind::Item, _) => match serde_json::from_slice(text) {
                Ok(Body { src: Some(source), .. }) => Some(source),
                Ok(Body { strokes: Some(_), .. }) => return Ok(None),
                _ => {
                    let detail = "the item has neither src nor strokes, expected a data URL or strokes";
                    return Err(Problem::bad_request(detail));
                }
            },
            (Kind::Json | Kind::Any, Some(b'{')) if is_likely() => {
                serde_json::from_slice::<Body>(text).ok().and_then(|body| body.src)
            }
            _ => None,
        };
        source.as_deref().map(data_url::decode).transpose()
    }

    /// Decodes the image or ink, and finds its formulas. The other kinds of errors are given to `failed`.
    pub fn read(
        &self,
        options: &InputOptions,
        formulas: Formulas,
        limits: &Limits,
        failed: &dyn Fn(comer::Error) -> Problem,
    ) -> Result<(Vec<Input>, Vec<Warning>), Problem> {
        let embedded = self.embedded()?;
        let bytes = embedded.as_deref().unwrap_or(&self.bytes);
        // The type that was given decides, also about messages.
        let ink = match self.kind {
            _ if embedded.is_some() => None,
            Kind::InkMl => Some(Ink::from_inkml(bytes).map_err(failed)?),
            Kind::Json | Kind::Item => Some(Ink::from_json(bytes).map_err(failed)?),
            Kind::Image | Kind::Any => None,
        };
        let found = match ink {
            Some(ink) => prepare_ink(ink, options, formulas),
            None => prepare(bytes, options, formulas),
        };
        let (inputs, warnings) = found.map_err(failed)?;
        let strokes: Vec<&Stroke> = inputs.iter().filter_map(Input::ink).flat_map(Ink::strokes).collect();
        let points: usize = strokes.iter().map(|stroke| stroke.points.len()).sum();
        for (what, found, most) in
            [("strokes", strokes.len(), limits.strokes), ("points", points, limits.points)]
        {
            if found > most {
                return Err(Problem::too_large(format!("there are {found} {what}, expected at most {most}")));
            }
        }
        Ok((inputs, warnings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pairs: &[(&str, &str)]) -> Result<Wanted, Problem> {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Wanted::new(&pairs, &Limits::default())
    }

    #[test]
    fn parameters_are_read_and_bad_ones_named() {
        let all =
            wanted(&[("nbest", "12"), ("greedy", "0"), ("alignment", "1"), ("mathml", "true"), ("raw", "1")]);
        let all = all.unwrap();
        assert_eq!(all.search.answers, 12);
        assert!(all.alignment == AlignmentDetail::Attention && all.mathml && all.raw);
        assert_eq!(wanted(&[("greedy", "1")]).unwrap().search.strategy, Strategy::Greedy);
        for (name, value) in
            [("nbest", "0"), ("nbest", "21"), ("nbest", "x"), ("beam", "-1"), ("raw", "yes"), ("nbset", "1")]
        {
            let problem = wanted(&[(name, value)]).unwrap_err();
            assert!(
                problem.status == StatusCode::BAD_REQUEST && problem.detail.contains(name),
                "{problem:?}"
            );
        }
    }

    #[test]
    fn types_decide_unless_they_leave_it_open() {
        for (name, expected) in [
            ("image/png", Some(Kind::Image)),
            ("application/json", Some(Kind::Json)),
            ("text/xml", Some(Kind::InkMl)),
            ("application/octet-stream", Some(Kind::Any)),
            ("application/pdf", Some(Kind::Any)),
            ("text/plain", None),
            ("application/x-www-form-urlencoded", None),
        ] {
            assert_eq!(kind_of(name), expected, "{name}");
        }
    }
}
