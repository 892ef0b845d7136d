//! Any bytes as a language model: a model that writes the same bytes again, or an error, never a panic.
#![no_main]

use comer::internal::language_model::LanguageModel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = LanguageModel::from_bytes("fuzz", bytes) {
        let written = model.to_bytes().expect("what was read can be written");
        assert_eq!(LanguageModel::from_bytes("again", &written).expect("what was written is read"), model);
    }
});
