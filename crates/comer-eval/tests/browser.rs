//! The HTML report in a real browser: nothing goes wrong on the page, the chart and a picture are there, the filter works.

use std::process::Command;

use comer_eval::html::html;
use comer_eval::score::{Truth, score};
use comer_eval::{Dialect, LabelGraph, Report};

/// Collects what goes wrong on the page; runs before anything else.
const LISTEN: &str = "<script>
const wrong = [];
addEventListener('error', (event) => wrong.push(event.message || 'a resource did not load'), true);
console.error = (...what) => wrong.push(what.join(' '));
</script>";

/// Uses the page as a reader would, and leaves what it found in the title.
const USE: &str = "<script>
addEventListener('load', async () => {
  const shown = () => Array.from(document.querySelectorAll('article:not([hidden])'), (a) => a.dataset.name).join();
  const choose = (id, value) => {
    const control = document.getElementById(id);
    control.value = value;
    control.dispatchEvent(new Event('input'));
    return shown();
  };
  const picture = document.querySelector('article img');
  await picture.decode();
  const found = {
    all: shown(), one: choose('errors', '1'), more: choose('errors', 'more'), any: choose('errors', ''),
    name: choose('sort', 'name'), find: choose('find', 'broken'),
    bars: document.querySelectorAll('#lengths rect').length, picture: picture.naturalWidth,
    formulas: document.querySelectorAll('math mfrac').length, wrong,
  };
  document.title = JSON.stringify(found);
});
</script>";

/// A white picture of two by one pixels.
fn picture() -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for field in [62_u32, 0, 54, 40, 2, 1, 1 | 24 << 16, 0, 8, 0, 0, 0, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([255; 8]);
    bytes
}

#[test]
fn the_report_works_in_a_browser() {
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
    if Command::new(&program).arg("--version").output().is_err() {
        eprintln!("skipped: no {program} (CHROMIUM names the browser)");
        return;
    }
    let formula = r"\frac { 1 } { x }";
    let truth = |name: &str| Truth {
        name: name.into(),
        caption: Some(formula.into()),
        graph: LabelGraph::from_latex(formula, Dialect::Official).ok(),
    };
    let predictions = [("right", formula), ("z-one", r"\frac { l } { x }"), ("broken", r"\frac {")];
    let predictions = predictions.map(|(name, text)| (name.into(), text.into())).into();
    let scores = score(&["right", "z-one", "broken"].map(truth), &predictions, Dialect::Official);
    let page = html("run", &Report::new(&scores), &scores, &[], |name| (name == "z-one").then(picture));
    let page = page.replacen("<head>", &format!("<head>{LISTEN}"), 1).replacen(
        "</body>",
        &format!("{USE}</body>"),
        1,
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    std::fs::write(&path, page).unwrap();

    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=10000",
        "--dump-dom",
        &profile,
    ];
    let output =
        Command::new(&program).args(flags).arg(format!("file://{}", path.display())).output().unwrap();
    let page = String::from_utf8_lossy(&output.stdout);
    let title =
        page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default();
    let found: serde_json::Value =
        serde_json::from_str(title).unwrap_or_else(|_| panic!("{title}\n{output:?}"));
    let expected = serde_json::json!({
        "all": "z-one,broken", "one": "z-one", "more": "broken", "any": "z-one,broken",
        "name": "broken,z-one", "find": "broken",
        "bars": 3, "picture": 2, "formulas": 3, "wrong": [],
    });
    assert_eq!(found, expected);
}
