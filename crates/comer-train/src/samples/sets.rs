//! Reads the sets of `[[data]]` and the validation set, whose writers are removed from training.

use std::collections::BTreeSet;
use std::path::Path;

use comer::internal::Vocab;
use rayon::prelude::*;

use super::{Sample, Samples, TrainingSet};
use crate::error::{Error, Result};
use crate::recipe::{Recipe, SetKind};
use crate::stroke_set::{self, Record};
use crate::synthesis::Synthesizer;

impl Samples {
    /// Reads all sets of a recipe from a folder.
    pub(super) fn open_sets(folder: &Path, recipe: &Recipe, vocab: &Vocab) -> Result<Self> {
        let mut samples = Self::default();
        let mut writers = BTreeSet::new();
        if let Some(name) = &recipe.validation.set {
            let path = folder.join(name);
            let records = stroke_set::read(&path)?;
            writers.extend(records.iter().filter_map(|record| record.writer.clone()));
            samples.hold_out = samples.read_records(&path, &records, vocab)?;
            if samples.hold_out.is_empty() {
                return Err(Error::Data(format!("{}: no validation sample", path.display())));
            }
        }
        for set in &recipe.data.sets {
            let (path, first) = (folder.join(&set.path), samples.training.len());
            match set.kind {
                SetKind::Pictures => samples.read_pictures(&path, &set.split, vocab)?,
                // Created after all other sets are read.
                SetKind::Synthesis => {
                    samples.sets.push(TrainingSet {
                        name: set.path.clone(),
                        samples: 0..0,
                        synthesizer: None,
                    });
                    continue;
                }
                SetKind::Strokes => {
                    let mut records = stroke_set::read(&path)?;
                    let all = records.len();
                    records.retain(|record| record.writer.as_ref().is_none_or(|own| !writers.contains(own)));
                    if records.len() < all {
                        let (excluded, path) = (all - records.len(), path.display());
                        samples.problems.push(format!(
                            "{path}: {excluded} expressions by writers of the validation set, not used for training"
                        ));
                    }
                    let read = samples.read_records(&path, &records, vocab)?;
                    samples.training.extend(read);
                }
            }
            let own = samples.training.split_off(first);
            let own = samples.exclude_large(own, set.most_tokens, set.most_pixels);
            if own.is_empty() {
                return Err(Error::Data(format!("{}: no training sample", path.display())));
            }
            samples.training.extend(own);
            let range = first..samples.training.len();
            samples.sets.push(TrainingSet { name: set.path.clone(), samples: range, synthesizer: None });
        }
        for (number, set) in recipe.data.sets.iter().enumerate() {
            if set.kind == SetKind::Synthesis {
                let synthesizer = Synthesizer::new(folder, set, &samples.training, vocab)?;
                samples.sets[number].synthesizer = Some(Box::new(synthesizer));
            }
        }
        Ok(samples)
    }

    /// Converts records to samples. An invalid record is an error; one whose picture does not fit the network is skipped.
    fn read_records(&mut self, path: &Path, records: &[Record], vocab: &Vocab) -> Result<Vec<Sample>> {
        let read = |record: &Record| {
            let invalid =
                |reason: String| Error::Data(format!("{}, {:?}: {reason}", path.display(), record.id));
            let (tokens, ink, strokes) = record.read(vocab).map_err(invalid)?;
            let sample = Sample::with_ink(record.id.clone(), tokens, ink, strokes);
            Ok(sample
                .map(|sample| Sample { writer: record.writer.clone(), ..sample })
                .map_err(|error| format!("{}: {error}", record.id)))
        };
        let read: Vec<Result<Sample, String>> = records.par_iter().map(read).collect::<Result<_>>()?;
        let mut samples = Vec::with_capacity(read.len());
        for sample in read {
            match sample {
                Ok(sample) => samples.push(sample),
                Err(problem) => self.problems.push(problem),
            }
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, writer: &str, tokens: &str) -> Record {
        let strokes = vec![vec![0, 0, 40, 100], vec![80, 0, 0, 110]];
        let symbols = vec![("x".into(), vec![0, 1])];
        Record {
            id: id.into(),
            tokens: tokens.into(),
            strokes,
            symbols,
            writer: Some(writer.into()),
            pen: None,
        }
    }

    fn open(text: &str, folder: &Path) -> Result<Samples> {
        Samples::open(&[folder.into()], &[], &Recipe::parse(text).unwrap(), &Vocab::crohme())
    }

    #[test]
    fn writers_of_the_validation_set_are_not_used_for_training() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, records: &[Record]| {
            stroke_set::write(&folder.path().join(name), records).unwrap();
        };
        write("a.jsonl", &[record("1", "anna", "x"), record("2", "bert", "x x"), record("3", "anna", "x")]);
        write("b.jsonl", &[record("4", "carl", "x"), record("5", "carl", "x x x x")]);
        write("v.jsonl", &[record("6", "bert", "x")]);
        let text = "epoch_samples = 5\n[[data]]\npath = \"a.jsonl\"\n[[data]]\npath = \"b.jsonl\"\nmost_tokens = 3\n[validation]\nset = \"v.jsonl\"";
        let samples = open(text, folder.path()).unwrap();
        let names: Vec<&str> = samples.training.iter().map(|sample| &sample.name[..]).collect();
        assert_eq!(names, ["1", "3", "4"]);
        assert_eq!(samples.sets.iter().map(|set| set.samples.clone()).collect::<Vec<_>>(), [0..2, 2..3]);
        assert_eq!(samples.hold_out.len(), 1);
        assert_eq!(samples.problems.len(), 2, "{:?}", samples.problems);
        let sample = &samples.training[0];
        let picture = sample.picture().unwrap();
        assert_eq!((picture.width(), picture.height()), sample.size);

        write("b.jsonl", &[record("4", "bert", "x")]);
        let message = open(text, folder.path()).unwrap_err().to_string();
        assert!(message.contains("b.jsonl: no training sample"), "{message}");
        write("b.jsonl", &[record("4", "carl", "no")]);
        let message = open(text, folder.path()).unwrap_err().to_string();
        assert!(message.contains("b.jsonl, \"4\": tokens"), "{message}");
    }
}
