//! Training data: one set in CROHME's layout (`[data]`), or several sets with weights (`[[data]]`).

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Training data.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The split of the data set.
    pub split: String,
    /// The share that is held out for validation, chosen by formula. Its writers are also in the training set, so its
    /// ExpRate is too high; `validation.set` avoids this.
    pub hold_out: f64,
    /// Formulas with more tokens are not used for training.
    pub most_tokens: usize,
    /// Pictures with more pixels are not used for training.
    pub most_pixels: usize,
    /// Maximum number of training samples, the first ones of the data; 0 for all.
    pub samples: usize,
    /// The sets of `[[data]]`; if there are any, the other fields are ignored.
    pub sets: Vec<DataSet>,
}

/// One of several sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSet {
    /// The file or folder, within the folder that is given on the command line.
    pub path: String,
    /// What it contains.
    pub kind: SetKind,
    /// Its share of each epoch, relative to the weights of the other sets: a number, or `[[first epoch, weight], ...]`.
    pub weight: ByEpoch,
    /// The split of a set of pictures.
    pub split: String,
    /// Formulas with more tokens are excluded.
    pub most_tokens: usize,
    /// Pictures with more pixels are excluded.
    pub most_pixels: usize,
    /// Synthesis: the shares of glyphs of other writers, recombined parts, and new formulas.
    pub shares: [f64; 3],
    /// Synthesis: glyph files, in addition to the symbols of the training sets.
    pub glyphs: Vec<String>,
    /// Synthesis: lists of formulas, the tokens of each after the last tab of its line.
    pub formulas: Vec<String>,
    /// Synthesis: lists of formulas that are never generated, such as those of test sets.
    pub exclude: Vec<String>,
}

/// What a set contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetKind {
    /// Handwriting as strokes (see [`crate::stroke_set`]).
    #[default]
    Strokes,
    /// Pictures in CROHME's layout.
    Pictures,
    /// Samples that are generated from the other sets (see [`crate::synthesis`]). Its path is only a name.
    Synthesis,
}

/// A number that may change by epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or [[first epoch, number], ...]")]
pub enum ByEpoch {
    /// Constant.
    Always(f64),
    /// A value from each of these epochs on; the first epoch is 0.
    From(Vec<(usize, f64)>),
}

impl ByEpoch {
    /// The number in an epoch.
    pub fn at(&self, epoch: usize) -> f64 {
        match self {
            Self::Always(value) => *value,
            Self::From(list) => {
                list.iter().take_while(|(first, _)| *first <= epoch).last().map_or(0.0, |&(_, value)| value)
            }
        }
    }

    /// Whether the epochs are ascending from 0 and the values in range.
    pub(super) fn is_valid(&self) -> bool {
        let good = |value: f64| (0.0..=1e9).contains(&value);
        match self {
            Self::Always(value) => good(*value),
            Self::From(list) => {
                list.first().is_some_and(|first| first.0 == 0)
                    && list.windows(2).all(|pair| pair[0].0 < pair[1].0)
                    && list.iter().all(|&(_, value)| good(value))
            }
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Self {
            split: "train".into(),
            hold_out: 0.05,
            most_tokens: 200,
            most_pixels: 320_000,
            samples: 0,
            sets: Vec::new(),
        }
    }
}

impl Default for DataSet {
    fn default() -> Self {
        Self {
            path: String::new(),
            kind: SetKind::Strokes,
            weight: ByEpoch::Always(1.0),
            split: "train".into(),
            most_tokens: 200,
            most_pixels: 320_000,
            shares: [1.0, 1.0, 1.0],
            glyphs: Vec::new(),
            formulas: Vec::new(),
            exclude: Vec::new(),
        }
    }
}

impl Data {
    /// The maximum number of tokens of a training formula.
    pub fn longest(&self) -> usize {
        self.sets.iter().map(|set| set.most_tokens).max().unwrap_or(self.most_tokens)
    }

    /// The number of samples of each set in an epoch of `total` samples, in proportion to the weights.
    pub fn shares(&self, epoch: usize, total: usize) -> Vec<usize> {
        let weights: Vec<f64> = self.sets.iter().map(|set| set.weight.at(epoch)).collect();
        let sum: f64 = weights.iter().sum();
        // Cumulative sums are rounded, so that the parts add up to the total.
        let (mut before, mut done) = (0.0, 0);
        let share = |weight: &f64| {
            before += weight;
            let until = (total as f64 * before / sum).round() as usize;
            let own = until - done;
            done = until;
            own
        };
        weights.iter().map(share).collect()
    }
}

/// The fields of `[data]`.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    split: String,
    hold_out: f64,
    most_tokens: usize,
    most_pixels: usize,
    samples: usize,
}

impl Default for Table {
    fn default() -> Self {
        let Data { split, hold_out, most_tokens, most_pixels, samples, .. } = Data::default();
        Self { split, hold_out, most_tokens, most_pixels, samples }
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.sets.is_empty() {
            return self.sets.serialize(serializer);
        }
        let Self { split, hold_out, most_tokens, most_pixels, samples, .. } = self.clone();
        Table { split, hold_out, most_tokens, most_pixels, samples }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

/// Accepts a table or a list of tables.
struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a table [data] or tables [[data]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Data, A::Error> {
        let Table { split, hold_out, most_tokens, most_pixels, samples } =
            Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Data { split, hold_out, most_tokens, most_pixels, samples, sets: Vec::new() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Data, A::Error> {
        let sets = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
        Ok(Data { sets, ..Data::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recipe;
    use super::*;

    const SETS: &str = r#"
        epoch_samples = 100
        [[data]]
        path = "a.jsonl"
        [[data]]
        path = "b"
        kind = "pictures"
        weight = [[0, 3.0], [2, 0.0]]
        [validation]
        set = "v.jsonl"
    "#;

    #[test]
    fn sets_have_weights_that_change_by_epoch() {
        let recipe = Recipe::parse(SETS).unwrap();
        assert_eq!(recipe.data.sets.len(), 2);
        assert_eq!(recipe.data.sets[1].kind, SetKind::Pictures);
        assert_eq!([0, 1, 2].map(|epoch| recipe.data.shares(epoch, 100)), [[25, 75], [25, 75], [100, 0]]);
        assert_eq!(recipe.data.shares(0, 7).iter().sum::<usize>(), 7);
        assert_eq!(Recipe::parse(&recipe.to_toml()).unwrap(), recipe);
    }

    #[test]
    fn errors_name_the_field() {
        for (from, to, expected) in [
            ("weight =", "wieght =", "did you mean `weight`"),
            ("[2, 0.0]", "[0, 0.0]", "weight"),
            ("[0, 3.0]", "[0, -3.0]", "weight"),
            ("path = \"b\"", "path = \"\"", "path"),
            ("epoch_samples = 100", "", "epoch_samples"),
            ("set = \"v.jsonl\"", "", "validation.set"),
            ("[[data]]\n        path = \"a.jsonl\"", "", "epoch 3"),
        ] {
            let message = Recipe::parse(&SETS.replace(from, to)).unwrap_err();
            assert!(message.contains(expected), "{to}: {message}");
        }
    }
}
