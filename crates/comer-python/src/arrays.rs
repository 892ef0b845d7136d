//! NumPy arrays, made through NumPy's own functions, so that the package can be used without NumPy.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// An array of 32-bit floats in rows.
pub fn floats<'py>(py: Python<'py>, values: &[f32], shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    array(py, &bytes, "float32", shape)
}

/// An array of bytes in rows.
pub fn bytes<'py>(py: Python<'py>, values: &[u8], shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    array(py, values, "uint8", shape)
}

fn array<'py>(py: Python<'py>, bytes: &[u8], kind: &str, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    // A bytearray can be written to, and so can an array over it.
    let flat = py.import("numpy")?.call_method1("frombuffer", (PyByteArray::new(py, bytes), kind))?;
    flat.call_method1("reshape", (shape.to_vec(),))
}
