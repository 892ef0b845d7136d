//! Whatever a user has: a picture file, InkML or a JSON of strokes becomes the picture that the network reads.

use crate::error::Result;
use crate::image::Image;
use crate::ink::Ink;
use crate::photo;

/// Endings of the files that [`read`] takes.
pub const ENDINGS: [&str; 10] = ["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff", "gif", "inkml", "json"];

/// Reads the bytes of a file; the content decides what it is.
pub fn read(bytes: &[u8], options: &photo::Options) -> Result<Image> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text.first() {
        Some(b'<') => Ink::from_inkml(bytes)?.draw(),
        Some(b'[' | b'{') => Ink::from_json(text)?.draw(),
        _ => photo::read(bytes, options),
    }
}
