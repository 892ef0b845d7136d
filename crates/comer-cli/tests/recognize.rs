//! End-to-end tests of `comer recognize`: all input formats, and invalid input.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use comer::Image;
use comer::internal::Precision;
use comer::internal::latex::tokenize;
use serde_json::Value;

/// A folder with a tiny random model, whose results are meaningless.
struct Fixture {
    folder: tempfile::TempDir,
    model: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("tiny.safetensors");
        comer_testing::golden_model("fusion").save(&model, Precision::F32).unwrap();
        Self { folder, model }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join("inputs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn run(&self, inputs: &[&Path], more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.arg("recognize").args(inputs).arg("--model").arg(&self.model).args(more);
        command.env_remove("COMER_MODEL").stdin(Stdio::null()).output().unwrap()
    }
}

const CROSS: &str = "<ink><trace>0 0, 10 10, 20 20</trace><trace>20 0, 10 10, 0 20</trace></ink>";

/// A cross in a pen of three pixels.
fn cross() -> Image {
    comer::Ink::from_inkml(CROSS.as_bytes()).unwrap().draw().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn one_formula_in_any_form_gives_the_same_line() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let inkml = fixture.write("cross.inkml", CROSS);
    let json = fixture.write("cross.json", "[[[0,0],[10,10],[20,20]],[[20,0],[10,10],[0,20]]]");
    let first = fixture.run(&[&png], &[]);
    assert!(first.status.success(), "{first:?}");
    assert_eq!(text(&first.stdout).lines().count(), 1);
    for path in [&inkml, &json] {
        assert_eq!(text(&fixture.run(&[path], &[]).stdout), text(&first.stdout), "{}", path.display());
    }
    let mut piped = Command::new(env!("CARGO_BIN_EXE_comer"))
        .args(["recognize", "-", "--model"])
        .arg(&fixture.model)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(CROSS.as_bytes()).unwrap();
    assert_eq!(text(&piped.wait_with_output().unwrap().stdout), text(&first.stdout));

    // A folder, searched to its depth, with the names before the formulas.
    fixture.write("deeper/still/cross.png", cross().to_png().unwrap());
    let all = fixture.run(&[&fixture.folder.path().join("inputs")], &[]);
    assert!(all.status.success(), "{all:?}");
    let all = text(&all.stdout);
    assert_eq!(all.lines().count(), 4);
    assert!(all.lines().all(|line| line.ends_with(text(&first.stdout).trim_end())), "{all}");
}

#[test]
fn json_has_all_fields() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let debug = fixture.folder.path().join("seen.png");
    let more = ["--json", "--nbest", "3", "--alignment", "--debug-image", debug.to_str().unwrap()];
    let output = fixture.run(&[&png], &more);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let unit = |value: &Value| (0.0..=1.0).contains(&value.as_f64().unwrap());
    assert_eq!(object["name"], png.display().to_string());
    assert!(unit(&object["confidence"]) && object["score"].as_f64().unwrap() <= 0.0);
    assert_eq!(object["alternatives"].as_array().unwrap().len(), 2);
    assert!(object["milliseconds"].as_f64().unwrap() > 0.0);
    let tokens = object["tokens"].as_array().unwrap();
    let words: Vec<&str> = tokens.iter().map(|token| token["token"].as_str().unwrap()).collect();
    assert_eq!(words, tokenize(object["latex"].as_str().unwrap()));
    assert!(tokens.iter().all(|token| unit(&token["confidence"])));
    for token in tokens {
        let inked = !["{", "}", "^", "_", r"\limits"].contains(&token["token"].as_str().unwrap());
        assert_eq!(token["symbol_confidence"].as_f64().is_some(), inked, "{token}");
    }
    let attention = object["alignment"]["attention"].as_array().unwrap();
    assert_eq!(attention.len(), tokens.len());
    for map in attention {
        let sum: f64 = map.as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }
    let ink = &object["ink"];
    assert!(unit(&ink["unread"]) && unit(&ink["reread"]), "{ink}");
    assert_eq!(ink["regions"].as_array().unwrap().len(), 1, "the strokes of a cross touch: {ink}");
    let shorter: Value = serde_json::from_slice(&fixture.run(&[&png], &["--json"]).stdout).unwrap();
    assert!(shorter["ink"]["unread"] == ink["unread"] && shorter["ink"]["regions"].is_null());
    assert!(shorter["alignment"].is_null());
    // The page, what the network sees of it, and a line after each.
    let seen = comer::internal::photo::decode(&fs::read(debug).unwrap()).unwrap();
    assert_eq!((seen.width, seen.height), (cross().width(), 2 * cross().height() + 2));
}

#[test]
fn the_debug_image_shows_boxes_and_what_was_dropped() {
    let fixture = Fixture::new();
    let is_green = |pixel: &image::Rgb<u8>| pixel.0 == [0, 150, 60];
    let is_blue = |pixel: &image::Rgb<u8>| pixel.0 == [30, 100, 255];
    // A cross in a pen of six pixels, and a thick block at the edge, which is not ink.
    let (width, height) = (300, 200);
    let cross =
        |x: u32, y: u32| (60..120).contains(&y) && (x.abs_diff(y + 40) < 4 || (x + y).abs_diff(220) < 4);
    let block = |x: u32, y: u32| x >= 260 && y < 150;
    let page = image::GrayImage::from_fn(width, height, |x, y| {
        image::Luma([if cross(x, y) || block(x, y) { 30 } else { 225 }])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    page.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let png = fixture.write("page.png", bytes.into_inner());
    let ink = fixture.write("page.json", format!("[{}, {}]", cross_at(0, 0), cross_at(0, 300)));
    let seen = fixture.folder.path().join("seen.png");
    let debug = |input: &Path| {
        let output = fixture.run(&[input], &["--greedy", "--debug-image", seen.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        image::load_from_memory(&fs::read(&seen).unwrap()).unwrap().to_rgb8()
    };
    let sheet = debug(&png);
    assert!(sheet.height() > height && is_green(sheet.get_pixel(130, 90)), "the middle of the cross");
    let green = sheet.enumerate_pixels().filter(|(_, _, pixel)| is_green(pixel));
    let (read, elsewhere): (Vec<_>, Vec<_>) = green.partition(|(x, y, _)| cross(*x, *y));
    let all = page.enumerate_pixels().filter(|(x, y, _)| cross(*x, *y)).count();
    assert!(2 * read.len() > all && 4 * elsewhere.len() < all, "{} {} of {all}", read.len(), elsewhere.len());
    assert!(!elsewhere.iter().any(|(x, y, _)| block(*x, *y)), "the block was dropped");
    // A box around the cross and nothing else.
    let blue = sheet.enumerate_pixels().filter(|(_, _, pixel)| is_blue(pixel)).map(|(x, y, _)| (x, y));
    let blue: Vec<(u32, u32)> = blue.collect();
    let range =
        |side: &dyn Fn(&(u32, u32)) -> u32| (blue.iter().map(side).min(), blue.iter().map(side).max());
    let ((left, right), (top, bottom)) = (range(&|place| place.0), range(&|place| place.1));
    for (found, expected) in [(left, 97), (right, 162), (top, 57), (bottom, 122)] {
        assert!(found.is_some_and(|found| found.abs_diff(expected) < 6), "{found:?}, expected {expected}");
    }
    assert!(!is_blue(sheet.get_pixel(130, 70)));

    // Two formulas of ink have two boxes: a line down the middle crosses four sides.
    let sheet = debug(&ink);
    assert!(sheet.pixels().any(is_green));
    let middle = sheet.enumerate_pixels().filter(|(x, _, _)| *x == 16);
    let sides = middle.filter(|(_, _, pixel)| is_blue(pixel)).count();
    assert_eq!(sides, 4, "{:?}", sheet.dimensions());
}

#[test]
fn lines_of_a_derivation_are_aligned() {
    // An equation and a sum below it.
    let ink = two_lines();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.json");
    fs::write(&path, ink).unwrap();
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        let output = command.arg("recognize").arg(&path).args(more).env_remove("COMER_MODEL").output();
        text(&output.unwrap().stdout)
    };
    let expected = r"\begin{aligned} y &= 2\pi x \\ x^{2} + 1 \end{aligned}";
    assert_eq!(run(&["--all", "--aligned"]).trim_end(), expected);
    assert!(run(&["--all", "--aligned", "--mathml"]).contains("<mtable"));
    let object: Value = serde_json::from_str(run(&["--json"]).trim()).unwrap();
    assert_eq!(object["aligned"], expected);
    let object: Value = serde_json::from_str(run(&["--json", "--one"]).trim()).unwrap();
    assert!(object["aligned"].is_null());
}

/// Two of the samples below each other, as JSON strokes.
fn two_lines() -> String {
    let strokes = |name: &str, down: f64| {
        let path = comer_testing::repository().join("samples").join(name);
        let ink = comer::Ink::from_inkml(&fs::read(path).unwrap()).unwrap();
        let points = ink.strokes().iter().flat_map(|stroke| &stroke.points);
        let (top, bottom) =
            points.fold((f64::MAX, f64::MIN), |(top, bottom), point| (top.min(point.y), bottom.max(point.y)));
        let height = bottom - top;
        let place =
            |point: &comer::Point| [100.0 * point.x / height, 100.0 * ((point.y - top) / height + down)];
        let strokes = ink.strokes().iter().map(|stroke| stroke.points.iter().map(place).collect::<Vec<_>>());
        strokes.collect::<Vec<_>>()
    };
    let both = [strokes("circle.inkml", 0.0), strokes("square.inkml", 2.5)].concat();
    serde_json::to_string(&both).unwrap()
}

#[test]
fn bad_input_is_named_and_the_rest_is_still_read() {
    let fixture = Fixture::new();
    let good = fixture.write("good.png", cross().to_png().unwrap());
    let png = cross().to_png().unwrap();
    let mut huge = png.clone();
    huge[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]); // 30000 x 30000, by its header
    let level = |level: u8| {
        let flat = Image::new(60, 40, vec![level; 2400]).unwrap();
        flat.to_png().unwrap()
    };
    let strokes = |point: &str| format!("<ink><trace>{point}, 5 5</trace></ink>");
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("text.png", b"this is not a picture".to_vec()),
        ("empty.png", Vec::new()),
        ("cut.png", png[..png.len() / 2].to_vec()),
        ("huge.png", huge),
        ("white.png", level(255)),
        ("black.png", level(0)),
        ("one.png", Image::new(1, 1, vec![255]).unwrap().to_png().unwrap()),
        ("no-traces.inkml", b"<ink></ink>".to_vec()),
        ("nan.inkml", strokes("NaN 3").into_bytes()),
        ("far.inkml", strokes("1e300 3").into_bytes()),
        ("broken.inkml", b"<ink><trace>1 2".to_vec()),
        ("broken.json", b"[[[1, 2".to_vec()),
        ("deep.json", vec![b'['; 100_000]),
    ];
    for (name, bytes) in cases {
        let bad = fixture.write(name, bytes);
        let output = fixture.run(&[&bad, &good], &[]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        let (out, talk) = (text(&output.stdout), text(&output.stderr));
        assert!(out.lines().count() == 1 && out.contains("good.png"), "{name}: {out}");
        assert!(talk.contains(name) && !talk.contains("panicked"), "{name}: {talk}");
        fs::remove_file(bad).unwrap();
    }
    let missing = fixture.folder.path().join("missing.png");
    let output = fixture.run(&[&missing, &good], &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() == 2 && lines[0]["error"].is_string() && lines[1]["latex"].is_string(), "{lines:?}");
}

#[test]
fn too_many_strokes_are_refused() {
    let fixture = Fixture::new();
    let trace = |i: usize| format!("<trace>{} {}, {} {}</trace>", i % 300, i / 300, i % 300 + 2, i / 300 + 3);
    let many: String = (0..100_000).map(trace).collect();
    let path = fixture.write("many.inkml", format!("<ink>{many}</ink>"));
    let output = fixture.run(&[&path], &["--greedy"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("more than 5000 traces"), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn what_cannot_be_done_at_all_says_why() {
    let fixture = Fixture::new();
    let empty = fixture.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let output = fixture.run(&[&empty], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no images or ink"), "{output:?}");

    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let output = fixture.run(&[&png], &["--beam", "0"]);
    assert!(!output.status.success() && text(&output.stderr).contains("--beam 0: expected"), "{output:?}");
}

#[test]
fn the_bundled_model_reads_the_samples_without_any_setup() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    let output =
        command.args(["recognize", "--json"]).arg(&samples).env_remove("COMER_MODEL").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut wrong = Vec::new();
    for line in text(&output.stdout).lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        let ink = comer::Ink::from_inkml(&fs::read(object["name"].as_str().unwrap()).unwrap()).unwrap();
        if tokenize(object["latex"].as_str().unwrap()) != tokenize(ink.latex().unwrap()) {
            wrong.push(line.to_string());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nbest_prints_one_line_per_answer() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let one = text(&fixture.run(&[&png], &[]).stdout);
    let three = text(&fixture.run(&[&png], &["--nbest", "3"]).stdout);
    let lines: Vec<&str> = three.lines().collect();
    assert_eq!(lines.len(), 3, "{three}");
    assert_eq!(lines[0], one.trim_end());
    assert!(lines[1] != lines[0] && lines[2] != lines[1], "{three}");
    let other = fixture.write("other.inkml", CROSS);
    let both = text(&fixture.run(&[&png, &other], &["--nbest", "2"]).stdout);
    assert_eq!(both.lines().filter(|line| line.contains("cross.png\t")).count(), 2, "{both}");
    assert_eq!(both.lines().filter(|line| line.contains("other.inkml\t")).count(), 2, "{both}");
}

#[test]
fn latex_is_compact_and_tokens_are_printed_on_request() {
    let sample = comer_testing::repository().join("samples/quadratic.inkml");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        let output = command.arg("recognize").arg(&sample).args(more).env_remove("COMER_MODEL").output();
        text(&output.unwrap().stdout)
    };
    assert_eq!(run(&[]), "x = \\frac{-b + \\sqrt{b^{2} - 4ac}}{2a}\n");
    assert_eq!(run(&["--tokens"]), "x = \\frac { - b + \\sqrt { b ^ { 2 } - 4 a c } } { 2 a }\n");
    let mathml = run(&["--mathml"]);
    assert!(mathml.starts_with("<math ") && mathml.contains("<msqrt "), "{mathml}");
    assert_eq!(run(&["--prefix", "X="]), "X = \\frac{-b + \\sqrt{b^{2} - 4ac}}{2a}\n");
}

#[test]
fn quiet_and_verbose_change_stderr_only() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let missing = fixture.folder.path().join("missing.png");
    let plain = fixture.run(&[&png, &missing], &[]);
    let quiet = fixture.run(&[&png, &missing], &["-q"]);
    let verbose = fixture.run(&[&png, &missing], &["-v"]);
    for output in [&plain, &quiet, &verbose] {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(text(&output.stdout), text(&plain.stdout));
    }
    assert!(text(&plain.stderr).contains("missing.png"), "{plain:?}");
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
    assert!(text(&verbose.stderr).contains("cross.png: confidence "), "{verbose:?}");
}

/// A reader that closes its end, as `head` does, is not an error.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_silent() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.arg("recognize").arg(&png).arg("--model").arg(&fixture.model).stderr(Stdio::piped());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.arg("-q").stdout(writer).spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    let answer = |threads: &str| {
        let output = fixture.run(&[&png], &["--json", "--nbest", "4", "--threads", threads]);
        let mut object: Value = serde_json::from_slice(&output.stdout).unwrap();
        object["milliseconds"] = Value::Null;
        object
    };
    assert_eq!(answer("1"), answer("2"));
    assert_eq!(answer("1"), answer("5"));
}

/// Each of these was read until the memory was full.
#[cfg(unix)]
#[test]
fn endless_files_are_refused() {
    let fixture = Fixture::new();
    let zero = Path::new("/dev/zero");
    let output = fixture.run(&[zero], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("larger than the limit"), "{output:?}");
    let cross = fixture.write("cross.inkml", CROSS);
    // None of them needs the memory of what they might be.
    for words in [
        "recognize $1 --model /dev/zero",
        "model /dev/zero",
        "import /dev/zero /dev/null",
        "recognize $1 --language-model /dev/zero",
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v 1500000; exec \"$0\" {words}")]);
        let output = command.arg(env!("CARGO_BIN_EXE_comer")).arg(&cross).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
        let message = text(&output.stderr);
        assert!(message.contains("/dev/zero") && !message.contains("memory"), "{words}: {message}");
        assert!(
            message.contains("larger than the limit of 268435456")
                || message.contains("expected safetensors")
                || message.contains("invalid header")
                || message.contains("lacks"),
            "{words}: {message}"
        );
    }
}

/// Strokes of a cross at a place.
fn cross_at(x: u32, y: u32) -> String {
    format!("[[{x}, {y}], [{}, {}]], [[{}, {y}], [{x}, {}]]", x + 40, y + 60, x + 40, y + 60)
}

#[test]
fn every_formula_of_a_page_is_read_and_has_its_box() {
    let fixture = Fixture::new();
    let line = |y: u32| [0, 70, 140].map(|x| cross_at(x, y)).join(", ");
    let page = fixture.write("page.json", format!("[{}, {}]", line(0), line(200)));
    let output = fixture.run(&[&page], &["--json", "--greedy"]);
    let object: Value = serde_json::from_str(text(&output.stdout).trim()).unwrap();
    let formulas = object["formulas"].as_array().unwrap();
    assert_eq!(formulas.len(), 2, "{object}");
    assert_eq!(formulas[0]["latex"], object["latex"]);
    assert_eq!(formulas[1]["box"]["top"], 200.0);
    assert_eq!(formulas[1]["strokes"].as_array().unwrap().len(), 6);
    assert_eq!(object["warnings"][0]["code"], "several_formulas");
    assert!(text(&output.stderr).contains("2 formulas were found"), "{output:?}");
    assert_eq!(text(&fixture.run(&[&page], &["--greedy"]).stdout).lines().count(), 2);
    assert_eq!(text(&fixture.run(&[&page], &["--greedy", "--one"]).stdout).lines().count(), 1);

    // The same page as a picture.
    let strokes = comer::Ink::from_json(&fs::read(&page).unwrap()).unwrap();
    let png = fixture.write("page.png", strokes.draw().unwrap().to_png().unwrap());
    let output = fixture.run(&[&png], &["--all", "--greedy", "--json"]);
    let object: Value = serde_json::from_str(text(&output.stdout).trim()).unwrap();
    assert_eq!(object["formulas"].as_array().unwrap().len(), 2, "{object}");
}

#[test]
fn doubt_and_time_limits_end_with_an_error() {
    let fixture = Fixture::new();
    let png = fixture.write("cross.png", cross().to_png().unwrap());
    // A random model is never sure.
    let unsure = fixture.run(&[&png], &["--min-confidence", "0.999999"]);
    assert_eq!(unsure.status.code(), Some(1), "{unsure:?}");
    assert!(
        text(&unsure.stderr).contains("below --min-confidence") && unsure.stdout.is_empty(),
        "{unsure:?}"
    );
    let late = fixture.run(&[&png], &["--timeout", "0"]);
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    assert!(text(&late.stderr).contains("deadline"), "{late:?}");
    for (flag, value) in [("--timeout", "-1"), ("--min-confidence", "2")] {
        let wrong = fixture.run(&[&png], &[&format!("{flag}={value}")]);
        assert!(!wrong.status.success() && text(&wrong.stderr).contains(flag), "{wrong:?}");
    }
}

#[test]
fn odd_files_have_their_messages() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path().join("odd");
    fs::create_dir(&folder).unwrap();
    let jpeg = |colour: image::ExtendedColorType, channels: usize| {
        let levels: Vec<u8> = (0..120 * 60 * channels)
            .map(|at| if (at / channels % 120).abs_diff(at / channels / 120 + 30) < 3 { 30 } else { 230 })
            .collect();
        let mut file = Vec::new();
        image::codecs::jpeg::JpegEncoder::new(&mut file).encode(&levels, 120, 60, colour).unwrap();
        file
    };
    let good = jpeg(image::ExtendedColorType::Rgb8, 3);
    let whole_png = cross().to_png().unwrap();
    for (name, bytes, expected) in [
        ("photo.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1".to_vec(), "heif-convert"),
        (
            "page.pdf",
            b"\n%PDF-1.4".to_vec(),
            if cfg!(feature = "pdf") { "cannot read the PDF" } else { "pdftoppm" },
        ),
        (
            "drawing.svg",
            if cfg!(feature = "svg") {
                b"<svg".to_vec()
            } else {
                b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec()
            },
            if cfg!(feature = "svg") { "cannot read the SVG" } else { "rsvg-convert" },
        ),
        ("cut.jpg", good[..good.len() - 20].to_vec(), "truncated"),
        ("cut.png", whole_png[..whole_png.len() - 40].to_vec(), "the png is truncated"),
    ] {
        let path = fixture.write(name, bytes);
        let output = fixture.run(&[&path], &[]);
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(text(&output.stderr).contains(expected) && output.stdout.is_empty(), "{name}: {output:?}");
        fs::rename(&path, folder.join(name)).unwrap();
    }
    for name in ["cut.jpg", "cut.png"] {
        let lenient = fixture.run(&[&folder.join(name)], &["--lenient", "--greedy", "--json"]);
        assert!(lenient.status.success(), "{lenient:?}");
        assert!(text(&lenient.stderr).contains("warning: the file ends early"), "{lenient:?}");
        let object: Value = serde_json::from_slice(&lenient.stdout).unwrap();
        let codes: Vec<&Value> =
            object["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
        assert!(codes.contains(&&Value::from("truncated")), "{name}: {object}");
    }
    fs::remove_file(folder.join("cut.jpg")).unwrap();
    fs::remove_file(folder.join("cut.png")).unwrap();
    for (name, is_read) in [("page.pdf", cfg!(feature = "pdf")), ("drawing.svg", cfg!(feature = "svg"))] {
        if is_read {
            fs::remove_file(folder.join(name)).unwrap();
        }
    }
    fs::write(folder.join("good.jpg"), &good).unwrap();
    fs::write(folder.join(".hidden.jpg"), "not a picture").unwrap();
    let output = fixture.run(&[&folder], &["--greedy"]);
    assert!(output.status.success(), "{output:?}");
    let talk = text(&output.stderr);
    assert!(talk.contains("of other kinds: ") && talk.contains("photo.heic"), "{talk}");
    assert_eq!(text(&output.stdout).lines().count(), 1, "{output:?}");
}

#[test]
fn files_of_other_kinds_are_named() {
    let fixture = Fixture::new();
    let png = fixture.write("scans/cross.png", cross().to_png().unwrap());
    for number in 0..12 {
        fixture.write(&format!("scans/{number:02}.ppm"), "other");
    }
    fixture.write("scans/.hidden", "not named");
    fixture.write("scans/.folder/cross.png", "not read");
    let folder = png.parent().unwrap();
    let output = fixture.run(&[folder], &["--greedy"]);
    assert!(output.status.success(), "{output:?}");
    let talk = text(&output.stderr);
    assert!(talk.contains("skipped 12 files of other kinds: "), "{talk}");
    assert!(
        talk.contains("09.ppm and 2 more") && !talk.contains("10.ppm") && !talk.contains("hidden"),
        "{talk}"
    );
    // A folder without anything to read: the error says what is there.
    let heic = fixture.write("phone/photo.heic", "other");
    let output = fixture.run(&[heic.parent().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let talk = text(&output.stderr);
    assert!(
        talk.contains("no images or ink in this folder") && talk.contains("1 file of other kinds: "),
        "{talk}"
    );
    assert!(talk.contains("photo.heic"), "{talk}");
    let empty = fixture.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let output = fixture.run(&[&empty], &[]);
    let talk = text(&output.stderr);
    assert!(talk.contains("no images or ink") && !talk.contains("other kinds"), "{talk}");
}

/// More pixels than are cleaned without being reduced. In larger ones, noise is averaged out: they have no ink.
#[test]
fn noise_is_read_with_a_warning() {
    let mut state = 1u64;
    let picture = image::GrayImage::from_fn(2_400, 1_600, |_, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        image::Luma([(state >> 56) as u8])
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.png");
    picture.save(&path).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    let output =
        command.args(["recognize", "--greedy"]).arg(&path).env_remove("COMER_MODEL").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("warning: the confidence is low"), "{output:?}");
}

/// A PDF file of pages with these content streams.
#[cfg(feature = "pdf")]
fn pdf(pages: &[String]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 3 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
    ];
    for (page, content) in pages.iter().enumerate() {
        let stream = 4 + 2 * page;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << >> /Contents {stream} 0 R >>"
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_string();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let start = file.len();
    let size = objects.len() + 1;
    file += &format!("{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    file.into_bytes()
}

/// The strokes of a sample as lines of a page, 300 units wide.
#[cfg(feature = "pdf")]
fn strokes_of_a_page(name: &str) -> String {
    let ink = comer::Ink::from_inkml(&comer_testing::sample(name)).unwrap();
    let points = || ink.strokes().iter().flat_map(|stroke| &stroke.points);
    let left = points().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let top = points().map(|point| point.y).fold(f64::INFINITY, f64::min);
    let scale = 300.0 / (points().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max) - left);
    let mut content = "2 w 1 J 1 j\n".to_string();
    for stroke in ink.strokes() {
        for (index, point) in stroke.points.iter().enumerate() {
            let operator = if index == 0 { "m" } else { "l" };
            let (x, y) = (100.0 + (point.x - left) * scale, 700.0 - (point.y - top) * scale);
            content += &format!("{x:.2} {y:.2} {operator}\n");
        }
        content += "S\n";
    }
    content
}

/// Reads with the bundled model.
#[cfg(any(feature = "pdf", feature = "svg"))]
fn bundled(path: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.args(["recognize", "--greedy"]).arg(path).args(more).env_remove("COMER_MODEL").output().unwrap()
}

#[cfg(feature = "svg")]
#[test]
fn an_svg_is_read_and_loads_nothing() {
    let fixture = Fixture::new();
    let ink = comer::Ink::from_inkml(&comer_testing::sample("square")).unwrap();
    let mut paths = String::new();
    for stroke in ink.strokes() {
        let points: Vec<String> =
            stroke.points.iter().map(|point| format!("{} {}", point.x, point.y)).collect();
        paths += &format!("<polyline points='{}'/>", points.join(" "));
    }
    let bounds = comer::Input::from_ink(ink.clone()).unwrap().bounds();
    let (width, height) = (bounds.right - bounds.left, bounds.bottom - bounds.top);
    let (left, top) = (bounds.left - 0.3 * width, bounds.top - 0.3 * width);
    // A picture beside it that would cover everything.
    let black = image::RgbImage::from_pixel(9, 9, image::Rgb([0; 3]));
    fs::create_dir_all(fixture.folder.path().join("inputs")).unwrap();
    let cover = fixture.folder.path().join("inputs/black.png");
    black.save(&cover).unwrap();
    for cover in ["black.png".into(), format!("file://{}", cover.display()), cover.display().to_string()] {
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='{left} {top} {} {}' fill='none' stroke='navy' stroke-width='{}' \
             stroke-linecap='round'>{paths}<image href='{cover}' x='{left}' y='{top}' width='{}' height='{}'/></svg>",
            1.6 * width,
            height + 0.6 * width,
            width / 120.0,
            2.0 * width,
            2.0 * width + height
        );
        let output = bundled(&fixture.write("drawing.svg", svg), &[]);
        assert_eq!(text(&output.stdout), "x^{2} + 1\n", "{output:?}");
    }
    let narrow = "<svg xmlns='http://www.w3.org/2000/svg' width='9999999' height='0.1'/>";
    let output = bundled(&fixture.write("narrow.svg", narrow), &[]);
    assert!(text(&output.stderr).contains("expected a larger one"), "{output:?}");
}

#[cfg(feature = "pdf")]
#[test]
fn each_page_of_a_pdf_is_read() {
    let fixture = Fixture::new();
    let one = fixture.write("one.pdf", pdf(&[strokes_of_a_page("square")]));
    assert_eq!(text(&bundled(&one, &[]).stdout), "x^{2} + 1\n");
    // With something before its first line.
    let late = [b"from a mail\r\n", &pdf(&[strokes_of_a_page("square")])[..]].concat();
    assert_eq!(text(&bundled(&fixture.write("late.pdf", late), &[]).stdout), "x^{2} + 1\n");

    let pages = [strokes_of_a_page("square"), String::new(), strokes_of_a_page("root")];
    let several = fixture.write("several.pdf", pdf(&pages));
    let output = bundled(&several, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let name = several.display();
    assert_eq!(text(&output.stdout), format!("{name}#page=1\tx^{{2}} + 1\n{name}#page=3\t\\sqrt{{x + 1}}\n"));
    let talk = text(&output.stderr);
    assert!(talk.contains(&format!("{name}#page=2: ")) && talk.contains("no ink"), "{talk}");
    assert!(talk.contains("1 of 3 inputs"), "{talk}");
    let seen = fixture.folder.path().join("seen.png");
    let refused = bundled(&several, &["--debug-image", seen.to_str().unwrap()]);
    assert!(text(&refused.stderr).contains("expected one page, found 3") && !seen.exists(), "{refused:?}");
    let late = bundled(&several, &["--timeout", "0"]);
    assert!(text(&late.stderr).contains("not drawn within 0 seconds"), "{late:?}");

    let many = fixture.write("many.pdf", pdf(&vec![String::new(); 101]));
    assert!(text(&bundled(&many, &[]).stderr).contains("it has 101 pages, expected 1 to 100"));
    // A page without height.
    let narrow = text(&pdf(&[strokes_of_a_page("square")])).replace("0 0 595 842", "0 0 9999 .1");
    let output = bundled(&fixture.write("narrow.pdf", narrow), &[]);
    assert!(text(&output.stderr).contains("expected a larger one"), "{output:?}");
}
