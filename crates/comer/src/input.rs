//! What is to be recognised: an image or pen strokes, and the image that the model reads.

mod options;
mod source;

use std::path::Path;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::ink::{Ink, Point, Stroke};
use crate::mapping::Mapping;
use crate::photo::layout::{self, Extent, Gaps};
use crate::photo::{self, Cleaned, Cleaning, Grey, Work};
pub use options::InputOptions;
use source::Source;

/// Something to recognise: an image file, pixels or pen strokes.
///
/// An input is prepared once and can be recognised any number of times. It keeps the image that the model reads
/// ([`Self::image`]), the strokes if there are any ([`Self::ink`]), and how the coordinates of both relate
/// ([`Self::to_image`], [`Self::to_source`]).
///
/// ```
/// use comer::{Ink, Input, Point, Stroke};
///
/// let line = |from: (f64, f64), to: (f64, f64)| Stroke {
///     points: [from, to].map(|(x, y)| Point { x, y }).to_vec(),
/// };
/// let cross = vec![line((0.0, 0.0), (40.0, 60.0)), line((40.0, 0.0), (0.0, 60.0))];
/// let input = Input::from_ink(Ink::new(cross)?)?;
///
/// // Strokes are drawn as the training images were: 28 pixels high on average, in a margin.
/// assert_eq!((input.image().width(), input.image().height()), (44, 54));
/// let centre = input.to_image(Point { x: 20.0, y: 30.0 });
/// assert_eq!(((centre.x + 0.5) as usize, (centre.y + 0.5) as usize), (22, 27));
/// # Ok::<(), comer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Input {
    image: Image,
    ink: Option<Ink>,
    mapping: Mapping,
    /// Width of the image over that before it was scaled to the limits.
    factor: f32,
    bounds: Bounds,
    /// The image and its mapping before it was scaled to the limits, if it was.
    whole: Option<Box<(Image, Mapping)>>,
    /// The same at a smaller size, if a picture was cleaned.
    smaller: Option<Box<Self>>,
    /// Which strokes of a page the ink has, if it is only a part of it.
    strokes: Option<Vec<usize>>,
    /// Whether the image file ends early.
    truncated: bool,
}

/// A rectangle of the source: the ink in its own coordinates, or the upright image in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bounds {
    /// The left side.
    pub left: f64,
    /// The upper side.
    pub top: f64,
    /// The right side.
    pub right: f64,
    /// The lower side.
    pub bottom: f64,
}

impl From<Extent> for Bounds {
    fn from(Extent { columns, rows }: Extent) -> Self {
        Self { left: columns.0, top: rows.0, right: columns.1, bottom: rows.1 }
    }
}

impl Input {
    /// File name extensions of what [`Self::from_bytes`] reads.
    #[cfg(feature = "decode")]
    pub const EXTENSIONS: &[&str] =
        &["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff", "gif", "inkml", "json"];
    /// File name extensions of what [`Self::from_bytes`] reads.
    #[cfg(not(feature = "decode"))]
    pub const EXTENSIONS: &[&str] = &["inkml", "json"];

    /// Reads the bytes of a file: an image (png, jpeg, bmp, webp, tiff or gif), InkML, or JSON strokes such as
    /// `[[[x, y], ...], ...]`. The content decides which.
    ///
    /// Without the feature `decode`, only InkML and JSON are read.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_with(bytes, &InputOptions::default())
    }

    /// As [`Self::from_bytes`], with options for images.
    pub fn from_bytes_with(bytes: &[u8], options: &InputOptions) -> Result<Self> {
        match Source::read(bytes, options)? {
            Source::Ink(ink) => Self::from_ink(ink),
            Source::Image(Grey { width, height, levels }, truncated) => {
                Ok(Self::from_pixels_with(width, height, levels, options)?.of_file(truncated))
            }
        }
    }

    /// Reads the bytes of a file that may show several formulas (see [`Self::from_bytes`]): one input for each, in reading
    /// order.
    ///
    /// Formulas are ink with clear space around it; a fraction bar keeps its numerator and denominator together.
    /// [`Self::bounds`] says where each is, and [`Self::stroke_numbers`] which strokes it has.
    ///
    /// ```
    /// use comer::{Input, InputOptions};
    ///
    /// // Two lines, each with a minus sign between two ones.
    /// let line = |y: u32| format!("[[20, {y}], [20, {}]], [[40, {}], [80, {}]], [[100, {y}], [100, {}]]", y + 60, y + 30, y + 30, y + 60);
    /// let strokes = format!("[{}, {}]", line(0), line(200));
    /// let inputs = Input::all_from_bytes(strokes.as_bytes(), &InputOptions::new())?;
    /// assert_eq!(inputs.len(), 2);
    /// assert_eq!(inputs[1].bounds().top, 200.0);
    /// assert_eq!(inputs[1].stroke_numbers(), Some(&[3, 4, 5][..]));
    /// # Ok::<(), comer::Error>(())
    /// ```
    pub fn all_from_bytes(bytes: &[u8], options: &InputOptions) -> Result<Vec<Self>> {
        match Source::read(bytes, options)? {
            Source::Ink(ink) => Self::all_from_ink(ink, options),
            Source::Image(Grey { width, height, levels }, truncated) => {
                let inputs = Self::all_from_pixels(width, height, levels, options)?;
                Ok(inputs.into_iter().map(|input| input.of_file(truncated)).collect())
            }
        }
    }

    /// Pen strokes that may be several formulas (see [`Self::all_from_bytes`]).
    pub fn all_from_ink(ink: Ink, options: &InputOptions) -> Result<Vec<Self>> {
        let extents: Vec<Extent> = ink.strokes().iter().map(extent).collect();
        let interrupt = || options.interrupt.check();
        let groups = layout::groups(&extents, options.gaps(), &Work::new(&interrupt))?;
        if groups.len() < 2 {
            return Ok(vec![Self::from_ink(ink)?]);
        }
        let formula = |mut numbers: Vec<usize>| {
            numbers.sort_unstable();
            let strokes = numbers.iter().map(|&stroke| ink.strokes()[stroke].clone()).collect();
            let input = Self::from_ink(Ink::new(strokes)?.with_scale(ink.scale()))?;
            Ok(Self { strokes: Some(numbers), ..input })
        };
        groups.into_iter().map(formula).collect()
    }

    /// An image that may show several formulas (see [`Self::from_pixels`] and [`Self::all_from_bytes`]).
    pub fn all_from_pixels(
        width: usize,
        height: usize,
        levels: Vec<u8>,
        options: &InputOptions,
    ) -> Result<Vec<Self>> {
        let image = Image::new(width, height, levels)?;
        if options.raw {
            return Ok(vec![Self::from_image(image)?]);
        }
        Self::cleaned(image, Some(options.gaps()), options)
    }

    /// Reads a file that may show several formulas (see [`Self::all_from_bytes`]).
    pub fn all_from_path(path: impl AsRef<Path>, options: &InputOptions) -> Result<Vec<Self>> {
        Self::read_path(path.as_ref(), |bytes| Self::all_from_bytes(bytes, options))
    }

    /// Reads a file (see [`Self::from_bytes`]).
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_path_with(path, &InputOptions::default())
    }

    /// As [`Self::from_path`], with options for images.
    pub fn from_path_with(path: impl AsRef<Path>, options: &InputOptions) -> Result<Self> {
        Self::read_path(path.as_ref(), |bytes| Self::from_bytes_with(bytes, options))
    }

    fn read_path<T>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let bytes = comer_files::read(path, comer_files::limit::INPUT).map_err(Error::reading(path))?;
        read(&bytes).map_err(|error| Error::Input { path: path.into(), source: Box::new(error) })
    }

    /// An image of any kind as grey levels in rows from the top, 0 for black: dark ink on a light ground or light ink on a
    /// dark one.
    pub fn from_pixels(width: usize, height: usize, levels: Vec<u8>) -> Result<Self> {
        Self::from_pixels_with(width, height, levels, &InputOptions::default())
    }

    /// As [`Self::from_pixels`], with options.
    pub fn from_pixels_with(
        width: usize,
        height: usize,
        levels: Vec<u8>,
        options: &InputOptions,
    ) -> Result<Self> {
        let image = Image::new(width, height, levels)?;
        if options.raw {
            return Self::from_image(image);
        }
        let mut inputs = Self::cleaned(image, None, options)?;
        Ok(inputs.swap_remove(0))
    }

    /// At least one input.
    fn cleaned(image: Image, gaps: Option<Gaps>, options: &InputOptions) -> Result<Vec<Self>> {
        let grey = Grey { width: image.width(), height: image.height(), levels: image.into_pixels() };
        let interrupt = || options.interrupt.check();
        let cleaning = Cleaning { remove_lines: options.remove_lines, gaps };
        let formulas = photo::clean_all(&grey, &cleaning, &Work::new(&interrupt))?;
        let input = |Cleaned { image, mapping, smaller, extent }| {
            let smaller =
                smaller.and_then(|(image, mapping)| Self::fitted(image, None, mapping, extent).ok());
            let smaller = smaller.map(Box::new);
            Ok(Self { smaller, ..Self::fitted(image, None, mapping, extent)? })
        };
        formulas.into_iter().map(input).collect()
    }

    /// An image of any kind as red, green, blue and alpha in rows from the top, four bytes per pixel: what is on a screen or
    /// a canvas.
    #[cfg(feature = "decode")]
    pub fn from_rgba(width: usize, height: usize, rgba: &[u8]) -> Result<Self> {
        Self::from_pixels(width, height, grey_levels(width, height, rgba)?)
    }

    /// As [`Self::from_rgba`], for an image that may show several formulas (see [`Self::all_from_bytes`]).
    #[cfg(feature = "decode")]
    pub fn all_from_rgba(
        width: usize,
        height: usize,
        rgba: &[u8],
        options: &InputOptions,
    ) -> Result<Vec<Self>> {
        Self::all_from_pixels(width, height, grey_levels(width, height, rgba)?, options)
    }

    /// An image like those of the training set: white ink on black, taken as it is and only scaled to the model's limits.
    pub fn from_image(image: Image) -> Result<Self> {
        let extent = Extent { columns: (0.0, image.width() as f64), rows: (0.0, image.height() as f64) };
        Self::fitted(image, None, Mapping::scale(1.0, 1.0), extent)
    }

    /// Pen strokes, drawn as the images of the training set were.
    pub fn from_ink(ink: Ink) -> Result<Self> {
        let (image, mapping) = (ink.draw()?, ink.mapping());
        let extent = ink.strokes().iter().map(extent).reduce(Extent::join).expect("ink has strokes");
        Self::fitted(image, Some(ink), mapping, extent)
    }

    /// The image that the model reads: white ink on black, within the model's size limits.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The pen strokes, if the input has them.
    pub fn ink(&self) -> Option<&Ink> {
        self.ink.as_ref()
    }

    /// The input at a smaller size, for a second reading; `None` for ink, for images that were not cleaned and turned ones.
    pub(crate) fn smaller(&self) -> Option<&Self> {
        self.smaller.as_deref()
    }

    /// The input, of a file that ends early or does not.
    fn of_file(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self.smaller.iter_mut().for_each(|smaller| smaller.truncated = truncated);
        self
    }

    /// Whether the image file ends early, so that a part of it was not read.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The image turned clockwise by a number of quarters, for a formula that is not upright; without its ink.
    pub fn turned(&self, quarters: usize) -> Result<Self> {
        let (image, mapping) =
            self.whole.as_deref().map_or((&self.image, self.mapping), |(image, mapping)| (image, *mapping));
        let turn = Mapping::quarter_turns(quarters, image.width(), image.height());
        let Bounds { left, top, right, bottom } = self.bounds;
        let extent = Extent { columns: (left, right), rows: (top, bottom) };
        let turned = Self::fitted(image.turned(quarters), None, mapping.then(turn), extent)?;
        Ok(turned.of_file(self.truncated))
    }

    /// The rectangle of the source that the formula fills.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Which strokes of a page this ink has, if it is one of several formulas ([`Self::all_from_ink`]).
    pub fn stroke_numbers(&self) -> Option<&[usize]> {
        self.strokes.as_deref()
    }

    /// Where a place of the source is in [`Self::image`], in pixels from its upper left corner. The source is the ink in
    /// its own coordinates, or the upright image in pixels.
    pub fn to_image(&self, place: Point) -> Point {
        let [x, y] = self.mapping.apply([place.x, place.y]);
        Point { x, y }
    }

    /// Where a place of [`Self::image`], in pixels from its upper left corner, is in the source.
    pub fn to_source(&self, place: Point) -> Point {
        let [x, y] = self.mapping.invert([place.x, place.y]);
        Point { x, y }
    }

    /// Calls `visit` with the number of a stroke and a pixel of [`Self::image`], for every step of the pen.
    pub(crate) fn pen(&self, mut visit: impl FnMut(usize, [usize; 2])) {
        if let Some(ink) = &self.ink {
            ink.pen(|stroke, pixel| visit(stroke, pixel.map(|side| (side as f32 * self.factor) as usize)));
        }
    }

    fn fitted(image: Image, ink: Option<Ink>, mapping: Mapping, extent: Extent) -> Result<Self> {
        let (width, height) = (image.width(), image.height());
        let fitted = image.clone().fit()?;
        let factor = fitted.width() as f32 / width as f32;
        let fit =
            Mapping::scale(fitted.width() as f64 / width as f64, fitted.height() as f64 / height as f64);
        let whole = (fitted != image && ink.is_none()).then(|| Box::new((image, mapping)));
        let (bounds, mapping) = (extent.into(), mapping.then(fit));
        Ok(Self {
            image: fitted,
            ink,
            mapping,
            factor,
            bounds,
            whole,
            smaller: None,
            strokes: None,
            truncated: false,
        })
    }
}

#[cfg(feature = "decode")]
fn grey_levels(width: usize, height: usize, rgba: &[u8]) -> Result<Vec<u8>> {
    if width.checked_mul(height).and_then(|area| area.checked_mul(4)) != Some(rgba.len()) {
        let reason = format!("has {} bytes, expected width x height x 4", rgba.len());
        return Err(Error::Image { width, height, reason });
    }
    let size = (width as u32, height as u32);
    let pixels = image::RgbaImage::from_raw(size.0, size.1, rgba.to_vec());
    let Some(pixels) = pixels.filter(|_| (size.0 as usize, size.1 as usize) == (width, height)) else {
        let reason = "expected at most 2^32 pixels a side".into();
        return Err(Error::Image { width, height, reason });
    };
    Ok(photo::grey(&pixels.into()).levels)
}

/// What a stroke fills.
fn extent(stroke: &Stroke) -> Extent {
    let range = |place: fn(&Point) -> f64| {
        let places = stroke.points.iter().map(place);
        (places.clone().fold(f64::INFINITY, f64::min), places.fold(f64::NEG_INFINITY, f64::max))
    };
    Extent { columns: range(|point| point.x), rows: range(|point| point.y) }
}

#[cfg(test)]
mod tests;
