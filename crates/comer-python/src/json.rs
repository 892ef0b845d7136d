//! JSON values as Python objects.

use pyo3::prelude::*;
use serde_json::Value;

/// Lists, dictionaries, strings and numbers of a JSON value.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (value.to_string(),))
}
