//! The Python package `comer`: recognition and scoring as classes and functions of Python.

mod alignment;
mod arrays;
mod error;
mod evaluate;
mod json;
mod picture;
mod recognition;
mod recognizer;
mod source;
mod workers;

/// Handwritten mathematics in, LaTeX out.
#[pyo3::pymodule]
mod _comer {
    #[pymodule_export]
    use crate::alignment::Alignment;
    #[pymodule_export]
    use crate::error::{ComerError, InputError, ModelError};
    #[pymodule_export]
    use crate::evaluate::{evaluate, score};
    #[pymodule_export]
    use crate::recognition::{Candidate, Recognition, aligned};
    #[pymodule_export]
    use crate::recognizer::Recognizer;
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
