//! What is learnt from: one set in CROHME's layout (`[data]`), or several sets with weights (`[[data]]`).

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is learnt from.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The split of the data set.
    pub split: String,
    /// The share that is kept for validation; all pictures of a formula are on the same side. Their writers are those
    /// of the training set, so that the figure flatters: `validation.set` does not.
    pub hold_out: f64,
    /// Formulas with more tokens are left out of training.
    pub most_tokens: usize,
    /// Pictures with more pixels are left out of training.
    pub most_pixels: usize,
    /// At most so many samples, the first of the data, are learnt from; 0 for all.
    pub samples: usize,
    /// The sets of `[[data]]`; where there are any, the other fields do not count.
    pub sets: Vec<DataSet>,
}

/// One of several sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSet {
    /// The file or folder, within the folder that is given on the command line.
    pub path: String,
    /// What it holds.
    pub kind: SetKind,
    /// Its part of each epoch, in relation to the weights of the other sets: a number, or `[[first epoch, weight], ...]`.
    pub weight: ByEpoch,
    /// The split of a set of pictures.
    pub split: String,
    /// Formulas with more tokens are left out.
    pub most_tokens: usize,
    /// Pictures with more pixels are left out.
    pub most_pixels: usize,
    /// Of synthesis: how much is written in other hands, recombined of parts, and laid out from formulas.
    pub shares: [f64; 3],
    /// Of synthesis: files of glyphs, besides the symbols of the training sets.
    pub glyphs: Vec<String>,
    /// Of synthesis: lists of formulas, the tokens of each after the last tab of its line.
    pub formulas: Vec<String>,
    /// Of synthesis: lists of formulas that must not be made, such as those of test sets.
    pub exclude: Vec<String>,
}

/// What a set holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetKind {
    /// Handwriting as strokes (see [`crate::stroke_set`]).
    #[default]
    Strokes,
    /// Pictures in CROHME's layout.
    Pictures,
    /// Nothing: its samples are made from those of the other sets (see [`crate::synthesis`]). Its path is only a name.
    Synthesis,
}

/// A number that may change by epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or [[first epoch, number], ...]")]
pub enum ByEpoch {
    /// The same in all epochs.
    Always(f64),
    /// From each of these epochs on, the first one 0.
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

    /// Whether the epochs are in order, from 0, and the numbers sensible.
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
    /// The most tokens of any formula that is learnt from.
    pub fn longest(&self) -> usize {
        self.sets.iter().map(|set| set.most_tokens).max().unwrap_or(self.most_tokens)
    }

    /// How many samples of each set are in an epoch of `total`: as the weights say, and `total` together.
    pub fn shares(&self, epoch: usize, total: usize) -> Vec<usize> {
        let weights: Vec<f64> = self.sets.iter().map(|set| set.weight.at(epoch)).collect();
        let sum: f64 = weights.iter().sum();
        // Rounded so that the parts of the sum add up.
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
        deserializer.deserialize_any(Either)
    }
}

/// A table or a list of tables.
struct Either;

impl<'de> Visitor<'de> for Either {
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
    fn faults_are_named() {
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
