//! Data sets in CROHME's layout, decoded: images with their captions.

use std::path::Path;

use comer_eval::dataset::{DataSource, Split};
use rayon::prelude::*;

use crate::error::Result;
use crate::image::Image;
use crate::photo;

/// Images with their captions.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    /// In the order of the captions.
    pub samples: Vec<LabelledImage>,
    /// What could not be read, and why: each costs one sample.
    pub problems: Vec<String>,
}

/// An image with its caption.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledImage {
    /// The image's name without its extension.
    pub name: String,
    /// The formula's tokens, separated by spaces.
    pub caption: String,
    /// White ink on black, as it was stored.
    pub picture: Image,
}

impl Dataset {
    /// Reads a split of a data set: `path` is a zip, a folder that holds the split, or the split itself.
    pub fn open(path: impl AsRef<Path>, split: &str) -> Result<Self> {
        let source = open(path.as_ref())?;
        let split = source.split(Some(split))?;
        let captions = split.captions()?;
        let rows = captions.rows.into_par_iter();
        let samples: Vec<_> = rows.map(|(name, caption)| sample(name, caption, &split)).collect();
        let mut set = Self { samples: Vec::new(), problems: captions.problems };
        for sample in samples {
            match sample {
                Ok(sample) => set.samples.push(sample),
                Err(problem) => set.problems.push(problem),
            }
        }
        Ok(set)
    }

    /// The names of the splits that a zip or folder holds, sorted; a folder that is a split itself has its own name.
    pub fn splits(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Ok(open(path.as_ref())?.splits())
    }
}

fn open(path: &Path) -> Result<DataSource> {
    let source = DataSource::open(path)?;
    if !source.can_hold_images() {
        let expected = "a zip or folder of images with caption.txt";
        return Err(comer_eval::Error::Nothing { path: path.into(), expected }.into());
    }
    Ok(source)
}

fn sample(name: String, caption: String, split: &Split) -> Result<LabelledImage, String> {
    let decode = || {
        let bytes = split.image(&name).map_err(|error| error.to_string())?.ok_or("has no image")?;
        let grey = photo::decode(&bytes).map_err(|error| error.to_string())?;
        Image::new(grey.width, grey.height, grey.levels).map_err(|error| error.to_string())
    };
    match decode() {
        Ok(picture) => Ok(LabelledImage { name, caption, picture }),
        Err(reason) => Err(format!("{name}: {reason}")),
    }
}
