//! What Python programs pass as an input: paths, bytes, arrays, PIL images, InkML and strokes.

use std::path::PathBuf;

use comer::internal::photo::{Grey, grey};
use comer::{Ink, Input, InputOptions, Point, Stroke};
use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyMemoryView, PyString};

use crate::error::InputError;

/// An input that no longer needs Python.
pub enum Source {
    File(PathBuf),
    Bytes(Vec<u8>),
    Pixels { width: usize, height: usize, channels: usize, levels: Vec<u8> },
    Ink(Vec<Stroke>),
}

impl Source {
    /// Takes over a Python object.
    pub fn new(input: &Bound<PyAny>) -> PyResult<Self> {
        if let Ok(text) = input.cast::<PyString>() {
            let text = text.to_cow()?;
            return Ok(match text.trim_start().starts_with('<') {
                true => Self::Bytes(text.as_bytes().to_vec()),
                false => Self::File(text.as_ref().into()),
            });
        }
        if let Ok(bytes) = input.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = input.cast::<PyByteArray>() {
            return Ok(Self::Bytes(bytes.to_vec()));
        }
        if input.is_instance_of::<PyMemoryView>() {
            return Ok(Self::Bytes(input.call_method0("tobytes")?.extract()?));
        }
        if input.hasattr("__fspath__")? {
            return Ok(Self::File(input.extract()?));
        }
        // An image of PIL is also an array: it comes first.
        if input.hasattr("getbands")? && input.hasattr("tobytes")? {
            return Self::from_pil(input);
        }
        if input.hasattr("__array_interface__")? || input.hasattr("__array__")? {
            return Self::from_array(input);
        }
        Self::from_strokes(input)
    }

    /// The input for the model: decoded, cleaned or drawn.
    pub fn prepare(self, options: &InputOptions) -> comer::Result<Input> {
        match self {
            Self::File(path) => Input::from_path_with(path, options),
            Self::Bytes(bytes) => Input::from_bytes_with(&bytes, options),
            Self::Ink(strokes) => Input::from_ink(Ink::new(strokes)?),
            Self::Pixels { width, height, channels, levels } => {
                let Grey { width, height, levels } = grey_levels(width, height, channels, levels);
                Input::from_pixels_with(width, height, levels, options)
            }
        }
    }

    /// The inputs of all formulas, in reading order.
    pub fn prepare_all(self, options: &InputOptions) -> comer::Result<Vec<Input>> {
        match self {
            Self::File(path) => Input::all_from_path(path, options),
            Self::Bytes(bytes) => Input::all_from_bytes(&bytes, options),
            Self::Ink(strokes) => Input::all_from_ink(Ink::new(strokes)?, options),
            Self::Pixels { width, height, channels, levels } => {
                let Grey { width, height, levels } = grey_levels(width, height, channels, levels);
                Input::all_from_pixels(width, height, levels, options)
            }
        }
    }

    fn from_pil(picture: &Bound<PyAny>) -> PyResult<Self> {
        let py = picture.py();
        let picture = py.import("PIL.ImageOps")?.call_method1("exif_transpose", (picture,))?;
        let mode: String = picture.getattr("mode")?.extract()?;
        let channels = match mode.as_str() {
            "L" => 1,
            "LA" => 2,
            "RGB" => 3,
            "RGBA" => 4,
            // Palettes, bits and 16-bit levels: our own decoder reads them as it does from a file.
            "1" | "P" | "I;16" => {
                let file = py.import("io")?.call_method0("BytesIO")?;
                let options = PyDict::new(py);
                options.set_item("format", "PNG")?;
                options.set_item("compress_level", 1)?;
                picture.call_method("save", (&file,), Some(&options))?;
                return Ok(Self::Bytes(file.call_method0("getvalue")?.extract()?));
            }
            _ => return Self::from_pil(&picture.call_method1("convert", ("RGB",))?),
        };
        let (width, height) = picture.getattr("size")?.extract()?;
        let levels = picture.call_method0("tobytes")?.extract()?;
        Ok(Self::Pixels { width, height, channels, levels })
    }

    /// An array of rows of grey levels, or of colours: bytes, booleans, 16-bit levels, or floats from 0 to 1.
    fn from_array(array: &Bound<PyAny>) -> PyResult<Self> {
        let numpy = array.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (array,))?;
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        let (height, width, channels) = match shape[..] {
            [height, width] => (height, width, 1),
            [height, width, channels @ 1..=4] => (height, width, channels),
            _ => {
                return Err(InputError::new_err(format!(
                    "an array of shape {shape:?}, expected [height, width] or [height, width, channels] with 1 to 4 channels"
                )));
            }
        };
        let kind: String = array.getattr("dtype")?.getattr("str")?.extract()?;
        let scaled = match kind.trim_start_matches(['<', '>', '|', '=']) {
            "u1" => array,
            "b1" => array.call_method1("astype", ("uint8",))?.mul(255)?,
            "u2" => array.call_method1("__floordiv__", (257,))?,
            "f2" | "f4" | "f8" => {
                let limit = |name: &str| -> PyResult<f64> { numpy.call_method1(name, (&array,))?.extract() };
                if height * width > 0 {
                    let (least, most) = (limit("min")?, limit("max")?);
                    if !(least >= 0.0 && most <= 1.0) {
                        return Err(InputError::new_err(format!(
                            "an array of floats from {least} to {most}, expected 0.0 (black) to 1.0 (white)"
                        )));
                    }
                }
                numpy.call_method1("rint", (array.mul(255.0)?,))?
            }
            _ => {
                return Err(InputError::new_err(format!(
                    "an array of type {kind}, expected uint8, uint16, bool, or floats from 0 to 1"
                )));
            }
        };
        let levels = scaled.call_method1("astype", ("uint8",))?.call_method0("tobytes")?.extract()?;
        Ok(Self::Pixels { width, height, channels, levels })
    }

    /// Strokes, each a sequence of points (x, y, ...) or an array of them.
    fn from_strokes(input: &Bound<PyAny>) -> PyResult<Self> {
        let unknown = || {
            let kind = input.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "found {kind}, expected a path, bytes, an array, a PIL image, InkML, or a list of strokes"
            ))
        };
        let strokes = input.try_iter().map_err(|_| unknown())?;
        let stroke = |(number, stroke): (usize, PyResult<Bound<PyAny>>)| {
            let stroke = stroke?;
            let stroke = if stroke.hasattr("tolist")? { stroke.call_method0("tolist")? } else { stroke };
            let wrong = |reason: String| InputError::new_err(format!("stroke {number}: {reason}"));
            let points: Vec<Vec<f64>> =
                stroke.extract().map_err(|_| wrong("expected a list of points (x, y)".into()))?;
            let point = |(index, point): (usize, &Vec<f64>)| match point[..] {
                [x, y, ..] => Ok(Point { x, y }),
                _ => Err(wrong(format!("point {index} has {} values, expected x and y", point.len()))),
            };
            Ok(Stroke { points: points.iter().enumerate().map(point).collect::<PyResult<_>>()? })
        };
        Ok(Self::Ink(strokes.enumerate().map(stroke).collect::<PyResult<_>>()?))
    }
}

fn grey_levels(width: usize, height: usize, channels: usize, levels: Vec<u8>) -> Grey {
    match channels {
        1 => Grey { width, height, levels },
        _ => grey(&colours(width, height, channels, levels)),
    }
}

fn colours(width: usize, height: usize, channels: usize, levels: Vec<u8>) -> DynamicImage {
    let (width, height) = (width as u32, height as u32);
    match channels {
        1 => GrayImage::from_raw(width, height, levels).map(DynamicImage::from),
        2 => GrayAlphaImage::from_raw(width, height, levels).map(DynamicImage::from),
        3 => RgbImage::from_raw(width, height, levels).map(DynamicImage::from),
        _ => RgbaImage::from_raw(width, height, levels).map(DynamicImage::from),
    }
    .unwrap_or_default()
}
