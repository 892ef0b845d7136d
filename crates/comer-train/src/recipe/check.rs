//! Validation of recipes, with messages that name the field and the expected value.

use comer::internal::ink::MOST_PEN;
use comer_eval::metrics::levenshtein;

use super::{Recipe, ValidationSet};

impl Recipe {
    /// The first invalid value, if there is one.
    pub(super) fn validate(&self) -> Result<(), String> {
        self.model.validate().map_err(|error| error.to_string())?;
        self.search().validate().map_err(|error| error.to_string())?;
        let (augmentation, optimizer, schedule) = (&self.augmentation, &self.optimizer, &self.schedule);
        let counts = [
            ("epochs", self.epochs),
            ("data.most_tokens", self.data.most_tokens),
            ("data.most_pixels", self.data.most_pixels),
            ("batches.pictures", self.batches.pictures),
            ("batches.pixels", self.batches.pixels),
            ("batches.accumulate", self.batches.accumulate),
            ("validation.every", self.validation.every),
        ];
        for (field, value) in counts {
            if value == 0 {
                return Err(format!("{field} = 0: expected at least 1"));
            }
        }
        let [least, most] = augmentation.scale;
        let numbers = [
            ("data.hold_out", self.data.hold_out, 0.0, 0.9),
            ("augmentation.scale", least, 0.1, most.min(10.0)),
            ("augmentation.scale", most, least.max(0.1), 10.0),
            ("augmentation.rotation", augmentation.rotation, 0.0, 45.0),
            ("augmentation.tilt", augmentation.tilt, 0.0, 45.0),
            ("augmentation.tilt_share", augmentation.tilt_share, 0.0, 1.0),
            ("augmentation.slant", augmentation.slant, 0.0, 45.0),
            ("augmentation.stretch", augmentation.stretch, 1.0, 4.0),
            ("augmentation.jitter", augmentation.jitter, 0.0, 1.0),
            ("augmentation.symbol_scale", augmentation.symbol_scale, 1.0, 4.0),
            ("augmentation.borrow", augmentation.borrow, 0.0, 1.0),
            ("augmentation.pen", augmentation.pen[0] as f64, 1.0, augmentation.pen[1] as f64),
            ("augmentation.pen", augmentation.pen[1] as f64, 1.0, MOST_PEN as f64),
            ("augmentation.share", augmentation.share, 0.0, 1.0),
            ("augmentation.blur", augmentation.blur, 0.0, 1.0 / 3.0),
            ("augmentation.noise", augmentation.noise, 0.0, 255.0),
            ("optimizer.rate", optimizer.rate, 0.0, 100.0),
            ("optimizer.momentum", optimizer.momentum, 0.0, 0.9999),
            ("optimizer.betas", optimizer.betas[0], 0.0, 0.99999),
            ("optimizer.betas", optimizer.betas[1], 0.0, 0.99999),
            ("optimizer.weight_decay", optimizer.weight_decay, 0.0, 1.0),
            ("optimizer.clip", optimizer.clip, 0.0, 1e9),
            ("loss.label_smoothing", self.loss.label_smoothing, 0.0, 0.9),
            ("loss.symbols", self.loss.symbols, 0.0, 100.0),
            ("loss.presence", self.loss.presence, 0.0, 100.0),
            ("optimizer.average", optimizer.average, 0.0, 0.999_999),
            ("schedule.factor", schedule.factor, 0.0, 1.0),
            ("schedule.warm_up", schedule.warm_up, 0.0, 1.0),
            ("schedule.last", schedule.last, 0.0, 1.0),
            ("checkpoint.minutes", self.checkpoint.minutes, 0.0, 1e6),
        ];
        for (field, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                return Err(format!("{field} = {value}: expected a number from {least} to {most}"));
            }
        }
        let sizes = &augmentation.sizes;
        let ordered = sizes.first().is_some_and(|first| first.0 == 0)
            && sizes.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && sizes.iter().all(|(_, factor)| (0.1..=4.0).contains(factor));
        if !ordered {
            return Err(format!(
                "augmentation.sizes = {sizes:?}: expected [first epoch, factor from 0.1 to 4] in ascending order, the first epoch 0"
            ));
        }
        self.validate_sets()
    }

    fn validate_sets(&self) -> Result<(), String> {
        let sets = &self.data.sets;
        for set in sets {
            if set.path.is_empty() {
                return Err("[[data]] without path: expected a file or folder in the folder of --data".into());
            }
            if !set.weight.is_valid() {
                return Err(format!(
                    "[[data]] {}: weight = {:?}: expected a number of at least 0, or [first epoch, number] in ascending order, the first epoch 0",
                    set.path, set.weight
                ));
            }
        }
        if let Some(set) = sets.iter().find(|set| {
            set.shares.iter().any(|share| !(0.0..=1e9).contains(share))
                || set.shares.iter().all(|&share| share == 0.0)
        }) {
            return Err(format!(
                "[[data]] {}: shares = {:?}: expected three numbers of at least 0, not all 0",
                set.path, set.shares
            ));
        }
        if sets.is_empty() {
            return Ok(());
        }
        if self.epoch_samples == 0 {
            return Err("[[data]] without epoch_samples: expected the number of samples per epoch".into());
        }
        if self.validation.set.is_none() && self.validation.on == ValidationSet::HoldOut {
            return Err(
                "[[data]] without validation.set: expected a stroke set that is not used for training".into(),
            );
        }
        let empty = (0..self.epochs).find(|&epoch| sets.iter().all(|set| set.weight.at(epoch) == 0.0));
        match empty {
            Some(epoch) => Err(format!("[[data]]: all weights are 0 in epoch {}", epoch + 1)),
            None => Ok(()),
        }
    }
}

/// The message of a TOML error, with the nearest known key for an unknown one.
pub(super) fn explain(error: &toml::de::Error) -> String {
    let message = shortened(&error.to_string());
    let Some(rest) = error.message().strip_prefix("unknown field `") else {
        return message.trim_end().into();
    };
    let mut names = rest.split('`').step_by(2);
    let found = names.next().unwrap_or_default();
    let nearest = names.min_by_key(|name| levenshtein(found.as_bytes(), name.as_bytes()));
    match nearest {
        Some(nearest) => format!("{}\ndid you mean `{nearest}`?", message.trim_end()),
        None => message,
    }
}

/// A message with the start of each line: TOML errors quote a line of the file, which may be all of it.
fn shortened(message: &str) -> String {
    const MOST: usize = 300;
    let line = |line: &str| line.chars().take(MOST).collect();
    message.lines().map(line).collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_suggest_the_nearest_known_one() {
        for (text, found, nearest) in [
            ("epoch = 3", "epoch", "epochs"),
            ("[optimizer]\nweightdecay = 0.1", "weightdecay", "weight_decay"),
            ("[augmentation]\nrotate = 3.0", "rotate", "rotation"),
            ("[model]\ngrowth = 24", "growth", "growth_rate"),
        ] {
            let message = Recipe::parse(text).unwrap_err();
            assert!(message.contains(&format!("unknown field `{found}`")), "{message}");
            assert!(message.ends_with(&format!("did you mean `{nearest}`?")), "{message}");
        }
    }

    #[test]
    fn messages_are_short_whatever_the_file() {
        for text in [format!("epochs = [{}1]", "1,".repeat(50_000)), format!("[{}", "a".repeat(100_000))] {
            let message = Recipe::parse(&text).unwrap_err();
            assert!(
                message.len() < 2_000 && message.contains("line 1"),
                "{} bytes: {message:.300}",
                message.len()
            );
        }
    }

    #[test]
    fn invalid_values_are_rejected_by_name() {
        for (text, field) in [
            ("epochs = 0", "epochs"),
            ("[batches]\naccumulate = 0", "batches.accumulate"),
            ("[optimizer]\nrate = nan", "optimizer.rate"),
            ("[optimizer]\nmomentum = 1.5", "optimizer.momentum"),
            ("[augmentation]\nscale = [1.4, 0.7]", "augmentation.scale"),
            ("[augmentation]\nsizes = [[3, 0.5]]", "augmentation.sizes"),
            ("[model]\nheads = 7", "d_model"),
            ("[data]\nhold_out = 2.0", "data.hold_out"),
            ("[schedule]\nkind = \"linear\"", "linear"),
        ] {
            let message = Recipe::parse(text).unwrap_err();
            assert!(message.contains(field), "{text}: {message}");
        }
    }
}
