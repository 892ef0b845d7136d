//! The options of a recognition, as JavaScript gives them.

use comer::{AlignmentDetail, Constraints, RecognizeOptions};
use serde::Deserialize;

/// Most candidates and the widest beam, as for the server.
const MOST_CANDIDATES: usize = 20;
const WIDEST_BEAM: usize = 50;

/// Which formulas of an input are read: all ink as one, several where there is clearly more than one, or several that are
/// separated by the space that formulas usually have between them.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Formulas {
    #[default]
    One,
    Auto,
    All,
}

/// See `RecognizeOptions` in `js/index.d.ts`.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    nbest: usize,
    beam: usize,
    greedy: bool,
    alignment: bool,
    pub(crate) mathml: bool,
    pub(crate) image: bool,
    pub(crate) formulas: Formulas,
    constraints: Option<serde_json::Value>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nbest: 1,
            beam: 10,
            greedy: false,
            alignment: false,
            mathml: false,
            image: false,
            formulas: Formulas::One,
            constraints: None,
        }
    }
}

impl Options {
    /// Parses the JSON.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let options: Self = serde_json::from_str(text).map_err(|error| format!("options: {error}"))?;
        for (name, value, most) in
            [("nbest", options.nbest, MOST_CANDIDATES), ("beam", options.beam, WIDEST_BEAM)]
        {
            if !(1..=most).contains(&value) {
                return Err(format!("options: {name} is {value}, expected a whole number from 1 to {most}"));
            }
        }
        Ok(options)
    }

    /// The same for the recogniser.
    pub fn resolve(&self) -> Result<RecognizeOptions, String> {
        let detail = if self.alignment { AlignmentDetail::Attention } else { AlignmentDetail::None };
        let mut options =
            RecognizeOptions::new().nbest(self.nbest).beam(self.beam).alignment(detail).threads(1);
        if self.greedy {
            options = options.greedy();
        }
        if let Some(constraints) = &self.constraints {
            let constraints = Constraints::from_json(&constraints.to_string());
            options = options.constraints(constraints.map_err(|error| error.to_string())?);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_and_bad_ones_named() {
        let good = r#"{"nbest": 3, "constraints": {"prefix": ["x"]}, "mathml": true}"#;
        assert!(Options::from_json(good).unwrap().resolve().is_ok());
        for (text, word) in [
            (r#"{"nbest": 0}"#, "nbest"),
            (r#"{"beam": 51}"#, "beam"),
            (r#"{"nbset": 1}"#, "nbset"),
            (r#"{"formulas": "two"}"#, "auto"),
        ] {
            let error = Options::from_json(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let wrong = Options::from_json(r#"{"constraints": {"sufix": []}}"#).unwrap();
        assert!(wrong.resolve().unwrap_err().contains("sufix"));
    }
}
