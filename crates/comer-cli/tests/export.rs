//! `comer export`: ONNX Runtime computes what our engine computes, for models of all four coverages.

use std::path::Path;
use std::process::Command;

use comer::Image;
use comer::internal::engine::decoder::Decoder;
use comer::internal::engine::encoder::Encoder;
use comer::internal::vocab::{SOS, TokenId};
use comer::internal::{ModelFile, Precision};
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

/// What the engine computes for a picture and the tokens of a formula.
fn expected(model: &ModelFile, width: usize, height: usize) -> Value {
    let pixels: Vec<u8> = (0..width * height)
        .map(|pixel| if pixel * pixel % 97 < 23 { 255 - (pixel % 50) as u8 } else { 0 })
        .collect();
    let image = Image::new(width, height, pixels.clone()).unwrap();
    let features = Encoder::new(&model.config, &model.weights).encode(&image).unwrap();
    let tokens: Vec<TokenId> = vec![SOS, 5, 9, 7, 30, 112, 60];
    let decoder = Decoder::new(&model.config, model.vocab.len(), &model.weights).unwrap();
    let steps = decoder.start(&features).unwrap().trace(&tokens).unwrap();
    let log_probs: Vec<_> = steps.iter().map(|step| step.log_probs.clone()).collect();
    json!({
        "width": width, "height": height, "pixels": pixels, "features": features.values, "tokens": tokens,
        "log_probs": log_probs,
    })
}

#[test]
fn features_and_logits_of_onnx_runtime_are_the_engines() {
    let Some(python) = python() else { return };
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["bttr", "self", "cross", "fusion"] {
        let model = comer_testing::golden_model(name);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.safetensors");
        model.save(&file, Precision::F32).unwrap();
        let out = folder.path().join("onnx");
        let comer = Command::new(env!("CARGO_BIN_EXE_comer"))
            .args(["export", "--model"])
            .args([&file, &out])
            .output();
        let comer = comer.unwrap();
        assert!(comer.status.success(), "{}", String::from_utf8_lossy(&comer.stderr));
        // Odd sizes: every halving of the encoder rounds up.
        let cases: Vec<Value> =
            [(70, 33), (131, 48), (16, 16)].map(|(width, height)| expected(&model, width, height)).into();
        let cases_file = folder.path().join("cases.json");
        std::fs::write(&cases_file, serde_json::to_string(&cases).unwrap()).unwrap();
        let script = crate_folder.join("tests/export/compare.py");
        let compared = Command::new(&python).arg(script).args([&out, &cases_file]).output().unwrap();
        assert!(compared.status.success(), "{name}: {}", String::from_utf8_lossy(&compared.stderr));
        let worst: f64 = String::from_utf8_lossy(&compared.stdout).trim().parse().unwrap();
        eprintln!("{name}: largest difference {worst:.1e}");
        assert!(worst <= 1e-4, "{name}: features or logits are off by {worst}");
    }
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
