//! Scoring of predictions, as `comer score` does it.

use std::collections::HashMap;
use std::path::PathBuf;

use comer_eval::files::{read_predictions, read_truths};
use comer_eval::score::{FileScore, Protocol, Truth};
use comer_eval::{Dialect, Report};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::json;

use crate::error::{ComerError, evaluation_exception};
use crate::json::to_python;
use crate::recognition::latex_of;

/// Formulas as Python passes them.
enum Formulas {
    Named(Vec<(String, String)>),
    File(PathBuf),
}

impl Formulas {
    /// A dictionary of names and LaTeX, a sequence of LaTeX, or a path.
    fn new(object: &Bound<PyAny>) -> PyResult<Self> {
        if let Ok(named) = object.cast::<PyDict>() {
            let item =
                |(name, formula): (Bound<PyAny>, Bound<PyAny>)| Ok((name.extract()?, latex_of(&formula)?));
            return Ok(Self::Named(named.iter().map(item).collect::<PyResult<_>>()?));
        }
        if object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
            return Ok(Self::File(object.extract()?));
        }
        let formula = |(number, formula): (usize, PyResult<Bound<PyAny>>)| {
            // Names are sorted: with zeros in front, that is the order of the sequence.
            Ok((format!("{number:09}"), latex_of(&formula?)?))
        };
        let formulas = object.try_iter().map_err(|_| {
            PyTypeError::new_err("expected a dictionary of names and LaTeX, a list of LaTeX, or a path")
        })?;
        Ok(Self::Named(formulas.enumerate().map(formula).collect::<PyResult<_>>()?))
    }
}

/// Score predictions against the ground truth, as the CROHME competition does.
///
/// Args:
///     predictions: a dictionary of names and LaTeX, a list of LaTeX or of recognitions, or a path: a table, the
///         result.zip of the reference implementation, or a folder of .txt files.
///     truth: a dictionary of names and LaTeX, a list of LaTeX in the order of the predictions, or a path: a caption file,
///         a folder of .lg files, or a CROHME folder or zip.
///     split: the split of a CROHME folder or zip with several, such as "2014".
///
/// Returns:
///     A dictionary with the keys of `comer score --json`. `official`, `caption` and `token` have the rates in percent
///     (exp_rate, le1, le2, le3, structure) by label graphs of the competition, by those of the captions, and by tokens.
///
/// >>> report = comer.evaluate(["x^2", "a+b"], ["x ^ { 2 }", "a - b"])
/// >>> report["caption"]["exp_rate"], report["caption"]["le1"]
/// (50.0, 100.0)
#[pyfunction]
#[pyo3(signature = (predictions, truth, *, split=None))]
pub fn evaluate<'py>(
    predictions: &Bound<'py, PyAny>,
    truth: &Bound<'py, PyAny>,
    split: Option<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = predictions.py();
    let (predictions, truth) = (Formulas::new(predictions)?, Formulas::new(truth)?);
    let report = py.detach(|| {
        let predictions: HashMap<String, String> = match predictions {
            Formulas::Named(named) => named.into_iter().collect(),
            Formulas::File(path) => read_predictions(&path).map_err(evaluation_exception)?.by_name,
        };
        let truths = match truth {
            Formulas::Named(named) => {
                named.into_iter().map(|(name, caption)| truth_of(name, caption)).collect()
            }
            Formulas::File(path) => {
                read_truths(&path, split.as_deref()).map_err(evaluation_exception)?.truths
            }
        };
        if !truths.iter().any(|truth| predictions.contains_key(&truth.name)) {
            let example = truths.first().map_or("", |truth| &truth.name);
            return Err(PyValueError::new_err(format!(
                "none of the {} predictions has a name of the ground truth, such as {example:?}",
                predictions.len()
            )));
        }
        Ok(Report::new(&comer_eval::score::score(&truths, &predictions, Dialect::Official)))
    })?;
    let report = serde_json::to_value(&report).map_err(|error| ComerError::new_err(error.to_string()))?;
    to_python(py, &report)
}

fn truth_of(name: String, caption: String) -> Truth {
    Truth { name, caption: Some(caption), graph: None }
}

/// Score one prediction against the LaTeX of the ground truth.
///
/// Returns:
///     A dictionary: `correct` by label graph, `errors` (wrong nodes and edges of the label graph), `same_structure`,
///     `token_errors` (token edits), and `unreadable`, the reason why the prediction has no label graph, or None.
///
/// >>> comer.score("x^2 + 1", "x ^ { 2 } + 7")["errors"]
/// 1
#[pyfunction]
pub fn score<'py>(
    py: Python<'py>,
    prediction: &Bound<'py, PyAny>,
    truth: String,
) -> PyResult<Bound<'py, PyAny>> {
    let predictions = HashMap::from([(String::new(), latex_of(prediction)?)]);
    let truths = [truth_of(String::new(), truth)];
    let scores = comer_eval::score::score(&truths, &predictions, Dialect::Official);
    let by = |score: &FileScore, protocol| score.by(protocol).unwrap_or_default();
    let scored = scores.first().map(|score| {
        let (graph, token) = (by(score, Protocol::Caption), by(score, Protocol::Token));
        json!({
            "correct": graph.errors == 0,
            "errors": graph.errors,
            "same_structure": graph.same_structure,
            "token_errors": token.errors,
            "unreadable": score.unreadable,
        })
    });
    to_python(py, &scored.unwrap_or_default())
}
