//! The program as a whole: version, suggestions, completions, manual pages.

use std::process::{Command, Output};

fn comer(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comer")).args(arguments).env_remove("COMER_MODEL").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_version_names_the_model_and_its_licence() {
    let long = text(&comer(&["--version"]).stdout);
    assert!(long.starts_with(concat!("comer ", env!("CARGO_PKG_VERSION"))), "{long}");
    let short = text(&comer(&["-V"]).stdout);
    assert_eq!(short.lines().count(), 1, "{short}");
    assert_eq!(long.lines().next(), short.lines().next());
    if cfg!(feature = "bundled") {
        assert!(long.contains("CC-BY-NC-SA-3.0"), "{long}");
        let model = text(&comer(&["model"]).stdout);
        assert!(model.contains("license: CC-BY-NC-SA-3.0"), "{model}");
    }
}

#[test]
fn a_file_instead_of_a_command_gets_a_suggestion() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for file in ["photo.jpg", "ink.InkML", manifest] {
        let output = comer(&[file]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(&format!("comer recognize {file}")), "{output:?}");
    }
    let output = comer(&["recognise"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'recognize'"), "{output:?}");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = comer(&["completions", shell]);
        assert!(output.status.success(), "{output:?}");
        let script = text(&output.stdout);
        assert!(script.contains("recognize") && script.contains("nbest"), "{shell}");
    }
    let page = text(&comer(&["man"]).stdout);
    assert!(page.contains(".TH comer 1") && page.contains("recognize"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    assert!(comer(&["man", "--out", out.to_str().unwrap()]).status.success());
    for name in ["comer.1", "comer-recognize.1", "comer-serve.1"] {
        assert!(out.join(name).is_file(), "{name}");
    }
}

#[test]
fn every_help_text_has_an_example() {
    let help = text(&comer(&["--help"]).stdout);
    let commands = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    // Descriptions that are wrapped go on further to the right.
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands.into_iter().filter(|&name| name != "help" && name != "data") {
        let help = text(&comer(&[command, "--help"]).stdout);
        assert!(help.contains(&format!("Examples:\n  comer {command}")), "{command}: {help}");
    }
}

#[test]
fn an_unknown_split_lists_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    for split in ["2014", "2016"] {
        let folder = folder.path().join(split);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("caption.txt"), "a\tx\n").unwrap();
    }
    let data = folder.path().to_str().unwrap();
    for arguments in [
        vec!["evaluate", "--data", data, "--split", "2019"],
        vec!["bench", "--data", data, "--split", "2019"],
        vec!["data", "check", data, "--split", "2019"],
    ] {
        let output = comer(&arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let message = text(&output.stderr);
        assert!(
            message.contains("no split \"2019\", expected one of 2014, 2016"),
            "{arguments:?}: {message}"
        );
    }
}
