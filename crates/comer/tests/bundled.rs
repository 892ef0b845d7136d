//! The model that comes with the crate: small, whole, with its story inside, and able to read.
#![cfg(feature = "bundled")]

use comer::internal::model_file::ModelFile;
use comer::{Input, Recognizer};

#[test]
fn it_is_small_and_tells_what_made_it() {
    // A package of the registry has at most 10 MB.
    let bytes = comer_model_crohme::MODEL.len();
    assert!(bytes < 9_500_000, "{bytes} bytes");
    let provenance = ModelFile::bundled().unwrap().provenance;
    for key in ["data", "ink", "recipe", "epochs", "hours", "commit", "licence", "crohme_2014", "crohme_2016"]
    {
        assert!(provenance.contains_key(key), "{key} is missing: {provenance:#?}");
    }
}

#[test]
fn it_reads_a_sample_of_ours() {
    let sample = include_bytes!("../../../samples/square.inkml");
    let input = Input::from_bytes(sample).unwrap();
    let recognizer = Recognizer::bundled().unwrap();
    let recognition = recognizer.recognize(&input).unwrap();
    assert_eq!(recognition.best.tokenized(), input.ink().unwrap().latex().unwrap());
    assert_eq!(recognition.latex(), "x^{2} + 1");
}
