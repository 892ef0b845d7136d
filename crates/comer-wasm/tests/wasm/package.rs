//! The package reads what the native code reads.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use comer::{Input, Recognizer};
use comer_testing::{repository, skip, unpacked_ink};
use serde_json::{Value, json};

use crate::{SAMPLES, built, native, tokens};

/// Readings of files, by the package in Node.
fn read(files: &[PathBuf], options: &Value) -> Option<Vec<Value>> {
    let package = built("pkg")?.join("index.js");
    let script = repository().join("crates/comer-wasm/tests/wasm/read.mjs");
    let node = Command::new("node")
        .arg(script)
        .arg(package)
        .arg(options.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut node) = node else {
        skip("there is no node");
        return None;
    };
    let list = serde_json::to_vec(files).unwrap();
    node.stdin.take().unwrap().write_all(&list).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn assert_same_as_native(files: &[PathBuf], nbest: usize) {
    let Some(readings) = read(files, &json!({ "nbest": nbest, "alignment": nbest > 1 })) else { return };
    assert_eq!(readings.len(), files.len());
    let recognizer = Recognizer::bundled().unwrap();
    for (file, reading) in files.iter().zip(&readings) {
        let name = file.display();
        let expected = native(&recognizer, &Input::from_path(file).unwrap(), nbest);
        assert_eq!(tokens(reading), expected.best.tokenized(), "{name}");
        let formula = &reading["formulas"][0];
        assert_eq!(formula["latex"], expected.latex(), "{name}");
        let confidence = formula["confidence"].as_f64().unwrap() as f32;
        assert!((confidence - expected.best.confidence).abs() < 1e-3, "{name}: {confidence}");
        assert_eq!(reading["formulas"].as_array().unwrap().len(), nbest, "{name}");
        let strokes = reading["strokes"].as_array().map(Vec::len);
        assert_eq!(strokes, (nbest > 1).then_some(expected.best.tokens.len()), "{name}");
    }
}

#[test]
fn the_samples_are_read_as_natively() {
    let sample = |name: &&str| repository().join(format!("samples/{name}.inkml"));
    let files: Vec<PathBuf> = SAMPLES.iter().map(sample).collect();
    assert_same_as_native(&files, 2);
}

#[test]
fn ink_of_crohme_is_read_as_natively() {
    let Some(folder) = unpacked_ink() else { return };
    let mut files = comer_eval::find_files(&folder.path().join("inkml/2014"), &["inkml"]).unwrap();
    files.sort();
    let spread: Vec<PathBuf> = files.iter().step_by(files.len() / 50).take(50).cloned().collect();
    assert_eq!(spread.len(), 50);
    assert_same_as_native(&spread, 1);
}

/// What npm would publish: every file that another one names is there, and the version is the workspace's.
#[test]
fn the_package_is_complete() {
    let Some(folder) = built("pkg") else { return };
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|_| panic!("{name}"));
    let package: Value = serde_json::from_str(&text("package.json")).unwrap();
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    for name in
        [package["main"].as_str().unwrap(), package["types"].as_str().unwrap(), "README.md", "example.html"]
    {
        assert!(!text(name).is_empty(), "{name}");
    }
    for name in ["index.js", "local.js", "worker.js", "example.html"] {
        let script = text(name);
        let imports = script.lines().filter(|line| line.contains("import ") || line.contains("new URL('"));
        for import in imports.filter_map(|line| line.split('\'').find(|part| part.contains('.'))) {
            assert!(folder.join(import).exists(), "{name} needs {import}");
        }
    }
    let gzip = Command::new("gzip").arg("-9c").arg(folder.join("comer_wasm_bg.wasm")).output().unwrap();
    let size = gzip.stdout.len();
    assert!(gzip.status.success() && size <= 1_500_000, "{size} bytes of compressed code");
}
