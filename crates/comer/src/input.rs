//! What is to be recognised: an image or pen strokes, and the image that the model reads.

use std::path::Path;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::ink::{Ink, Point, Stroke};
use crate::interrupt::{CancelToken, Interrupt};
use crate::mapping::Mapping;
use crate::photo::layout::{self, Extent, Gaps};
use crate::photo::{self, Cleaned, Cleaning, Grey, Work};

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
    /// Which strokes of a page the ink has, if it is only a part of it.
    strokes: Option<Vec<usize>>,
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

/// How inputs are prepared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputOptions {
    raw: bool,
    remove_lines: bool,
    lenient: bool,
    dense: bool,
    interrupt: Interrupt,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self { raw: false, remove_lines: true, lenient: false, dense: false, interrupt: Interrupt::default() }
    }
}

impl InputOptions {
    /// The default options: images are cleaned and brought to the size of the training images.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes images as they are (default false): white ink on black, about 28 pixels high, in strokes of 3 pixels.
    pub fn raw(mut self, raw: bool) -> Self {
        self.raw = raw;
        self
    }

    /// Whether ruled and squared lines of the paper are removed (default true).
    pub fn remove_lines(mut self, remove_lines: bool) -> Self {
        self.remove_lines = remove_lines;
        self
    }

    /// Whether an image file that ends early is read as far as it goes (default false); not for WebP and TIFF.
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// For [`Input::all_from_bytes`]: whether formulas are separated by the space that they usually have between them
    /// (default false: only where there is clearly more than one).
    pub fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// Gives up with [`Error::DeadlineExceeded`] if an image is not prepared by then.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.interrupt.deadline = Some(deadline);
        self
    }

    /// Gives up with [`Error::Cancelled`] soon after `token` is cancelled.
    pub fn cancel_token(mut self, token: &CancelToken) -> Self {
        self.interrupt.cancel = Some(token.clone());
        self
    }

    fn gaps(&self) -> Gaps {
        if self.dense { Gaps::USUAL } else { Gaps::CLEAR }
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
            Source::Image(Grey { width, height, levels }) => {
                Self::from_pixels_with(width, height, levels, options)
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
            Source::Image(Grey { width, height, levels }) => {
                Self::all_from_pixels(width, height, levels, options)
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
        let input = |Cleaned { image, mapping, extent }| Self::fitted(image, None, mapping, extent);
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

    /// The image turned clockwise by a number of quarters, for a formula that is not upright; without its ink.
    pub fn turned(&self, quarters: usize) -> Result<Self> {
        let (image, mapping) =
            self.whole.as_deref().map_or((&self.image, self.mapping), |(image, mapping)| (image, *mapping));
        let turn = Mapping::quarter_turns(quarters, image.width(), image.height());
        let Bounds { left, top, right, bottom } = self.bounds;
        let extent = Extent { columns: (left, right), rows: (top, bottom) };
        Self::fitted(image.turned(quarters), None, mapping.then(turn), extent)
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
        Ok(Self { image: fitted, ink, mapping, factor, bounds, whole, strokes: None })
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

/// What a file holds.
enum Source {
    Ink(Ink),
    Image(Grey),
}

impl Source {
    fn read(bytes: &[u8], options: &InputOptions) -> Result<Self> {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        match text.first() {
            Some(b'<') if !photo::is_svg(text) => Ok(Self::Ink(Ink::from_inkml(bytes)?)),
            Some(b'[' | b'{') => Ok(Self::Ink(Ink::from_json(text)?)),
            _ => Self::decode(bytes, options).map(Self::Image),
        }
    }

    #[cfg(feature = "decode")]
    fn decode(bytes: &[u8], options: &InputOptions) -> Result<Grey> {
        let grey = photo::decode_with(bytes, options.lenient)?;
        options.interrupt.check()?;
        Ok(grey)
    }

    #[cfg(not(feature = "decode"))]
    fn decode(_: &[u8], _: &InputOptions) -> Result<Grey> {
        let reason = "this program was built without image decoders, expected InkML or JSON strokes".into();
        Err(Error::Decode { reason, source: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::Stroke;

    fn stroke(points: &[(f64, f64)]) -> Stroke {
        Stroke { points: points.iter().map(|&(x, y)| Point { x, y }).collect() }
    }

    fn cross(side: f64) -> Ink {
        Ink::new(vec![stroke(&[(0.0, 0.0), (side, side)]), stroke(&[(side, 0.0), (0.0, side)])]).unwrap()
    }

    #[test]
    fn the_content_decides_what_an_input_is() {
        let strokes = br#" [[[0, 0], [40, 40]], [[40, 0], [0, 40]]]"#;
        let from_json = Input::from_bytes(strokes).unwrap();
        let with_mark = Input::from_bytes(&[b"\xef\xbb\xbf", &strokes[..]].concat()).unwrap();
        let from_inkml = Input::from_bytes(cross(40.0).to_inkml().as_bytes()).unwrap();
        for input in [&from_json, &with_mark, &from_inkml] {
            assert_eq!(input.image(), from_json.image());
            assert_eq!(input.ink().unwrap().strokes().len(), 2);
        }
        for (bytes, expected) in [(&b"<p/>"[..], "InkML"), (b"{}", "JSON"), (b"GIF", "image"), (b"", "image")]
        {
            let message = Input::from_bytes(bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn errors_of_files_name_them_and_have_a_source() {
        use std::error::Error as _;
        let error = Input::from_path("/nonexistent/x.png").unwrap_err();
        assert!(matches!(error, Error::Io { .. }) && error.source().is_some(), "{error:?}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.json");
        std::fs::write(&path, "{}").unwrap();
        let error = Input::from_path(&path).unwrap_err();
        assert!(error.to_string().contains("bad.json"), "{error}");
        assert!(error.source().unwrap().to_string().contains("JSON"), "{error:?}");
    }

    #[test]
    fn ink_is_mapped_onto_its_pixels() {
        // Whole numbers, fractions, far from zero, and so wide that the drawing is scaled to fit.
        let wide: Vec<(f64, f64)> = (0..9).map(|x| (f64::from(x) * 40.0, f64::from(x % 2) * 10.0)).collect();
        let far = stroke(&[(9e8, -9e8), (9e8 + 70.0, -9e8 + 90.0)]);
        for ink in
            [cross(60.0), cross(0.37), Ink::new(vec![far]).unwrap(), Ink::new(vec![stroke(&wide)]).unwrap()]
        {
            let input = Input::from_ink(ink).unwrap();
            let (image, drawing) = (input.image(), input.ink().unwrap().draw().unwrap());
            let factor = image.width() as f64 / drawing.width() as f64;
            let mut first = Vec::new();
            input.ink().unwrap().pen(|stroke, pixel| {
                if first.len() == stroke {
                    first.push(pixel);
                }
            });
            for (stroke, pixel) in input.ink().unwrap().strokes().iter().zip(first) {
                let place = input.to_image(stroke.points[0]);
                for (found, expected) in [(place.x, pixel[0]), (place.y, pixel[1])] {
                    let off = found / factor - (expected as f64 + 0.5);
                    assert!(off.abs() <= 1.0, "{off} pixels off");
                }
                let back = input.to_source(place);
                let error = (back.x - stroke.points[0].x).abs().max((back.y - stroke.points[0].y).abs());
                assert!(error < 1e-3, "{error}");
            }
        }
    }

    #[test]
    fn photographs_are_mapped_onto_their_pixels() {
        // A cross in a pen that fits its size, which is scaled, and in one that is too thin, which is redrawn.
        for (pen, side) in [(8, 90), (3, 150)] {
            let (width, height) = (400, 300);
            let mut levels = vec![230; width * height];
            for step in 0..side {
                for (x, y) in [(150 + step, 80 + step), (150 + side - step, 80 + step)] {
                    for row in y..y + pen {
                        levels[row * width + x..][..pen].fill(20);
                    }
                }
            }
            let input = Input::from_pixels(width, height, levels).unwrap();
            // The middle of the cross is the middle of the image that the model reads.
            let middle = 80.0 + (side + pen) as f64 / 2.0;
            let place = input.to_image(Point { x: middle + 70.0, y: middle });
            for (found, side) in [(place.x, input.image().width()), (place.y, input.image().height())] {
                assert!((found - side as f64 / 2.0).abs() < 2.0, "pen {pen}: {found} of {side}");
            }
        }
    }

    #[test]
    fn an_input_can_be_turned() {
        let image =
            Image::new(40, 30, (0..1200).map(|at| if at % 40 == 3 && at < 400 { 255 } else { 0 }).collect());
        let input = Input::from_image(image.unwrap()).unwrap();
        let turned = input.turned(1).unwrap();
        assert_eq!((turned.image().width(), turned.image().height()), (30, 40));
        // The upper end of the line is now its right end.
        let place = turned.to_image(Point { x: 3.5, y: 0.5 });
        assert_eq!((place.x, place.y), (29.5, 3.5));
        assert_eq!(turned.image().pixels()[3 * 30 + 29], 255);
        let back = turned.to_source(place);
        assert!((back.x - 3.5).abs() < 1e-9 && (back.y - 0.5).abs() < 1e-9);
        assert_eq!(input.turned(3).unwrap().turned(1).unwrap().image(), input.image());
    }

    #[test]
    fn raw_images_are_only_scaled() {
        let image = Image::new(2048, 64, vec![7; 2048 * 64]).unwrap();
        let options = InputOptions::new().raw(true);
        let input = Input::from_pixels_with(2048, 64, image.pixels().to_vec(), &options).unwrap();
        assert_eq!((input.image().width(), input.image().height()), (1024, 32));
        assert_eq!(input.image(), Input::from_image(image).unwrap().image());
        let corner = input.to_source(Point { x: 1024.0, y: 32.0 });
        assert_eq!((corner.x, corner.y), (2048.0, 64.0));
    }
}
