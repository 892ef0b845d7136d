//! Data sets in CROHME's layout: images with their captions. Images stay in memory as they are stored, and are decoded when they
//! are needed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use comer_eval::dataset::{DataSource, Split};
use comer_eval::stored_file::StoredFile;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::image::{self, Image};
use crate::photo;

/// Most pixels of an image. Decoding takes up to 13 bytes for each.
const MOST_PIXELS: u64 = 4_000_000;
/// A larger file, or an image of more pixels, is checked alone: the others are checked on all cores.
const SMALL: u64 = 1 << 18;

/// Images with their captions.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    /// In the order of the captions.
    pub samples: Vec<LabelledImage>,
    /// What could not be read, and why: each costs one sample.
    pub problems: Vec<String>,
}

/// An image with its caption.
#[derive(Clone, Debug)]
pub struct LabelledImage {
    /// The image's name without its extension.
    pub name: String,
    /// The formula's tokens, separated by spaces.
    pub caption: String,
    /// White ink on black.
    pub image: StoredImage,
}

/// An image file that can be decoded, in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct StoredImage {
    file: StoredFile,
    width: usize,
    height: usize,
}

impl StoredImage {
    /// An image as a file.
    pub fn new(image: &Image) -> Result<Self> {
        let file = StoredFile::new(image.to_png()?);
        Ok(Self { file, width: image.width(), height: image.height() })
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Whether the image can be scaled to the size limits of the network.
    pub fn fits(&self) -> Result<()> {
        image::fitting_factor(self.width, self.height).map(drop)
    }

    /// The pixels. A small image takes some tens of microseconds.
    pub fn decode(&self) -> Result<Image> {
        let unreadable = |error: std::io::Error| Error::Decode { reason: error.to_string(), source: None };
        let grey = photo::decode(&self.file.unpack().map_err(unreadable)?)?;
        Image::new(grey.width, grey.height, grey.levels)
    }
}

impl Dataset {
    /// Reads a split of a data set: `path` is a zip, a folder that holds the split, or the split itself.
    pub fn open(path: impl AsRef<Path>, split: &str) -> Result<Self> {
        let source = open(path.as_ref())?;
        let split = source.split(Some(split))?;
        let captions = split.captions()?;
        let budget = source.zip_size().map(|size| Budget { size, kept: AtomicU64::new(0) });
        // A name that comes again has the same image.
        let mut images: HashMap<&str, Result<StoredImage, String>> =
            captions.rows.iter().map(|(name, _)| (&name[..], Err(String::new()))).collect();
        let large = Mutex::new(());
        images
            .par_iter_mut()
            .for_each(|(name, image)| *image = stored_image(name, &split, budget.as_ref(), &large));
        let mut set = Self { samples: Vec::new(), problems: captions.problems };
        for (name, caption) in &captions.rows {
            match &images[&name[..]] {
                Ok(image) => set.samples.push(LabelledImage {
                    name: name.clone(),
                    caption: caption.clone(),
                    image: image.clone(),
                }),
                Err(reason) => set.problems.push(format!("{name}: {reason}")),
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

/// Bounds the memory of a zip's images: its directory may list the same bytes many times.
struct Budget {
    /// Bytes of the zip.
    size: u64,
    /// Bytes of images in memory.
    kept: AtomicU64,
}

impl Budget {
    fn keep(&self, bytes: u64) -> Result<(), String> {
        if self.kept.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.size {
            return Ok(());
        }
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
        Err("the images of the zip have more bytes than the zip".into())
    }
}

/// The image of a name, which was decoded once.
fn stored_image(
    name: &str,
    split: &Split,
    budget: Option<&Budget>,
    large: &Mutex<()>,
) -> Result<StoredImage, String> {
    let file = split.image(name).map_err(|error| error.to_string())?.ok_or("has no image")?;
    budget.map_or(Ok(()), |budget| budget.keep(file.stored_size()))?;
    let lock = || large.lock().unwrap_or_else(PoisonError::into_inner);
    let mut alone = (file.size() > SMALL).then(lock);
    let bytes = file.unpack().map_err(|error| error.to_string())?;
    let grey = photo::decode_after(&bytes, MOST_PIXELS, |pixels| {
        if pixels > SMALL && alone.is_none() {
            alone = Some(lock());
        }
    });
    let grey = grey.map_err(|error| error.to_string())?;
    drop(bytes);
    Ok(StoredImage { file, width: grey.width, height: grey.height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_stay_as_they_are_stored_and_huge_ones_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("img");
        std::fs::create_dir(&images).unwrap();
        let flat = |width: usize, height: usize| Image::new(width, height, vec![0; width * height]).unwrap();
        for (name, image) in [("a", flat(2_000, 2_000)), ("b", flat(2_000, 2_001)), ("c", flat(30, 20))] {
            std::fs::write(images.join(format!("{name}.png")), image.to_png().unwrap()).unwrap();
        }
        std::fs::write(folder.path().join("caption.txt"), "a\tx\nb\tx\nc\tx\nc\ty\nd\tx\n").unwrap();
        let set = Dataset::open(folder.path(), "any").unwrap();
        let found: Vec<_> =
            set.samples.iter().map(|sample| (&sample.name[..], &sample.caption[..])).collect();
        assert_eq!(found, [("a", "x"), ("c", "x"), ("c", "y")]);
        assert_eq!(set.problems.len(), 2, "{:?}", set.problems);
        assert!(set.problems[0].starts_with("b: ") && set.problems[0].contains("2000 x 2001"));
        assert_eq!(set.problems[1], "d: has no image");
        let image = &set.samples[1].image;
        assert_eq!((image.width(), image.height()), (30, 20));
        assert_eq!(image.decode().unwrap(), flat(30, 20));
        assert!(set.samples.iter().all(|sample| sample.image.file.stored_size() < 100_000));
    }

    #[test]
    fn an_image_is_stored_and_decoded() {
        let pixels = (0..30 * 20).map(|at| (at * at) as u8).collect();
        let image = Image::new(30, 20, pixels).unwrap();
        assert_eq!(StoredImage::new(&image).unwrap().decode().unwrap(), image);
    }
}
