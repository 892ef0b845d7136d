//! Errors of the library as Python exceptions, with the library's messages.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

create_exception!(comer, ComerError, PyException, "Base class of the exceptions of this package.");
create_exception!(comer, InputError, ComerError, "An input is not an image or ink that can be recognised.");
create_exception!(comer, ModelError, ComerError, "A file is not a usable model or language model.");

/// The exception of an error. A file that cannot be read raises `OSError` or one of its subclasses, an argument out of range
/// `ValueError`, and a passed timeout `TimeoutError`.
pub fn exception(error: &comer::Error) -> PyErr {
    use comer::Error::{Config, DeadlineExceeded, Decode, Image, Ink, Input, Io, LanguageModel, ModelFile};
    let message = chain(error);
    match error {
        Io { path, source, .. } => match source.raw_os_error() {
            // With a number, `OSError` becomes FileNotFoundError, PermissionError, ...
            Some(number) => PyOSError::new_err((number, reason(source), path.clone().into_os_string())),
            None => PyOSError::new_err(message),
        },
        Config { .. } => PyValueError::new_err(message),
        DeadlineExceeded => PyTimeoutError::new_err(message),
        Decode { .. } | Image { .. } | Ink { .. } | Input { .. } => InputError::new_err(message),
        ModelFile { .. } | LanguageModel { .. } => ModelError::new_err(message),
        _ => ComerError::new_err(message),
    }
}

/// The exception of an error of the evaluation.
pub fn evaluation_exception(error: comer_eval::Error) -> PyErr {
    match &error {
        comer_eval::Error::File { path, reason: source } if source.raw_os_error().is_some() => {
            PyOSError::new_err((source.raw_os_error(), reason(source), path.clone().into_os_string()))
        }
        _ => ComerError::new_err(chain(&error)),
    }
}

/// The text of an error of the operating system without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// An error and what caused it, as far as that says something new.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        next = source.source();
    }
    message
}
