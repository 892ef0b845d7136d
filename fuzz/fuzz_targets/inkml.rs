//! Any bytes as InkML: ink that can be drawn (or is refused) and is read back from what it is written to, or an error.
#![no_main]

use comer::Ink;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(ink) = Ink::from_inkml(bytes) {
        let _ = ink.draw();
        let again = Ink::from_inkml(ink.to_inkml().as_bytes()).expect("what was written is read");
        assert_eq!(again.strokes(), ink.strokes());
        assert_eq!(again.symbols().len(), ink.symbols().len());
    }
});
