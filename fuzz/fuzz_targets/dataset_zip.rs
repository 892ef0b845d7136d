//! Any bytes as the zip of a data set, and captions, a picture and a graph in one that is right.
#![no_main]

use comer::internal::dataset::Dataset;
use comer_eval::files::read_truths;
use comer_fuzz::{file, split, zip_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let names = ["set/caption.txt", "set/img/a.png", "set/img/b.bmp", "set/symLg/a.lg"];
    let files: Vec<(&str, &[u8])> = names.into_iter().zip(split(bytes)).collect();
    for zip in [bytes.to_vec(), zip_of(&files)] {
        let path = file("zip", &zip);
        let _ = Dataset::open(&path, "set");
        let _ = read_truths(&path, None);
    }
});
