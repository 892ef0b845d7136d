//! Any bytes as a checkpoint, and as the pickle of one in a zip: tensors or an error, never a panic.
#![no_main]

use comer::internal::Vocab;
use comer::internal::checkpoint::{Hints, StateDict};
use comer_fuzz::zip_of;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes.to_vec(), zip_of(&[("a/data.pkl", bytes)])] {
        if let Ok(state) = StateDict::from_bytes(&bytes) {
            let _ = state.into_model(Vocab::crohme(), &Hints::default());
        }
    }
});
