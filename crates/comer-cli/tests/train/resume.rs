//! What a run folder accepts when a run is resumed, and what it refuses.

use std::fs;
use std::path::Path;

use super::*;

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
        assert!(!errors(&output).contains("training samples"), "the data was read first: {output:?}");
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
