//! The result of a recognition.

use std::sync::Arc;

use comer_eval::mathml::mathml;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::alignment::Alignment;
use crate::arrays;
use crate::error::{evaluation_exception, exception};
use crate::json::to_python;
use crate::picture;

/// A formula that the input may show.
#[pyclass(frozen, module = "comer")]
pub struct Candidate(comer::Candidate);

#[pymethods]
impl Candidate {
    /// Compact LaTeX, such as \frac{x^{2}}{2}.
    #[getter]
    fn latex(&self) -> &str {
        &self.0.latex
    }

    /// The formula as a MathML element.
    #[getter]
    fn mathml(&self) -> PyResult<String> {
        mathml(&self.0.latex).map_err(evaluation_exception)
    }

    /// The LaTeX tokens, such as \frac, {, x.
    #[getter]
    fn tokens(&self) -> Vec<&str> {
        self.0.tokens.iter().map(|token| token.text.as_str()).collect()
    }

    /// For each token the probability that it is correct given the other tokens.
    #[getter]
    fn token_confidences(&self) -> Vec<f32> {
        self.0.tokens.iter().map(|token| token.confidence).collect()
    }

    /// For each token with ink the probability that the symbol is correct and in its place: its own confidence times those
    /// of the braces and scripts that belong to it. None for tokens without ink.
    #[getter]
    fn symbol_confidences(&self) -> Vec<Option<f32>> {
        self.0.symbol_confidences()
    }

    /// The probability that the whole formula is correct, as the model estimates it.
    #[getter]
    fn confidence(&self) -> f32 {
        self.0.confidence
    }

    /// What candidates are ranked by: the sum over both directions of the mean log-probability of a token.
    #[getter]
    fn score(&self) -> f32 {
        self.0.score
    }

    /// The formula, which Jupyter typesets.
    fn _repr_latex_(&self) -> String {
        format!("$\\displaystyle {}$", self.0.latex)
    }

    fn __str__(&self) -> &str {
        &self.0.latex
    }

    fn __repr__(&self) -> String {
        format!("Candidate(latex={:?}, confidence={:.3})", self.0.latex, self.0.confidence)
    }
}

/// What was recognised. The attributes of a candidate are those of the best one.
///
/// >>> r = comer.Recognizer().recognize("samples/fraction.inkml", nbest=2)
/// >>> r.latex
/// '\\frac{a}{b}'
/// >>> r.tokens[:4]
/// ['\\frac', '{', 'a', '}']
/// >>> len(r.candidates)
/// 2
#[pyclass(frozen, module = "comer")]
pub struct Recognition {
    recognizer: Arc<comer::Recognizer>,
    input: comer::Input,
    inner: comer::Recognition,
    warnings: Vec<comer::Warning>,
    best: Py<Candidate>,
}

impl Recognition {
    pub fn new(py: Python, recognizer: Arc<comer::Recognizer>, formula: comer::Formula) -> PyResult<Self> {
        let comer::Formula { input, recognition: inner, warnings, .. } = formula;
        let best = Py::new(py, Candidate(inner.best.clone()))?;
        Ok(Self { recognizer, input, inner, warnings, best })
    }
}

#[pymethods]
impl Recognition {
    /// Compact LaTeX, such as \frac{x^{2}}{2}.
    #[getter]
    fn latex(&self) -> &str {
        self.inner.latex()
    }

    /// The formula as a MathML element.
    #[getter]
    fn mathml(&self) -> PyResult<String> {
        self.best.get().mathml()
    }

    /// The LaTeX tokens, such as \frac, {, x.
    #[getter]
    fn tokens(&self) -> Vec<&str> {
        self.best.get().tokens()
    }

    /// For each token the probability that it is correct given the other tokens.
    #[getter]
    fn token_confidences(&self) -> Vec<f32> {
        self.best.get().token_confidences()
    }

    /// For each token with ink the probability that the symbol is correct and in its place: its own confidence times those
    /// of the braces and scripts that belong to it. None for tokens without ink.
    #[getter]
    fn symbol_confidences(&self) -> Vec<Option<f32>> {
        self.best.get().symbol_confidences()
    }

    /// The probability that the whole formula is correct, as the model estimates it.
    #[getter]
    fn confidence(&self) -> f32 {
        self.inner.best.confidence
    }

    /// What candidates are ranked by.
    #[getter]
    fn score(&self) -> f32 {
        self.inner.best.score
    }

    /// All candidates, best first: as many as `nbest` asked for.
    #[getter]
    fn candidates(&self) -> Vec<Candidate> {
        self.inner.candidates().cloned().map(Candidate).collect()
    }

    /// Where the tokens were read, if `alignment=True` was given.
    #[getter]
    fn alignment(&self) -> Option<Alignment> {
        self.inner.alignment.clone().map(Alignment)
    }

    /// The rectangle of the input that the formula fills: left, top, right, bottom, in pixels or units of the strokes.
    #[getter(r#box)]
    fn bounds(&self) -> (f64, f64, f64, f64) {
        let bounds = self.input.bounds();
        (bounds.left, bounds.top, bounds.right, bounds.bottom)
    }

    /// What to check, in English: low confidence, a formula of few pixels; with `alignment=True` also ink that was not read.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.iter().map(ToString::to_string).collect()
    }

    /// The image that the model reads, as a uint8 array [height, width]: white ink on black.
    #[getter]
    fn image<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let image = self.input.image();
        arrays::bytes(py, image.pixels(), &[image.height(), image.width()])
    }

    /// The recognition as a dictionary, with the keys of `comer recognize --json`.
    ///
    /// >>> comer.Recognizer().recognize("samples/power.inkml").to_dict()["latex"]
    /// '(a + b)^{n} = e^{y}'
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json())
    }

    /// The formula, which Jupyter typesets.
    fn _repr_latex_(&self) -> String {
        self.best.get()._repr_latex_()
    }

    /// The formula, and for each symbol where the model looked.
    fn _repr_html_(&self, py: Python) -> PyResult<String> {
        let traced;
        let alignment = match &self.inner.alignment {
            Some(alignment) => alignment,
            None => {
                traced = py.detach(|| self.recognizer.align(&self.input, self.inner.latex()));
                traced.as_ref().map_err(exception)?
            }
        };
        Ok(picture::html(self.input.image(), &self.inner.best, alignment))
    }

    fn __str__(&self) -> &str {
        self.inner.latex()
    }

    fn __repr__(&self) -> String {
        format!("Recognition(latex={:?}, confidence={:.3})", self.inner.latex(), self.inner.best.confidence)
    }
}

impl Recognition {
    fn json(&self) -> Value {
        let formula = |formula: &comer::Candidate| {
            let token = |(token, symbol): (&comer::Token, Option<f32>)| {
                let mut object = json!({ "token": token.text, "confidence": token.confidence });
                if let Some(confidence) = symbol {
                    object["symbol_confidence"] = json!(confidence);
                }
                object
            };
            json!({
                "latex": formula.latex,
                "tokens": formula.tokens.iter().zip(formula.symbol_confidences()).map(token).collect::<Vec<_>>(),
                "confidence": formula.confidence,
                "score": formula.score,
            })
        };
        let mut object = formula(&self.inner.best);
        object["alternatives"] = self.inner.alternatives.iter().map(formula).collect();
        let bounds = self.input.bounds();
        let side = |value: f64| (value * 100.0).round() / 100.0;
        object["box"] = json!({
            "left": side(bounds.left),
            "top": side(bounds.top),
            "right": side(bounds.right),
            "bottom": side(bounds.bottom),
        });
        let warning = |warning: &comer::Warning| json!({ "code": warning.code, "message": warning.message });
        object["warnings"] = self.warnings.iter().map(warning).collect();
        if let Some(strokes) = self.input.stroke_numbers() {
            object["strokes"] = json!(strokes);
        }
        if let Some(alignment) = &self.inner.alignment {
            object["ink"] = json!({ "unread": alignment.ink.unread, "reread": alignment.ink.reread });
        }
        object
    }
}

/// The lines of a derivation, as LaTeX or as answers, as one formula: `aligned` at the first relation sign of each line.
///
/// >>> comer.aligned(["(x + 1)^{2} = x^{2} + 2x + 1", "> 2x"])
/// '\\begin{aligned} (x + 1)^{2} &= x^{2} + 2x + 1 \\\\ &> 2x \\end{aligned}'
#[pyfunction]
pub fn aligned(lines: &Bound<PyAny>) -> PyResult<String> {
    let lines = lines.try_iter()?.map(|line| latex_of(&line?)).collect::<PyResult<Vec<_>>>()?;
    Ok(comer::aligned(lines))
}

/// LaTeX, or what has some: a recognition.
pub fn latex_of(formula: &Bound<PyAny>) -> PyResult<String> {
    match formula.hasattr("latex")? {
        true => formula.getattr("latex")?.extract(),
        false => formula.extract(),
    }
}
