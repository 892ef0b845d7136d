//! Training and validation samples: pictures or strokes with their tokens.

mod sets;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use comer::Ink;
use comer::internal::dataset::{Dataset, LabelledImage};
use comer::internal::vocab::PAD;
use comer::internal::{TokenId, Vocab};
use comer_eval::find_files;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::recipe::{self, Recipe};
pub use crate::sample::Sample;
use crate::synthesis::Synthesizer;

/// The samples of a run.
#[derive(Debug, Default)]
pub struct Samples {
    /// Training samples, set by set.
    pub training: Vec<Sample>,
    /// The sets of `[[data]]`, or all of `[data]` as one.
    pub sets: Vec<TrainingSet>,
    /// Validation samples. The training samples have no formula of a hold-out and no writer of a validation set.
    pub hold_out: Vec<Sample>,
    /// What could not be used, and why: one message for a sample, its ink, or a group of samples.
    pub problems: Vec<String>,
}

/// A set of training samples.
#[derive(Debug)]
pub struct TrainingSet {
    /// Its path in the recipe.
    pub name: String,
    /// The range of its samples in [`Samples::training`].
    pub samples: Range<usize>,
    /// Generates its samples, if they are synthetic.
    pub synthesizer: Option<Box<Synthesizer>>,
}

/// Refers to one sample of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleRef {
    /// Index of a training sample.
    Stored(usize),
    /// A synthetic sample.
    Synthetic {
        /// Index of the set.
        set: usize,
        /// Number of the sample, counted over all epochs.
        number: u64,
    },
}

impl Samples {
    /// Reads the data of a recipe. With `[[data]]`, `data` is the folder of the sets. Otherwise it is data sets (zips or
    /// folders in CROHME's layout), and `ink` folders of InkML files with the names of the pictures.
    pub fn open(data: &[PathBuf], ink: &[PathBuf], recipe: &Recipe, vocab: &Vocab) -> Result<Self> {
        if !recipe.data.sets.is_empty() {
            return match (data, ink) {
                ([folder], []) => Self::open_sets(folder, recipe, vocab),
                _ => Err(Error::Data(
                    "the recipe has [[data]]: expected one --data, the folder of its sets, and no --ink"
                        .into(),
                )),
            };
        }
        if recipe.validation.set.is_some() {
            return Err(Error::Data("validation.set needs [[data]] in the recipe".into()));
        }
        let recipe = &recipe.data;
        let mut samples = Self::default();
        for path in data {
            samples.read_pictures(path, &recipe.split, vocab)?;
        }
        samples.split(recipe);
        samples.find_ink(ink, vocab)?;
        if samples.training.is_empty() {
            let paths: Vec<String> = data.iter().map(|path| path.display().to_string()).collect();
            let reason = format!("{}: no training sample in split {:?}", paths.join(", "), recipe.split);
            return Err(Error::Data(reason));
        }
        Ok(samples)
    }

    /// The sample that a reference refers to.
    pub fn sample(&self, sample: SampleRef, seed: u64) -> Cow<'_, Sample> {
        match sample {
            SampleRef::Stored(index) => Cow::Borrowed(&self.training[index]),
            SampleRef::Synthetic { set, number } => {
                let synthesizer = self.sets[set].synthesizer.as_ref().expect("the set is synthetic");
                Cow::Owned(synthesizer.generate(&self.training, seed, number))
            }
        }
    }

    /// The approximate number of pixels of a sample.
    pub fn area(&self, sample: SampleRef, seed: u64) -> usize {
        match sample {
            SampleRef::Stored(index) => self.training[index].area(),
            SampleRef::Synthetic { set, number } => {
                let synthesizer = self.sets[set].synthesizer.as_ref().expect("the set is synthetic");
                synthesizer.area(&self.training, seed, number)
            }
        }
    }

    /// Adds a split of a set in CROHME's layout.
    fn read_pictures(&mut self, path: &Path, split: &str, vocab: &Vocab) -> Result<()> {
        let set = Dataset::open(path, split)?;
        self.problems.extend(set.problems);
        for LabelledImage { name, caption, image } in set.samples {
            // A picture whose size does not fit the network would stop the run later.
            match image.fits().and_then(|()| vocab.encode(&caption)) {
                Ok(tokens) => self.training.push(Sample::with_picture(name, tokens, image)),
                Err(error) => self.problems.push(format!("{name}: {error}")),
            }
        }
        Ok(())
    }

    /// Splits samples into training and hold-out by their formulas, and excludes large samples from training.
    fn split(&mut self, recipe: &recipe::Data) {
        let all = std::mem::take(&mut self.training);
        let (hold_out, training): (Vec<Sample>, Vec<Sample>) =
            all.into_iter().partition(|sample| hash_fraction(&sample.tokens) < recipe.hold_out);
        let training = self.exclude_large(training, recipe.most_tokens, recipe.most_pixels);
        (self.training, self.hold_out) = (training, hold_out);
        if recipe.samples > 0 {
            self.training.truncate(recipe.samples);
        }
        self.sets = vec![TrainingSet {
            name: recipe.split.clone(),
            samples: 0..self.training.len(),
            synthesizer: None,
        }];
    }

    fn exclude_large(&mut self, samples: Vec<Sample>, tokens: usize, pixels: usize) -> Vec<Sample> {
        let fits = |sample: &Sample| sample.tokens.len() <= tokens && sample.area() <= pixels;
        let (kept, large): (Vec<Sample>, Vec<Sample>) = samples.into_iter().partition(fits);
        if let [first, more @ ..] = &large[..] {
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            self.problems.push(format!(
                "{}{more}: more than {tokens} tokens or {pixels} pixels, not used for training",
                first.name
            ));
        }
        kept
    }

    fn find_ink(&mut self, folders: &[PathBuf], vocab: &Vocab) -> Result<()> {
        let mut files = HashMap::new();
        for folder in folders {
            collect(folder, &mut files)?;
        }
        let read = |sample: &mut Sample| match read_ink(files.get(&sample.name)?) {
            Ok(ink) => {
                (sample.strokes, sample.ink) = (symbols_of_strokes(&ink, vocab), Some(ink));
                None
            }
            Err(reason) => Some(reason),
        };
        let problems: Vec<Option<String>> = self.training.par_iter_mut().map(read).collect();
        self.problems.extend(problems.into_iter().flatten());
        Ok(())
    }
}

/// The ink of files with the same name, which must be equal in all of them.
fn read_ink(paths: &[PathBuf]) -> Result<Ink, String> {
    let read = |path: &PathBuf| {
        comer_files::read(path, comer_files::limit::INPUT)
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let contents = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let other = contents.iter().position(|bytes| *bytes != contents[0]);
    if let Some(other) = other {
        return Err(format!(
            "{} and {} have the same name but different strokes: neither is used",
            paths[0].display(),
            paths[other].display()
        ));
    }
    Ink::from_inkml(&contents[0]).map_err(|error| format!("{}: {error}", paths[0].display()))
}

/// The symbol of each stroke, if the ink has one and the vocabulary contains it.
fn symbols_of_strokes(ink: &Ink, vocab: &Vocab) -> Vec<TokenId> {
    let mut tokens = vec![PAD; ink.strokes().len()];
    for symbol in ink.symbols() {
        if let Ok([token]) = vocab.encode(&symbol.label).as_deref() {
            symbol.strokes.iter().for_each(|&stroke| tokens[stroke] = *token);
        }
    }
    tokens
}

/// A number in 0..1 that depends only on the formula.
fn hash_fraction(tokens: &[TokenId]) -> f64 {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    f64::from(crc32fast::hash(&bytes)) / 2f64.powi(32)
}

/// The InkML files below a folder by name, without extension.
fn collect(folder: &Path, files: &mut HashMap<String, Vec<PathBuf>>) -> Result<()> {
    for path in find_files(folder, &["inkml"])? {
        if let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) {
            files.entry(stem.to_string()).or_default().push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use comer::Image;
    use comer::internal::dataset::StoredImage;

    use super::*;

    fn picture(width: usize, height: usize) -> StoredImage {
        StoredImage::new(&Image::new(width, height, vec![0; width * height]).unwrap()).unwrap()
    }

    #[test]
    fn no_formula_is_in_both_training_and_hold_out() {
        let picture = picture(1, 1);
        let sample =
            |index: u16| Sample::with_picture(index.to_string(), vec![3 + index % 50, 4], picture.clone());
        let mut samples = Samples { training: (0..400).map(sample).collect(), ..Samples::default() };
        samples.split(&recipe::Data { hold_out: 0.2, ..recipe::Data::default() });
        let (training, hold_out) = (samples.training.len(), samples.hold_out.len());
        assert_eq!(training + hold_out, 400);
        assert!((24..160).contains(&hold_out), "{hold_out}");
        for kept in &samples.hold_out {
            assert!(samples.training.iter().all(|sample| sample.tokens != kept.tokens));
        }
    }

    #[test]
    fn large_samples_are_excluded_and_reported_and_the_number_of_samples_is_limited() {
        let picture = picture(20, 10);
        let sample =
            |name: &str, tokens: usize| Sample::with_picture(name.into(), vec![5; tokens], picture.clone());
        let mut samples =
            Samples { training: vec![sample("short", 3), sample("long", 9)], ..Samples::default() };
        samples.split(&recipe::Data { hold_out: 0.0, most_tokens: 5, ..recipe::Data::default() });
        assert_eq!(samples.training.len(), 1);
        assert!(samples.problems[0].starts_with("long"), "{:?}", samples.problems);
        let mut samples = Samples { training: vec![sample("wide", 3)], ..Samples::default() };
        samples.split(&recipe::Data { hold_out: 0.0, most_pixels: 199, ..recipe::Data::default() });
        assert!(samples.training.is_empty() && samples.problems.len() == 1);
        let mut samples =
            Samples { training: ["a", "b", "c"].map(|name| sample(name, 3)).to_vec(), ..Samples::default() };
        samples.split(&recipe::Data { hold_out: 0.0, samples: 2, ..recipe::Data::default() });
        assert_eq!(samples.training.iter().map(|sample| &sample.name[..]).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn files_of_the_same_name_must_have_the_same_ink() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (name, x) in [("a", 1), ("b", 1), ("c", 2)] {
            let directory = folder.path().join(name);
            std::fs::create_dir(&directory).unwrap();
            paths.push(directory.join("twin.inkml"));
            let text = format!("<ink><trace>{x} 2, 3 4</trace></ink>");
            std::fs::write(&paths[paths.len() - 1], text).unwrap();
        }
        let mut files = HashMap::new();
        collect(folder.path(), &mut files).unwrap();
        assert_eq!(files["twin"].len(), 3);
        assert_eq!(read_ink(&paths[..2]).unwrap().strokes().len(), 1);
        let message = read_ink(&paths).unwrap_err();
        assert!(message.contains("different strokes") && message.contains("c/twin.inkml"), "{message}");
    }

    #[test]
    fn a_picture_of_unusable_size_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let split = folder.path().join("train");
        std::fs::create_dir_all(split.join("img")).unwrap();
        std::fs::write(split.join("caption.txt"), "thin\tx\nfine\tx\n").unwrap();
        for (name, width, height) in [("thin", 2000, 10), ("fine", 40, 30)] {
            let picture = Image::new(width, height, vec![255; width * height]).unwrap();
            std::fs::write(split.join(format!("img/{name}.png")), picture.to_png().unwrap()).unwrap();
        }
        let data = recipe::Data { hold_out: 0.0, ..recipe::Data::default() };
        let recipe = Recipe { data, ..Recipe::default() };
        let samples = Samples::open(&[folder.path().into()], &[], &recipe, &Vocab::crohme()).unwrap();
        assert_eq!(samples.training.len(), 1);
        assert!(samples.problems[0].starts_with("thin: "), "{:?}", samples.problems);
    }
}
