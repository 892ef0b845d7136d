//! A recipe: all that a run depends on, in one TOML file. The defaults are the paper's.

mod check;
mod data;
mod keys;

use std::path::Path;

use comer::internal::config::{ModelConfig, SearchConfig, Strategy};
use comer::internal::ink::PEN;
use serde::{Deserialize, Serialize};

pub use self::data::{ByEpoch, Data, DataSet, SetKind};
use crate::error::{Error, Result};

/// Everything that a run depends on but the data itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Chooses the initial weights, the order of the batches, the augmentation and what is dropped.
    pub seed: u64,
    /// How often the training set is read, or how many times `epoch_samples`.
    pub epochs: usize,
    /// Samples in an epoch; 0 for every sample once. Sets with weights need it.
    pub epoch_samples: usize,
    /// The shape of the network.
    pub model: ModelConfig,
    /// What is learnt from.
    pub data: Data,
    /// How pictures are brought together.
    pub batches: Batches,
    /// How pictures are varied.
    pub augmentation: Augmentation,
    /// What is minimised.
    pub loss: Loss,
    /// How weights follow gradients.
    pub optimizer: Optimizer,
    /// How the rate changes.
    pub schedule: Schedule,
    /// How progress is judged.
    pub validation: Validation,
    /// When the state is saved.
    pub checkpoint: CheckpointInterval,
}

/// How pictures are brought together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Batches {
    /// Most pictures in a batch.
    pub pictures: usize,
    /// Most pixels in a batch: the largest picture's times the pictures' number.
    pub pixels: usize,
    /// Which pictures share a batch.
    pub order: Order,
    /// Batches whose gradients are averaged for one step.
    pub accumulate: usize,
}

/// Which pictures share a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Those of like area: no waste where they are padded. The batches are the same in each epoch, in another order.
    #[default]
    Area,
    /// Any, others in each epoch: for devices that do not pad.
    Random,
}

/// How pictures are varied. All but the scale, blur and noise needs the strokes, and is skipped where there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    /// Least and greatest factor of the size.
    pub scale: [f64; 2],
    /// Further factors of the size by epoch, to make early epochs cheap: `[first epoch, factor]`, the first one 0.
    pub sizes: Vec<(usize, f64)>,
    /// Greatest rotation either way, in degrees.
    pub rotation: f64,
    /// Greatest slant either way, in degrees.
    pub slant: f64,
    /// Greatest change of the width over the height, as a factor.
    pub stretch: f64,
    /// Greatest shift of a symbol, in shares of its size.
    pub jitter: f64,
    /// Greatest change of a symbol's own size, as a factor.
    pub symbol_scale: f64,
    /// The share of symbols that are taken from another hand.
    pub borrow: f64,
    /// The thinnest and the thickest pen, in pixels; that of the data has 3.
    pub pen: [usize; 2],
    /// The share of pictures that are varied by their strokes.
    pub share: f64,
    /// Greatest share of a pixel that goes to either neighbour, with strokes or without.
    pub blur: f64,
    /// Greatest standard deviation of noise in the pixels, which have 0 to 255, with strokes or without.
    pub noise: f64,
}

/// What is minimised: the cross entropy of the tokens, and optionally that of the symbols.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// The share of each target that is spread over all tokens.
    pub label_smoothing: f64,
    /// The weight of a second loss, which asks the encoder for the symbol of each cell where strokes tell; 0 for none.
    pub symbols: f64,
}

/// When the state is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointInterval {
    /// Minutes between checkpoints.
    pub minutes: f64,
}

/// How weights follow gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// The rule.
    pub kind: OptimizerKind,
    /// The rate before the schedule's factor.
    pub rate: f64,
    /// Of SGD.
    pub momentum: f64,
    /// Of AdamW: how long the mean of the gradients and that of their squares remember.
    pub betas: [f64; 2],
    /// Pull towards zero. SGD adds it to the gradient of every tensor; AdamW takes it off the weights alone, not off
    /// norms and biases.
    pub weight_decay: f64,
    /// Gradients longer than this are shortened to it; 0 for never.
    pub clip: f64,
    /// How much of the averaged weights stays at each step; 0 for no averaging. Averaged weights are what is validated
    /// and kept.
    pub average: f64,
}

/// A rule to follow gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Stochastic gradient descent with momentum.
    #[default]
    Sgd,
    /// Adam with weight decay of its own.
    Adamw,
}

/// How the rate changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// The rule.
    pub kind: ScheduleKind,
    /// Of a plateau: what the rate is multiplied by.
    pub factor: f64,
    /// Of a plateau: after how many epochs without a better ExpRate.
    pub patience: usize,
    /// The share of all steps in which the rate rises from nothing.
    pub warm_up: f64,
    /// The rate at the end, as a share of the greatest.
    pub last: f64,
}

/// How the rate changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// Falls whenever validation has not improved for long.
    #[default]
    Plateau,
    /// Rises, then falls along a cosine until the last step.
    OneCycle,
    /// Stays, after the warm-up.
    Constant,
}

/// How progress is judged: by reading with the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// After every so many epochs.
    pub every: usize,
    /// What is read, unless `set` names something else.
    pub on: ValidationSet,
    /// A set of strokes that is read instead, in the folder of the data. Whoever wrote in it is left out of training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// At most so many pictures, evenly from all of the set; 0 for all.
    pub pictures: usize,
    /// How the formulas are searched for.
    pub strategy: Strategy,
    /// Prefixes that each direction keeps.
    pub beam: usize,
}

/// What progress is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValidationSet {
    /// Formulas that are not learnt from.
    #[default]
    HoldOut,
    /// What is learnt from: whether a network can learn something by heart.
    Training,
}

impl Validation {
    /// What is read, for people and for the keys of a table.
    pub fn names(&self) -> (&'static str, &'static str) {
        match (&self.set, self.on) {
            (Some(_), _) => ("validation set", "validation_token_match"),
            (None, ValidationSet::HoldOut) => ("hold-out", "hold_out_token_match"),
            (None, ValidationSet::Training) => ("training set", "training_token_match"),
        }
    }
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            seed: 7,
            epochs: 300,
            epoch_samples: 0,
            model: ModelConfig::default(),
            data: Data::default(),
            batches: Batches::default(),
            augmentation: Augmentation::default(),
            loss: Loss::default(),
            optimizer: Optimizer::default(),
            schedule: Schedule::default(),
            validation: Validation::default(),
            checkpoint: CheckpointInterval::default(),
        }
    }
}

impl Default for Batches {
    fn default() -> Self {
        Self { pictures: 8, pixels: 320_000, order: Order::Area, accumulate: 4 }
    }
}

impl Default for Augmentation {
    fn default() -> Self {
        Self {
            scale: [0.7, 1.4],
            sizes: vec![(0, 1.0)],
            rotation: 0.0,
            slant: 0.0,
            stretch: 1.0,
            jitter: 0.0,
            symbol_scale: 1.0,
            borrow: 0.0,
            pen: [PEN; 2],
            share: 1.0,
            blur: 0.0,
            noise: 0.0,
        }
    }
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            kind: OptimizerKind::Sgd,
            rate: 0.08,
            momentum: 0.9,
            betas: [0.9, 0.999],
            weight_decay: 1e-4,
            clip: 0.0,
            average: 0.0,
        }
    }
}

impl Default for CheckpointInterval {
    fn default() -> Self {
        Self { minutes: 5.0 }
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self { kind: ScheduleKind::Plateau, factor: 0.25, patience: 20, warm_up: 0.0, last: 0.0 }
    }
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            every: 2,
            on: ValidationSet::HoldOut,
            set: None,
            pictures: 0,
            strategy: Strategy::Joint,
            beam: 10,
        }
    }
}

impl Recipe {
    /// Reads and checks a recipe.
    pub fn open(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|reason| Error::File { path: path.into(), reason })?;
        Self::parse(&text).map_err(|reason| Error::Recipe { path: path.into(), reason })
    }

    /// Reads the recipe that a run folder stores, which may have been written with earlier names of keys.
    pub fn open_stored(path: &Path) -> Result<Self> {
        let failed = |reason| Error::Recipe { path: path.into(), reason };
        let text =
            std::fs::read_to_string(path).map_err(|reason| Error::File { path: path.into(), reason })?;
        let text = keys::translate(&text).map_err(failed)?;
        Self::parse(&text).map_err(failed)
    }

    /// Reads and checks the text of a recipe.
    pub fn parse(text: &str) -> Result<Self, String> {
        keys::refuse_earlier(text)?;
        let recipe: Self = toml::from_str(text).map_err(|error| check::explain(&error))?;
        recipe.validate()?;
        Ok(recipe)
    }

    /// The recipe with every value written out.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a recipe has a TOML form")
    }

    /// How validation searches.
    pub fn search(&self) -> SearchConfig {
        let Validation { strategy, beam, .. } = self.validation;
        SearchConfig { strategy, beam, max_length: self.data.longest().max(2), ..SearchConfig::default() }
    }

    /// The factor of the size in an epoch.
    pub fn size(&self, epoch: usize) -> f64 {
        let sizes = self.augmentation.sizes.iter();
        sizes.take_while(|(first, _)| *first <= epoch).last().map_or(1.0, |&(_, factor)| factor)
    }
}

#[cfg(test)]
mod tests {
    use comer::internal::config::Coverage;

    use super::*;

    #[test]
    fn the_recipes_of_this_repository_are_good_and_the_papers_differ_in_their_coverage_alone() {
        let open = |name: &str| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
            Recipe::open(&folder.join(name)).unwrap()
        };
        for name in ["default.toml", "further.toml", "bundled.toml", "ablation.toml", "by-heart.toml"] {
            open(name);
        }
        assert_eq!(open("paper.toml"), Recipe::default());
        for (name, coverage) in [
            ("self.toml", Coverage::SelfOnly),
            ("cross.toml", Coverage::Cross),
            ("bttr.toml", Coverage::None),
        ] {
            let mut recipe = open(name);
            assert_eq!(recipe.model.coverage, coverage, "{name}");
            recipe.model.coverage = Coverage::Fusion;
            assert_eq!(recipe, Recipe::default(), "{name}");
        }
    }

    #[test]
    fn a_recipe_survives_being_written_out() {
        let mut recipe = Recipe::default();
        recipe.augmentation.sizes = vec![(0, 0.5), (10, 1.0)];
        assert_eq!(Recipe::parse(&recipe.to_toml()).unwrap(), recipe);
        assert_eq!([0, 9, 10, 11].map(|epoch| recipe.size(epoch)), [0.5, 0.5, 1.0, 1.0]);
        assert_eq!(Recipe::parse("").unwrap(), Recipe::default());
    }
}
