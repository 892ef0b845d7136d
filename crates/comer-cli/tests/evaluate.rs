//! End-to-end test of `comer evaluate` with a small set that has a broken image.

use std::fs;
use std::path::Path;
use std::process::Command;

use comer::Ink;
use comer::internal::Precision;
use serde_json::Value;

#[test]
fn a_set_is_evaluated_and_a_broken_image_affects_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (images, model) = (folder.path().join("set/own/img"), folder.path().join("tiny.safetensors"));
    fs::create_dir_all(&images).unwrap();
    comer_testing::golden_model("fusion").save(&model, Precision::F32).unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut captions = String::from("broken\tx\n");
    fs::write(images.join("broken.png"), "no picture").unwrap();
    for name in ["fraction", "root", "square"] {
        let ink = Ink::from_inkml(&fs::read(samples.join(format!("{name}.inkml"))).unwrap()).unwrap();
        fs::write(images.join(format!("{name}.png")), ink.draw().unwrap().to_png().unwrap()).unwrap();
        captions += &format!("{name}\t{}\n", ink.latex().unwrap());
    }
    fs::write(folder.path().join("set/own/caption.txt"), captions).unwrap();

    let out = folder.path().join("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.args(["evaluate", "--split", "own", "--json", "--greedy", "--model"]).arg(&model);
    let output =
        command.arg("--data").arg(folder.path().join("set")).arg("--out").arg(&out).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("broken"), "{stderr}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&figures["files"], &figures["missing"]), (&Value::from(4), &Value::from(1)));
    assert!(figures["token"]["exp_rate"].is_number() && figures["caption"]["le3"].is_number(), "{figures}");

    let share = |name: &str| figures["ink"][name].as_f64().unwrap();
    assert_eq!(figures["ink"]["files"], 3);
    assert!(
        (0.0..=100.0).contains(&share("unread")) && share("files_unread") >= share("unread"),
        "{figures}"
    );

    let mut written: Vec<String> =
        fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    written.sort();
    assert_eq!(written, ["predictions.tsv", "report.html", "report.json", "report.md"]);
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("aria-label=\"share of right answers") && report.contains("<circle"), "no plot");
    assert!(
        figures["reliability"]["error"].as_f64().is_some_and(|error| (0.0..=1.0).contains(&error)),
        "{figures}"
    );
    let predictions = fs::read_to_string(out.join("predictions.tsv")).unwrap();
    assert_eq!(predictions.lines().count(), 3, "{predictions}");

    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.args(["evaluate", "--split", "own", "--json", "--greedy", "--take", "2", "--model"]).arg(&model);
    let output = command.arg("--data").arg(folder.path().join("set")).output().unwrap();
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&figures["files"], &figures["missing"]), (&Value::from(2), &Value::from(0)));
}
