//! One training sample.

use std::borrow::Cow;

use comer::internal::TokenId;
use comer::{Image, Ink};

/// A picture, or the strokes that it is drawn from, and its formula.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The picture's name.
    pub name: String,
    /// The formula.
    pub tokens: Vec<TokenId>,
    /// White ink on black; where there is none it is drawn from the ink.
    pub(crate) picture: Option<Image>,
    /// The strokes it was drawn from, if they are at hand.
    pub ink: Option<Ink>,
    /// The symbol that each stroke belongs to; padding where that is not known.
    pub strokes: Vec<TokenId>,
    /// Width and height of the picture.
    pub size: (usize, usize),
    /// Who wrote it, if that is known.
    pub writer: Option<String>,
}

impl Sample {
    /// A sample with a picture of its own.
    pub fn with_picture(name: String, tokens: Vec<TokenId>, picture: Image) -> Self {
        let size = (picture.width(), picture.height());
        Self { name, tokens, picture: Some(picture), ink: None, strokes: Vec::new(), size, writer: None }
    }

    /// A sample whose picture is drawn whenever it is needed, refused if the picture does not fit the network.
    /// `strokes` are the symbols of the strokes.
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

    /// The same sample with the strokes of its picture, and their symbols.
    pub fn with_strokes(mut self, ink: Ink, strokes: Vec<TokenId>) -> Self {
        (self.ink, self.strokes) = (Some(ink), strokes);
        self
    }

    /// The picture as it was stored, or as it is drawn.
    pub fn picture(&self) -> comer::Result<Cow<'_, Image>> {
        match (&self.picture, &self.ink) {
            (Some(picture), _) => Ok(Cow::Borrowed(picture)),
            (None, Some(ink)) => ink.draw().map(Cow::Owned),
            (None, None) => unreachable!("a sample has a picture or ink"),
        }
    }

    /// Pixels of the picture.
    pub fn area(&self) -> usize {
        self.size.0 * self.size.1
    }
}
