//! End-to-end tests of `comer explain`: all output formats, and invalid input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use comer::internal::Precision;

struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["fusion", "bttr"] {
            let path = folder.path().join(format!("{name}.safetensors"));
            comer_testing::golden_model(name).save(path, Precision::F32).unwrap();
        }
        Self { folder }
    }

    fn run(&self, model: &str, input: &Path, out: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.arg("explain").arg(input).args(["--greedy", "--out"]).arg(self.folder.path().join(out));
        command.arg("--model").arg(self.folder.path().join(format!("{model}.safetensors"))).args(more);
        command.env_remove("COMER_MODEL").output().unwrap()
    }

    fn read(&self, out: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(out)).unwrap()
    }
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/square.inkml")
}

#[test]
fn every_kind_of_file_is_written() {
    let fixture = Fixture::new();
    for model in ["fusion", "bttr"] {
        for (out, start) in [
            ("a.png", &b"\x89PNG"[..]),
            ("a.gif", b"GIF89a"),
            ("a.svg", b"<svg"),
            ("a.html", b"<!doctype html>"),
            ("a.HTM", b"<!doctype html>"),
        ] {
            let output = fixture.run(model, &sample(), out, &["--formula", "x ^ { 2 }"]);
            assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
            assert!(fixture.read(out).starts_with(start), "{model} {out}");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                stderr.contains(out) && stderr.contains("x^{2}") && stderr.contains("read twice"),
                "{stderr}"
            );
        }
    }
    // What the model reads by itself, and other maps of it.
    assert!(fixture.run("fusion", &sample(), "own.svg", &[]).status.success());
    assert!(fixture.run("fusion", &sample(), "other.svg", &["--layer", "2", "--head", "2"]).status.success());
    assert_ne!(fixture.read("own.svg"), fixture.read("other.svg"));
    let more = ["--map", "attention", "--right-to-left", "--layer", "1"];
    assert!(fixture.run("fusion", &sample(), "right.svg", &more).status.success());
    let text = String::from_utf8(fixture.read("right.svg")).unwrap();
    assert!(text.contains("attention, layer 1, mean over heads, read from the right"));
}

#[test]
fn bad_input_is_named_and_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let broken = fixture.folder.path().join("broken.png");
    fs::write(&broken, "no picture").unwrap();
    let (missing, sample) = (fixture.folder.path().join("missing.png"), sample());
    let cases: [(&str, &Path, &str, &[&str], &str); 11] = [
        ("fusion", &broken, "a.png", &[], "broken.png"),
        ("fusion", &missing, "a.png", &[], "missing.png"),
        ("fusion", &sample, "a.bmp", &[], "a.bmp"),
        ("fusion", &sample, "a", &[], ".html, .png, .gif or .svg"),
        ("fusion", &sample, "no/such/folder/a.png", &[], "no/such/folder"),
        ("fusion", &sample, "a.png", &["--layer", "9"], "--layer 9"),
        ("fusion", &sample, "a.png", &["--layer", "1"], "first layer"),
        ("fusion", &sample, "a.png", &["--head", "0"], "--head 0"),
        ("bttr", &sample, "a.png", &["--map", "refinement"], "this model has none"),
        ("fusion", &sample, "a.png", &["--formula", r"x \nonsense"], r"\nonsense"),
        ("none", &sample, "a.png", &[], "none.safetensors"),
    ];
    let before = fs::read_dir(fixture.folder.path()).unwrap().count();
    for (model, input, out, more, named) in cases {
        let output = fixture.run(model, input, out, more);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{named}: {output:?}");
        assert!(stderr.contains(named) && !stderr.contains("panicked"), "{named}: {stderr}");
        assert_eq!(fs::read_dir(fixture.folder.path()).unwrap().count(), before, "{named}");
    }
}
