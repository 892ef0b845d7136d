//! Any text as a record of a stroke set: ink with tokens, or an error, never a panic.
#![no_main]

use comer::internal::Vocab;
use comer_fuzz::file;
use comer_train::stroke_set;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(records) = stroke_set::read(&file("jsonl", bytes)) {
        for record in records {
            if let Ok((_, ink, _)) = record.read(&Vocab::crohme()) {
                let _ = ink.draw();
            }
        }
    }
});
