//! Editing and correcting on the page: nothing is lost, and what is shown is consistent.

use comer_testing::browser::Browser;
use serde_json::json;

use super::page::{latex_is, open, ready, strokes, surface, wait_for_reading, write};

const CONTROL: &str = "\u{e009}";
const SHIFT: &str = "\u{e008}";
const END: &str = "\u{e010}";
const BACKSPACE: &str = "\u{e003}";

/// Replaces the text of the LaTeX box, as a user does.
fn type_latex(browser: &Browser, latex: &str) {
    browser.run("$('#latex').focus(); $('#latex').select();", json!([]));
    browser.devtools("Input.insertText", json!({ "text": latex }));
}

/// Writes a plus sign and a one to the right of everything.
fn write_plus_one(browser: &Browser) {
    let [left, top, ..] = surface(browser);
    let ends = browser.run(
        "const points = $('comer-ink').strokes.flat(); const ys = points.map(([, y]) => y);
         return [Math.max(...points.map(([x]) => x)), (Math.min(...ys) + Math.max(...ys)) / 2];",
        json!([]),
    );
    let [x, y] = [left + ends[0].as_f64().unwrap(), top + ends[1].as_f64().unwrap()];
    for line in [[30.0, 10.0, 70.0, 10.0], [50.0, -10.0, 50.0, 30.0], [100.0, -30.0, 100.0, 40.0]] {
        let [x0, y0, x1, y1] = line;
        let middle = [x + (x0 + x1) / 2.0, y + (y0 + y1) / 2.0];
        browser.pointer("mouse", &[[x + x0, y + y0], middle, [x + x1, y + y1]]);
    }
}

#[test]
fn an_edit_survives_new_strokes() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    // The strokes change another part of the formula: both changes are kept.
    type_latex(&browser, "z^{2} + 1");
    latex_is(&browser, "z^{2} + 1");
    write_plus_one(&browser);
    latex_is(&browser, "z^{2} + 1 + 1");
    assert!(browser.text("#status").contains("merged"), "{}", browser.text("#status"));

    browser.click("#status-actions button");
    latex_is(&browser, "x^{2} + 1 + 1");
    browser.keys(&[CONTROL, "z"]);
    latex_is(&browser, "z^{2} + 1 + 1");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Typing at once after a stroke does not lose the stroke, and an emptied box is no edit.
#[test]
fn strokes_before_typing_are_read_when_it_ends() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    write_plus_one(&browser);
    type_latex(&browser, "z^{2} + 1");
    browser.run("$('#latex').blur();", json!([]));
    latex_is(&browser, "z^{2} + 1 + 1");
    type_latex(&browser, " ");
    browser.wait("a way back", "return $('#status-actions').textContent === 'Use the reading';");
    browser.run("$('#latex').blur(); await $('comer-ink').read();", json!([]));
    latex_is(&browser, "x^{2} + 1 + 1");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// With an engine whose second reading changes what was edited.
#[test]
fn strokes_that_contradict_an_edit_ask() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    browser.run(
        "const server = $('comer-ink').engine;
         $('comer-ink').engine = {
             info: async () => ({}),
             mathml: (latex) => server.mathml(latex),
             recognizeStrokes: async (strokes) => {
                 const texts = ['a', '+', strokes.length === 1 ? 'b' : 'c'];
                 const formula = { latex: texts.join(''), confidence: 1, tokens: texts.map((text) => ({ text, confidence: 1 })), mathml: await server.mathml(texts.join('')) };
                 return { formulas: [formula], milliseconds: 1, strokes: null, regions: null };
             },
         };",
        json!([]),
    );
    let [left, top, ..] = surface(&browser);
    let stroke = |x: f64| browser.pointer("mouse", &[[left + x, top + 60.0], [left + x + 4.0, top + 110.0]]);
    stroke(60.0);
    latex_is(&browser, "a+b");
    type_latex(&browser, "a+d");
    latex_is(&browser, "a+d");
    stroke(100.0);
    browser.wait("the question", "return !$('#conflict').hidden;");
    assert_eq!(browser.value("#latex"), "a+d");
    browser.click("#conflict button:nth-child(2)");
    latex_is(&browser, "a+c");
    browser.keys(&[CONTROL, "z"]);
    latex_is(&browser, "a+d");
    browser.click("#conflict button:nth-child(1)");
    browser.wait("no question", "return $('#conflict').hidden;");
    latex_is(&browser, "a+d");
    // The same reading does not ask again.
    browser.run("await $('comer-ink').read();", json!([]));
    assert_eq!(
        browser.run("return [$('#conflict').hidden, $('#latex').value];", json!([])),
        json!([true, "a+d"])
    );
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn an_invalid_edit_says_where_and_is_not_copied_as_mathml() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    type_latex(&browser, r"a + \frac{b}");
    browser.wait("an error", "return $('#error').textContent.includes('Column 5');");
    assert_eq!(browser.text("#error pre"), "a + \\frac{b}\n    ^^^^^");
    let shown = browser.run(
        "return [$('[data-copy=mathml]').disabled, $('[data-copy=latex]').disabled, $('comer-ink').mathml, $('#formula').dataset.state];",
        json!([]),
    );
    assert_eq!(shown, json!([true, false, "", "stale"]));
    type_latex(&browser, r"\text{if } \foo x");
    browser.wait("another error", "return $('#error').textContent.includes('Column 12: Unknown command');");
    assert_eq!(browser.text("#error pre"), "\\text{if } \\foo x\n           ^^^^");
    // Cells are laid out although the policy of the page forbids style attributes.
    type_latex(&browser, r"\begin{cases}1&x>0\\0&\text{else}\end{cases}");
    browser.wait(
        "a table",
        "const cell = $('#formula mtd'); return cell !== null && getComputedStyle(cell).textAlign === 'left';",
    );
    type_latex(&browser, r"a + \frac{b}{c}");
    latex_is(&browser, r"a + \frac{b}{c}");
    browser.allow_clipboard();
    browser.click("[data-copy=mathml]");
    browser.wait("the copy", "return (await navigator.clipboard.readText()).includes('<mfrac>');");
    let copied = browser.run("return navigator.clipboard.readText();", json!([]));
    assert!(copied.as_str().unwrap().contains(r#"alttext="a plus b over c""#), "{copied}");
    // Chromium itself logs the answer 422, and nothing else.
    let log = browser.log();
    assert!(log.iter().all(|line| line.contains("api/mathml") && line.contains("422")), "{log:?}");
}

#[test]
fn undo_works_wherever_the_focus_is() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    let count = strokes(&browser);
    // Typing has the text box's own undo, then comes the page's.
    browser.run("$('#latex').focus();", json!([]));
    for key in [END, BACKSPACE, "y"] {
        browser.keys(&[key]);
    }
    latex_is(&browser, "x^{2} + y");
    browser.keys(&[CONTROL, "z"]);
    browser.keys(&[CONTROL, "z"]);
    browser.wait("the text from before", "return $('#latex').value === 'x^{2} + 1';");
    assert_eq!(strokes(&browser), count);
    browser.keys(&[CONTROL, "z"]);
    browser.keys(&[CONTROL, "z"]);
    assert_eq!(strokes(&browser), count - 1, "the edit, then a stroke");
    for id in ["#history-search", "#theme", "#latex"] {
        browser.run(
            "$('#history').hidden = false; $('#history').open = true; $(arguments[0]).focus();",
            json!([id]),
        );
        browser.keys(&[CONTROL, SHIFT, "Z"]);
        assert_eq!(strokes(&browser), count, "redo from {id}");
        browser.keys(&[CONTROL, "z"]);
        browser.wait(id, &format!("return $('comer-ink').strokes.length === {};", count - 1));
    }
    // A stroke takes the focus out of the text box.
    browser.run("$('#latex').focus();", json!([]));
    write_plus_one(&browser);
    browser.keys(&["e"]);
    assert_eq!(browser.run("return $('comer-ink').tool;", json!([])), json!("eraser"));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_failure_keeps_the_last_answer() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    browser.run(
        "window.ownFetch = fetch; window.fetch = () => Promise.reject(new TypeError('no network'));",
        json!([]),
    );
    write_plus_one(&browser);
    browser.wait("a message", "return $('#status').textContent.includes('cannot be reached');");
    let shown = browser.run(
        "return [$('#latex').value, $('#formula').dataset.state, $('#formula math') !== null];",
        json!([]),
    );
    assert_eq!(shown, json!(["x^{2} + 1", "stale", true]));
    browser.run("window.fetch = window.ownFetch;", json!([]));
    browser.click("#status-actions button");
    latex_is(&browser, "x^{2} + 1 + 1");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn edits_are_in_the_history_which_is_searched_and_exported() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    type_latex(&browser, "x^{2} + q");
    latex_is(&browser, "x^{2} + q");
    browser.run("document.activeElement.blur(); $('comer-ink').clear();", json!([]));
    write(&browser, "mouse", "fraction");
    latex_is(&browser, r"\frac{a}{b}");
    // It is in the browser's database, not only on the page.
    browser.run("location.reload();", json!([]));
    ready(&browser);
    latex_is(&browser, r"\frac{a}{b}");
    browser.wait("two entries", "return document.querySelectorAll('#history-list .entry').length === 2;");
    let saved = browser.run(
        "const made = []; const own = URL.createObjectURL; URL.createObjectURL = (blob) => { made.push(blob); return own(blob); };
         HTMLAnchorElement.prototype.click = () => {};
         $('#history-tex').click(); $('#history-json').click();
         while (made.length < 2) { await new Promise((done) => setTimeout(done, 10)); }
         return Promise.all(made.map((blob) => blob.text()));",
        json!([]),
    );
    let tex = saved[0].as_str().unwrap();
    assert!(tex.contains(r"\[ \frac{a}{b} \]") && tex.contains(r"\[ x^{2} + q \]"), "{tex}");
    let exported: serde_json::Value = serde_json::from_str(saved[1].as_str().unwrap()).unwrap();
    let edited =
        exported["entries"].as_array().unwrap().iter().find(|entry| entry["edited"] == true).unwrap();
    assert_eq!((&edited["latex"], &edited["read"]), (&json!("x^{2} + q"), &json!("x^{2} + 1")));
    assert_eq!(edited["strokes"].as_array().unwrap().len(), 6);

    let search = "$('#history').open = true; const box = $('#history-search'); box.value = arguments[0]; box.dispatchEvent(new Event('input'));
        return document.querySelectorAll('#history-list .entry').length;";
    assert_eq!(browser.run(search, json!(["frac"])), json!(1));
    assert_eq!(browser.run(search, json!(["+q"])), json!(1));
    browser.click("#history-list .entry");
    latex_is(&browser, "x^{2} + q");
    assert_eq!(strokes(&browser), 6);
    // Deleted entries can be brought back, here and from the export.
    browser.run(search, json!([""]));
    browser.click("#history-clear");
    browser.wait("an empty history", "return $('#history').hidden;");
    browser.click("#toast button");
    browser.wait("the history", "return document.querySelectorAll('#history-list .entry').length === 2;");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// The page's own rules, by tables: marks that fit the figure of the whole, merging, columns, words.
#[test]
fn rules_of_the_page() {
    let Some((_server, browser)) = open(1000, 700) else { return };
    let doubts = browser.run(
        "const { doubtfulTokens, sureness } = await import('./reading.js');
         const formula = (confidences, confidence = confidences.reduce((one, other) => one * other)) =>
             ({ tokens: confidences.map((confidence) => ({ text: 'x', confidence })), confidence });
         const even = doubtfulTokens(formula(Array(20).fill(0.93)));
         const left = 0.93 ** (20 - even.length);
         return [even.length > 0 && left >= 0.85 && left * 0.93 < 0.85, doubtfulTokens(formula(Array(10).fill(0.99))).length,
             doubtfulTokens(formula([0.99, 0.3, 0.99])).map(({ index }) => index), doubtfulTokens(formula([1, 1, 0.999], 0.2)).map(({ index }) => index),
             doubtfulTokens({ tokens: [{ text: 'x', confidence: 1 }, { text: '^', confidence: 0.2 }, { text: '2', confidence: 1, symbolConfidence: 0.2 }],
                 confidence: 0.2 }).map(({ index }) => index),
             [0.99, 0.7, 0.4, 0.1].map(sureness)];",
        json!([]),
    );
    assert_eq!(doubts, json!([true, 0, [1], [2], [2], ["Sure", "Fairly sure", "Not sure", "A guess"]]));

    let merged = browser.run(
        "const { merge } = await import('./latex.js'); return arguments[0].map((texts) => merge(...texts));",
        json!([[
            ["x^{2} + 1", "x^{2} + y", "x^{2} + 1 + 1"],
            ["x+1", "y+1", "x+1=3"],
            ["x+1", "x+1", "x+2"],
            ["x+1", "x+y", "x+z"],
            ["a", "b", r"\frac{a}{c}"],
            [r"\alpha x", r"\alpha y", r"\alpha x\beta"]
        ]]),
    );
    let expected = json!(["x^{2} + y + 1", "y+1=3", "x+2", null, null, r"\alpha y\beta"]);
    assert_eq!(merged, expected);

    for (latex, words) in [
        (r"\frac{a}{b}", "a over b"),
        (r"x_{1}^{3}", "x sub 1 cubed"),
        (r"\sqrt{x+1}", "square root of x plus 1 end root"),
        (r"\sum_{i=1}^{n}x_{i}", "sum from i equals 1 to n of x sub i"),
        (r"e^{x+y}\leq\Pi", "e to the power of x plus y end power is at most capital pi"),
        (r"\frac{1}{x+1}", "the fraction 1 over x plus 1 end fraction"),
        (r"x\in\mathbb{R}", "x in the real numbers"),
        (
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
            "open parenthesis table: 1, 2; 3, 4 end table close parenthesis",
        ),
        (r"1\text{ if }x>0", "1 if x is greater than 0"),
    ] {
        let said = browser.run(
            "const { spoken } = await import('./formula-view.js'); return spoken(await $('comer-ink').engine.mathml(arguments[0]));",
            json!([latex]),
        );
        assert_eq!(said, json!(words), "{latex}");
    }

    // A long formula is broken into lines, not cut.
    let long = (0..24).map(|number| format!("a_{{{number}}}x^{{{number}}}")).collect::<Vec<_>>().join(" + ");
    type_latex(&browser, &long);
    latex_is(&browser, &long);
    let fits = browser.run(
        "const box = $('#formula').getBoundingClientRect();
         return Array.from($('#formula .math').querySelectorAll('mi'), (symbol) => symbol.getBoundingClientRect())
             .every(({ left, right }) => left >= box.left && right <= box.right + 0.5);",
        json!([]),
    );
    assert_eq!(fits, json!(true));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// With an engine that can read under constraints, an alternative for a doubtful symbol re-reads the rest.
#[test]
fn a_doubtful_symbol_is_corrected_and_the_rest_read_again() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    browser.run(
        "window.asked = [];
         const server = $('comer-ink').engine;
         const formula = (texts, doubtful, confidence) => ({ latex: texts.join(''), confidence, mathml: '',
             tokens: texts.map((text, index) => ({ text, confidence: index === doubtful ? confidence : 1, alternatives: index === doubtful ? [{ text: 'z' }] : [] })) });
         $('comer-ink').engine = {
             info: async () => ({ constraints: true }),
             mathml: (latex) => server.mathml(latex),
             recognizeStrokes: async (strokes, options) => {
                 window.asked.push(options.constraints ?? null);
                 const texts = options.constraints ? [...options.constraints.prefix, '=', '5'] : ['2', '+', 's'];
                 const made = formula(texts, options.constraints ? -1 : 2, 0.4);
                 made.mathml = await server.mathml(made.latex);
                 if (options.constraints) { made.confidence = 1; }
                 return { formulas: [made], milliseconds: 1, strokes: null, regions: null };
             },
         };",
        json!([]),
    );
    let [left, top, ..] = surface(&browser);
    browser.pointer("mouse", &[[left + 60.0, top + 60.0], [left + 64.0, top + 110.0]]);
    latex_is(&browser, "2+s");
    assert_eq!(browser.text("#doubts"), "Check:s");
    browser.click("#formula .very-doubtful");
    browser.wait("the menu", "return !$('#menu').hidden;");
    browser.click("#menu button");
    latex_is(&browser, "2+z=5");
    assert_eq!(browser.run("return window.asked;", json!([])), json!([null, { "prefix": ["2", "+", "z"] }]));
    browser.keys(&[CONTROL, "z"]);
    latex_is(&browser, "2+s");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// The same with the server: its search keeps what stands before the symbol, and the choice is certain.
#[test]
fn a_doubtful_symbol_offers_other_readings() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "nested");
    wait_for_reading(&browser);
    browser.wait("a doubt", "return !$('#doubts').hidden;");
    let before = browser.value("#latex");
    browser.click("#doubts button");
    browser.wait("the menu", "return !$('#menu').hidden && $('#menu button:not(.quiet)') !== null;");
    let wanted = browser.text("#menu button");
    browser.click("#menu button");
    browser.wait("another formula", &format!("return $('#latex').value !== {};", json!(before)));
    wait_for_reading(&browser);
    assert!(browser.value("#latex").contains(&wanted), "{wanted}: {}", browser.value("#latex"));
    let corrected = browser.run(
        "const { constraints: { prefix }, reading: { formulas: [{ tokens }] } } = $('comer-ink').snapshot;
         return [prefix.at(-1), tokens[prefix.length - 1], prefix.every((text, index) => tokens[index].text === text)];",
        json!([]),
    );
    assert_eq!((&corrected[0], &corrected[2]), (&json!(wanted), &json!(true)));
    assert_eq!(corrected[1]["confidence"], json!(1), "{corrected}");
    assert_eq!(browser.log(), Vec::<String>::new());
}
