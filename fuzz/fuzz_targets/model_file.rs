//! Any bytes as a model file: a model or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = comer::internal::ModelFile::from_bytes("fuzz", bytes);
});
