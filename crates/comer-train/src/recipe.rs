//! Recipes: everything that a run depends on except the data, in one TOML file. The defaults are the paper's.

mod check;
mod data;
mod keys;

use std::path::Path;

use comer::internal::config::{ModelConfig, SearchConfig, Strategy};
use comer::internal::ink::PEN;
use serde::{Deserialize, Serialize};

pub use self::data::{ByEpoch, Data, DataSet, SetKind};
use crate::error::{Error, Result};

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Seed of initial weights, order of batches, augmentation and dropout.
    pub seed: u64,
    /// Number of passes over the training samples, or over `epoch_samples` samples.
    pub epochs: usize,
    /// Samples per epoch; 0 for every sample once. Required for sets with weights.
    pub epoch_samples: usize,
    /// The shape of the network.
    pub model: ModelConfig,
    /// Training data.
    pub data: Data,
    /// Sizes and order of batches.
    pub batches: Batches,
    /// Augmentation of samples.
    pub augmentation: Augmentation,
    /// The loss.
    pub loss: Loss,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// The learning rate schedule.
    pub schedule: Schedule,
    /// Validation during training.
    pub validation: Validation,
    /// Interval of checkpoints.
    pub checkpoint: CheckpointInterval,
}

/// Sizes and order of batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Batches {
    /// Maximum number of pictures in a batch.
    pub pictures: usize,
    /// Maximum number of pixels in a batch, when all its pictures are padded to the area of the largest.
    pub pixels: usize,
    /// Which samples share a batch.
    pub order: Order,
    /// Batches per step; their gradients are averaged.
    pub accumulate: usize,
}

/// Which samples share a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Samples of similar area, to reduce padding. Batches are the same in each epoch, in another order.
    #[default]
    Area,
    /// Random samples, different in each epoch: for devices that do not pad.
    Random,
}

/// Augmentation. Everything except scale, sizes, blur and noise needs strokes and does not affect samples without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    /// Minimum and maximum scale.
    pub scale: [f64; 2],
    /// An additional scale by epoch, to make early epochs cheap: `[first epoch, factor]`; the first epoch is 0.
    pub sizes: Vec<(usize, f64)>,
    /// Maximum rotation in either direction, in degrees.
    pub rotation: f64,
    /// Maximum rotation of tilted samples in either direction, in degrees, instead of `rotation`.
    pub tilt: f64,
    /// The share of augmented samples that are tilted.
    pub tilt_share: f64,
    /// Maximum slant in either direction, in degrees.
    pub slant: f64,
    /// Maximum change of the aspect ratio, as a factor.
    pub stretch: f64,
    /// Maximum shift of a symbol, relative to its size.
    pub jitter: f64,
    /// Maximum scale of a single symbol.
    pub symbol_scale: f64,
    /// The share of symbols that are replaced by those of other writers.
    pub borrow: f64,
    /// Minimum and maximum width of the pen in pixels; that of CROHME is 3.
    pub pen: [usize; 2],
    /// The share of samples whose strokes are augmented.
    pub share: f64,
    /// Maximum blur: the share of a pixel that goes to either neighbour.
    pub blur: f64,
    /// Maximum standard deviation of noise, for pixels from 0 to 255.
    pub noise: f64,
}

/// The loss: the cross entropy of the tokens, and optionally auxiliary losses of the encoder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// The share of each target that is spread over all tokens.
    pub label_smoothing: f64,
    /// The weight of the symbol loss, the cross entropy of the symbol of each cell, for samples with strokes; 0 for none.
    pub symbols: f64,
    /// The weight of the presence loss, which needs no strokes: the binary cross entropy of which tokens a picture has, each
    /// from the cell where it is most likely (weakly supervised learning); 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub presence: f64,
}

fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

/// Interval of checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointInterval {
    /// Minutes between checkpoints.
    pub minutes: f64,
}

/// The optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimizer {
    /// The algorithm.
    pub kind: OptimizerKind,
    /// The learning rate, before the factor of the schedule.
    pub rate: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// Decay rates of the first and second moment of AdamW.
    pub betas: [f64; 2],
    /// Weight decay. SGD applies it to every tensor as part of the gradient; AdamW decouples it and excludes norms and
    /// biases.
    pub weight_decay: f64,
    /// Maximum norm of the gradient (gradient clipping); 0 for none.
    pub clip: f64,
    /// Decay of the exponential moving average of the weights; 0 for no averaging. Averaged weights are validated and
    /// saved.
    pub average: f64,
}

/// The algorithm of an optimiser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Stochastic gradient descent with momentum.
    #[default]
    Sgd,
    /// Adam with decoupled weight decay.
    Adamw,
}

/// The learning rate schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// The kind of schedule.
    pub kind: ScheduleKind,
    /// Plateau: the factor by which the rate is lowered.
    pub factor: f64,
    /// Plateau: the number of epochs without a better ExpRate before the rate is lowered.
    pub patience: usize,
    /// The share of all steps in which the rate rises linearly from 0.
    pub warm_up: f64,
    /// The final rate, relative to the maximum.
    pub last: f64,
}

/// The kind of schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// Lowers the rate when validation does not improve.
    #[default]
    Plateau,
    /// Warm-up, then cosine decay to the last step.
    OneCycle,
    /// Constant after the warm-up.
    Constant,
}

/// Validation during training, with the inference engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Validation {
    /// Number of epochs between validations.
    pub every: usize,
    /// The samples, unless `set` is given.
    pub on: ValidationSet,
    /// A stroke set in the folder of the data. Its writers are excluded from training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Maximum number of pictures, evenly spaced over the samples; 0 for all.
    pub pictures: usize,
    /// The search strategy.
    pub strategy: Strategy,
    /// The beam width of each direction.
    pub beam: usize,
}

/// Samples for validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValidationSet {
    /// Formulas that are not in the training data.
    #[default]
    HoldOut,
    /// The training data: tests whether a network can overfit.
    Training,
}

impl Validation {
    /// The name of the validation data for display, and the key of its ExpRate.
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
            tilt: 0.0,
            tilt_share: 0.0,
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

fn text(path: &Path) -> Result<String> {
    let text = comer_files::read_text(path, comer_files::limit::RECIPE);
    text.map_err(|reason| Error::File { path: path.into(), reason })
}

impl Recipe {
    /// Reads and checks a recipe.
    pub fn open(path: &Path) -> Result<Self> {
        let text = text(path)?;
        Self::parse(&text).map_err(|reason| Error::Recipe { path: path.into(), reason })
    }

    /// Reads a recipe with the values of a second file, such as a common budget, in place of its own.
    pub fn open_with(path: &Path, values: &Path) -> Result<Self> {
        let read = |path: &Path| {
            text(path)?
                .parse::<toml::Table>()
                .map_err(|error| Error::Recipe { path: path.into(), reason: check::explain(&error) })
        };
        let merged = keys::merge(read(path)?, read(values)?).to_string();
        let reason = |reason| format!("with the values of {}: {reason}", values.display());
        Self::parse(&merged).map_err(|error| Error::Recipe { path: path.into(), reason: reason(error) })
    }

    /// Reads the recipe that a run folder stores, which may have old names of keys.
    pub fn open_stored(path: &Path) -> Result<Self> {
        let failed = |reason| Error::Recipe { path: path.into(), reason };
        let text = text(path)?;
        let text = keys::translate(&text).map_err(failed)?;
        Self::parse(&text).map_err(failed)
    }

    /// Reads and checks the text of a recipe.
    pub fn parse(text: &str) -> Result<Self, String> {
        keys::reject_old(text)?;
        let recipe: Self = toml::from_str(text).map_err(|error| check::explain(&error))?;
        recipe.validate()?;
        Ok(recipe)
    }

    /// The recipe as TOML, with every value.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a recipe has a TOML form")
    }

    /// The values that differ from those of an earlier recipe, one per line of a message.
    pub fn changes(&self, earlier: &Self) -> Vec<String> {
        keys::changes(&earlier.to_toml(), &self.to_toml())
    }

    /// The search configuration of validation.
    pub fn search(&self) -> SearchConfig {
        let Validation { strategy, beam, .. } = self.validation;
        SearchConfig { strategy, beam, max_length: self.data.longest().max(2), ..SearchConfig::default() }
    }

    /// The size factor of an epoch.
    pub fn size(&self, epoch: usize) -> f64 {
        let sizes = self.augmentation.sizes.iter();
        sizes.take_while(|(first, _)| *first <= epoch).last().map_or(1.0, |&(_, factor)| factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(name)
    }

    #[test]
    fn all_recipes_in_configs_are_valid() {
        let files = config("").read_dir().unwrap().map(|file| file.unwrap().path());
        let files: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|kind| kind == "toml")).collect();
        assert!(files.len() > 20, "{files:?}");
        for file in files {
            Recipe::open(&file).unwrap();
        }
        assert_eq!(Recipe::open(&config("paper.toml")).unwrap(), Recipe::default());
    }

    /// All values in which a recipe differs from the one that it is based on, as its comment says.
    const DIFFERENCES: [(&str, &str, &[&str]); 8] = [
        ("self", "paper", &["model.coverage was \"fusion\", is \"self\""]),
        ("cross", "paper", &["model.coverage was \"fusion\", is \"cross\""]),
        ("bttr", "paper", &["model.coverage was \"fusion\", is \"none\""]),
        ("bttr-no-scale", "bttr", &["augmentation.scale was [0.7, 1.4], is [1.0, 1.0]"]),
        ("densewap-left-to-right", "densewap", &["model.directions was not set, is \"left-to-right\""]),
        (
            "li",
            "densewap",
            &["augmentation.scale was [1.0, 1.0], is [0.7, 1.4]", "model.drop_attention was not set, is 0.1"],
        ),
        ("ws-wap", "densewap", &["loss.presence was not set, is 1.0"]),
        (
            "ding",
            "densewap",
            &[
                "augmentation.scale was [1.0, 1.0], is [0.7, 1.4]",
                "model.decoder_layers was 1, is 2",
                "model.heads was 1, is 4",
            ],
        ),
    ];

    #[test]
    fn recipes_of_the_comparison_differ_only_as_their_comments_say_also_with_the_budget() {
        let plain = |name: &str| Recipe::open(&config(&format!("{name}.toml"))).unwrap();
        let budget = config("ablation-budget.toml");
        let budgeted = |name: &str| Recipe::open_with(&config(&format!("{name}.toml")), &budget).unwrap();
        for (name, base, differences) in DIFFERENCES {
            assert_eq!(plain(name).changes(&plain(base)), differences, "{name}");
            assert_eq!(budgeted(name).changes(&budgeted(base)), differences, "{name} with the budget");
        }
        // The budget has all values in which the training of the two kinds of models differs.
        let decoder = [
            "augmentation.scale was [0.7, 1.4], is [1.0, 1.0]",
            "model.coverage_channels was 32, is 512",
            "model.decoder was not set, is \"gru\"",
            "model.decoder_layers was 3, is 1",
            "model.heads was 8, is 1",
        ];
        assert_eq!(budgeted("densewap").changes(&budgeted("paper")), decoder);
        let mut own =
            [&decoder[..], &["model.dropout was 0.3, is 0.2", "optimizer.clip was 0.0, is 5.0"]].concat();
        own.sort_unstable();
        assert_eq!(plain("densewap").changes(&plain("paper")), own);
        assert_eq!(budgeted("paper"), Recipe::open(&budget).unwrap());
        assert_eq!(plain("densewap-overfit").changes(&plain("overfit")), decoder[1..]);
    }

    #[test]
    fn a_file_that_is_too_large_is_not_parsed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recipe.toml");
        std::fs::write(&path, format!("epochs = [{}1]", "1,".repeat(1 << 20))).unwrap();
        let small = folder.path().join("small.toml");
        std::fs::write(&small, "epochs = 3\n").unwrap();
        for read in [Recipe::open(&path), Recipe::open_with(&small, &path), Recipe::open_stored(&path)] {
            let message = read.unwrap_err().to_string();
            assert!(
                message.contains("recipe.toml") && message.contains("limit of 262144 bytes"),
                "{message}"
            );
        }
    }

    #[test]
    fn recipes_round_trip() {
        let mut recipe = Recipe::default();
        recipe.augmentation.sizes = vec![(0, 0.5), (10, 1.0)];
        assert_eq!(Recipe::parse(&recipe.to_toml()).unwrap(), recipe);
        assert_eq!([0, 9, 10, 11].map(|epoch| recipe.size(epoch)), [0.5, 0.5, 1.0, 1.0]);
        assert_eq!(Recipe::parse("").unwrap(), Recipe::default());
    }
}
