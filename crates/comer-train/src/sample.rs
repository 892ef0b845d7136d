//! A training sample.

use comer::internal::TokenId;
use comer::internal::dataset::StoredImage;
use comer::{Image, Ink};

/// A picture, or the strokes that it is drawn from, and its formula.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The name of the picture.
    pub name: String,
    /// The formula.
    pub tokens: Vec<TokenId>,
    /// White ink on black; if there is none, the picture is drawn from the ink.
    pub(crate) picture: Option<StoredImage>,
    /// The strokes of the picture, if available.
    pub ink: Option<Ink>,
    /// The symbol that each stroke belongs to; padding if unknown.
    pub strokes: Vec<TokenId>,
    /// Width and height of the picture.
    pub size: (usize, usize),
    /// The writer, if known.
    pub writer: Option<String>,
}

impl Sample {
    /// A sample with a stored picture.
    pub fn with_picture(name: String, tokens: Vec<TokenId>, picture: StoredImage) -> Self {
        let size = (picture.width(), picture.height());
        Self { name, tokens, picture: Some(picture), ink: None, strokes: Vec::new(), size, writer: None }
    }

    /// A sample whose picture is drawn when it is needed; an error if its size does not fit the network. `strokes` are the
    /// symbols of the strokes.
    pub fn with_ink(
        name: String,
        tokens: Vec<TokenId>,
        ink: Ink,
        strokes: Vec<TokenId>,
    ) -> comer::Result<Self> {
        let picture = ink.draw()?;
        let size = (picture.width(), picture.height());
        picture.fit()?;
        Ok(Self { name, tokens, picture: None, ink: Some(ink), strokes, size, writer: None })
    }

    /// Adds the strokes of the picture, and their symbols.
    pub fn with_strokes(mut self, ink: Ink, strokes: Vec<TokenId>) -> Self {
        (self.ink, self.strokes) = (Some(ink), strokes);
        self
    }

    /// The stored picture, or the drawing of the ink.
    pub fn picture(&self) -> comer::Result<Image> {
        match (&self.picture, &self.ink) {
            (Some(picture), _) => picture.decode(),
            (None, Some(ink)) => ink.draw(),
            (None, None) => unreachable!("a sample has a picture or ink"),
        }
    }

    /// Number of pixels of the picture.
    pub fn area(&self) -> usize {
        self.size.0 * self.size.1
    }
}
