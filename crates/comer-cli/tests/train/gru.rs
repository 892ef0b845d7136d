//! End-to-end tests of training with a GRU decoder: overfitting, resume, evaluation, explanation, refused exports.

use super::*;

/// Changes of the small recipe: the decoder of DenseWAP.
const GRU: [(&str, &str); 2] = [
    ("d_model = 64", "decoder = \"gru\"\nattention_width = 64\nd_model = 64"),
    ("heads = 4\ndecoder_layers = 3", "heads = 1\ndecoder_layers = 1"),
];

fn evaluate(fixture: &Fixture, model: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.args(["evaluate", "--split", "train", "--json", "--data"]).arg(&fixture.data);
    command.arg("--model").arg(model);
    serde_json::from_slice(&run_ok(command).stdout).unwrap()
}

#[test]
fn a_small_gru_model_overfits_a_small_set() {
    let fixture = Fixture::new();
    let mut changes = GRU.to_vec();
    changes.extend([
        ("epochs = 4", "epochs = 60"),
        ("hold_out = 0.1", "hold_out = 0.0"),
        ("minutes = 0.0", "minutes = 5"),
        ("every = 1\n", "every = 20\n"),
    ]);
    let out = fixture.out("run");
    run_ok(fixture.train(&fixture.recipe(&changes), &out, &[]));
    let model = out.join("last.safetensors");
    let report = evaluate(&fixture, &model);
    assert_eq!(report["files"], 48);
    assert_eq!(report["token"]["exp_rate"], 100.0, "{report:#}");

    // The attention of the GRU decoder can be explained; it has no refinement.
    let picture = fixture.data.join("train/img/plus01.png");
    let explain = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.arg("explain").arg(&picture).arg("--model").arg(&model);
        command.arg("--out").arg(fixture.out("explained.html")).args(more);
        command
    };
    run_ok(explain(&[]));
    assert!(fixture.out("explained.html").is_file());
    let output = explain(&["--map", "refinement"]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("this model has none"), "{output:?}");

    let mut export = Command::new(env!("CARGO_BIN_EXE_comer"));
    export.args(["export", "onnx"]).current_dir(fixture.folder.path()).arg("--model").arg(&model);
    let output = export.output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("GRU"), "{output:?}");
}

#[test]
fn an_interrupted_gru_run_resumes_to_identical_results() {
    let fixture = Fixture::new();
    let mut changes = GRU.to_vec();
    // Everything that draws random numbers, and every auxiliary weight.
    changes.push(("dropout = 0.1", "dropout = 0.1\ndrop_attention = 0.2\ndirections = \"left-to-right\""));
    changes.push(("label_smoothing = 0.02", "label_smoothing = 0.02\npresence = 0.5"));
    let recipe = fixture.recipe(&changes);
    let whole = fixture.out("whole");
    run_ok(fixture.train(&recipe, &whole, &[]));
    let expected = log(&whole);
    assert!(expected.lines().count() > 12 && expected.contains("\"presence\""), "{expected}");
    let out = fixture.out("killed");
    let mut child = fixture.train(&recipe, &out, &[]).stderr(Stdio::null()).spawn().unwrap();
    wait_for_log(&out, &mut child);
    signal(&child, "-KILL");
    child.wait().unwrap();
    run_ok(fixture.train(&recipe, &out, &["--resume", "--threads", "1"]));
    assert_eq!(log(&out), expected);
    let models =
        [&whole, &out].map(|run| comer::internal::ModelFile::open(run.join("last.safetensors")).unwrap());
    assert!(models[0].weights == models[1].weights, "the weights differ");
    assert!(!models[0].weights.contains_key("presence.weight"), "used in training only");
    assert_eq!(evaluate(&fixture, &whole.join("last.safetensors"))["files"], 48);
}
