//! The HTML report in a real browser: no errors, chart and image are shown, the filter works.

use comer_eval::html::html;
use comer_eval::score::{Truth, score};
use comer_eval::{Dialect, LabelGraph, Report};
use comer_testing::browser::run_script;

/// Uses the page as a reader would, and leaves what it found in the title.
const USE: &str = "
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
});";

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
    let Some(found) = run_script(&page, USE) else { return };
    let expected = serde_json::json!({
        "all": "z-one,broken", "one": "z-one", "more": "broken", "any": "z-one,broken",
        "name": "broken,z-one", "find": "broken",
        "bars": 3, "picture": 2, "formulas": 3, "wrong": [],
    });
    assert_eq!(found, expected);
}
