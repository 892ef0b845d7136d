//! Reads all formulas of an input, and says what is doubtful about each.

use comer::{AlignmentDetail, Error, Input, InputOptions, Recognition, RecognizeOptions, Recognizer, Result};
use serde_json::{Value, json};

use crate::output::recognition_json;

/// Below this confidence a formula is more often wrong than right.
const LOW_CONFIDENCE: f32 = 0.5;
/// Below this confidence, and with this share of the ink unread, the ink is hardly a formula.
const NO_FORMULA: (f32, f32) = (0.1, 0.15);
/// Share of the ink that may stay unread without a word.
const MUCH_UNREAD: f32 = 0.1;
/// Below this height or width of the ink in pixels of a picture, symbols have too few pixels.
const SMALL: f64 = 14.0;
/// Below this confidence, a picture is also read in the other three directions.
const TURNED: f32 = 0.1;
/// How sure another direction has to be to be preferred.
const TURNED_CONFIDENCE: f32 = 0.5;

/// Which formulas of an input are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formulas {
    /// All ink is one formula.
    One,
    /// Several formulas where there is clearly more than one.
    #[default]
    Auto,
    /// Several formulas, separated by the space that they usually have between them.
    All,
}

/// A formula, where it is, and what is doubtful about it.
pub struct Reading {
    pub input: Input,
    pub recognition: Recognition,
    pub warnings: Vec<Warning>,
}

/// Something to check: a name for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    pub code: &'static str,
    pub message: String,
}

impl Warning {
    fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }

    pub fn json(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }
}

/// The formulas of a file.
pub fn prepare(
    bytes: &[u8],
    options: &InputOptions,
    formulas: Formulas,
) -> Result<(Vec<Input>, Vec<Warning>)> {
    let several = |count: usize, hint: &str| {
        let message = format!("{count} formulas were found{hint}");
        vec![Warning::new("several_formulas", message)]
    };
    let found = Input::all_from_bytes(bytes, &options.clone().dense(formulas == Formulas::All))?;
    match (formulas, found.len()) {
        (_, 1) => Ok((found, Vec::new())),
        (Formulas::One, count) => {
            let input = Input::from_bytes_with(bytes, options)?;
            Ok((vec![input], several(count, " and read as one")))
        }
        (_, count) => {
            let warnings = several(count, ", each with space around it");
            Ok((found, warnings))
        }
    }
}

/// Reads a formula, in other directions too where it is not upright.
pub fn read(recognizer: &Recognizer, input: Input, options: &RecognizeOptions) -> Result<Reading> {
    let mut recognition = recognizer.recognize_with(&input, options)?;
    let mut input = input;
    if input.ink().is_none() && recognition.best.confidence < TURNED {
        let quick = options.clone().greedy().nbest(1).alignment(AlignmentDetail::None);
        let mut best: Option<(f32, Input)> = None;
        for quarters in 1..4 {
            let Ok(turned) = input.turned(quarters) else { continue };
            match recognizer.recognize_with(&turned, &quick) {
                Ok(found)
                    if found.best.confidence >= TURNED_CONFIDENCE
                        && best.as_ref().is_none_or(|best| found.best.confidence > best.0) =>
                {
                    best = Some((found.best.confidence, turned));
                }
                Err(error @ (Error::Cancelled | Error::DeadlineExceeded)) => return Err(error),
                _ => {}
            }
        }
        if let Some((_, turned)) = best {
            recognition = recognizer.recognize_with(&turned, options)?;
            input = turned;
        }
    }
    let warnings = warnings(&input, &recognition);
    Ok(Reading { input, recognition, warnings })
}

fn warnings(input: &Input, recognition: &Recognition) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let confidence = recognition.best.confidence;
    let unread = recognition.alignment.as_ref().map_or(0.0, |alignment| alignment.ink.unread);
    if confidence < NO_FORMULA.0 && unread > NO_FORMULA.1 {
        let message = format!(
            "this may be no formula: confidence {}, {} of the ink is unread",
            percent(confidence),
            percent(unread)
        );
        warnings.push(Warning::new("no_formula", message));
    } else {
        if confidence < LOW_CONFIDENCE {
            warnings.push(Warning::new(
                "low_confidence",
                format!("the confidence is low: {}", percent(confidence)),
            ));
        }
        if unread > MUCH_UNREAD {
            warnings.push(Warning::new("unread_ink", format!("{} of the ink is unread", percent(unread))));
        }
    }
    let bounds = input.bounds();
    let (width, height) = (bounds.right - bounds.left, bounds.bottom - bounds.top);
    if input.ink().is_none() && width.max(height) < 2.0 * SMALL && width.min(height) < SMALL {
        let message =
            format!("the formula has {width:.0} x {height:.0} pixels, which is too small to be read well");
        warnings.push(Warning::new("too_small", message));
    }
    warnings
}

fn percent(share: f32) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The rectangle of the source that a formula fills.
pub fn box_json(input: &Input) -> Value {
    let bounds = input.bounds();
    let side = |value: f64| (value * 100.0).round() / 100.0;
    json!({
        "left": side(bounds.left),
        "top": side(bounds.top),
        "right": side(bounds.right),
        "bottom": side(bounds.bottom),
    })
}

/// A reading as JSON.
pub fn reading_json(reading: &Reading) -> Value {
    let mut object = recognition_json(&reading.recognition);
    object["box"] = box_json(&reading.input);
    object["warnings"] = reading.warnings.iter().map(Warning::json).collect();
    if let Some(strokes) = reading.input.stroke_numbers() {
        object["strokes"] = json!(strokes);
    }
    object
}

/// The fields of the first reading, with all of them as `formulas` and the warnings of the whole input before its own.
pub fn page_json(formulas: Vec<Value>, warnings: &[Warning]) -> Value {
    let mut object = formulas.first().cloned().unwrap_or_default();
    let own = object["warnings"].take();
    let all = warnings.iter().map(Warning::json).chain(own.as_array().cloned().unwrap_or_default());
    object["warnings"] = all.collect();
    object["formulas"] = formulas.into();
    object
}
