//! `comer export`: ONNX Runtime computes what our engine computes, for models of all four coverages and the bundled one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use comer::internal::engine::decoder::Decoder;
use comer::internal::engine::encoder::Encoder;
use comer::internal::vocab::{SOS, TokenId};
use comer::internal::{ModelFile, Precision};
use comer::{Image, Input, RecognizeOptions, Recognizer};
use comer_testing::{repository, sample, thread_cpu_time};
use serde_json::{Value, json};

/// Python with onnxruntime and numpy: `COMER_PYTHON`, or else `python3`.
fn python() -> Option<String> {
    let python = std::env::var("COMER_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import onnxruntime, numpy, PIL"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    comer_testing::skip(&format!(
        "{python} has no onnxruntime, numpy and pillow (COMER_PYTHON names another)"
    ));
    None
}

/// The files of `comer export`.
fn export(model: &Path, out: &Path) {
    let comer = Command::new(env!("CARGO_BIN_EXE_comer"))
        .args(["export", "--model"])
        .args([model, out])
        .output()
        .unwrap();
    assert!(comer.status.success(), "{}", String::from_utf8_lossy(&comer.stderr));
}

/// What ONNX Runtime computes for the cases: `worst`, `formulas` and `seconds` of tests/export/compare.py.
fn compare(python: &str, onnx: &Path, cases: &[Value]) -> Value {
    let file = onnx.join("cases.json");
    std::fs::write(&file, serde_json::to_string(cases).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export/compare.py");
    let output = Command::new(python).arg(script).arg(onnx).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the engine computes for a picture and the tokens of a formula (without SOS).
fn expected(model: &ModelFile, image: &Image, tokens: &[TokenId]) -> Value {
    let features = Encoder::new(&model.config, &model.weights).encode(image).unwrap();
    let tokens = [&[SOS], tokens].concat();
    let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
    let steps = decoder.start(&features).unwrap().trace(&tokens).unwrap();
    let log_probs: Vec<_> = steps.iter().map(|step| step.log_probs.clone()).collect();
    json!({
        "width": image.width(), "height": image.height(), "pixels": image.pixels(), "features": features.values,
        "tokens": tokens, "log_probs": log_probs,
    })
}

#[test]
fn features_and_logits_of_onnx_runtime_are_the_engines() {
    let Some(python) = python() else { return };
    for name in ["bttr", "self", "cross", "fusion"] {
        let model = comer_testing::golden_model(name);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.safetensors");
        model.save(&file, Precision::F32).unwrap();
        export(&file, folder.path());
        // Odd sizes: every halving of the encoder rounds up.
        let cases = [(70, 33), (131, 48), (16, 16)].map(|(width, height)| {
            let level = |pixel: usize| if pixel * pixel % 97 < 23 { 255 - (pixel % 50) as u8 } else { 0 };
            let image = Image::new(width, height, (0..width * height).map(level).collect()).unwrap();
            expected(&model, &image, &[5, 9, 7, 30, 112, 60])
        });
        let worst = compare(&python, folder.path(), &cases)["worst"].as_f64().unwrap();
        eprintln!("{name}: largest difference {worst:.1e}");
        assert!(worst <= 1e-4, "{name}: features or logits are off by {worst}");
    }
}

#[test]
fn the_bundled_model_reads_the_same_in_onnx_runtime() {
    let Some(python) = python() else { return };
    let file = repository().join("crates/comer-model-crohme/comer.safetensors");
    let model = ModelFile::open(&file).unwrap();
    let recognizer = Recognizer::open(&file).unwrap();
    // As examples/onnx_greedy.py decodes: the network alone.
    let greedy = RecognizeOptions::new().greedy().well_formed(false).language_model(false).threads(1);
    let folder = tempfile::tempdir().unwrap();
    export(&file, folder.path());

    let samples: Vec<Value> = std::fs::read_dir(repository().join("samples"))
        .unwrap()
        .filter_map(|entry| {
            Some(entry.unwrap().path().file_name()?.to_str()?.strip_suffix(".inkml")?.to_string())
        })
        .map(|name| {
            let input = Input::from_bytes(&sample(&name)).unwrap();
            let found = recognizer.recognize_with(&input, &greedy).unwrap().best;
            let tokens = model.vocab.encode(&found.tokenized()).unwrap();
            expected(&model, input.image(), &tokens)
        })
        .collect();
    assert_eq!(samples.len(), 12);
    let worst = compare(&python, folder.path(), &samples)["worst"].as_f64().unwrap();
    eprintln!("samples: largest difference {worst:.1e}");
    assert!(worst <= 1e-4, "features or logits of a sample are off by {worst}");

    let Some(set) = comer_testing::crohme("2014") else { return };
    let mut time = Duration::ZERO;
    let (mut cases, mut formulas) = (Vec::new(), Vec::new());
    for sample in set.samples.iter().step_by(set.samples.len() / 50).take(50) {
        let picture = sample.image.decode().unwrap();
        let start = thread_cpu_time();
        let input = Input::from_image(picture.clone()).unwrap();
        formulas.push(recognizer.recognize_with(&input, &greedy).unwrap().best.tokenized());
        time += thread_cpu_time() - start;
        cases.push(
            json!({ "width": picture.width(), "height": picture.height(), "pixels": picture.pixels() }),
        );
    }
    let found = compare(&python, folder.path(), &cases);
    assert_eq!(json!(formulas), found["formulas"]);
    let per_picture = |seconds: f64| seconds * 1000.0 / formulas.len() as f64;
    eprintln!(
        "{} pictures, greedy, one thread: {:.1} ms of CPU each, ONNX Runtime {:.1} ms",
        formulas.len(),
        per_picture(time.as_secs_f64()),
        per_picture(found["seconds"].as_f64().unwrap())
    );
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_comer")).arg("export").arg(file.join("onnx")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("onnx") && message.contains("Not a directory"), "{message}");
}
