//! The content of a file: strokes, or an image as grey levels.

use super::InputOptions;
use crate::error::Result;
use crate::ink::Ink;
use crate::photo::{self, Grey};

/// What a file holds.
pub enum Source {
    Ink(Ink),
    /// Grey levels, and whether the file ends early.
    Image(Grey, bool),
}

impl Source {
    pub fn read(bytes: &[u8], options: &InputOptions) -> Result<Self> {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        match text.first() {
            Some(b'<') if !photo::is_svg(text) => Ok(Self::Ink(Ink::from_inkml(bytes)?)),
            Some(b'[' | b'{') => Ok(Self::Ink(Ink::from_json(text)?)),
            _ => Self::decode(bytes, options),
        }
    }

    #[cfg(feature = "decode")]
    fn decode(bytes: &[u8], options: &InputOptions) -> Result<Self> {
        let photo::Decoded { grey, truncated } = photo::decode_with(bytes, options.lenient)?;
        options.interrupt.check()?;
        Ok(Self::Image(grey, truncated))
    }

    #[cfg(not(feature = "decode"))]
    fn decode(_: &[u8], _: &InputOptions) -> Result<Self> {
        let reason = "this program was built without image decoders, expected InkML or JSON strokes".into();
        Err(crate::error::Error::Decode { reason, source: None })
    }
}
