//! The page in headless Chromium, with the bundled model and ink of this repository.

use comer::Ink;
use comer_testing::browser::Browser;
use comer_testing::sample;
use comer_testing::server::Server;
use serde_json::{Value, json};

/// A server and a browser that shows its page, or `None` where one of them cannot be had.
fn open(width: u32, height: u32) -> Option<(Server, Browser)> {
    let browser = Browser::open(width, height)?;
    let server = Server::start(env!("CARGO_BIN_EXE_comer"), None, &["--quiet"]);
    browser.go(&server.url());
    browser.wait("the script", "return document.documentElement.dataset.ready === 'true';");
    Some((server, browser))
}

/// Writes a sample into the middle of the surface, as large as it fits.
fn write(browser: &Browser, kind: &str, name: &str) {
    let ink = Ink::from_inkml(&sample(name)).unwrap();
    let points = || ink.strokes().iter().flat_map(|stroke| &stroke.points);
    let bounds = |axis: fn(&comer::internal::ink::Point) -> f64| {
        points()
            .map(axis)
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)))
    };
    let ((left, right), (top, bottom)) = (bounds(|point| point.x), bounds(|point| point.y));
    let place = browser.run(
        "const box = document.getElementById('paper').getBoundingClientRect();
         return [box.x + box.width / 2, box.y + box.height / 2, box.width, box.height];",
        json!([]),
    );
    let [x, y, width, height] = [0, 1, 2, 3].map(|axis| place[axis].as_f64().unwrap());
    let factor = (0.85 * width / (right - left)).min(0.6 * height / (bottom - top)).min(1.2);
    for stroke in ink.strokes() {
        let shift = |point: &comer::internal::ink::Point| {
            [x + (point.x - (left + right) / 2.0) * factor, y + (point.y - (top + bottom) / 2.0) * factor]
        };
        browser.pointer(kind, &stroke.points.iter().map(shift).collect::<Vec<_>>());
    }
}

/// Keeps a picture of the page where `COMER_PAGE` says, if it does.
fn keep(browser: &Browser, name: &str) {
    let picture = browser.picture();
    assert!(picture.starts_with(b"\x89PNG"));
    if let Ok(folder) = std::env::var("COMER_PAGE") {
        std::fs::write(std::path::Path::new(&folder).join(name), picture).unwrap();
    }
}

fn latex_is(browser: &Browser, expected: &str) {
    let script = format!("return document.getElementById('latex').value === {};", json!(expected));
    browser.wait(&format!("{expected} in the box"), &script);
}

fn strokes(browser: &Browser) -> u64 {
    browser.run("return document.querySelectorAll('#ink path').length;", json!([])).as_u64().unwrap()
}

#[test]
fn strokes_become_a_formula_and_everything_about_it_works() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    // The formula is MathML, and the browser knows it as such: the exponent stands higher and is smaller.
    let shown = browser.run(
        "const [base, power] = document.querySelector('#formula math msup').children;
         const [low, high] = [base, power].map((element) => element.getBoundingClientRect());
         const [large, small] = [base, power].map((element) => parseFloat(getComputedStyle(element).fontSize));
         return { texts: [base.textContent, power.textContent], raised: high.top < low.top, smaller: small < large,
             signs: Array.from(document.querySelectorAll('#formula mo'), (sign) => sign.textContent).join() };",
        json!([]),
    );
    assert_eq!(shown, json!({ "texts": ["x", "2"], "raised": true, "smaller": true, "signs": "+" }));
    assert!(browser.text("#status").contains("The formula is x^{2} + 1."), "{}", browser.text("#status"));

    // A symbol lights its strokes: the plus, whose strokes are the last but one and two.
    browser.hover("#formula mo");
    let lit = browser.run(
        "return Array.from(document.querySelectorAll('#ink path'), (path) => path.classList.contains('lit'));",
        json!([]),
    );
    let ink = Ink::from_inkml(&sample("square")).unwrap();
    let plus = &ink.symbols().iter().find(|symbol| symbol.label == "+").unwrap().strokes;
    let expected: Vec<bool> = (0..ink.strokes().len()).map(|stroke| plus.contains(&stroke)).collect();
    assert_eq!(lit, json!(expected));
    browser.hover("h1");

    // Alternatives: another formula, and the first again.
    let second = browser.run("return document.querySelectorAll('#choices button')[1].ariaLabel;", json!([]));
    browser.click("#choices li:nth-child(2) button");
    let other = browser.value("#latex");
    assert!(other != "x^{2} + 1" && second.as_str().unwrap().starts_with(&other), "{other} {second}");
    browser.keys(&["1"]);
    latex_is(&browser, "x^{2} + 1");

    // Copies.
    browser.allow_clipboard();
    let math = "<math xmlns=\"http://www.w3.org/1998/Math/MathML\" display=\"block\"><mrow><msup><mi>x</mi>";
    for (button, start) in [("latex", "x^{2} + 1"), ("dollars", "$x^{2} + 1$"), ("mathml", math)] {
        browser.click(&format!("[data-copy={button}]"));
        let script = format!("return (await navigator.clipboard.readText()).startsWith({});", json!(start));
        browser.wait(&format!("the copy of {button}"), &script);
    }

    // Undo by button, redo by keys; what is read follows.
    let all = strokes(&browser);
    browser.click("#undo");
    assert_eq!(strokes(&browser), all - 1);
    browser.wait(
        "another formula",
        "return !['', 'x^{2} + 1'].includes(document.getElementById('latex').value);",
    );
    browser.keys(&["\u{e009}", "\u{e008}", "Z"]);
    assert_eq!(strokes(&browser), all);
    latex_is(&browser, "x^{2} + 1");

    // Editing shows the formula as it is typed, and says what is wrong with it.
    let edit = "const box = document.getElementById('latex'); box.value = arguments[0]; box.dispatchEvent(new Event('input'));";
    browser.run(edit, json!([r"\frac{a}{b}"]));
    browser.wait("a fraction", "return document.querySelectorAll('#formula mfrac').length === 1;");
    assert_eq!(browser.log(), Vec::<String>::new());
    browser.run(edit, json!([r"\frac{a}"]));
    browser.wait("an error", "return document.getElementById('error').textContent.includes('frac');");

    // Chromium itself tells of the answer 422, and of nothing else.
    let log = browser.log();
    assert!(log.iter().all(|line| line.contains("api/mathml") && line.contains("422")), "{log:?}");

    // Clear, and back through the history.
    browser.run("document.activeElement.blur();", json!([]));
    browser.keys(&["\u{e017}"]);
    browser.wait("nothing", "return document.getElementById('formula').dataset.state === 'empty';");
    assert_eq!((strokes(&browser), browser.value("#latex")), (0, String::new()));
    browser.click("#history summary");
    browser.click("#earlier button");
    latex_is(&browser, "x^{2} + 1");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn strokes_are_erased_and_ink_is_saved() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "pen", "fraction");
    latex_is(&browser, r"\frac{a}{b}");
    let count = strokes(&browser);
    // A touch beside the pen is a hand.
    browser.pointer("touch", &[[200.0, 300.0], [240.0, 340.0]]);
    assert_eq!(strokes(&browser), count);

    let saved = browser.run(
        "const made = []; const own = URL.createObjectURL;
         URL.createObjectURL = (blob) => { made.push(blob); return own(blob); };
         HTMLAnchorElement.prototype.click = () => {};
         document.getElementById('save-inkml').click(); document.getElementById('save-svg').click();
         return Promise.all(made.map((blob) => blob.text()));",
        json!([]),
    );
    let ink = Ink::from_inkml(saved[0].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!((ink.strokes().len() as u64, ink.latex()), (count, Some(r"\frac{a}{b}")));
    let svg = saved[1].as_str().unwrap();
    assert_eq!(svg.matches("<path").count() as u64, count);

    // A scribble over all of it, in the eraser's stead.
    let place = browser.run(
        "const boxes = Array.from(document.querySelectorAll('#ink path'), (path) => path.getBoundingClientRect());
         const ends = (side, pick) => pick(...boxes.map((box) => box[side]));
         return [ends('left', Math.min), ends('top', Math.min), ends('right', Math.max), ends('bottom', Math.max)];",
        json!([]),
    );
    let [left, top, right, bottom] = [0, 1, 2, 3].map(|side| place[side].as_f64().unwrap());
    let scribble: Vec<[f64; 2]> = (0..=80)
        .map(|step| {
            let way = f64::from(step) / 8.0;
            let across = 1.0 - (way % 2.0 - 1.0).abs();
            [
                left - 5.0 + across * (right - left + 10.0),
                top - 5.0 + f64::from(step) / 80.0 * (bottom - top + 10.0),
            ]
        })
        .collect();
    browser.pointer("pen", &scribble);
    assert_eq!(strokes(&browser), 0);
    browser.keys(&["\u{e009}", "z"]);
    assert_eq!(strokes(&browser), count);

    // The eraser takes what it touches: the bar, but neither letter.
    browser.click("#eraser");
    browser.pointer(
        "pen",
        &[[left + 2.0, (top + bottom) / 2.0 - 60.0], [left + 2.0, (top + bottom) / 2.0 + 60.0]],
    );
    assert_eq!(strokes(&browser), count - 1);
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn pictures_are_pasted_and_files_dropped() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    let png = Ink::from_inkml(&sample("root")).unwrap().draw().unwrap().to_png().unwrap();
    let paste = "const file = new File([new Uint8Array(arguments[0])], arguments[1], { type: arguments[2] });
        const data = new DataTransfer(); data.items.add(file);
        const event = arguments[3] === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
            : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
        document.body.dispatchEvent(event);";
    browser.run(paste, json!([png, "formula.png", "image/png", "paste"]));
    latex_is(&browser, r"\sqrt{x + 1}");
    browser.wait("the picture", "return document.getElementById('picture').naturalWidth > 0;");
    browser.run(paste, json!([sample("sum"), "sum.inkml", "", "drop"]));
    latex_is(&browser, r"\sum\limits_{i=1}^{n} x_{i}");
    assert!(strokes(&browser) > 4);
    // A picture that is none is refused in words.
    browser.run(paste, json!([b"nothing".to_vec(), "nothing.png", "image/png", "drop"]));
    browser.wait(
        "a word",
        "return document.getElementById('status').textContent.includes('not a readable image');",
    );
    // The browser itself tells of the answer 422, and of nothing else.
    let log = browser.log();
    assert!(log.iter().all(|line| line.contains("422")), "{log:?}");
}

#[test]
fn a_narrow_screen_shows_everything() {
    let Some((_server, browser)) = open(390, 844) else { return };
    write(&browser, "touch", "circle");
    latex_is(&browser, r"y = 2\pi x");
    let fits = browser.run(
        "const wide = Array.from(document.querySelectorAll('button, textarea, .formula, #ink'))
             .filter((element) => element.offsetParent !== null)
             .filter((element) => { const box = element.getBoundingClientRect(); return box.left < 0 || box.right > innerWidth; });
         return { wide: wide.map((element) => element.id || element.textContent), scrolls: document.documentElement.scrollWidth > innerWidth,
             surface: document.getElementById('ink').getBoundingClientRect().height >= 300 };",
        json!([]),
    );
    assert_eq!(fits, json!({ "wide": [], "scrolls": false, "surface": true }));
    keep(&browser, "page-narrow.png");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn what_was_written_is_explained_in_a_tab_of_its_own() {
    let Some((_server, browser)) = open(1000, 700) else { return };
    write(&browser, "pen", "square");
    browser.wait("an answer", "return !document.getElementById('explain').disabled;");
    let latex = browser.value("#latex");
    browser.click("#explain");
    browser.newest_tab(2);
    browser.wait("the steps", "return document.querySelectorAll('#tokens > *').length > 3;");
    let first = browser.text("#token");
    browser.run("document.getElementById('step').focus();", json!([]));
    browser.keys(&["\u{E014}"]);
    let script = format!("return document.getElementById('token').textContent !== {};", json!(first));
    browser.wait("the next step", &script);
    assert!(browser.text("#tokens").contains('2'), "{latex}: {}", browser.text("#tokens"));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Every control has a name, and every identifier is there once.
#[test]
fn the_page_can_be_used_without_seeing_it() {
    let Some((_server, browser)) = open(1000, 700) else { return };
    let tree = browser.devtools("Accessibility.getFullAXTree", json!({}));
    let role = |node: &Value| node["role"]["value"].as_str().unwrap_or_default().to_string();
    let nodes = tree["nodes"].as_array().unwrap();
    let controls = nodes.iter().filter(|node| ["button", "textbox", "image"].contains(&role(node).as_str()));
    let controls: Vec<&Value> = controls.filter(|node| node["ignored"] != json!(true)).collect();
    assert!(controls.len() > 10, "{}", controls.len());
    for node in controls {
        let name = node["name"]["value"].as_str().unwrap_or_default();
        assert!(!name.is_empty(), "{node}");
    }
    assert!(nodes.iter().any(|node| role(node) == "status"), "no live region");
    let twice = browser.run(
        "const ids = Array.from(document.querySelectorAll('[id]'), (element) => element.id);
         return ids.filter((id, index) => ids.indexOf(id) !== index);",
        json!([]),
    );
    assert_eq!(twice, json!([]));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// `COMER_PAGE=docs cargo test -p comer-cli --release --test serve picture_of_the_page` makes the README's picture.
#[test]
fn picture_of_the_page() {
    let Some((_server, browser)) = open(1280, 800) else { return };
    let themes = ["light", "dark"];
    for theme in themes {
        browser.run("localStorage.setItem('comer.theme', arguments[0]); location.reload();", json!([theme]));
        let ready = format!(
            "const {{ theme, ready }} = document.documentElement.dataset; return ready === 'true' && theme === '{theme}';"
        );
        browser.wait("the theme", &ready);
        write(&browser, "mouse", "quadratic");
        latex_is(&browser, r"x = \frac{-b + \sqrt{b^{2} - 4ac}}{2a}");
        browser.hover("#formula msqrt > mrow > mo");
        keep(&browser, if theme == "light" { "page.png" } else { "page-dark.png" });
        browser.run("document.getElementById('clear').click();", json!([]));
    }
}
