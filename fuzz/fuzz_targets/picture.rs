//! Any bytes as a picture file: cleaned ink or an error, never a panic.
#![no_main]

use comer::{Input, InputOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Input::from_bytes(bytes);
    let _ = Input::from_bytes_with(bytes, &InputOptions::new().lenient(true));
});
