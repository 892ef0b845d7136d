//! Any text as a recipe: one that is the same when it is written out and read again, or an error, never a panic.
#![no_main]

use comer_train::recipe::Recipe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(recipe) = Recipe::parse(text) {
        let again = Recipe::parse(&recipe.to_toml()).expect("what was written out is read");
        assert!(again.changes(&recipe).is_empty());
    }
});
