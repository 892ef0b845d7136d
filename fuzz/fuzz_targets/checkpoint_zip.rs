//! A pickle and the storages of its tensors, in a zip that is right: tensors or an error, never a panic.
#![no_main]

use comer::internal::Vocab;
use comer::internal::checkpoint::{Hints, StateDict};
use comer_fuzz::{split, zip_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let parts = split(bytes);
    let names = ["a/data.pkl", "a/data/0", "a/data/1", "a/byteorder"];
    let files: Vec<(&str, &[u8])> = names.into_iter().zip(parts).collect();
    if let Ok(state) = StateDict::from_bytes(&zip_of(&files)) {
        let _ = state.into_model(Vocab::crohme(), &Hints::default());
    }
});
