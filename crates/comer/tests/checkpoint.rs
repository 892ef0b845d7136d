//! Checkpoints of the authors' implementation: good ones import, damaged and hostile ones are refused.

use std::io::{Cursor, Write};

use comer::Error;
use comer::internal::checkpoint::{Hints, StateDict, import};
use comer::internal::{Coverage, ModelFile, Precision, Vocab};
use comer_testing::{golden_model, shared};
use proptest::prelude::*;

#[test]
fn golden_weights_become_models_of_every_coverage() {
    for (name, coverage) in [
        ("bttr", Coverage::None),
        ("self", Coverage::SelfOnly),
        ("cross", Coverage::Cross),
        ("fusion", Coverage::Fusion),
    ] {
        let model = golden_model(name);
        assert_eq!((model.config.coverage, model.config.d_model, model.config.heads), (coverage, 32, 4));
        model.validate().unwrap();
    }
}

#[test]
fn the_released_checkpoint_imports_and_survives_its_model_file() {
    let Some(path) = shared("models/released.ckpt") else { return };
    let model = import(path, Vocab::crohme(), &Hints::default()).unwrap();
    assert_eq!(model.config, comer::internal::ModelConfig::default());
    let bytes = model.to_bytes(Precision::F32).unwrap();
    assert_eq!(ModelFile::from_bytes("copy", &bytes).unwrap(), model);
}

#[test]
fn the_wrong_vocabulary_is_refused() {
    let Some(path) = shared("models/released.ckpt") else { return };
    let error = import(path, Vocab::new(["x"]).unwrap(), &Hints::default()).unwrap_err();
    assert!(error.to_string().contains("113 tokens"), "{error}");
}

#[test]
fn what_is_no_checkpoint_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let os_system = b"cos\nsystem\nX\x06\0\0\0rm -rf\x85R.";
    let deep: Vec<u8> = [vec![b'('; 1 << 20], b".".to_vec()].concat();
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("empty", Vec::new(), "safetensors"),
        ("text", b"not a checkpoint at all".to_vec(), "safetensors"),
        ("bare pickle", b"\x80\x02}.".to_vec(), "1.6"),
        ("zip without pickle", zip_of(&[("a/b.txt", b"x")]), "data.pkl"),
        ("calls os.system", zip_of(&[("a/data.pkl", os_system)]), "os.system"),
        ("a number", zip_of(&[("a/data.pkl", b"K\x05.")]), "dictionary of tensors"),
        (
            "text for a tensor",
            zip_of(&[("a/data.pkl", b"}X\x01\0\0\0wX\x01\0\0\0vs.")]),
            "\"w\" is not a tensor",
        ),
        ("a tuple across a mark", zip_of(&[("a/data.pkl", b"NN(N\x87t.")]), "empty stack"),
        ("a text of 4 GB", zip_of(&[("a/data.pkl", b"X\xff\xff\xff\xffabc.")]), "ends in the middle"),
        ("a flood of values", zip_of(&[("a/data.pkl", &vec![b'N'; 3 << 20])]), "262144 values or more"),
        ("a million marks", zip_of(&[("a/data.pkl", &deep)]), "262144 values or more"),
    ];
    for (name, bytes, expected) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = import(&path, Vocab::crohme(), &Hints::default()).unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{name}: {error}");
        let message = error.to_string();
        assert!(message.contains(name) && message.contains(expected), "{message}");
    }
}

#[test]
fn tensors_that_reach_outside_of_their_storage_are_refused() {
    for (shape, stride, offset) in [
        ("K\x08", "K\x01", "K\x00"),             // eight numbers of a storage of two
        ("K\x01", "K\x01", "K\x09"),             // from far behind its end
        ("J\x7f\x7f\x7f\x7f", "K\x00", "K\x00"), // one number repeated two thousand million times
        ("\u{8a}\x08\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", "K\x01", "K\x00"), // more than a usize holds in bytes
    ] {
        let latin1 = |text: &str| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
        let pickle = [
            b"}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n"
                .to_vec(),
            b"X\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ".to_vec(),
            latin1(offset),
            latin1(shape),
            b"\x85".to_vec(),
            latin1(stride),
            b"\x85\x89}tRs.".to_vec(),
        ]
        .concat();
        let bytes = zip_of(&[("a/data.pkl", &pickle), ("a/data/0", &[0; 8])]);
        let reason = StateDict::from_bytes(&bytes).unwrap_err();
        assert!(
            reason.contains("outside of its storage") || reason.contains("larger than the file"),
            "{reason}"
        );
    }
}

#[test]
fn a_released_checkpoint_cut_or_flipped_anywhere_never_panics() {
    let Some(path) = shared("models/released.ckpt") else { return };
    let bytes = std::fs::read(path).unwrap();
    // The zip's directory is at the end, so that a cut at any kilobyte of the file loses it.
    for length in (0..bytes.len()).step_by(1024) {
        assert!(StateDict::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
    }
    let pickle = bytes.windows(11).position(|window| window == b"\x80\x02}q\x00(X\x05\0\0\0").unwrap();
    for flip in 0..64 {
        let mut damaged = bytes.clone();
        damaged[pickle + flip * 997] ^= 1 << (flip % 8);
        assert!(StateDict::from_bytes(&damaged).is_err(), "flip {flip}");
    }
}

proptest! {
    #[test]
    fn any_pickle_is_read_or_refused(pickle in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = StateDict::from_bytes(&zip_of(&[("a/data.pkl", &pickle)]));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = StateDict::from_bytes(&bytes);
        let _ = StateDict::from_bytes(&[b"PK".to_vec(), bytes].concat());
    }
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
