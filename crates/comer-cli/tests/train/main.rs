//! End-to-end tests of `comer train` and `comer ablate`: training, interruption and resume, errors.
#![cfg(feature = "train")]

mod ablate;
mod gru;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod network;
mod resume;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use comer::{Ink, InkSymbol, Point, Stroke};
use comer_train::stroke_set::Record;
use serde_json::Value;

/// The strokes of a few symbols, in a box of 10 by 10.
fn glyph(token: &str) -> &'static [&'static [(f64, f64)]] {
    match token {
        "1" => &[&[(5.0, 0.0), (5.0, 10.0)]],
        "-" => &[&[(1.0, 5.0), (9.0, 5.0)]],
        "+" => &[&[(1.0, 5.0), (9.0, 5.0)], &[(5.0, 1.0), (5.0, 9.0)]],
        "x" => &[&[(1.0, 1.0), (9.0, 9.0)], &[(9.0, 1.0), (1.0, 9.0)]],
        "7" => &[&[(1.0, 0.0), (9.0, 0.0), (4.0, 10.0)]],
        "0" => &[&[(5.0, 0.0), (1.0, 5.0), (5.0, 10.0), (9.0, 5.0), (5.0, 0.0)]],
        _ => panic!("no strokes for {token}"),
    }
}

/// A data set of 48 formulas: sums, differences and powers.
fn data_set(folder: &Path) -> PathBuf {
    let mut lines = Vec::new();
    let symbols = ["1", "x", "7", "0"];
    let mut add = |name: String, tokens: &[&str], raised: bool| {
        let mut strokes = Vec::new();
        for (position, token) in tokens.iter().enumerate() {
            let (scale, up) = if raised && position == 1 { (0.6, -7.0) } else { (1.0, 0.0) };
            for points in glyph(token) {
                let point =
                    |&(x, y): &(f64, f64)| Point { x: 14.0 * position as f64 + scale * x, y: up + scale * y };
                strokes.push(Stroke { points: points.iter().map(point).collect() });
            }
        }
        let picture = Ink::new(strokes).unwrap().draw().unwrap();
        let path = folder.join("train/img").join(format!("{name}.png"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, picture.to_png().unwrap()).unwrap();
        let caption = match raised {
            true => format!("{} ^ {{ {} }}", tokens[0], tokens[1]),
            false => tokens.join(" "),
        };
        lines.push(format!("{name}\t{caption}\n"));
    };
    for (i, a) in symbols.iter().enumerate() {
        for (j, b) in symbols.iter().enumerate() {
            add(format!("plus{i}{j}"), &[a, "+", b], false);
            add(format!("minus{i}{j}"), &[a, "-", b], false);
            add(format!("power{i}{j}"), &[a, b], true);
        }
    }
    fs::write(folder.join("train/caption.txt"), lines.concat()).unwrap();
    folder.to_path_buf()
}

/// A small model that learns in seconds.
const RECIPE: &str = r#"
epochs = 4
[model]
d_model = 64
growth_rate = 12
layers_per_block = 3
encoder_dropout = 0.0
heads = 4
decoder_layers = 3
feed_forward = 128
dropout = 0.1
coverage_channels = 8
[data]
hold_out = 0.1
[batches]
pictures = 6
accumulate = 2
order = "random"
[augmentation]
scale = [0.9, 1.1]
[loss]
label_smoothing = 0.02
[optimizer]
kind = "adamw"
rate = 3e-3
clip = 5.0
average = 0.9
[schedule]
kind = "one-cycle"
warm_up = 0.1
[validation]
every = 1
strategy = "greedy"
[checkpoint]
minutes = 0.0
"#;

struct Fixture {
    folder: tempfile::TempDir,
    data: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = data_set(&folder.path().join("data"));
        Self { folder, data }
    }

    fn recipe(&self, changes: &[(&str, &str)]) -> PathBuf {
        let mut text = RECIPE.to_string();
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        let path = self.folder.path().join("recipe.toml");
        fs::write(&path, text).unwrap();
        path
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn train(&self, recipe: &Path, out: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.arg("train").arg(recipe).arg("--data").arg(&self.data).arg("--out").arg(out).args(more);
        command
    }
}

fn run_ok(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn log(run: &Path) -> String {
    fs::read_to_string(run.join("log.jsonl")).unwrap_or_default()
}

/// Waits until the log of the run has three lines; the run must not end before.
fn wait_for_log(run: &Path, child: &mut Child) {
    while log(run).lines().count() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_small_model_overfits_a_small_set() {
    let fixture = Fixture::new();
    let recipe = fixture.recipe(&[
        ("epochs = 4", "epochs = 60"),
        ("hold_out = 0.1", "hold_out = 0.0"),
        ("minutes = 0.0", "minutes = 5"),
    ]);
    let out = fixture.out("run");
    run_ok(fixture.train(&recipe, &out, &[]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.args(["evaluate", "--split", "train", "--json", "--data"]).arg(&fixture.data);
    command.arg("--model").arg(out.join("last.safetensors"));
    let report: Value = serde_json::from_slice(&run_ok(command).stdout).unwrap();
    assert_eq!(report["files"], 48);
    assert_eq!(report["token"]["exp_rate"], 100.0, "{report:#}");
    for file in ["recipe.toml", "resolved.toml", "metrics.csv", "curves.svg", "checkpoint.safetensors"] {
        assert!(out.join(file).is_file(), "{file}");
    }
}

#[test]
fn models_have_their_own_figures_and_the_best_is_of_the_last_size() {
    let fixture = Fixture::new();
    let recipe =
        fixture.recipe(&[("scale = [0.9, 1.1]", "scale = [0.9, 1.1]\nsizes = [[0, 0.5], [3, 1.0]]")]);
    let out = fixture.out("run");
    run_ok(fixture.train(&recipe, &out, &[]));
    let metrics = fs::read_to_string(out.join("metrics.csv")).unwrap();
    let last = metrics.lines().last().unwrap().split(',').nth(6).unwrap().parse::<f64>().unwrap();
    for name in ["best.safetensors", "last.safetensors"] {
        let provenance = comer::internal::ModelFile::open(out.join(name)).unwrap().provenance;
        assert_eq!(provenance["epochs"], 4, "{name}");
        let rate = provenance["hold_out_token_match"].as_f64().unwrap();
        assert!((rate - last).abs() < 1e-4, "{name}: {rate}, {metrics}");
    }
}

#[test]
fn a_killed_or_interrupted_run_resumes_to_identical_results() {
    let fixture = Fixture::new();
    let recipe = fixture.recipe(&[]);
    let whole = fixture.out("whole");
    run_ok(fixture.train(&recipe, &whole, &[]));
    let expected = log(&whole);
    assert!(expected.lines().count() > 12, "{expected}");

    for (name, code) in [("-KILL", None), ("-INT", Some(130))] {
        let out = fixture.out(name);
        let mut child = fixture.train(&recipe, &out, &[]).stderr(Stdio::null()).spawn().unwrap();
        wait_for_log(&out, &mut child);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        let before = log(&out).lines().count();
        let output = run_ok(fixture.train(&recipe, &out, &["--resume", "--threads", "1"]));
        assert!(errors(&output).contains("resuming after"), "{output:?}");
        assert_eq!(log(&out), expected, "{name} after {before} lines");
        let weights = [&whole, &out]
            .map(|run| comer::internal::ModelFile::open(run.join("last.safetensors")).unwrap().weights);
        assert!(weights[0] == weights[1], "{name}: the weights differ");
    }
}

#[test]
fn a_run_can_begin_with_the_weights_of_a_model() {
    let fixture = Fixture::new();
    let first = fixture.out("first");
    run_ok(fixture.train(&fixture.recipe(&[("epochs = 4", "epochs = 1")]), &first, &[]));
    let model = first.join("last.safetensors");
    let from = ["--from", model.to_str().unwrap()];

    // A rate of next to nothing keeps the weights.
    let changes = [("epochs = 4", "epochs = 1"), ("rate = 3e-3", "rate = 1e-12")];
    let second = fixture.out("second");
    run_ok(fixture.train(&fixture.recipe(&changes), &second, &from));
    run_ok(fixture.train(&fixture.recipe(&[("rate = 3e-3", "rate = 1e-12")]), &second, &["--resume"]));
    let open = |run: &Path| comer::internal::ModelFile::open(run.join("last.safetensors")).unwrap();
    let (old, new) = (open(&first), open(&second));
    for (name, tensor) in &old.weights {
        let is_statistic = name.ends_with(".mean") || name.ends_with(".variance");
        let pairs = tensor.data.iter().zip(&new.weights[name].data);
        assert!(is_statistic || pairs.clone().all(|(a, b)| (a - b).abs() < 1e-6), "{name}");
    }
    assert_eq!(new.provenance["from"]["steps"], old.provenance["steps"]);
    assert_eq!(new.provenance["epochs"], 4);

    let third = fixture.out("third");
    let smaller = fixture.recipe(&[("d_model = 64", "d_model = 32")]);
    let output = fixture.train(&smaller, &third, &from).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(errors(&output).contains("[model] of the recipe needs"), "{output:?}");
    assert!(!third.exists());
}

/// Writes a stroke set of sums by one writer, with labelled symbols.
fn stroke_set(path: &Path, writer: &str, symbols: &[&str]) {
    let mut records = Vec::new();
    for (a, b) in symbols.iter().flat_map(|a| symbols.iter().map(move |b| (a, b))) {
        let (mut strokes, mut owners) = (Vec::new(), Vec::new());
        for (position, token) in [a, "+", b].into_iter().enumerate() {
            let first = strokes.len();
            for points in glyph(token) {
                let point = |&(x, y): &(f64, f64)| Point { x: 14.0 * position as f64 + x, y };
                strokes.push(Stroke { points: points.iter().map(point).collect() });
            }
            owners.push(InkSymbol { label: token.into(), strokes: (first..strokes.len()).collect() });
        }
        let ink = Ink::new(strokes).unwrap().with_symbols(owners).unwrap();
        let mut record = Record::of(&format!("{a}{b}"), &format!("{a} + {b}"), &ink);
        record.writer = Some(writer.into());
        records.push(record);
    }
    comer_train::stroke_set::write(path, &records).unwrap();
}

#[test]
fn weighted_sets_are_used_and_a_resumed_run_is_identical() {
    let fixture = Fixture::new();
    let set = |name: &str| fixture.data.join(name);
    stroke_set(&set("a.jsonl"), "anna", &["1", "x", "7"]);
    stroke_set(&set("b.jsonl"), "bert", &["0", "x"]);
    stroke_set(&set("v.jsonl"), "carl", &["1", "0"]);
    let data = r#"epoch_samples = 30
[[data]]
path = "a.jsonl"
weight = 2.0
[[data]]
path = "b.jsonl"
weight = [[0, 1.0], [2, 0.0]]
[[data]]
path = "."
kind = "pictures"
"#;
    let text = RECIPE.replace("epochs = 4\n", &format!("epochs = 4\n{data}"));
    let text =
        text.replace("[data]\nhold_out = 0.1\n", "").replace("every = 1", "every = 1\nset = \"v.jsonl\"");
    let text =
        text.replace("scale = [0.9, 1.1]", "scale = [0.9, 1.1]\nborrow = 0.5\njitter = 0.1\npen = [2, 4]");
    let text = text.replace("label_smoothing = 0.02", "label_smoothing = 0.02\nsymbols = 0.5");
    let recipe = fixture.folder.path().join("sets.toml");
    fs::write(&recipe, text).unwrap();
    let whole = fixture.out("whole");
    let output = run_ok(fixture.train(&recipe, &whole, &[]));
    assert!(errors(&output).contains("61 training samples, 13 of them with strokes; 4 validation samples"));
    assert!(errors(&output).contains("of the validation set"), "{output:?}");
    let provenance = comer::internal::ModelFile::open(whole.join("last.safetensors")).unwrap().provenance;
    assert_eq!(provenance["training_sets"]["a.jsonl"], 9);
    assert!(provenance["validation_token_match"].is_f64(), "{provenance:?}");

    let out = fixture.out("interrupted");
    let mut child = fixture.train(&recipe, &out, &[]).stderr(Stdio::null()).spawn().unwrap();
    wait_for_log(&out, &mut child);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    run_ok(fixture.train(&recipe, &out, &["--resume", "--threads", "1"]));
    assert_eq!(log(&out), log(&whole));
}

#[test]
fn a_diverging_run_stops_and_keeps_its_last_good_state() {
    let fixture = Fixture::new();
    let recipe = fixture.recipe(&[("rate = 3e-3", "rate = 90.0"), ("clip = 5.0", "clip = 0.0")]);
    let out = fixture.out("run");
    let output = fixture.train(&recipe, &out, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = errors(&output);
    assert!(message.contains("training stopped at step") && message.contains("last good state"), "{message}");
    let model = comer::internal::ModelFile::open(out.join("last.safetensors")).unwrap();
    let finite = model.weights.values().flat_map(|tensor| &tensor.data).all(|x| x.is_finite());
    assert!(finite, "the saved weights are not finite");
}

#[test]
fn invalid_arguments_are_rejected_before_anything_is_written() {
    let fixture = Fixture::new();
    let good = fixture.recipe(&[]);
    let out = fixture.out("run");
    let cases: [(PathBuf, &[&str], &str); 4] = [
        (fixture.out("missing.toml"), &[], "missing.toml"),
        (good.clone(), &["--resume"], "contains no checkpoint"),
        (good.clone(), &["--device", "gpu"], "device"),
        (good, &["--vocab", "nowhere.txt"], "nowhere.txt"),
    ];
    for (recipe, more, expected) in cases {
        let output = fixture.train(&recipe, &out, more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains(expected), "{output:?}");
    }
    let recipe = fixture.recipe(&[("clip = 5.0", "clipp = 5.0")]);
    let output = fixture.train(&recipe, &out, &[]).output().unwrap();
    assert!(errors(&output).contains("did you mean `clip`?"), "{output:?}");
    assert!(!out.exists());
}

#[test]
fn a_full_disk_loses_nothing() {
    let fixture = Fixture::new();
    // Long enough to fill and empty the disk before the end.
    let recipe = fixture.recipe(&[("epochs = 4", "epochs = 24")]);
    let whole = fixture.out("whole");
    run_ok(fixture.train(&recipe, &whole, &[]));

    let disk = fixture.out("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        comer_testing::skip("no permission to mount a small disk");
        return;
    }
    let unmount = Unmount(disk.clone());
    let (out, filler) = (disk.join("run"), disk.join("filler"));
    let mut child = fixture.train(&recipe, &out, &[]).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_log(&out, &mut child);
    let _ = fs::write(&filler, vec![0; 16 << 20]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(errors(&output).contains("No space left"), "{output:?}");
    fs::remove_file(&filler).unwrap();
    run_ok(fixture.train(&recipe, &out, &["--resume"]));
    assert_eq!(log(&out), log(&whole));

    // If space is freed before its end, the run is identical to an undisturbed one.
    fs::remove_dir_all(&out).unwrap();
    let mut child = fixture.train(&recipe, &out, &[]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    wait_for_log(&out, &mut child);
    let _ = fs::write(&filler, vec![0; 16 << 20]);
    assert!(lines.any(|line| line.unwrap().contains("No space left")));
    fs::remove_file(&filler).unwrap();
    assert_eq!(lines.filter(|line| line.as_ref().unwrap().contains("stopped")).count(), 0);
    assert!(child.wait().unwrap().success());
    assert_eq!(log(&out), log(&whole));
    for name in ["best.safetensors", "last.safetensors"] {
        let weights =
            [&whole, &out].map(|run| comer::internal::ModelFile::open(run.join(name)).unwrap().weights);
        assert!(weights[0] == weights[1], "{name} differs");
    }
    drop(unmount);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
