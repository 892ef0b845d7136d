//! Data sets in CROHME's layout, decoded: images with their captions.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

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
        let budget = Budget { stored: source.zip_size().unwrap_or(0).into(), ..Budget::default() };
        let is_zip = source.zip_size().is_some();
        let samples: Vec<_> =
            rows.map(|(name, caption)| sample(name, caption, &split, &budget, is_zip)).collect();
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

/// Bounds the memory of a data set: compressed images and zips may decode to any size.
#[derive(Default)]
struct Budget {
    /// Bytes of the zip, or of the files that were read.
    stored: AtomicU64,
    /// Pixels, of one byte each.
    decoded: AtomicU64,
}

impl Budget {
    /// CROHME's bitmaps decode to 18 times their zip.
    const RATIO: u64 = 64;
    const ROOM: u64 = 64 << 20;

    fn check(&self, stored: u64, decoded: u64) -> Result<(), String> {
        let stored = self.stored.fetch_add(stored, Ordering::Relaxed) + stored;
        let before = self.decoded.fetch_add(decoded, Ordering::Relaxed);
        if before + decoded <= stored.saturating_mul(Self::RATIO) + Self::ROOM {
            return Ok(());
        }
        self.decoded.fetch_sub(decoded, Ordering::Relaxed);
        Err(format!("the images decode to more than {} times the size of the data set", Self::RATIO))
    }
}

fn sample(
    name: String,
    caption: String,
    split: &Split,
    budget: &Budget,
    is_zip: bool,
) -> Result<LabelledImage, String> {
    let decode = || {
        let bytes = split.image(&name).map_err(|error| error.to_string())?.ok_or("has no image")?;
        let grey = photo::decode(&bytes).map_err(|error| error.to_string())?;
        let stored = if is_zip { 0 } else { bytes.len() as u64 };
        budget.check(stored, grey.levels.len() as u64)?;
        Image::new(grey.width, grey.height, grey.levels).map_err(|error| error.to_string())
    };
    match decode() {
        Ok(picture) => Ok(LabelledImage { name, caption, picture }),
        Err(reason) => Err(format!("{name}: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_decode_to_far_more_than_their_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("img");
        std::fs::create_dir(&images).unwrap();
        // 40 megapixels in a file of less than 200 kB, four times.
        let huge = Image::new(8_000, 5_000, vec![0; 40_000_000]).unwrap().to_png().unwrap();
        assert!(huge.len() < 200_000);
        let names = ["a", "b", "c", "d"];
        for name in names {
            std::fs::write(images.join(format!("{name}.png")), &huge).unwrap();
        }
        let captions: String = names.iter().map(|name| format!("{name}\tx\n")).collect();
        std::fs::write(folder.path().join("caption.txt"), captions).unwrap();
        let set = Dataset::open(folder.path(), "any").unwrap();
        let decoded: usize = set.samples.iter().map(|sample| sample.picture.pixels().len()).sum();
        let limit = Budget::RATIO * (names.len() * huge.len()) as u64 + Budget::ROOM;
        assert!(!set.samples.is_empty() && decoded as u64 <= limit, "{decoded} of at most {limit}");
        assert_eq!(set.samples.len() + set.problems.len(), names.len());
        assert!(
            set.problems[0].ends_with("more than 64 times the size of the data set"),
            "{:?}",
            set.problems
        );
    }
}
