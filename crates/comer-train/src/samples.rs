//! What is learnt from and what progress is judged by: pictures or strokes with their tokens.

mod sets;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use comer::Ink;
use comer::internal::dataset::Dataset;
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
    /// To learn from, set by set.
    pub training: Vec<Sample>,
    /// The sets of `[[data]]`, or all of `[data]` as one.
    pub sets: Vec<Set>,
    /// To judge progress by: no formula of it (of a hold-out) or no writer (of a validation set) is learnt from.
    pub hold_out: Vec<Sample>,
    /// What could not be used, and why; each costs one sample or one ink.
    pub problems: Vec<String>,
}

/// A part of the training samples.
#[derive(Debug)]
pub struct Set {
    /// Its path in the recipe.
    pub name: String,
    /// Its samples within the training samples.
    pub samples: Range<usize>,
    /// What makes its samples, where they are not stored.
    pub synthesizer: Option<Box<Synthesizer>>,
}

/// One sample of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The place of a training sample.
    Stored(usize),
    /// One that a set makes, by the set's place and the sample's number.
    Made {
        /// The set.
        set: usize,
        /// Counted over all epochs.
        number: u64,
    },
}

impl Samples {
    /// Reads what a recipe learns from. With `[[data]]`, `data` is the one folder that holds the sets. Otherwise it is
    /// data sets (zips or folders in CROHME's layout), and `ink` folders of InkML with the strokes of their pictures,
    /// which are found by the files' names.
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
            let places: Vec<String> = data.iter().map(|path| path.display().to_string()).collect();
            let reason =
                format!("{}: no sample of split {:?} to learn from", places.join(", "), recipe.split);
            return Err(Error::Data(reason));
        }
        Ok(samples)
    }

    /// The sample of a pick.
    pub fn sample(&self, pick: Pick, seed: u64) -> Cow<'_, Sample> {
        match pick {
            Pick::Stored(index) => Cow::Borrowed(&self.training[index]),
            Pick::Made { set, number } => {
                let synthesizer = self.sets[set].synthesizer.as_ref().expect("only such a set makes samples");
                Cow::Owned(synthesizer.make(&self.training, seed, number))
            }
        }
    }

    /// About how many pixels the picture of a pick has.
    pub fn area(&self, pick: Pick, seed: u64) -> usize {
        match pick {
            Pick::Stored(index) => self.training[index].area(),
            Pick::Made { set, number } => {
                let synthesizer = self.sets[set].synthesizer.as_ref().expect("only such a set makes samples");
                synthesizer.area(&self.training, seed, number)
            }
        }
    }

    /// Adds a split of a set in CROHME's layout.
    fn read_pictures(&mut self, path: &Path, split: &str, vocab: &Vocab) -> Result<()> {
        let set = Dataset::open(path, split)?;
        self.problems.extend(set.problems);
        for comer::internal::dataset::LabelledImage { name, caption, picture } in set.samples {
            // A picture of a shape that fits no network would stop the run when its turn comes.
            match picture.clone().fit().and_then(|_| vocab.encode(&caption)) {
                Ok(tokens) => self.training.push(Sample::with_picture(name, tokens, picture)),
                Err(error) => self.problems.push(format!("{name}: {error}")),
            }
        }
        Ok(())
    }

    /// Divides samples into training and hold-out by their formulas, and leaves out of training what is too large.
    fn split(&mut self, recipe: &recipe::Data) {
        let all = std::mem::take(&mut self.training);
        let (hold_out, training): (Vec<Sample>, Vec<Sample>) =
            all.into_iter().partition(|sample| share(&sample.tokens) < recipe.hold_out);
        let training = self.leave_out_large(training, recipe.most_tokens, recipe.most_pixels);
        (self.training, self.hold_out) = (training, hold_out);
        if recipe.samples > 0 {
            self.training.truncate(recipe.samples);
        }
        self.sets =
            vec![Set { name: recipe.split.clone(), samples: 0..self.training.len(), synthesizer: None }];
    }

    fn leave_out_large(&mut self, samples: Vec<Sample>, tokens: usize, pixels: usize) -> Vec<Sample> {
        let fits = |sample: &Sample| sample.tokens.len() <= tokens && sample.area() <= pixels;
        let (kept, large): (Vec<Sample>, Vec<Sample>) = samples.into_iter().partition(fits);
        if let [first, more @ ..] = &large[..] {
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            self.problems.push(format!(
                "{}{more}: over {tokens} tokens or {pixels} pixels, left out of training",
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

/// The ink of files of one name, which must be the same in all of them.
fn read_ink(paths: &[PathBuf]) -> Result<Ink, String> {
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let contents = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let other = contents.iter().position(|bytes| *bytes != contents[0]);
    if let Some(other) = other {
        return Err(format!(
            "{} and {} have one name and unlike strokes: neither is used",
            paths[0].display(),
            paths[other].display()
        ));
    }
    Ink::from_inkml(&contents[0]).map_err(|error| format!("{}: {error}", paths[0].display()))
}

/// The symbol that each stroke belongs to, where the ink tells and the vocabulary has it.
fn symbols_of_strokes(ink: &Ink, vocab: &Vocab) -> Vec<TokenId> {
    let mut tokens = vec![PAD; ink.strokes().len()];
    for symbol in ink.symbols() {
        if let Ok([token]) = vocab.encode(&symbol.label).as_deref() {
            symbol.strokes.iter().for_each(|&stroke| tokens[stroke] = *token);
        }
    }
    tokens
}

/// A number in 0..1 that depends on the formula alone.
fn share(tokens: &[TokenId]) -> f64 {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    f64::from(crc32fast::hash(&bytes)) / 2f64.powi(32)
}

/// Every InkML file below a folder by its name without the ending.
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

    use super::*;

    #[test]
    fn no_formula_is_on_both_sides() {
        let picture = Image::new(1, 1, vec![0]).unwrap();
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
    fn what_is_too_large_is_left_out_and_named_and_what_is_too_much_is_not_learnt() {
        let picture = Image::new(20, 10, vec![0; 200]).unwrap();
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
    fn ink_of_one_name_must_be_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (name, x) in [("a", 1), ("b", 1), ("c", 2)] {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).unwrap();
            paths.push(place.join("twin.inkml"));
            let text = format!("<ink><trace>{x} 2, 3 4</trace></ink>");
            std::fs::write(&paths[paths.len() - 1], text).unwrap();
        }
        let mut files = HashMap::new();
        collect(folder.path(), &mut files).unwrap();
        assert_eq!(files["twin"].len(), 3);
        assert_eq!(read_ink(&paths[..2]).unwrap().strokes().len(), 1);
        let message = read_ink(&paths).unwrap_err();
        assert!(message.contains("unlike strokes") && message.contains("c/twin.inkml"), "{message}");
    }

    #[test]
    fn a_picture_that_fits_no_network_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("train");
        std::fs::create_dir_all(place.join("img")).unwrap();
        std::fs::write(place.join("caption.txt"), "thin\tx\nfine\tx\n").unwrap();
        for (name, width, height) in [("thin", 2000, 10), ("fine", 40, 30)] {
            let picture = Image::new(width, height, vec![255; width * height]).unwrap();
            std::fs::write(place.join(format!("img/{name}.png")), picture.to_png().unwrap()).unwrap();
        }
        let data = recipe::Data { hold_out: 0.0, ..recipe::Data::default() };
        let recipe = Recipe { data, ..Recipe::default() };
        let samples = Samples::open(&[folder.path().into()], &[], &recipe, &Vocab::crohme()).unwrap();
        assert_eq!(samples.training.len(), 1);
        assert!(samples.problems[0].starts_with("thin: "), "{:?}", samples.problems);
    }
}
