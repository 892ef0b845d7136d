//! Any bytes as a checkpoint of a training: a state that can be checked, or an error, never a panic.
#![no_main]

use comer_train::checkpoint::{Checkpoint, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = read(bytes) {
        // An error if there are moments of tensors that it does not have.
        let _ = state.check(&state);
        let _ = state.check(&Checkpoint::default());
    }
});
