//! End-to-end tests of `comer train-lm`: trains on lists of formulas and excludes those of the tests.
#![cfg(all(feature = "train", feature = "bundled"))]

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn comer(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.env_remove("COMER_MODEL").args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const FORMULAS: &str =
    "3\tx ^ { 2 } + y ^ { 2 }\n1\tx ^ { 2 }\n2\ta _ { n } = a _ { n - 1 } + 1\n1\tx\n1\tx + \\foo\n";

#[test]
fn lists_become_a_language_model_that_recognition_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("list.txt"), FORMULAS).unwrap();
    fs::write(path("tests.txt"), "one\tx\n").unwrap();
    let list = format!("{}=0.5", path("list.txt"));
    let (tests, out, again) = (path("tests.txt"), path("lm"), path("again"));
    let arguments = ["train-lm", &list, "--exclude", &tests, "--held-out", &tests, "--json", "--out"];
    let record = json(&comer(&[&arguments[..], &[&out]].concat()));
    let lists = &record["provenance"]["lists"][0];
    assert_eq!(lists["formulas"], 3, "{record:#}");
    assert_eq!(lists["excluded"], 1, "{record:#}");
    assert_eq!(lists["unknown"], 1, "{record:#}");
    assert_eq!(lists["weight"], 0.5, "{record:#}");
    assert_eq!(lists["name"], "list.txt", "no folders: {record:#}");
    assert!(record["provenance"]["perplexity"][0].as_f64().is_some_and(|value| value > 1.0), "{record:#}");
    assert_eq!(record["bytes"].as_u64(), Some(fs::metadata(&out).unwrap().len()));
    comer(&[&arguments[..], &[&again]].concat());
    assert_eq!(fs::read(&out).unwrap(), fs::read(&again).unwrap(), "the same text gives the same file");

    let sample = comer_testing::repository().join("samples/square.inkml").display().to_string();
    let score = |arguments: &[&str]| {
        let record = json(&comer(&[&["recognize", "--json", &sample][..], arguments].concat()));
        record["score"].as_f64().unwrap()
    };
    let without = score(&["--no-language-model"]);
    assert!(score(&["--language-model", &out]) < without, "its share is added to the score");
    assert_eq!(score(&["--language-model", &out, "--language-model-weight", "0"]), without);
    assert_eq!(
        score(&["--language-model", &out, "--exact"]),
        score(&["--no-language-model", "--no-grammar"])
    );
    assert!(score(&[]) < without, "the bundled model has a language model");

    // Inside a model file.
    let model = path("model.safetensors");
    let written = comer(&["model", "--language-model", &out, "--f16", "--out", &model]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    assert_eq!(score(&["--model", &model]), score(&["--language-model", &out]));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("list.txt"), FORMULAS).unwrap();
    fs::write(path("tokens.txt"), "x\ny\n^\n{\n}\n2\n+\n").unwrap();
    let (list, tokens, out) = (path("list.txt"), path("tokens.txt"), path("lm"));
    let trained = comer(&["train-lm", &list, "--vocab", &tokens, "--out", &out]);
    assert!(trained.status.success(), "{}", String::from_utf8_lossy(&trained.stderr));
    let sample = comer_testing::repository().join("samples/square.inkml").display().to_string();
    let message = error(&comer(&["recognize", &sample, "--language-model", &out]));
    assert!(message.contains(&out) && message.contains("vocabulary"), "{message}");

    let mut bytes = fs::read(&out).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&out, &bytes).unwrap();
    let message = error(&comer(&["recognize", &sample, "--language-model", &out]));
    assert!(message.contains(&out) && message.contains("checksum"), "{message}");

    let message = error(&comer(&["train-lm", &path("none.txt"), "--out", &out]));
    assert!(message.contains("none.txt"), "{message}");
    let message = error(&comer(&["train-lm", &format!("{list}=heavy"), "--out", &out]));
    assert!(message.contains("heavy"), "{message}");
    let message = error(&comer(&["train-lm", &list, "--exclude", &list, "--out", &out]));
    assert!(message.contains("no formulas"), "{message}");
    let message = error(&comer(&["train-lm", &list, "--max-bytes", "1000", "--out", &out]));
    assert!(message.contains("1000"), "{message}");
}

/// The captions of the tests, read here and not by the program.
fn test_captions(data: &Path) -> HashSet<String> {
    let mut zip = zip::ZipArchive::new(fs::File::open(data).unwrap()).unwrap();
    let mut captions = HashSet::new();
    for split in ["2014", "2016"] {
        let mut text = String::new();
        zip.by_name(&format!("data/{split}/caption.txt")).unwrap().read_to_string(&mut text).unwrap();
        let caption = |line: &str| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
        captions.extend(text.lines().map(caption));
    }
    captions
}

#[test]
fn no_test_caption_of_any_length_is_in_the_text_of_the_bundled_language_model() {
    let (Some(data), Some(lists)) =
        (comer_testing::shared("data/crohme.zip"), comer_testing::shared("data/more/latex-lists"))
    else {
        return;
    };
    let captions = test_captions(&data);
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["train-lm".to_string(), format!("{}:train", data.display())];
    for entry in fs::read_dir(lists).unwrap() {
        let list = entry.unwrap().path();
        let Ok(unpacked) = Command::new("xz").arg("-dc").arg(&list).output() else {
            return comer_testing::skip("xz is needed to unpack the lists");
        };
        let path = folder.path().join(list.file_stem().unwrap());
        fs::write(&path, unpacked.stdout).unwrap();
        arguments.push(path.display().to_string());
    }
    let run = |exclude: bool| {
        let mut arguments = arguments.clone();
        for split in ["2014", "2016"].iter().filter(|_| exclude) {
            arguments.extend(["--exclude".to_string(), format!("{}:{split}", data.display())]);
        }
        let [out, text] = ["lm", "text.txt"].map(|name| folder.path().join(name).display().to_string());
        arguments.extend(["--order", "2", "--json", "--out", &out, "--text", &text].map(String::from));
        let record = json(&comer(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
        let text = fs::read_to_string(text).unwrap();
        let known = text.lines().filter(|line| captions.contains(line.split_once('\t').unwrap().1)).count();
        (record, known)
    };
    let (_, with) = run(false);
    let (record, without) = run(true);
    assert!(with > 100, "the lists have {with} of them");
    assert_eq!(without, 0);
    let sum = |key: &str| -> u64 {
        let lists = record["provenance"]["lists"].as_array().unwrap();
        lists.iter().map(|list| list[key].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("excluded"), with as u64);

    // The bundled one says of itself that the same captions were left out of the same lists.
    let bundled = comer_model_crohme::LANGUAGE_MODEL;
    let bundled = comer::internal::language_model::LanguageModel::from_bytes("bundled", bundled).unwrap();
    assert_eq!(bundled.provenance["excluded formulas"], record["provenance"]["excluded formulas"]);
    let names = |lists: &Value| -> HashSet<String> {
        lists.as_array().unwrap().iter().map(|list| list["name"].as_str().unwrap().to_string()).collect()
    };
    let own = names(&bundled.provenance["lists"]);
    assert!(own.is_subset(&names(&record["provenance"]["lists"])), "{own:?}");
}
