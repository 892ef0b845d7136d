//! What `crates/comer-wasm/build` makes: the package in Node, and the page without a server in headless Chromium.

mod package;
mod site;

use std::path::PathBuf;

use comer::{Input, Recognition, RecognizeOptions, Recognizer};
use comer_testing::{repository, skip};
use serde_json::Value;

const SAMPLES: [&str; 12] = [
    "circle",
    "digits",
    "fraction",
    "integral",
    "nested",
    "polynomial",
    "power",
    "quadratic",
    "root",
    "roots",
    "square",
    "sum",
];

/// A folder that the build makes. Where it is missing, the test is skipped.
fn built(name: &str) -> Option<PathBuf> {
    let folder = repository().join("crates/comer-wasm").join(name);
    if !folder.exists() {
        skip(&format!("there is no crates/comer-wasm/{name}; crates/comer-wasm/build makes it"));
        return None;
    }
    Some(folder.canonicalize().unwrap())
}

/// What the native code reads.
fn native(recognizer: &Recognizer, input: &Input, nbest: usize) -> Recognition {
    recognizer.recognize_with(input, &RecognizeOptions::new().nbest(nbest).threads(1)).unwrap()
}

/// The tokens of a reading's best formula, separated by spaces.
fn tokens(reading: &Value) -> String {
    let tokens = reading["formulas"][0]["tokens"].as_array().unwrap_or_else(|| panic!("{reading}"));
    let words: Vec<&str> = tokens.iter().map(|token| token["text"].as_str().unwrap()).collect();
    words.join(" ")
}
