//! Finds all formulas of an input, and writes what was read as JSON.

use comer::{Formula, Ink, Input, InputOptions, Result, Warning, aligned};
use serde_json::{Value, json};

use crate::output::recognition_json;

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

/// The formulas of a file.
pub fn prepare(
    bytes: &[u8],
    options: &InputOptions,
    formulas: Formulas,
) -> Result<(Vec<Input>, Vec<Warning>)> {
    let found = Input::all_from_bytes(bytes, &options.clone().dense(formulas == Formulas::All))?;
    chosen(found, formulas, || Input::from_bytes_with(bytes, options))
}

/// The formulas of ink.
pub fn prepare_ink(
    ink: Ink,
    options: &InputOptions,
    formulas: Formulas,
) -> Result<(Vec<Input>, Vec<Warning>)> {
    let found = Input::all_from_ink(ink.clone(), &options.clone().dense(formulas == Formulas::All))?;
    chosen(found, formulas, || Input::from_ink(ink))
}

fn chosen(
    found: Vec<Input>,
    formulas: Formulas,
    one: impl FnOnce() -> Result<Input>,
) -> Result<(Vec<Input>, Vec<Warning>)> {
    let several = |count: usize, hint: &str| {
        let message = format!("{count} formulas were found{hint}");
        vec![Warning::new("several_formulas", message)]
    };
    match (formulas, found.len()) {
        (_, 1) => Ok((found, Vec::new())),
        (Formulas::One, count) => Ok((vec![one()?], several(count, " and read as one"))),
        (_, count) => {
            let warnings = several(count, ", each with space around it");
            Ok((found, warnings))
        }
    }
}

/// A warning as JSON.
fn warning_json(warning: &Warning) -> Value {
    json!({ "code": warning.code, "message": warning.message })
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

/// A formula as JSON.
pub fn formula_json(formula: &Formula) -> Value {
    let mut object = recognition_json(&formula.recognition);
    object["box"] = box_json(&formula.input);
    object["warnings"] = formula.warnings.iter().map(warning_json).collect();
    if let Some(strokes) = formula.input.stroke_numbers() {
        object["strokes"] = json!(strokes);
    }
    object
}

/// The fields of the first formula, with all of them as `formulas`, the warnings of the whole input before its own, and several
/// formulas as one in `aligned`.
pub fn page_json(formulas: Vec<Value>, warnings: &[Warning]) -> Value {
    let mut object = formulas.first().cloned().unwrap_or_default();
    let own = object["warnings"].take();
    let all = warnings.iter().map(warning_json).chain(own.as_array().cloned().unwrap_or_default());
    object["warnings"] = all.collect();
    if formulas.len() > 1 {
        object["aligned"] = aligned(formulas.iter().filter_map(|formula| formula["latex"].as_str())).into();
    }
    object["formulas"] = formulas.into();
    object
}
