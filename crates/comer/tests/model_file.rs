//! The model file: what is written is read back, and whatever else is offered is refused with the reason.

use std::collections::HashMap;

use comer::internal::language_model::{LanguageModel, Ngrams, Recurrence};
use comer::internal::weights::tensor_specs;
use comer::internal::{Coverage, ModelConfig, ModelFile, Precision, Vocab};
use comer::{Error, Recognizer};
use comer_testing::golden_model;
use proptest::prelude::*;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::json;

/// A model of the smallest size, whose weights count up.
fn smallest() -> ModelFile {
    let config = ModelConfig {
        d_model: 4,
        growth_rate: 1,
        layers_per_block: 1,
        heads: 2,
        decoder_layers: 1,
        feed_forward: 2,
        coverage_channels: 1,
        coverage: Coverage::Fusion,
        ..ModelConfig::default()
    };
    let vocab = Vocab::new(["x", "\\frac"]).unwrap();
    let specs = tensor_specs(&config, vocab.len()).into_iter();
    let weights = specs.map(|spec| {
        let count = spec.shape.iter().product::<usize>();
        let data = (0..count).map(|i| i as f32 / 8.0).collect();
        (spec.name, comer::internal::weights::Tensor { shape: spec.shape, data })
    });
    let provenance = json!({"seed": 7}).as_object().unwrap().clone();
    ModelFile { weights: weights.collect(), config, vocab, provenance, language_model: None }
}

fn reason(bytes: &[u8]) -> String {
    match ModelFile::from_bytes("a file", bytes) {
        Err(Error::ModelFile { name, reason, .. }) if name == "a file" => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_saved_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    for name in ["bttr", "self", "cross", "fusion"] {
        let model = golden_model(name);
        model.save(&path, Precision::F32).unwrap();
        assert_eq!(ModelFile::open(&path).unwrap(), model);
        model.save(&path, Precision::F16).unwrap();
        let rounded = ModelFile::open(&path).unwrap();
        let worst = model.weights.iter().flat_map(|(name, tensor)| {
            tensor
                .data
                .iter()
                .zip(&rounded.weights[name].data)
                .map(|(a, b)| (a - b).abs() / a.abs().max(1e-2))
        });
        assert!(worst.fold(0.0, f32::max) < 1e-3);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the model");
}

#[test]
fn a_language_model_is_part_of_the_file_if_there_is_one() {
    let mut model = smallest();
    let plain = model.to_bytes(Precision::F32).unwrap();
    let ngrams = |start: u16, end: u16| {
        let mut list = [([start], 1.0), ([end], 0.5), ([3], 0.3), ([4], 0.2)];
        list.sort_by_key(|(tokens, _)| *tokens);
        Ngrams::new(5, start, list.iter().map(|(tokens, probability)| (&tokens[..], *probability))).unwrap()
    };
    model.language_model = Some(LanguageModel {
        vocab: model.vocab.clone(),
        forward: ngrams(1, 2),
        backward: ngrams(2, 1),
        recurrence: Recurrence::of_letters(0.5, 2.0, &model.vocab).unwrap(),
        weight: 0.25,
        provenance: Default::default(),
    });
    let bytes = model.to_bytes(Precision::F32).unwrap();
    assert_eq!(ModelFile::from_bytes("a file", &bytes).unwrap(), model);
    assert_eq!(ModelFile::from_bytes("a file", &plain).unwrap().language_model, None);
    // The checksum covers it: its bytes are the last ones of the file.
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(reason(&damaged).contains("checksum"), "{}", reason(&damaged));

    let other = Vocab::new(["x", "y"]).unwrap();
    model.language_model.as_mut().unwrap().vocab = other;
    let message = model.to_bytes(Precision::F32).unwrap_err().to_string();
    assert!(message.contains("vocabulary") && message.contains("frac"), "{message}");
}

#[test]
fn an_unwritable_place_is_an_error_that_names_it() {
    let error = smallest().save("/nonexistent/model.safetensors", Precision::F32).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/model.safetensors"), "{error}");
    let error = ModelFile::open("/nonexistent/model.safetensors").unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn a_model_whose_weights_do_not_fit_is_not_saved() {
    let mut model = smallest();
    model.weights.remove("decoder.output.bias");
    assert!(model.to_bytes(Precision::F32).unwrap_err().to_string().contains("decoder.output.bias"));
    let mut model = smallest();
    model.weights.get_mut("decoder.output.bias").unwrap().data.pop();
    assert!(model.to_bytes(Precision::F32).unwrap_err().to_string().contains("decoder.output.bias"));
}

#[test]
fn weights_that_are_not_finite_are_neither_read_nor_written() {
    let good = smallest().to_bytes(Precision::F32).unwrap();
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut model = smallest();
        model.weights.get_mut("decoder.output.bias").unwrap().data[3] = value;
        for precision in [Precision::F32, Precision::F16] {
            let message = model.to_bytes(precision).unwrap_err().to_string();
            assert!(message.contains(&format!("decoder.output.bias has {value} at 3")), "{message}");
        }
        assert!(comer::Recognizer::new(model).is_err());
        // A file with a right checksum, as another program might write it.
        let reason = reason(&with_bias(&good, value));
        assert!(reason.contains(&format!("decoder.output.bias has {value} at 3")), "{reason}");
    }
    let mut model = smallest();
    model.weights.get_mut("decoder.output.bias").unwrap().data[3] = 1e5;
    assert!(model.to_bytes(Precision::F32).is_ok());
    let message = model.to_bytes(Precision::F16).unwrap_err().to_string();
    assert!(message.contains("100000, which does not fit into 16 bits"), "{message}");
}

/// The file with another number in `decoder.output.bias` and the checksum that belongs to it.
fn with_bias(bytes: &[u8], value: f32) -> Vec<u8> {
    let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
    let mut parts = header.metadata().clone().unwrap();
    let file = SafeTensors::deserialize(bytes).unwrap();
    let mut bias = file.tensor("decoder.output.bias").unwrap().data().to_vec();
    bias[12..16].copy_from_slice(&value.to_le_bytes());
    let mut views: Vec<(String, TensorView)> = file.tensors();
    views.sort_by(|one, other| one.0.cmp(&other.0));
    let mut hash = crc32fast::Hasher::new();
    for part in ["format", "config", "vocabulary", "provenance"] {
        hash.update(format!("{}\0", parts[part]).as_bytes());
    }
    for (name, view) in &mut views {
        if name == "decoder.output.bias" {
            *view = TensorView::new(Dtype::F32, view.shape().to_vec(), &bias).unwrap();
        }
        hash.update(format!("{name} F32 {:?}\0", view.shape()).as_bytes());
        hash.update(view.data());
    }
    parts.insert("checksum".into(), format!("{:08x}", hash.finalize()));
    safetensors::serialize(views, Some(parts)).unwrap()
}

#[test]
fn a_model_whose_output_is_not_finite_gives_an_error() {
    let mut model = golden_model("fusion");
    for tensor in model.weights.values_mut() {
        tensor.data.iter_mut().for_each(|x| *x *= 1e30);
    }
    let recognizer = comer::Recognizer::new(model).unwrap();
    let line =
        |x: f64| comer::Stroke { points: vec![comer::Point { x, y: 0.0 }, comer::Point { x, y: 60.0 }] };
    let input = comer::Input::from_ink(comer::Ink::new(vec![line(0.0), line(40.0)]).unwrap()).unwrap();
    match recognizer.recognize(&input) {
        Err(Error::ModelFile { .. } | Error::Image { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// Rewrites a model file with its metadata and tensors changed, the checksum left as it was.
fn rewrite(
    metadata: impl Fn(&mut HashMap<String, String>),
    tensor: impl Fn(&str) -> Option<(Dtype, Vec<usize>)>,
    extra: Option<&str>,
) -> Vec<u8> {
    let bytes = smallest().to_bytes(Precision::F32).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let mut parts = header.metadata().clone().unwrap();
    metadata(&mut parts);
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let zeros = vec![0u8; 1 << 16];
    let mut views: Vec<(String, TensorView)> = file.tensors();
    views.retain_mut(|(name, view)| match tensor(name) {
        None => true,
        Some((_, shape)) if shape.is_empty() => false,
        Some((dtype, shape)) => {
            let size = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            *view = TensorView::new(dtype, shape, &zeros[..size]).unwrap();
            true
        }
    });
    if let Some(name) = extra {
        views.push((name.into(), TensorView::new(Dtype::F32, vec![1], &zeros[..4]).unwrap()));
    }
    safetensors::serialize(views, Some(parts)).unwrap()
}

#[test]
fn files_whose_parts_do_not_fit_are_refused_by_name() {
    let same = |_: &mut HashMap<String, String>| {};
    let keep = |_: &str| None;
    let change = |key: &'static str, value: &'static str| {
        rewrite(move |parts| drop(parts.insert(key.into(), value.into())), keep, None)
    };
    let only = |wanted: &'static str, dtype: Dtype, shape: &'static [usize]| {
        rewrite(same, move |name| (name == wanted).then(|| (dtype, shape.to_vec())), None)
    };
    let cases: Vec<(Vec<u8>, &[&str])> = vec![
        (change("format", "other"), &["\"other\"", "comer model 1"]),
        (change("config", "{"), &["config does not parse"]),
        (change("config", r#"{"d_mode": 4}"#), &["unknown field `d_mode`"]),
        (change("config", r#"{"heads": 3}"#), &["d_model", "heads"]),
        (change("config", r#"{"d_model": 18446744073709551615}"#), &["d_model", "18446744073709551615"]),
        (change("vocabulary", r#"["x", "x"]"#), &["\"x\""]),
        (change("provenance", "7"), &["provenance does not parse"]),
        (
            rewrite(|parts| drop(parts.insert("provenance".into(), " ".repeat(600_000))), keep, None),
            &["provenance has 600000 bytes", "at most 524288"],
        ),
        (change("checksum", "00000000"), &["checksum"]),
        (rewrite(|parts| drop(parts.remove("vocabulary")), keep, None), &["lacks \"vocabulary\""]),
        (only("decoder.output.bias", Dtype::F32, &[]), &["decoder.output.bias", "missing", "[5]"]),
        (only("decoder.output.bias", Dtype::F32, &[6]), &["decoder.output.bias", "[6]", "[5]"]),
        (only("decoder.output.bias", Dtype::F64, &[5]), &["decoder.output.bias", "F64", "F32 or F16"]),
        (rewrite(same, keep, Some("surplus")), &["surplus", "not part of this model"]),
    ];
    for (bytes, expected) in cases {
        let reason = reason(&bytes);
        for part in expected {
            assert!(reason.contains(part), "{reason:?} should say {part:?}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = golden_model("fusion").to_bytes(Precision::F32).unwrap();
    for length in (0..bytes.len()).step_by(1024).chain([bytes.len() - 1]) {
        reason(&bytes[..length]);
    }
}

#[test]
fn hostile_sizes_are_refused_before_anything_is_allocated() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    for bytes in [
        u64::MAX.to_le_bytes().to_vec(),
        (1u64 << 40).to_le_bytes().to_vec(),
        header(r#"{"a":{"dtype":"F32","shape":[18446744073709551615,4],"data_offsets":[0,16]}}"#),
        header(r#"{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#),
        header(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#),
    ] {
        reason(&bytes);
    }
}

#[test]
fn errors_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let named = |error: Error| {
        let message = error.to_string();
        assert!(
            message.contains(&path.display().to_string()) && !message.contains("this model"),
            "{message}"
        );
        message
    };
    let mut model = golden_model("fusion");
    let curve = json!({ "bias": 1e308, "logit": -1e308, "length": 0.0 });
    let calibration = json!({ "joint": curve, "one_direction": curve, "token": curve });
    for (calibration, expected) in
        [(json!(7), "does not parse"), (calibration, "expected a number within 1000")]
    {
        model.provenance.insert("calibration".into(), calibration);
        model.save(&path, Precision::F32).unwrap();
        let message = named(Recognizer::open(&path).unwrap_err());
        assert!(message.contains("its calibration") && message.contains(expected), "{message}");
    }
    // The logits of such weights are no numbers.
    let mut damaged = golden_model("fusion");
    let output = damaged.weights.get_mut("decoder.output.weight").unwrap();
    output.data.iter_mut().enumerate().for_each(|(at, x)| *x = if at % 2 == 0 { 3e38 } else { -3e38 });
    damaged.save(&path, Precision::F32).unwrap();
    let ink = comer::Ink::from_json(b"[[[0, 0], [20, 20]], [[20, 0], [0, 20]]]").unwrap();
    let input = comer::Input::from_ink(ink).unwrap();
    let message = named(Recognizer::open(&path).unwrap().recognize(&input).unwrap_err());
    assert!(message.contains("its weights are damaged"), "{message}");
    let message = named(damaged.save(&path, Precision::F16).unwrap_err());
    assert!(message.contains("does not fit into 16 bits"), "{message}");
    let mut model = golden_model("fusion");
    let text = json!("a".repeat(1 << 20));
    model.provenance.insert("text".into(), text);
    assert!(named(model.save(&path, Precision::F32).unwrap_err()).contains("its provenance has"));
}

#[cfg(unix)]
#[test]
fn a_model_is_read_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let read = |bytes: Vec<u8>| {
        let own = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(own, bytes));
        let read = ModelFile::open(&pipe).map_err(|error| error.to_string());
        let _ = writer.join();
        read
    };
    let bytes = smallest().to_bytes(Precision::F32).unwrap();
    assert_eq!(read(bytes.clone()).unwrap(), smallest());
    assert!(read([&bytes[..], b"more"].concat()).unwrap_err().contains("something follows its last tensor"));
    assert!(read(bytes[..bytes.len() - 1].to_vec()).unwrap_err().contains("tensor"));
}

proptest! {
    #[test]
    fn a_flipped_bit_anywhere_is_noticed(place in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = smallest().to_bytes(Precision::F16).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= 1u8 << bit;
        reason(&bytes);
    }

    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        reason(&bytes);
    }
}
