//! The model that comes with the crate: small, whole, with its story inside, and able to read.
#![cfg(feature = "bundled")]

use comer::internal::model_file::ModelFile;
use comer::{AlignmentDetail, Constraints, Input, RecognizeOptions, Recognizer};

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

/// A correction changes the token and keeps what was read before it; the rest is read again.
#[test]
fn it_reads_under_constraints() {
    let input = Input::from_bytes(include_bytes!("../../../samples/square.inkml")).unwrap();
    let recognizer = Recognizer::bundled().unwrap();
    let options = RecognizeOptions::new().alignment(AlignmentDetail::Attention);
    let recognition = recognizer.recognize_with(&input, &options).unwrap();
    let runners_up = &recognition.alignment.unwrap().runners_up;
    assert_eq!(runners_up.len(), recognition.best.tokens.len());
    let other = runners_up[0].iter().find(|token| token.has_ink()).unwrap();
    assert_ne!(other.text, "x");
    for constraints in
        [Constraints::new().prefix([other.text.clone()]), Constraints::new().token(0, other.text.clone())]
    {
        let options = RecognizeOptions::new().constraints(constraints).nbest(3);
        let corrected = recognizer.recognize_with(&input, &options).unwrap();
        assert_eq!(corrected.latex(), format!("{}^{{2}} + 1", other.text));
        assert_eq!(corrected.best.tokens[0].confidence, 1.0);
        assert!(corrected.best.confidence > 0.5, "{}", corrected.best.confidence);
        assert!(corrected.candidates().all(|candidate| candidate.tokens[0].text == other.text));
    }
    // Well-formed LaTeX does not start with a closing brace.
    let options = RecognizeOptions::new().constraints(Constraints::new().token(0, "}"));
    let error = recognizer.recognize_with(&input, &options).unwrap_err().to_string();
    assert!(error.contains("with the fixed tokens"), "{error}");
}
