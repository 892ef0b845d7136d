//! Where tokens were read, as arrays.

use pyo3::prelude::*;
use serde_json::json;

use crate::arrays;
use crate::json::to_python;

/// Where in the image the tokens of a formula were read.
///
/// The image that the model reads (`Recognition.image`) is divided into cells of 16 x 16 pixels.
#[pyclass(frozen, module = "comer")]
pub struct Alignment(pub comer::Alignment);

#[pymethods]
impl Alignment {
    /// The attention of each token to each cell, as a float32 array [tokens, height, width]. That of a token adds up to 1.
    ///
    /// >>> r = comer.Recognizer().recognize("samples/root.inkml", alignment=True)
    /// >>> len(r.alignment.attention) == len(r.tokens)
    /// True
    #[getter]
    fn attention<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = [self.0.attention.len(), self.0.height, self.0.width];
        arrays::floats(py, &self.0.attention.concat(), &shape)
    }

    /// The share of each pen stroke in the attention of each token, as a float32 array [tokens, strokes]; None for images.
    #[getter]
    fn strokes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(shares) = &self.0.strokes else { return Ok(None) };
        let shape = [shares.len(), shares.first().map_or(0, Vec::len)];
        Ok(Some(arrays::floats(py, &shares.concat(), &shape)?))
    }

    /// The share of the ink that no token attended to, from 0 to 1.
    #[getter]
    fn unread(&self) -> f32 {
        self.0.ink.unread
    }

    /// The share of the ink that two or more tokens were read from, from 0 to 1.
    #[getter]
    fn reread(&self) -> f32 {
        self.0.ink.reread
    }

    /// The connected regions of ink as dictionaries: left, top, width, height in pixels of `Recognition.image`, the most
    /// attention of one token, and whether the region is unread or was read twice.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let region = |region: &comer::alignment::Region| {
            json!({
                "left": region.left,
                "top": region.top,
                "width": region.width,
                "height": region.height,
                "attention": region.attention,
                "unread": region.is_unread(),
                "reread": region.is_reread(),
            })
        };
        to_python(py, &self.0.ink.regions.iter().map(region).collect())
    }

    fn __repr__(&self) -> String {
        let (tokens, ink) = (self.0.attention.len(), &self.0.ink);
        format!(
            "<Alignment of {tokens} tokens with {} x {} cells, {:.0} % of the ink unread>",
            self.0.height,
            self.0.width,
            100.0 * ink.unread
        )
    }
}
