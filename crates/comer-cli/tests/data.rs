//! End-to-end tests of `comer data`: rendering, importing and checking data sets.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use comer::internal::Vocab;
use comer::internal::dataset::Dataset;
use comer::{Image, Ink};
use comer_eval::caption::Normalizer;
use comer_eval::files::read_truths;
use serde_json::Value;

/// Ink with a slant of `lean`, which makes pictures different, and this LaTeX.
fn ink(lean: usize, latex: &str) -> String {
    let latex = latex.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<ink><annotation type=\"truth\">{latex}</annotation><trace>0 0, {lean} 40</trace><trace>60 0, 30 {}</trace></ink>",
        30 + lean
    )
}

fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn comer(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.arg("data").arg(arguments[0]).args(paths).args(&arguments[1..]).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The names of a list of cases, which are before the colon.
fn names(cases: &Value) -> Vec<&str> {
    let list = cases.as_array().unwrap().iter();
    list.map(|case| case.as_str().unwrap().split(':').next().unwrap()).collect()
}

#[test]
fn ink_is_rendered_to_a_data_set_and_invalid_files_are_skipped() {
    let place = tempfile::tempdir().unwrap();
    let (source, out) = (place.path().join("source"), place.path().join("out"));
    for (name, text) in [
        ("b/plain.inkml", ink(1, "$x^2\\lt{y}_1$")),
        ("a/fraction.inkml", ink(2, r"$\frac12 \left(\mbox{a}\right) \ $")),
        ("a/twin.inkml", ink(3, "a")),
        ("b/twin.inkml", ink(4, "b")),
        ("c/twin.inkml", ink(3, "a")),
        ("a/twin-2.inkml", ink(5, "c")),
        ("d/unknown.inkml", ink(6, r"x + \Omega")),
        ("d/unclosed.inkml", ink(7, "{x")),
        ("d/empty.inkml", ink(8, r"$\,$")),
        ("d/silent.inkml", "<ink><trace>0 0, 1 1</trace></ink>".into()),
        ("d/broken.inkml", "<ink><trace>0 0".into()),
        ("d/notes.txt", "not ink".into()),
    ] {
        write(source.join(name), text);
    }
    let output = comer(&["render", "--split", "mine", "--json"], &[&source, &out]);
    assert!(output.status.success(), "{output:?}");
    let record = json(&output);
    assert_eq!((record["files"].as_u64(), record["drawn"].as_u64()), (Some(11), Some(5)), "{record}");

    let captions = fs::read_to_string(out.join("mine/caption.txt")).unwrap();
    let expected =
        "fraction\t\\frac { 1 } { 2 } ( a )\ntwin-2\tc\ntwin\ta\nplain\tx ^ { 2 } < y _ { 1 }\ntwin-3\tb\n";
    assert_eq!(captions, expected);
    let left_out = fs::read_to_string(out.join("mine/left-out.tsv")).unwrap();
    for (name, reason) in [
        ("c/twin.inkml", "the same file as"),
        ("d/unknown.inkml", "\"\\\\Omega\"): not in the vocabulary"),
        ("d/unclosed.inkml", "not closed"),
        ("d/empty.inkml", "no visible symbols"),
        ("d/silent.inkml", "truth"),
        ("d/broken.inkml", "InkML"),
    ] {
        let line = left_out.lines().find(|line| line.starts_with(&format!("{name}\t"))).unwrap_or("");
        assert!(line.contains(reason), "{name}: {line:?} in {left_out}");
        assert!(errors(&output).contains(name), "{name}");
    }
    assert_eq!(left_out.lines().count(), 6);

    let set = Dataset::open(&out, "mine").unwrap();
    assert!(set.problems.is_empty(), "{:?}", set.problems);
    let plain = set.samples.iter().find(|sample| sample.name == "plain").unwrap();
    let drawn = Ink::from_inkml(ink(1, "x").as_bytes()).unwrap().draw().unwrap();
    assert_eq!(plain.image.decode().unwrap(), drawn);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "incomplete files remain");

    let check = comer(&["check", "--json"], &[&out]);
    assert!(check.status.success(), "{check:?}");
    assert_eq!(json(&check)["splits"]["mine"]["formulas"], 5);

    // Existing splits are not changed.
    let again = comer(&["render", "--split", "mine"], &[&source, &out]);
    assert!(!again.status.success() && errors(&again).contains("already exists"), "{again:?}");
    assert_eq!(fs::read_to_string(out.join("mine/caption.txt")).unwrap(), captions);
}

#[test]
fn a_split_is_named_after_its_folder_and_a_vocabulary_decides_its_tokens() {
    let place = tempfile::tempdir().unwrap();
    let (source, out) = (place.path().join("ours"), place.path().join("out"));
    write(source.join("one.inkml"), ink(1, r"\Omega \le 2"));
    write(place.path().join("tokens.txt"), "\\Omega\n\\le\n2\n");
    let tokens = place.path().join("tokens.txt");
    let output = comer(&["render", "--vocab", tokens.to_str().unwrap()], &[&source, &out]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(out.join("ours/caption.txt")).unwrap(), "one\t\\Omega \\le 2\n");
}

#[test]
fn nothing_to_draw_is_an_error_and_leaves_no_files() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let (empty, broken) = (place.path().join("empty"), place.path().join("broken"));
    fs::create_dir(&empty).unwrap();
    write(broken.join("a.inkml"), "no ink");
    for (folder, split, expected) in [
        (&empty, "x", "no ink in this folder"),
        (&place.path().join("absent"), "x", "absent"),
        (&broken, "x", "none of its 1 files"),
        (&broken, "../x", "name of one folder"),
    ] {
        let output = comer(&["render", "--split", split], &[folder, &out]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains(expected), "{expected}: {output:?}");
        assert!(fs::read_dir(&out).map_or(0, Iterator::count) == 0, "files remain in {}", out.display());
    }
}

/// A picture with a vertical bar at `column`.
fn bar(column: usize, width: usize, height: usize) -> Vec<u8> {
    let pixels = (0..width * height).map(|index| if index % width == column { 255 } else { 0 }).collect();
    Image::new(width, height, pixels).unwrap().to_png().unwrap()
}

/// A set with every kind of fault.
fn faulty(folder: &Path) {
    let captions = "fine\tx ^ { 2 }\nsame\ty\nwide\tz\nthin\tz\nempty\t\nopen\t{ x\nforeign\t\\Omega + Q\nfine\tx ^ { 2 }\n\
                    missing\tx\nbroken\tx\n\tno name\n";
    write(folder.join("train/caption.txt"), captions);
    for (number, name) in ["fine", "empty", "open", "foreign"].iter().enumerate() {
        write(folder.join(format!("train/img/{name}.png")), bar(number, 40, 30));
    }
    write(folder.join("train/img/same.png"), bar(3, 40, 30));
    write(folder.join("train/img/wide.png"), bar(1, 1100, 200));
    write(folder.join("train/img/thin.png"), bar(1, 2000, 10));
    write(folder.join("train/img/broken.bmp"), "BM and nothing more");
    write(folder.join("test/caption.txt"), "leaked\tx\nown\tx\n");
    write(folder.join("test/img/leaked.png"), bar(1, 40, 30));
    write(folder.join("test/img/own.png"), bar(9, 40, 30));
}

#[test]
fn every_fault_is_reported() {
    let place = tempfile::tempdir().unwrap();
    faulty(place.path());
    let output = comer(&["check", "--json"], &[place.path()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let record = json(&output);
    let train = &record["splits"]["train"];
    assert_eq!(train["formulas"], 8);
    for (kind, expected) in [
        ("broken_files", vec!["line 11", "missing", "broken"]),
        ("shapes_that_do_not_fit", vec!["thin"]),
        ("repeated_names", vec!["fine"]),
        ("empty_captions", vec!["empty"]),
        ("captions_not_latex", vec!["open"]),
        ("over_the_size_limits", vec!["wide"]),
        ("duplicates", vec!["same = foreign, captions differ", "fine = fine"]),
    ] {
        assert_eq!(names(&train[kind]), expected, "{kind}");
    }
    assert_eq!(train["unknown_tokens"]["Q"][0], "foreign");
    assert_eq!(train["unknown_tokens"]["\\Omega"].as_array().map(Vec::len), Some(1));
    assert_eq!(names(&record["leaks"]), ["test/leaked = train/empty"]);
    assert_eq!(train["width"]["greatest"], 2000);
    assert_eq!(train["tokens"]["p50"], 1);

    let text = comer(&["check"], &[place.path()]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["train: unknown tokens\n  Q in 1 caption(s), such as foreign", "leaks between splits"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // The other split has no faults, selected by name or by its folder.
    let test = place.path().join("test");
    for (arguments, path) in [(vec!["check", "--split", "test"], place.path()), (vec!["check"], &test)] {
        let output = comer(&arguments, &[path]);
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_zip_is_checked_like_a_folder() {
    use std::io::Write;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    faulty(&folder);
    let path = place.path().join("set.zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    for split in ["train", "test"] {
        for part in ["", "img"] {
            for entry in fs::read_dir(folder.join(split).join(part)).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    let name = Path::new("data").join(split).join(part).join(entry.file_name());
                    zip.start_file_from_path(name, zip::write::SimpleFileOptions::default()).unwrap();
                    zip.write_all(&fs::read(entry.path()).unwrap()).unwrap();
                }
            }
        }
    }
    zip.finish().unwrap();
    assert_eq!(json(&comer(&["check", "--json"], &[&path])), json(&comer(&["check", "--json"], &[&folder])));
}

#[test]
fn invalid_data_sets_are_rejected() {
    let place = tempfile::tempdir().unwrap();
    write(place.path().join("text"), "no zip");
    for (arguments, path, expected) in [
        (vec!["check"], place.path().to_path_buf(), "expected caption.txt"),
        (vec!["check", "--split", "2014"], place.path().to_path_buf(), "expected caption.txt"),
        (vec!["check"], place.path().join("text"), "expected a zip or folder of images with caption.txt"),
        (vec!["check"], place.path().join("absent"), "absent"),
    ] {
        let output = comer(&arguments, &[&path]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains(expected), "{expected}: {output:?}");
    }
}

/// All ink below a folder.
fn ink_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            ink_below(&entry.path(), found)
        } else {
            found.push(entry.path())
        }
    }
}

#[test]
fn normalized_truths_equal_the_captions_of_crohme() {
    let (Some(pictures), Some(folder)) =
        (comer_testing::shared("data/crohme.zip"), comer_testing::unpacked_ink())
    else {
        return;
    };
    let normalizer = Normalizer::new(Vocab::crohme().tokens());
    // Captions that differ: in training one that was corrected by hand (/ for \div); in 2014 another corrected one, and
    // six whose ink does not come with LaTeX (ABOVE and BELOW, a brace too many).
    for (split, count, may_differ) in [("train", 8834, 1), ("2014", 986, 7), ("2016", 1147, 0)] {
        let truths = read_truths(&pictures, Some(split)).unwrap().truths;
        let captions: HashMap<&str, &str> =
            truths.iter().map(|truth| (truth.name.as_str(), truth.caption.as_deref().unwrap())).collect();
        let mut paths = Vec::new();
        ink_below(&folder.path().join("inkml").join(split), &mut paths);
        let mut same = 0;
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let Some(caption) = captions.get(name) else { continue };
            let ink = Ink::from_inkml(&fs::read(&path).unwrap()).unwrap();
            let ours = normalizer.normalize(ink.annotation("truth").unwrap()).unwrap_or_default();
            same += usize::from(ours.split(' ').eq(caption.split_whitespace()));
        }
        eprintln!("{split}: {same} of {count} captions are the same");
        assert_eq!(captions.len(), count);
        assert!(same + may_differ >= count, "{split}: {same} of {count} captions are the same");
    }
}

#[cfg(feature = "train")]
#[test]
fn sources_are_imported_without_test_captions_and_by_half_of_the_writers() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let picture = Image::new(40, 30, vec![255; 1200]).unwrap().to_png().unwrap();
    write(at("crohme/2014/caption.txt"), "t\tx + 1\n");
    write(at("crohme/2014/img/t.png"), &picture);
    let writers = ["anna", "bert", "carl", "dora"];
    for (number, writer) in writers.iter().enumerate() {
        let annotation = format!("<ink><annotation type=\"writer\">{writer}</annotation>");
        write(at(&format!("ink/{writer}.inkml")), ink(number, "$a^2$").replace("<ink>", &annotation));
    }
    write(at("ink/test.inkml"), ink(9, "x+1"));
    write(
        at("lines.jsonl"),
        "{\"id\":\"1\",\"tokens\":\"a\",\"strokes\":[[0,0,9,99]],\"test_text\":1}\n\
         {\"id\":\"2\",\"tokens\":\"< ,\",\"strokes\":[[0,0,9,99],[40,90,0,30]],\"boxes\":[[\"\\\\lt\",12,-2,-2,100],[\"COMMA\",30,80,50,130]],\"pen\":3.0}\n",
    );
    let import = |out: &str, sources: &[&str], more: &[&str]| {
        let (out, tests) = (at(out), at("crohme"));
        let sources: Vec<PathBuf> = sources.iter().map(|name| at(name)).collect();
        let mut all = vec!["import", "--out", out.to_str().unwrap(), "--tests", tests.to_str().unwrap()];
        all.extend(more);
        let output = comer(&all, &sources.iter().map(|path| path.as_path()).collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        (comer_train::stroke_set::read(&out).unwrap(), errors(&output))
    };
    let (records, stderr) = import("all.jsonl", &["ink", "lines.jsonl"], &[]);
    assert_eq!(records.len(), 5);
    assert!(stderr.contains("1 left out: a caption of the tests, the first test: x + 1"), "{stderr}");
    assert!(stderr.contains("1 left out: marked test_text"), "{stderr}");
    assert_eq!(records[4].symbols, [("<".to_string(), vec![0]), (",".to_string(), vec![1])]);
    let halves = ["training", "validation"]
        .map(|half| import("half.jsonl", &["ink"], &["--writers", half, "--source", "w"]).0);
    let mut names: Vec<String> = halves.iter().flatten().filter_map(|record| record.writer.clone()).collect();
    names.sort();
    assert_eq!(names, writers.map(|name| format!("w/{name}")));
    assert!(halves.iter().all(|half| !half.is_empty()), "{halves:?}");

    // Lines are read one by one, also more of them than are converted at a time, and have a limit.
    let line = |id: usize, length: usize| {
        let raw = "r".repeat(length);
        format!("{{\"id\":\"{id}\",\"tokens\":\"a\",\"strokes\":[[0,0,9,99]],\"raw\":\"{raw}\"}}\n")
    };
    let part = 3 << 20;
    write(at("long.jsonl"), (0..7).map(|id| line(id, part)).collect::<String>());
    let records = import("long.jsonl.out", &["long.jsonl"], &[]).0;
    assert_eq!(records.iter().map(|record| &record.id[..]).collect::<String>(), "0123456");
    write(at("longer.jsonl"), line(0, 9) + &line(1, 3 * part));
    let longer = comer(&["import", "--out", at("none").to_str().unwrap()], &[&at("longer.jsonl")]);
    assert_eq!(longer.status.code(), Some(1));
    assert!(errors(&longer).contains("longer.jsonl: line 2 is larger than the limit"), "{longer:?}");

    // A set without shared captions and ink passes; one with captions of the tests does not.
    let check = |tests: &str, ink: &str| {
        let (set, tests, ink) = (at("all.jsonl"), at(tests), at(ink));
        let more = ["check", "--json", "--tests", tests.to_str().unwrap(), "--ink", ink.to_str().unwrap()];
        comer(&more, &[&set])
    };
    write(at("others/three.inkml"), "<ink><trace>0 0, 40 9</trace><trace>0 9, 9 40</trace></ink>");
    let good = check("crohme", "others");
    assert!(good.status.success(), "{good:?}");
    write(at("crohme/2014/caption.txt"), "t\ta ^ { 2 }\n");
    let bad = check("crohme", "others");
    assert_eq!(bad.status.code(), Some(1));
    assert_eq!(json(&bad)["shared_captions"].as_array().unwrap().len(), 4);
}

/// Photographs are made of a seed, ink is where the truth says, and the evaluation reads them.
#[cfg(feature = "train")]
#[test]
fn photographs_have_their_truth_and_are_evaluated() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let records = ["fraction", "root", "square"].map(|name| {
        let ink = Ink::from_inkml(&comer_testing::sample(name)).unwrap();
        let record = comer_train::stroke_set::Record::of(name, ink.latex().unwrap(), &ink);
        serde_json::to_string(&record).unwrap() + "\n"
    });
    write(at("set.jsonl"), records.concat());
    let make = |out: &str, seed: &str| -> Vec<(String, Vec<u8>)> {
        let words = ["photograph", "--style", "plain", "--side", "1600", "--count", "2", "--seed", seed];
        let output =
            comer(&[&words[..], &["--out", at(out).to_str().unwrap()]].concat(), &[&at("set.jsonl")]);
        assert!(output.status.success(), "{output:?}");
        let files = fs::read_dir(at(out)).unwrap().map(|file| file.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let mut files: Vec<_> = files.map(|path| (name(&path), fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    let files = make("one", "5");
    let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
    assert_eq!(names, ["0000.jpg", "0001.jpg", "truth.jsonl"]);
    assert!(make("same", "5") == files, "the same seed, other bytes");
    assert!(make("other", "6") != files, "another seed, the same bytes");

    for (line, (name, bytes)) in String::from_utf8_lossy(&files[2].1).lines().zip(&files) {
        let truth: Value = serde_json::from_str(line).unwrap();
        let photograph = image::load_from_memory(bytes).unwrap().to_luma8();
        assert_eq!(truth["name"], **name);
        assert_eq!((&truth["width"], photograph.dimensions()), (&Value::from(1200), (1200, 1600)));
        let formulas = truth["formulas"].as_array().unwrap();
        assert_eq!(formulas.len(), 1, "{truth}");
        let side = |side: usize| formulas[0]["box"][side].as_f64().unwrap();
        let inside = |x: u32, y: u32, slack: f64| {
            let (x, y) = (f64::from(x), f64::from(y));
            (side(0) - slack..side(2) + slack).contains(&x) && (side(1) - slack..side(3) + slack).contains(&y)
        };
        let darkest = |wanted: &dyn Fn(u32, u32) -> bool| {
            let pixels = photograph.enumerate_pixels().filter(|(x, y, _)| wanted(*x, *y));
            pixels.map(|(_, _, pixel)| pixel.0[0]).min().unwrap()
        };
        let ink = darkest(&|x, y| inside(x, y, 0.0));
        let paper = darkest(&|x, y| !inside(x, y, 4.0));
        assert!(ink + 10 < paper, "{name}: ink {ink}, paper {paper} in {truth}");
    }

    let model = at("tiny.safetensors");
    comer_testing::golden_model("fusion").save(&model, comer::internal::Precision::F32).unwrap();
    let evaluate = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.args(["evaluate", "--greedy", "--photographs"]).arg(at("one")).arg("--model").arg(&model);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    };
    let figures = json(&evaluate(&["--json", "--one", "--out", at("report").to_str().unwrap()]));
    assert_eq!((&figures["photographs"], &figures["formulas"]), (&Value::from(2), &Value::from(2)));
    assert_eq!(figures["found"], 2, "{figures}");
    assert!(figures["reliability"]["error"].is_number(), "{figures}");
    let written: Value = serde_json::from_slice(&fs::read(at("report/report.json")).unwrap()).unwrap();
    assert_eq!(written, figures);
    let page = fs::read_to_string(at("report/report.html")).unwrap();
    assert!(page.contains("aria-label=\"share of right answers") && page.contains("<circle"), "{page}");
    let text = String::from_utf8_lossy(&evaluate(&["--one"]).stdout).into_owned();
    assert!(text.contains("boxes found") && text.contains("Expected calibration error"), "{text}");
}
