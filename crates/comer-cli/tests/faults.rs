//! Every command that writes, with writes, syncs and renames that fail: old files stay whole, nothing half-written stays,
//! the exit code says so, and running it again succeeds.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use comer::Ink;
use comer::internal::Precision;

/// The library that makes calls fail, compiled once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fail.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/fail.c");
        let mut command = Command::new("cc");
        let output =
            command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&path).arg(source).arg("-ldl").output();
        // Rust needs a linker, which is a C compiler here.
        assert!(output.as_ref().is_ok_and(|output| output.status.success()), "{output:?}");
        (folder, path)
    });
    path
}

/// Inputs that the commands share.
struct Material {
    folder: tempfile::TempDir,
}

impl Material {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let model = comer_testing::golden_model("fusion");
        model.save(path("tiny.safetensors"), Precision::F32).unwrap();
        fs::create_dir_all(path("set/own/img")).unwrap();
        fs::create_dir_all(path("ink")).unwrap();
        fs::create_dir_all(path("scans")).unwrap();
        fs::create_dir_all(path("photographs")).unwrap();
        let (mut captions, mut records, mut truths) = (String::new(), String::new(), String::new());
        for name in ["fraction", "root", "square"] {
            let bytes = comer_testing::sample(name);
            fs::write(path(&format!("ink/{name}.inkml")), &bytes).unwrap();
            let ink = Ink::from_inkml(&bytes).unwrap();
            let png = ink.draw().unwrap().to_png().unwrap();
            fs::write(path(&format!("set/own/img/{name}.png")), &png).unwrap();
            fs::write(path(&format!("scans/{name}.png")), &png).unwrap();
            captions += &format!("{name}\t{}\n", ink.latex().unwrap());
            let record = format!("{{\"id\":\"{name}\",\"tokens\":\"x\",\"strokes\":[[0,0,40,40]]}}");
            fs::write(path(&format!("photographs/{name}.png")), &png).unwrap();
            truths += &format!(
                "{{\"name\":\"{name}.png\",\"formulas\":[{{\"box\":[0,0,40,40],\"record\":{record}}}]}}\n"
            );
            records += &format!("{record}\n");
        }
        fs::write(path("photographs/truth.jsonl"), truths).unwrap();
        fs::write(path("set/own/caption.txt"), &captions).unwrap();
        fs::write(path("predictions.tsv"), &captions).unwrap();
        fs::write(path("records.jsonl"), records).unwrap();
        fs::write(path("synthesis.toml"), SYNTHESIS).unwrap();
        fs::write(path("layouts.jsonl"), LAYOUT).unwrap();
        let symbols = ["x", "y", "+", "2", "a", "n"];
        let line = |symbol| format!("{{\"s\":\"{symbol}\",\"w\":\"a\",\"k\":[[0,0,40,60],[40,0,-40,60]]}}\n");
        fs::write(path("glyphs.jsonl"), symbols.map(line).concat()).unwrap();
        fs::write(path("list.txt"), "3\tx ^ { 2 }\n1\tx + y\n2\ta _ { n }\n").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Samples from the list of formulas, in the hand of the only writer.
const SYNTHESIS: &str = "epoch_samples = 4\n[validation]\nset = \"records.jsonl\"\n[[data]]\npath = \"layouts.jsonl\"\n\
    [[data]]\nkind = \"synthesis\"\npath = \".\"\nglyphs = [\"glyphs.jsonl\"]\nformulas = [\"list.txt\"]\n";

/// The expression that the layout of others is taken from.
const LAYOUT: &str = "{\"id\":\"a\",\"tokens\":\"x ^ { 2 }\",\"strokes\":[[0,40,30,60],[60,0,20,30]],\"symbols\":[[\"x\",[0]],[\"2\",[1]]]}\n";

/// A command whose output goes to the folder `out`, relative to the material. Words that begin with @ are paths.
struct Case {
    words: &'static str,
    /// Files that are there before.
    old: &'static [&'static str],
    /// Files that may stay after a failure, to resume from.
    kept: &'static [&'static str],
}

const fn case(words: &'static str, old: &'static [&'static str]) -> Case {
    Case { words, old, kept: &[] }
}

const CASES: [Case; 8] = [
    case("model @tiny.safetensors --out @out/model --f16", &["out/model"]),
    case(
        "recognize @ink/root.inkml --model @tiny.safetensors --debug-image @out/seen.png",
        &["out/seen.png"],
    ),
    case("explain @ink/root.inkml --model @tiny.safetensors --out @out/page.html", &["out/page.html"]),
    case("export @out --model @tiny.safetensors", &["out/encoder.onnx", "out/vocab.json"]),
    case("score @predictions.tsv --truth @set --out @out", &["out/report.json", "out/predictions.tsv"]),
    case("man --out @out", &["out/comer.1", "out/comer-data.1"]),
    case("data render @ink @out --split new", &[]),
    Case {
        words: "evaluate --split own --greedy --model @tiny.safetensors --data @set --out @out",
        old: &["out/report.html"],
        kept: &["out/answers.unfinished.tsv"],
    },
];

#[cfg(feature = "train")]
const TRAIN_CASES: [Case; 8] = [
    case(
        "evaluate --photographs @photographs --one --greedy --model @tiny.safetensors --out @out",
        &["out/report.html", "out/report.json"],
    ),
    case("data import @ink --out @out/set.jsonl", &["out/set.jsonl"]),
    case("data clean @scans --captions @records.jsonl --out @out/cleaned", &[]),
    case("data photograph @records.jsonl --count 2 --side 400 --out @out/photographs", &[]),
    case("data export @records.jsonl @out --split new", &[]),
    case(
        "data synthesize @synthesis.toml --data @. --kind formulas --count 2 --threads 1 --out @out/set.jsonl",
        &["out/set.jsonl"],
    ),
    case(
        "data synthesize @synthesis.toml --data @. --kind formulas --count 2 --threads 1 --out @out/sheet.png",
        &["out/sheet.png"],
    ),
    case("train-lm @list.txt --out @out/lm --text @out/text", &["out/lm"]),
];

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

/// A fault: what fails, the number of the call, and whether those after it fail too.
type Fault<'a> = (&'a str, usize, bool);

fn run(material: &Material, words: &str, fault: Fault) -> (Output, usize) {
    let (kind, at, on) = fault;
    let count = material.path("count");
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    for word in words.split(' ') {
        match word.strip_prefix('@') {
            Some(name) => command.arg(material.path(name)),
            None => command.arg(word),
        };
    }
    command.env("LD_PRELOAD", library()).env_remove("COMER_MODEL").env("COMER_FAULT_COUNT", &count);
    command.env("COMER_FAULT_KIND", kind).env("COMER_FAULT_AT", at.to_string());
    if on {
        command.env("COMER_FAULT_ON", "1");
    }
    let output = command.output().unwrap();
    (output, fs::read_to_string(&count).unwrap().parse().unwrap())
}

/// At most `most` numbers from 1 to `count`, with both ends; all of them with COMER_ALL_FAULTS=1.
fn spread(count: usize, most: usize) -> Vec<usize> {
    if std::env::var_os("COMER_ALL_FAULTS").is_some() {
        return (1..=count).collect();
    }
    let mut numbers: Vec<usize> = (0..most).map(|i| 1 + i * count.saturating_sub(1) / (most - 1)).collect();
    numbers.dedup();
    numbers.retain(|number| (1..=count).contains(number));
    numbers
}

fn check(case: &Case) {
    let material = Material::new();
    let out = material.path("out");
    let prepare = || {
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).unwrap();
        for old in case.old {
            fs::write(material.path(old), "old").unwrap();
        }
    };
    let mut counts = BTreeMap::new();
    for kind in ["write", "sync", "rename"] {
        prepare();
        let (output, count) = run(&material, case.words, (kind, 0, false));
        assert!(output.status.success(), "{}: {output:?}", case.words);
        counts.insert(kind, count);
        let new = files(&out);
        assert!(count > 0 && !new.is_empty(), "{}: no {kind} was seen", case.words);
        for at in spread(count, 4) {
            for on in [false, true] {
                prepare();
                let old = files(&out);
                let (output, _) = run(&material, case.words, (kind, at, on));
                let name = format!("{} with {kind} {at} of {count} failing: {output:?}", case.words);
                assert_eq!(output.status.code(), Some(1), "{name}");
                let found = files(&out);
                for (path, content) in &found {
                    let is_kept = case.kept.iter().any(|kept| material.path(kept) == *path);
                    let is_whole = [old.get(path), new.get(path)].contains(&Some(content));
                    assert!(is_kept || is_whole, "{name}: {} is neither old nor new", path.display());
                }
                for path in old.keys() {
                    assert!(found.contains_key(path), "{name}: {} is lost", path.display());
                }
                let (output, _) = run(&material, case.words, (kind, 0, false));
                // A folder that was complete before its last sync failed is not written again.
                let exists = String::from_utf8_lossy(&output.stderr).contains("exist");
                assert!(output.status.success() || (exists && files(&out) == new), "{name}, then {output:?}");
                assert_eq!(files(&out), new, "{name}");
            }
        }
    }
    // What is renamed is synced before, and its folder after.
    assert!(counts["sync"] >= 2 * counts["rename"], "{}: {counts:?}", case.words);
}

#[test]
fn old_output_stays_whole_and_nothing_half_written_stays() {
    CASES.iter().for_each(check);
}

#[cfg(feature = "train")]
#[test]
fn sets_and_language_models_stay_whole() {
    TRAIN_CASES.iter().for_each(check);
}

/// A checkpoint of the authors' format becomes a model file.
#[test]
fn an_imported_model_stays_whole() {
    let material = Material::new();
    let golden = comer_testing::Golden::tiny("fusion");
    let named: Vec<(String, Vec<u8>, Vec<usize>)> = golden
        .tensors
        .iter()
        .filter_map(|(name, tensor)| {
            let bytes = tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect();
            Some((name.strip_prefix("weights.")?.to_string(), bytes, tensor.shape.clone()))
        })
        .collect();
    let views = named.iter().map(|(name, bytes, shape)| {
        (name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    let config = [("config".to_string(), golden.metadata["config"].clone())].into();
    let bytes = safetensors::serialize(views, Some(config)).unwrap();
    fs::write(material.path("weights.safetensors"), bytes).unwrap();
    check_once(&material, "import @weights.safetensors @out/model");
}

/// Confidences are fitted on fifty formulas, which takes a while.
#[cfg(feature = "train")]
#[test]
fn a_calibrated_model_stays_whole() {
    let material = Material::new();
    let record = |number| format!("{{\"id\":\"{number}\",\"tokens\":\"x\",\"strokes\":[[0,0,40,40]]}}\n");
    fs::write(material.path("fifty.jsonl"), (0..50).map(record).collect::<String>()).unwrap();
    check_once(&material, "model @tiny.safetensors --calibrate @fifty.jsonl --out @out/model");
}

/// A command that writes `out/model`, with its first write, sync and rename failing.
fn check_once(material: &Material, words: &str) {
    fs::create_dir_all(material.path("out")).unwrap();
    fs::write(material.path("out/model"), "old").unwrap();
    for kind in ["write", "sync", "rename"] {
        let (output, _) = run(material, words, (kind, 1, false));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let found = files(&material.path("out"));
        assert_eq!(found.into_values().collect::<Vec<_>>(), [b"old"], "{kind}");
    }
    let (output, _) = run(material, words, ("write", 0, false));
    assert!(output.status.success(), "{output:?}");
    comer::internal::ModelFile::open(material.path("out/model")).unwrap();
}

#[cfg(feature = "train")]
const RECIPE: &str = "epochs = 1\n[model]\nd_model = 16\ngrowth_rate = 4\nlayers_per_block = 1\nheads = 2\n\
    decoder_layers = 1\nfeed_forward = 16\ncoverage_channels = 2\n[data]\nhold_out = 0.4\n[batches]\npictures = 1\n\
    [validation]\nevery = 1\nstrategy = \"greedy\"\n[checkpoint]\nminutes = 0.0\n";

/// A training goes on after a failure, or ends with an error and resumes; the result is that of an undisturbed run.
#[cfg(feature = "train")]
#[test]
fn a_training_loses_nothing() {
    let material = Material::new();
    fs::rename(material.path("set/own"), material.path("set/train")).unwrap();
    fs::write(material.path("recipe.toml"), RECIPE).unwrap();
    let words = "train @recipe.toml --data @set --out @out --threads 1";
    let result = || ["log.jsonl", "last.safetensors"].map(|name| content(&material.path("out").join(name)));
    for kind in ["write", "sync", "rename"] {
        let _ = fs::remove_dir_all(material.path("out"));
        let (output, count) = run(&material, words, (kind, 0, false));
        assert!(output.status.success(), "{output:?}");
        let expected = result();
        for at in spread(count, 4) {
            for on in [false, true] {
                let _ = fs::remove_dir_all(material.path("out"));
                let (output, _) = run(&material, words, (kind, at, on));
                let name = format!("{kind} {at} of {count} failing: {output:?}");
                assert!(output.status.code() == Some(1) || (!on && output.status.success()), "{name}");
                let parts = files(&material.path("out")).into_keys();
                let parts: Vec<_> = parts.filter(|path| path.extension() == Some("part".as_ref())).collect();
                assert!(parts.is_empty(), "{name}: {parts:?}");
                if !output.status.success() {
                    let resume = match material.path("out/checkpoint.safetensors").exists() {
                        true => format!("{words} --resume"),
                        false => words.to_string(),
                    };
                    let (output, _) = run(&material, &resume, (kind, 0, false));
                    assert!(output.status.success(), "{name}, then {output:?}");
                }
                assert_eq!(result(), expected, "{name}");
            }
        }
    }
}

/// An ablation that fails is run again: its tables are those of an undisturbed one, and nothing is left half-written.
#[cfg(feature = "train")]
#[test]
fn an_ablation_loses_nothing() {
    let material = Material::new();
    fs::create_dir(material.path("sets")).unwrap();
    for split in ["train", "2014"] {
        for (path, content) in files(&material.path("set/own")) {
            let path =
                material.path("sets").join(split).join(path.strip_prefix(material.path("set/own")).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    fs::write(material.path("recipe.toml"), RECIPE).unwrap();
    let words = "ablate --data @sets --recipe @recipe.toml --models bttr --out @out --threads 1";
    let read = |name: &str| fs::read_to_string(material.path("out").join(name)).unwrap();
    let answers = || {
        let found = files(&material.path("out")).into_iter();
        let found: Vec<_> = found.filter(|(path, _)| path.ends_with("2014/answers.tsv")).collect();
        assert_eq!(found.len(), 1);
        found
    };
    let mut expected = None;
    for kind in ["write", "sync", "rename"] {
        let _ = fs::remove_dir_all(material.path("out"));
        let (output, count) = run(&material, words, (kind, 0, false));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(expected.get_or_insert_with(answers), &answers());
        // The last ones are those of the answers, the record of the run, and the tables.
        for at in
            (1..=8).filter_map(|back| (count + 1).checked_sub(back * if kind == "rename" { 1 } else { 2 }))
        {
            let _ = fs::remove_dir_all(material.path("out"));
            let (output, _) = run(&material, words, (kind, at, true));
            let name = format!("{kind} {at} of {count} failing: {output:?}");
            assert_eq!(output.status.code(), Some(1), "{name}");
            let found = files(&material.path("out"));
            assert!(found.keys().all(|path| path.extension() != Some("part".as_ref())), "{name}");
            for (path, content) in &found {
                let is_json = path.extension() == Some("json".as_ref());
                assert!(!is_json || serde_json::from_slice::<serde_json::Value>(content).is_ok(), "{name}");
            }
            let (output, _) = run(&material, words, (kind, 0, false));
            assert!(output.status.success(), "{name}, then {output:?}");
            assert_eq!(expected.as_ref(), Some(&answers()), "{name}");
            assert!(["ablation.md", "ablation.json"].iter().all(|name| !read(name).is_empty()), "{name}");
        }
    }
}

/// The log as it is, a model by its weights: its provenance has the time that it took.
#[cfg(feature = "train")]
fn content(path: &Path) -> String {
    match path.extension() == Some("safetensors".as_ref()) {
        true => format!("{:?}", comer::internal::ModelFile::open(path).unwrap().weights),
        false => fs::read_to_string(path).unwrap(),
    }
}

/// The picture cannot be written because of a limit on the size of files: that is no fault of the ink.
#[test]
fn a_picture_that_cannot_be_written_is_not_bad_ink() {
    let material = Material::new();
    let mut command = Command::new("sh");
    // In blocks of 512 bytes or of a kilobyte; the signal of the limit is ignored, so that the write fails.
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" data render \"$1\" \"$2\" --split new"]);
    command.arg(env!("CARGO_BIN_EXE_comer")).arg(material.path("ink")).arg(material.path("out"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write"), "{output:?}");
    assert!(files(&material.path("out")).is_empty());
}
