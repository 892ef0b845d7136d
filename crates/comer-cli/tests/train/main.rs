//! End-to-end tests of `comer train` and `comer ablate`: training, interruption and resume, errors.
#![cfg(feature = "train")]

mod gru;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod network;

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
fn an_ablation_writes_the_tables_of_the_paper_and_resumes() {
    let fixture = Fixture::new();
    fs::rename(fixture.data.join("train"), fixture.data.join("all")).unwrap();
    for split in ["train", "2014"] {
        let copied =
            Command::new("cp").arg("-r").arg(fixture.data.join("all")).arg(fixture.data.join(split)).status();
        assert!(copied.unwrap().success());
    }
    let (recipe, out) = (fixture.recipe(&[]), fixture.out("ablation"));
    let ablate = |epochs: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.args(["ablate", "--epochs", epochs, "--json", "--recipe"]).arg(&recipe);
        command.arg("--data").arg(&fixture.data).arg("--out").arg(&out);
        command
    };
    let figures = |expected: &str| {
        let output = run_ok(ablate("1"));
        assert_eq!(errors(&output).matches(expected).count(), 4, "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let first = figures("epoch 1/1 done");
    check_ablation(&first, &out);

    // Without the record of a finished run, its answers are still used.
    for model in ["bttr", "self", "cross", "fusion"] {
        fs::remove_file(out.join(model).join("result.json")).unwrap();
    }
    assert_eq!(figures("resuming after 48 formulas"), first);
    // With it, its model and its training are not needed.
    for model in ["bttr", "self", "cross"] {
        for file in ["best.safetensors", "last.safetensors", "checkpoint.safetensors"] {
            fs::remove_file(out.join(model).join(file)).unwrap();
        }
    }
    fs::remove_dir_all(out.join("fusion")).unwrap();
    let mut command = ablate("1");
    command.arg("--finished");
    let output = run_ok(command);
    let kept: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kept["rows"].as_array().unwrap()[..], first["rows"].as_array().unwrap()[..3]);
    // Another recipe or other answers are errors.
    let output = ablate("2").output().unwrap();
    let message = errors(&output);
    assert!(
        !output.status.success() && message.contains("finished with another recipe (epochs"),
        "{message}"
    );
    fs::write(out.join("self/2014/answers.tsv"), "").unwrap();
    let output = ablate("1").arg("--finished").output().unwrap();
    let message = errors(&output);
    assert!(
        !output.status.success() && message.contains("self/2014/answers.tsv: not the answers"),
        "{message}"
    );
}

fn check_ablation(figures: &Value, out: &Path) {
    let rows = figures["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bttr", "self", "cross", "fusion"]);
    assert_eq!(figures["rows"][3]["sets"]["2014"]["reports"][0]["files"], 48);
    assert!(figures["rows"][3]["parameters"].as_u64() > figures["rows"][0]["parameters"].as_u64());
    assert!(figures["rows"][1]["sets"]["2014"]["difference"]["p"].is_f64(), "{figures}");
    let table = fs::read_to_string(out.join("ablation.md")).unwrap();
    assert!(table.contains("| CoMER (Fusion) | ") && table.contains("| 59.33 |"), "{table}");
    let (_, lost) = table.split_once("## Left out and read twice").unwrap();
    assert_eq!(lost.matches("\n| 2014 | ").count(), 4, "{table}");
    assert!(table.contains("| model | BTTR (baseline) | CoMER (Self) | CoMER (Cross) |\n"), "{table}");
    assert!(out.join("self/2014/report.html").exists());
    assert!(figures["rows"][0]["sets"]["2014"]["reports"][0]["ink"]["unread"].is_f64(), "{figures}");
    let figure = fs::read_to_string(out.join("lengths.svg")).unwrap();
    assert_eq!(figure.matches("<polyline").count(), 4, "{figure}");
    assert!(fs::read_to_string(out.join("ablation.html")).unwrap().contains(&figure));
}

#[test]
fn an_ablation_has_a_row_for_each_recipe_and_runs_for_each_seed() {
    let fixture = Fixture::new();
    for split in ["2014", "2016"] {
        let copied = Command::new("cp")
            .arg("-r")
            .arg(fixture.data.join("train"))
            .arg(fixture.data.join(split))
            .status();
        assert!(copied.unwrap().success());
    }
    let (one, out) = (fixture.recipe(&[]), fixture.out("ablation"));
    let two = one.with_file_name("densewap.toml");
    fs::write(&two, fs::read_to_string(&one).unwrap().replace("rate = 3e-3", "rate = 2e-3")).unwrap();
    let budget = one.with_file_name("budget.toml");
    fs::write(&budget, "epochs = 1\n[optimizer]\nrate = 1e-3\n").unwrap();
    let ablate = |jobs: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.args(["ablate", "--json", "--seeds", "1,2", "--test", "2014,2016", "--budget"]).arg(&budget);
        command.args(["--device", "cpu,cpu", "--jobs", jobs]).args(more);
        command.arg("--recipe").arg(&one).arg("--recipe").arg(&two);
        command.arg("--data").arg(&fixture.data).arg("--out").arg(&out);
        command
    };
    let output = run_ok(ablate("2", &[]));
    let figures = serde_json::from_slice::<Value>(&output.stdout).unwrap();
    assert_eq!(figures["rows"][0]["name"], one.file_stem().unwrap().to_str().unwrap());
    assert_eq!(figures["rows"][1]["name"], "densewap");
    for row in figures["rows"].as_array().unwrap() {
        assert_eq!(row["seeds"], serde_json::json!([1, 2]));
        for test in ["2014", "2016"] {
            let set = &row["sets"][test];
            assert_eq!(set["reports"].as_array().unwrap().len(), 2, "{set}");
            let rate = set["exp_rate"].as_f64().unwrap();
            let [low, high] = [0, 1].map(|place| set["interval"][place].as_f64().unwrap());
            assert!(low <= rate && rate <= high, "{set}");
        }
    }
    assert!(out.join("densewap/seed-2/last.safetensors").exists());
    let stored = fs::read_to_string(out.join("densewap/seed-2/resolved.toml")).unwrap();
    assert!(stored.contains("epochs = 1\n") && stored.contains("rate = 0.001\n"), "{stored}");
    let table = fs::read_to_string(out.join("ablation.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&table).unwrap(), figures);
    let table = fs::read_to_string(out.join("ablation.md")).unwrap();
    assert!(table.contains("| DenseWAP | ") && table.contains("| 43.00 |"), "{table}");

    let output = ablate("3", &[]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("--jobs 3"), "{output:?}");
    let recipe = one.to_str().unwrap();
    let output = ablate("1", &["--recipe", recipe]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("two rows are named"), "{output:?}");
    fs::write(&budget, "[optimizer]\nspeed = 1\n").unwrap();
    let output = ablate("1", &[]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("budget.toml: "), "{output:?}");
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
fn a_run_resumes_only_with_a_compatible_recipe() {
    let fixture = Fixture::new();
    let out = fixture.out("run");
    run_ok(fixture.train(&fixture.recipe(&[]), &out, &[]));
    for (old, new, expected) in [
        ("heads = 4", "heads = 8", "another [model]"),
        ("kind = \"adamw\"", "kind = \"sgd\"", "another optimizer.kind"),
        ("average = 0.9", "average = 0.0", "another optimizer.average"),
        ("label_smoothing = 0.02", "symbols = 0.5", "another loss.symbols"),
        ("epochs = 4", "epochs = 3", "has completed 4 epochs, more than the 3 of the recipe"),
        ("epochs = 4", "epochs = 4\nseed = 12345", "another seed"),
    ] {
        let output = fixture.train(&fixture.recipe(&[(old, new)]), &out, &["--resume"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains(expected), "{output:?}");
    }
    let tokens: Vec<String> = comer::internal::Vocab::crohme().tokens().iter().rev().cloned().collect();
    let vocab = fixture.out("vocab.txt");
    fs::write(&vocab, tokens.join("\n")).unwrap();
    let vocab = ["--resume", "--vocab", vocab.to_str().unwrap()];
    let output = fixture.train(&fixture.recipe(&[]), &out, &vocab).output().unwrap();
    assert!(errors(&output).contains("another vocabulary"), "{output:?}");
    // Whether or not the model beside the checkpoint can be read.
    fs::remove_file(out.join("last.safetensors")).unwrap();
    let output = fixture.train(&fixture.recipe(&[]), &out, &vocab).output().unwrap();
    assert!(errors(&output).contains("another vocabulary"), "{output:?}");
    run_ok(fixture.train(&fixture.recipe(&[]), &out, &["--resume"]));
    // What may change is named.
    let changed = fixture.recipe(&[("rate = 3e-3", "rate = 2e-3"), ("pictures = 6", "pictures = 5")]);
    let output = run_ok(fixture.train(&changed, &out, &["--resume"]));
    for expected in ["optimizer.rate was 0.003, is 0.002", "batches.pictures was 6, is 5"] {
        assert!(errors(&output).contains(expected), "{output:?}");
    }

    // Stopped within an epoch that is shorter with another recipe.
    let out = fixture.out("stopped");
    let alone = fixture.recipe(&[("pictures = 6", "pictures = 1")]);
    let mut child = fixture.train(&alone, &out, &[]).stderr(Stdio::null()).spawn().unwrap();
    wait_for_log(&out, &mut child);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let output = fixture
        .train(&fixture.recipe(&[("pictures = 6", "pictures = 48")]), &out, &["--resume"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(errors(&output).contains("of an epoch that now has only"), "{output:?}");
}

#[test]
fn a_run_has_one_writer() {
    let fixture = Fixture::new();
    let (recipe, out) = (fixture.recipe(&[]), fixture.out("run"));
    let mut first = fixture.train(&recipe, &out, &[]).stderr(Stdio::null()).spawn().unwrap();
    wait_for_log(&out, &mut first);
    signal(&first, "-STOP");
    for more in [&[][..], &["--resume"]] {
        let output = fixture.train(&recipe, &out, more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains("in use by another training"), "{output:?}");
    }
    signal(&first, "-CONT");
    assert!(first.wait().unwrap().success());
    let whole = fixture.out("whole");
    run_ok(fixture.train(&recipe, &whole, &[]));
    assert_eq!(log(&out), log(&whole));
}

#[test]
fn a_log_that_is_not_the_checkpoints_is_refused_and_a_missing_one_begins_again() {
    let fixture = Fixture::new();
    let (recipe, out) = (fixture.recipe(&[("epochs = 4", "epochs = 1")]), fixture.out("run"));
    run_ok(fixture.train(&recipe, &out, &[]));
    let more = fixture.recipe(&[("epochs = 4", "epochs = 2")]);
    for name in ["log.jsonl", "metrics.csv"] {
        let path = out.join(name);
        let text = fs::read(&path).unwrap();
        let mut garbled = text.clone();
        garbled[10] ^= 1;
        for (content, expected) in [(&text[..5], "has 5 bytes, expected "), (&garbled[..], "was changed")] {
            fs::write(&path, content).unwrap();
            let output = fixture.train(&more, &out, &["--resume"]).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
            assert!(errors(&output).contains(name) && errors(&output).contains(expected), "{output:?}");
            assert_eq!(fs::read(&path).unwrap(), content, "{name} was touched");
        }
        fs::write(&path, &text).unwrap();
    }
    for name in ["log.jsonl", "metrics.csv"] {
        fs::remove_file(out.join(name)).unwrap();
    }
    let output = run_ok(fixture.train(&more, &out, &["--resume"]));
    assert_eq!(errors(&output).matches("is missing: a new one begins").count(), 2, "{output:?}");
    assert!(fs::read_to_string(out.join("metrics.csv")).unwrap().starts_with("epoch,step"));
    assert!(log(&out).lines().all(|line| line.contains("\"epoch\":1")), "{}", log(&out));
    run_ok(fixture.train(&fixture.recipe(&[("epochs = 4", "epochs = 3")]), &out, &["--resume"]));
}

/// A checkpoint as version 0.1 wrote it: without a vocabulary, and with a checksum over the numbers alone.
fn as_format_1(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let mut metadata = header.metadata().clone().unwrap();
    let (mut place, steps): (Value, u64) = serde_json::from_str(&metadata["place"]).unwrap();
    place.as_object_mut().unwrap().remove("checksums");
    let place = serde_json::to_string(&(place, steps)).unwrap();
    let mut tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap().tensors();
    tensors.sort_by(|one, other| one.0.cmp(&other.0));
    let mut hash = crc32fast::Hasher::new();
    hash.update(place.as_bytes());
    tensors.iter().for_each(|(_, view)| hash.update(view.data()));
    metadata.remove("vocabulary");
    metadata.insert("format".into(), "comer checkpoint 1".into());
    metadata.insert("place".into(), place);
    metadata.insert("checksum".into(), format!("{:08x}", hash.finalize()));
    fs::write(path, safetensors::serialize(tensors, Some(metadata)).unwrap()).unwrap();
}

#[test]
fn a_run_of_an_earlier_version_resumes_to_the_same_end() {
    let fixture = Fixture::new();
    let recipe = fixture.recipe(&[]);
    let (whole, out) = (fixture.out("whole"), fixture.out("run"));
    run_ok(fixture.train(&recipe, &whole, &[]));
    let mut child = fixture.train(&recipe, &out, &[]).stderr(Stdio::null()).spawn().unwrap();
    wait_for_log(&out, &mut child);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    as_format_1(&out.join("checkpoint.safetensors"));
    // Its vocabulary is that of the model beside it.
    let last = fs::read(out.join("last.safetensors")).unwrap();
    fs::remove_file(out.join("last.safetensors")).unwrap();
    let output = fixture.train(&recipe, &out, &["--resume"]).output().unwrap();
    assert!(output.status.code() == Some(1) && errors(&output).contains("last.safetensors"), "{output:?}");
    fs::write(out.join("last.safetensors"), last).unwrap();
    run_ok(fixture.train(&recipe, &out, &["--resume"]));
    assert_eq!(log(&out), log(&whole));
}

#[test]
fn a_run_is_not_overwritten() {
    let fixture = Fixture::new();
    let recipe = fixture.recipe(&[("epochs = 4", "epochs = 1")]);
    let out = fixture.out("run");
    run_ok(fixture.train(&recipe, &out, &[]));
    let output = fixture.train(&recipe, &out, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("--resume"), "{output:?}");
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
