//! Any bytes as a JSON of strokes: ink that can be drawn (or is refused), or an error, never a panic.
#![no_main]

use comer::Ink;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(ink) = Ink::from_json(bytes) {
        let _ = ink.draw();
    }
});
