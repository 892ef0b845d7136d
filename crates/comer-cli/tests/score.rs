//! End-to-end tests of `comer score` and `comer compare`.

use std::path::Path;
use std::process::{Command, Output};

fn comer(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comer")).args(arguments).current_dir(folder).output().unwrap()
}

/// A set of three formulas with two runs.
fn material() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir_all(folder.path().join("set/symLg")).unwrap();
    write("set/caption.txt", "a\tx + 1\nb\ty ^ { 2 }\nc\tz\n");
    write(
        "set/symLg/a.lg",
        "O, x_1, x, 1.0, O\nO, p_1, +, 1.0, OR\nO, o_1, 1, 1.0, ORR\nEO, x_1, p_1, Right, 1.0\nEO, p_1, o_1, Right, 1.0\n",
    );
    write("set/symLg/b.lg", "O, y_1, y, 1.0, O\nO, t_1, 2, 1.0, OSup\nEO, y_1, t_1, Sup, 1.0\n");
    write("set/symLg/c.lg", "O, z_1, z, 1.0, O\n");
    write("first.tsv", "a\tx + 1\nb\ty ^ {\n");
    write("second.tsv", "a\tx + l\nb\ty ^ { 2 }\nc\tz\n");
    folder
}

#[test]
fn score_prints_figures_and_writes_a_report() {
    let folder = material();
    let done = comer(folder.path(), &["score", "first.tsv", "--truth", "set", "--json", "--out", "report"]);
    assert!(done.status.success(), "{done:?}");
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&json["files"], &json["missing"], &json["unreadable"]), (&3.into(), &1.into(), &1.into()));
    for protocol in ["official", "caption", "token"] {
        assert!((json[protocol]["exp_rate"].as_f64().unwrap() - 100.0 / 3.0).abs() < 1e-9, "{json}");
    }
    for name in ["report.json", "report.md", "report.html", "predictions.tsv"] {
        assert!(folder.path().join("report").join(name).exists(), "{name}");
    }
    let table = comer(folder.path(), &["score", "second.tsv", "--truth", "set/caption.txt"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("caption symLG") && !table.contains("official symLG"), "{table}");
    assert!(table.contains("66.67"), "{table}");
}

#[test]
fn compare_names_what_changed_sides() {
    let folder = material();
    let done = comer(folder.path(), &["compare", "first.tsv", "second.tsv", "--truth", "set", "--json"]);
    assert!(done.status.success(), "{done:?}");
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["official"]["gained"], serde_json::json!(["b", "c"]));
    assert_eq!(json["official"]["lost"], serde_json::json!(["a"]));
    let table = comer(folder.path(), &["compare", "first.tsv", "second.tsv", "--truth", "set"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("before  x + 1") && table.contains("after   x + l"), "{table}");
}

#[test]
fn what_cannot_be_scored_is_refused_by_name() {
    let folder = material();
    for (arguments, expected) in [
        (vec!["score", "absent.tsv", "--truth", "set"], "absent.tsv: No such file"),
        (vec!["score", "first.tsv", "--truth", "absent"], "absent: No such file"),
        (vec!["score", "set/symLg", "--truth", "set"], "expected predictions"),
        (vec!["score", "first.tsv", "--truth", ".", "--split", "x"], "no split \"x\", expected one of set"),
    ] {
        let refused = comer(folder.path(), &arguments);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.contains(expected) && refused.stdout.is_empty(), "{arguments:?}: {message}");
    }
    std::fs::write(folder.path().join("strangers.tsv"), "q\tx\n").unwrap();
    let strangers = comer(folder.path(), &["score", "strangers.tsv", "--truth", "set"]);
    assert!(String::from_utf8_lossy(&strangers.stderr).contains("none of its 1 names"), "{strangers:?}");
}
