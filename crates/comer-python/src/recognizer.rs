//! The recogniser: a model that is ready to recognise.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comer::{AlignmentDetail, Error, Formula, InputOptions, RecognizeOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::alignment::Alignment;
use crate::error::exception;
use crate::json::to_python;
use crate::recognition::Recognition;
use crate::source::Source;
use crate::workers;

/// A model that is ready to recognise. Open one and use it for many inputs, from any number of threads.
///
/// Args:
///     model: a model file; the bundled model without it.
///     language_model: a language model made by `comer train-lm`; the model's own without it.
///
/// >>> r = comer.Recognizer()
/// >>> r.recognize("samples/fraction.inkml").latex
/// '\\frac{a}{b}'
#[pyclass(frozen, module = "comer")]
pub struct Recognizer {
    inner: Arc<comer::Recognizer>,
    name: String,
}

/// What an input has to become, and how to search for its formula.
#[derive(Clone)]
struct Options {
    input: InputOptions,
    recognize: RecognizeOptions,
    /// For each input.
    timeout: Option<Duration>,
}

impl Options {
    /// With the timeout counted from now.
    fn start(&self) -> (InputOptions, RecognizeOptions) {
        let (input, recognize) = (self.input.clone(), self.recognize.clone());
        match self.timeout.map(|timeout| Instant::now() + timeout) {
            Some(deadline) => (input.deadline(deadline), recognize.deadline(deadline)),
            None => (input, recognize),
        }
    }

    fn recognize(&self, recognizer: &comer::Recognizer, source: Source) -> comer::Result<Formula> {
        let (input, recognize) = self.start();
        recognizer.recognize_formula(source.prepare(&input)?, &recognize)
    }

    fn recognize_all(&self, recognizer: &comer::Recognizer, source: Source) -> comer::Result<Vec<Formula>> {
        let (input, recognize) = self.start();
        let inputs = source.prepare_all(&input)?;
        inputs.into_iter().map(|input| recognizer.recognize_formula(input, &recognize)).collect()
    }
}

fn options(
    beam: usize,
    nbest: usize,
    [greedy, left_to_right, well_formed, language_model, alignment]: [bool; 5],
    [raw, remove_lines]: [bool; 2],
    timeout: Option<f64>,
) -> PyResult<Options> {
    let detail = if alignment { AlignmentDetail::Attention } else { AlignmentDetail::None };
    let mut recognize = RecognizeOptions::new()
        .beam(beam)
        .nbest(nbest)
        .well_formed(well_formed)
        .language_model(language_model)
        .alignment(detail);
    if greedy {
        recognize = recognize.greedy();
    } else if left_to_right {
        recognize = recognize.left_to_right();
    }
    let duration = timeout.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
        let found = timeout.unwrap_or_default();
        PyValueError::new_err(format!("timeout is {found}, expected seconds, at least 0"))
    })?;
    Ok(Options {
        input: InputOptions::new().raw(raw).remove_lines(remove_lines),
        recognize,
        timeout: duration,
    })
}

#[pymethods]
impl Recognizer {
    #[new]
    #[pyo3(signature = (model=None, *, language_model=None))]
    fn new(py: Python, model: Option<PathBuf>, language_model: Option<PathBuf>) -> PyResult<Self> {
        let name = model.as_ref().map_or("the bundled model".into(), |path| path.display().to_string());
        let open = move || {
            let mut recognizer = match model {
                Some(path) => comer::Recognizer::open(path)?,
                None => comer::Recognizer::bundled()?,
            };
            if let Some(path) = language_model {
                recognizer.load_language_model(path)?;
            }
            Ok(recognizer)
        };
        let opened: comer::Result<comer::Recognizer> = workers::run(py, None, move |_| open())?;
        Ok(Self { inner: Arc::new(opened.map_err(|error| exception(&error))?), name })
    }

    /// Recognise the formula of one input.
    ///
    /// Args:
    ///     input: a path, the bytes of a file, an array or a PIL image, InkML as text, or a list of strokes, each a list of
    ///         points (x, y) with y growing downwards. Files are png, jpeg, bmp, webp, tiff, gif, InkML or JSON strokes.
    ///         Arrays are [height, width] or [height, width, channels] of uint8, uint16, bool, or floats from 0 to 1.
    ///     beam: prefixes to keep in each direction; more is slower and slightly more accurate.
    ///     nbest: candidates to return.
    ///     greedy: the fastest search: the most likely token at each step, left to right only.
    ///     left_to_right: search left to right only, in about half the time.
    ///     well_formed: allow only well-formed LaTeX.
    ///     language_model: use the language model, if there is one.
    ///     alignment: compute where each token was read.
    ///     raw: take images as they are (white ink on black): no cleaning, cropping or scaling.
    ///     remove_lines: remove ruled and squared lines of the paper.
    ///     threads: threads to use; one per core by default.
    ///     timeout: seconds after which TimeoutError is raised.
    ///
    /// Raises:
    ///     InputError: the input cannot be read, or shows no formula.
    ///     OSError: the file cannot be read.
    ///
    /// The GIL is released meanwhile, and Ctrl-C interrupts.
    ///
    /// >>> one, plus = [(0, 10), (12, 0), (12, 60)], [[(30, 30), (60, 30)], [(45, 15), (45, 45)]]
    /// >>> strokes = [one, *plus, [(x + 78, y) for x, y in one]]
    /// >>> comer.Recognizer().recognize(strokes).latex
    /// '1 + 1'
    #[pyo3(signature = (input, *, beam=10, nbest=1, greedy=false, left_to_right=false, well_formed=true,
        language_model=true, alignment=false, raw=false, remove_lines=true, threads=None, timeout=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments")]
    fn recognize(
        &self,
        input: &Bound<PyAny>,
        beam: usize,
        nbest: usize,
        greedy: bool,
        left_to_right: bool,
        well_formed: bool,
        language_model: bool,
        alignment: bool,
        raw: bool,
        remove_lines: bool,
        threads: Option<usize>,
        timeout: Option<f64>,
    ) -> PyResult<Recognition> {
        let py = input.py();
        let search = [greedy, left_to_right, well_formed, language_model, alignment];
        let options = options(beam, nbest, search, [raw, remove_lines], timeout)?;
        let source = Source::new(input)?;
        let recognizer = self.inner.clone();
        let found = workers::run(py, threads, move |cancel| {
            let mut options = options;
            options.recognize = options.recognize.cancel_token(cancel);
            options.recognize(&recognizer, source)
        })?;
        Recognition::new(py, self.inner.clone(), found.map_err(|error| exception(&error))?)
    }

    /// Recognise all formulas of a page, in reading order; `box` says where each is.
    ///
    /// Formulas that are not clearly apart are one. The arguments are those of `recognize`.
    ///
    /// >>> one = [(0, 10), (12, 0), (12, 60)]
    /// >>> page = [[(x, y + down) for x, y in one] for down in (0, 400)]
    /// >>> [r.latex for r in comer.Recognizer().recognize_all(page)]
    /// ['1', '1']
    #[pyo3(signature = (input, *, beam=10, nbest=1, greedy=false, left_to_right=false, well_formed=true,
        language_model=true, alignment=false, raw=false, remove_lines=true, threads=None, timeout=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments")]
    fn recognize_all(
        &self,
        input: &Bound<PyAny>,
        beam: usize,
        nbest: usize,
        greedy: bool,
        left_to_right: bool,
        well_formed: bool,
        language_model: bool,
        alignment: bool,
        raw: bool,
        remove_lines: bool,
        threads: Option<usize>,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Recognition>> {
        let py = input.py();
        let search = [greedy, left_to_right, well_formed, language_model, alignment];
        let options = options(beam, nbest, search, [raw, remove_lines], timeout)?;
        let source = Source::new(input)?;
        let recognizer = self.inner.clone();
        let found = workers::run(py, threads, move |cancel| {
            let mut options = options;
            options.recognize = options.recognize.cancel_token(cancel);
            options.recognize_all(&recognizer, source)
        })?;
        let found = found.map_err(|error| exception(&error))?;
        found.into_iter().map(|formula| Recognition::new(py, self.inner.clone(), formula)).collect()
    }

    /// Recognise many inputs in parallel, one thread for each; the results are in the order of the inputs.
    ///
    /// Args:
    ///     inputs: an iterable of inputs, each as for `recognize`.
    ///     errors: "raise" raises the first exception; "return" puts exceptions in the place of the results.
    ///     timeout: seconds for each input.
    ///
    /// The other arguments are those of `recognize`.
    ///
    /// >>> r = comer.Recognizer().recognize_batch(["samples/root.inkml", "missing.png"], errors="return")
    /// >>> r[0].latex
    /// '\\sqrt{x + 1}'
    /// >>> type(r[1]).__name__
    /// 'FileNotFoundError'
    #[pyo3(signature = (inputs, *, beam=10, nbest=1, greedy=false, left_to_right=false, well_formed=true,
        language_model=true, alignment=false, raw=false, remove_lines=true, threads=None, timeout=None, errors="raise"))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments")]
    fn recognize_batch<'py>(
        &self,
        inputs: &Bound<'py, PyAny>,
        beam: usize,
        nbest: usize,
        greedy: bool,
        left_to_right: bool,
        well_formed: bool,
        language_model: bool,
        alignment: bool,
        raw: bool,
        remove_lines: bool,
        threads: Option<usize>,
        timeout: Option<f64>,
        errors: &str,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = inputs.py();
        let raise = match errors {
            "raise" => true,
            "return" => false,
            _ => {
                let message = format!("errors is {errors:?}, expected \"raise\" or \"return\"");
                return Err(PyValueError::new_err(message));
            }
        };
        let search = [greedy, left_to_right, well_formed, language_model, alignment];
        let options = options(beam, nbest, search, [raw, remove_lines], timeout)?;
        let mut sources = Vec::new();
        for input in inputs.try_iter()? {
            match Source::new(&input?) {
                Err(error) if raise => return Err(error),
                source => sources.push(source),
            }
        }
        let recognizer = self.inner.clone();
        let found = workers::run(py, threads, move |cancel| {
            let mut options = options;
            options.recognize = options.recognize.threads(1).cancel_token(cancel);
            let each = |source: PyResult<Source>| {
                let found = options.recognize(&recognizer, source?);
                if raise && found.is_err() {
                    // The others would be computed for nothing.
                    cancel.cancel();
                }
                Ok(found)
            };
            sources.into_par_iter().with_max_len(1).map(each).collect::<Vec<PyResult<comer::Result<_>>>>()
        })?;
        if raise {
            // Those that were cancelled because another failed are not to blame.
            let failed = |found: &PyResult<comer::Result<_>>| match found {
                Ok(Err(error)) if !matches!(error, Error::Cancelled) => Some(exception(error)),
                _ => None,
            };
            if let Some(error) = found.iter().find_map(failed) {
                return Err(error);
            }
        }
        let result = |found: PyResult<comer::Result<_>>| match found
            .and_then(|found| found.map_err(|error| exception(&error)))
        {
            Ok(found) => Ok(Bound::new(py, Recognition::new(py, self.inner.clone(), found)?)?.into_any()),
            Err(error) => Ok(error.into_value(py).into_bound(py).into_any()),
        };
        found.into_iter().map(result).collect()
    }

    /// Where the model would read the tokens of a given formula.
    ///
    /// >>> comer.Recognizer().align("samples/square.inkml", "x^{2} + 1").attention.shape[0]
    /// 7
    #[pyo3(signature = (input, latex, *, raw=false, remove_lines=true))]
    fn align(
        &self,
        input: &Bound<PyAny>,
        latex: String,
        raw: bool,
        remove_lines: bool,
    ) -> PyResult<Alignment> {
        let source = Source::new(input)?;
        let recognizer = self.inner.clone();
        let options = InputOptions::new().raw(raw).remove_lines(remove_lines);
        let aligned =
            workers::run(input.py(), None, move |_| recognizer.align(&source.prepare(&options)?, &latex))?;
        Ok(Alignment(aligned.map_err(|error| exception(&error))?))
    }

    /// The LaTeX tokens that the model can write.
    #[getter]
    fn vocabulary(&self) -> Vec<String> {
        self.inner.tokens().to_vec()
    }

    /// The number of trained parameters.
    #[getter]
    fn parameters(&self) -> usize {
        self.inner.parameters()
    }

    /// What the model file says about its origin: data, recipe, licence, accuracy.
    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.inner.provenance().clone().into())
    }

    fn __repr__(&self) -> String {
        format!("<Recognizer of {}, {:.1} million parameters>", self.name, self.parameters() as f64 / 1e6)
    }
}
