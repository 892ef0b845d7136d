//! `comer ablate`: rows, seeds, tables and resume.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{Fixture, errors, run_ok};

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
    assert!(
        figures["rows"].as_array().unwrap().iter().all(|row| row["cpu_hours_per_run"].is_f64()),
        "{figures}"
    );
    assert!(figures["rows"][3]["parameters"].as_u64() > figures["rows"][0]["parameters"].as_u64());
    assert!(figures["rows"][1]["sets"]["2014"]["differences"]["bttr"]["p"].is_f64(), "{figures}");
    assert_eq!(figures["rows"][0]["sets"]["2014"]["differences"], serde_json::json!({}));
    let table = fs::read_to_string(out.join("ablation.md")).unwrap();
    assert!(table.contains("intervals over images. With one seed for each row"), "{table}");
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

    // A row with one seed has the chance of seeds from the other row.
    fs::remove_dir_all(out.join("densewap/seed-2")).unwrap();
    let output = run_ok(ablate("1", &["--finished"]));
    assert!(errors(&output).contains("not finished: densewap, seed 2"), "{output:?}");
    let unequal = serde_json::from_slice::<Value>(&output.stdout).unwrap();
    let (two, one_seed) = (&unequal["rows"][0], &unequal["rows"][1]);
    assert_eq!((&two["seeds"], &one_seed["seeds"]), (&serde_json::json!([1, 2]), &serde_json::json!([1])));
    let [two, one_seed] = [two, one_seed].map(|row| &row["sets"]["2014"]);
    assert_eq!(two["exp_rates"].as_array().unwrap().len(), 2);
    assert!(one_seed["seed_deviation"].is_f64() && one_seed["seed_deviation"] == two["seed_deviation"]);
    let table = fs::read_to_string(out.join("ablation.md")).unwrap();
    assert!(table.contains("comes from the rows with several seeds and counts for all rows"), "{table}");

    let output = ablate("3", &[]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("--jobs 3"), "{output:?}");
    let recipe = one.to_str().unwrap();
    let output = ablate("1", &["--recipe", recipe]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("two rows are named"), "{output:?}");
    let output = ablate("1", &["--seeds", "2"]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("--seeds: "), "{output:?}");
    fs::write(&budget, "[optimizer]\nspeed = 1\n").unwrap();
    let output = ablate("1", &[]).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("budget.toml: "), "{output:?}");
}

#[test]
fn several_processes_share_the_runs() {
    let fixture = Fixture::new();
    let copied =
        Command::new("cp").arg("-r").arg(fixture.data.join("train")).arg(fixture.data.join("2014")).status();
    assert!(copied.unwrap().success());
    let (recipe, out) = (fixture.recipe(&[]), fixture.out("ablation"));
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.args(["ablate", "--epochs", "1", "--json", "--threads", "1", "--recipe"]).arg(&recipe);
        command.arg("--data").arg(&fixture.data).arg("--out").arg(&out);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let outputs = [start(), start()].map(|process| process.wait_with_output().unwrap());
    assert!(outputs.iter().all(|output| output.status.success()), "{outputs:?}");
    let trained = |output: &Output| errors(output).matches("epoch 1/1 done").count();
    assert_eq!(outputs.iter().map(trained).sum::<usize>(), 4, "{outputs:?}");
    // The last one to finish has all of them, in the folder and as its output.
    let figures = outputs.iter().find_map(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    let figures = figures.expect("tables from one of them");
    check_ablation(&figures, &out);
    let stored = fs::read_to_string(out.join("ablation.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), figures);
}
