//! The page in headless Chromium, with the bundled model and ink of this repository.

use std::path::Path;

use comer::Ink;
use comer_testing::browser::Browser;
use comer_testing::server::Server;
use comer_testing::{repository, sample, skip};
use serde_json::{Value, json};

/// A server and a browser that shows its page, or `None` where there is no browser.
pub fn open(width: u32, height: u32) -> Option<(Server, Browser)> {
    let browser = Browser::open(width, height)?;
    let server = Server::start(env!("CARGO_BIN_EXE_comer"), None, &["--quiet"]);
    browser.go(&server.url());
    ready(&browser);
    Some((server, browser))
}

pub fn ready(browser: &Browser) {
    browser.wait("the scripts", "return document.documentElement.dataset.ready === 'true';");
}

/// The strokes of a sample in the middle of a surface, shifted by `dx`, as large as they fit.
pub fn placed(name: &str, surface: [f64; 4], dx: f64, scale: f64) -> Vec<Vec<[f64; 2]>> {
    let ink = Ink::from_inkml(&sample(name)).unwrap();
    let points = || ink.strokes().iter().flat_map(|stroke| &stroke.points);
    let (mut low, mut high) = ([f64::MAX; 2], [f64::MIN; 2]);
    for point in points() {
        low = [low[0].min(point.x), low[1].min(point.y)];
        high = [high[0].max(point.x), high[1].max(point.y)];
    }
    let [x, y, width, height] = surface;
    let factor = (0.85 * width / (high[0] - low[0])).min(0.6 * height / (high[1] - low[1])).min(1.2) * scale;
    let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
    let place = |x0: f64, y0: f64| {
        [x + width / 2.0 + dx + (x0 - middle[0]) * factor, y + height / 2.0 + (y0 - middle[1]) * factor]
    };
    let stroke = |stroke: &comer::Stroke| stroke.points.iter().map(|point| place(point.x, point.y)).collect();
    ink.strokes().iter().map(stroke).collect()
}

/// Left, top, width and height of the surface.
pub fn surface(browser: &Browser) -> [f64; 4] {
    let place = browser.run(
        "const box = $('#paper').getBoundingClientRect(); return [box.x, box.y, box.width, box.height];",
        json!([]),
    );
    [0, 1, 2, 3].map(|side| place[side].as_f64().unwrap())
}

/// Writes a sample into the middle of the surface.
pub fn write(browser: &Browser, kind: &str, name: &str) {
    for stroke in placed(name, surface(browser), 0.0, 1.0) {
        browser.pointer(kind, &stroke);
    }
}

/// Waits until the formula of what is on the surface is shown.
pub fn latex_is(browser: &Browser, expected: &str) {
    let script = format!(
        "return $('#latex').value === {} && $('#formula').dataset.state === 'shown';",
        json!(expected)
    );
    browser.wait(&format!("{expected} in the box"), &script);
}

/// Waits until what is on the surface was read.
pub fn wait_for_reading(browser: &Browser) {
    browser.wait("a reading", "return $('comer-ink').snapshot.reading !== null;");
}

pub fn strokes(browser: &Browser) -> u64 {
    browser.run("return $('comer-ink').strokes.length;", json!([])).as_u64().unwrap()
}

/// Saves a screenshot in the folder that `COMER_PAGE` names, if it is set.
pub fn keep(browser: &Browser, name: &str) {
    let picture = browser.picture();
    assert!(picture.starts_with(b"\x89PNG"));
    if let Ok(folder) = std::env::var("COMER_PAGE") {
        std::fs::write(Path::new(&folder).join(name), picture).unwrap();
    }
}

#[test]
fn strokes_become_a_formula_and_everything_about_it_works() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    // The formula is MathML, and the browser knows it as such: the exponent stands higher and is smaller.
    let shown = browser.run(
        "const [base, power] = $('#formula math msup').children;
         const [low, high] = [base, power].map((element) => element.getBoundingClientRect());
         const [large, small] = [base, power].map((element) => parseFloat(getComputedStyle(element).fontSize));
         return { texts: [base.textContent, power.textContent], raised: high.top < low.top, smaller: small < large };",
        json!([]),
    );
    assert_eq!(shown, json!({ "texts": ["x", "2"], "raised": true, "smaller": true }));
    // In words: for screen readers, and how sure it is, with the figure as a tooltip.
    let status = browser.text("#status");
    assert!(status.contains("The formula is x squared plus 1.") && status.contains("Sure"), "{status}");
    let label = browser.run("return $('#formula .math').ariaLabel;", json!([]));
    assert_eq!(label, json!("x squared plus 1"));
    let title = browser.run("return $('.sureness').title;", json!([]));
    assert!(title.as_str().unwrap().ends_with("% sure"), "{title}");

    // Alternatives: another formula, and the first again.
    browser.click("#choices li:nth-child(2) button");
    assert_ne!(browser.value("#latex"), "x^{2} + 1");
    browser.keys(&["1"]);
    latex_is(&browser, "x^{2} + 1");

    browser.allow_clipboard();
    let math = "<math alttext=\"x squared plus 1\" xmlns=\"http://www.w3.org/1998/Math/MathML\" display=\"block\"><mrow><msup><mi>x</mi>";
    for (button, start) in [("latex", "x^{2} + 1"), ("dollars", "$x^{2} + 1$"), ("mathml", math)] {
        browser.click(&format!("[data-copy={button}]"));
        let script = format!("return (await navigator.clipboard.readText()).startsWith({});", json!(start));
        browser.wait(&format!("the copy of {button}"), &script);
    }

    // Undo by button, redo by keys; what is read follows.
    let all = strokes(&browser);
    for _ in 0..3 {
        browser.click("#undo");
    }
    assert_eq!(strokes(&browser), all - 1, "two choices and one stroke were undone");
    // Without its last symbol the formula is another, or the same symbol is guessed and doubtful.
    browser.wait(
        "another reading",
        "const found = $('comer-ink').snapshot.reading?.formulas[0];
         return found && (found.latex !== 'x^{2} + 1' || found.confidence < 0.8);",
    );
    browser.keys(&["\u{e009}", "\u{e008}", "Z"]);
    assert_eq!(strokes(&browser), all);
    latex_is(&browser, "x^{2} + 1");

    // Clear, and back by undo.
    browser.keys(&["\u{e017}"]);
    browser.wait("nothing", "return $('#formula').dataset.state === 'empty';");
    assert_eq!((strokes(&browser), browser.value("#latex")), (0, String::new()));
    browser.keys(&["\u{e009}", "z"]);
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
         $('#save-inkml').click(); $('#save-svg').click();
         return Promise.all(made.map((blob) => blob.text()));",
        json!([]),
    );
    let ink = Ink::from_inkml(saved[0].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!((ink.strokes().len() as u64, ink.latex()), (count, Some(r"\frac{a}{b}")));
    assert_eq!(saved[1].as_str().unwrap().matches("<path").count() as u64, count);

    // A scribble over all of it, in the eraser's stead.
    let place = browser.run(
        "const paper = $('#paper').getBoundingClientRect(); const points = $('comer-ink').strokes.flat();
         const ends = (axis, pick) => pick(...points.map((point) => point[axis])) + [paper.x, paper.y][axis];
         return [ends(0, Math.min), ends(1, Math.min), ends(0, Math.max), ends(1, Math.max)];",
        json!([]),
    );
    let [left, top, right, bottom] = [0, 1, 2, 3].map(|side| place[side].as_f64().unwrap());
    let point = |step: i32| {
        let way = f64::from(step) / 8.0;
        let across = 1.0 - (way % 2.0 - 1.0).abs();
        let x = left - 5.0 + across * (right - left + 10.0);
        [x, top - 5.0 + f64::from(step) / 80.0 * (bottom - top + 10.0)]
    };
    browser.pointer("pen", &(0..=80).map(point).collect::<Vec<_>>());
    assert_eq!(strokes(&browser), 0);
    browser.keys(&["\u{e009}", "z"]);
    assert_eq!(strokes(&browser), count);

    // The eraser takes what it touches: the bar, but neither letter.
    browser.click("#eraser");
    let middle = (top + bottom) / 2.0;
    browser.pointer("pen", &[[left + 2.0, middle - 60.0], [left + 2.0, middle + 60.0]]);
    assert_eq!(strokes(&browser), count - 1);
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// One row of tools, the formula and the buttons to copy it above the fold, targets of 44 pixels.
#[test]
fn a_narrow_screen_shows_everything() {
    let Some((_server, browser)) = open(390, 844) else { return };
    write(&browser, "touch", "circle");
    latex_is(&browser, r"y = 2\pi x");
    let fits = browser.run(
        "const inside = $('comer-ink').shadowRoot;
         const controls = [...document.querySelectorAll('button, summary'), ...inside.querySelectorAll('button, textarea')]
             .filter((element) => element.checkVisibility() && element.offsetParent !== null);
         const boxes = controls.map((element) => [element.id || element.textContent, element.getBoundingClientRect()]);
         const tools = [...inside.querySelectorAll('.tools .tool'), ...document.querySelectorAll('.tools > .tool')]
             .filter((element) => element.checkVisibility());
         const fold = (selector) => $(selector).getBoundingClientRect().bottom <= innerHeight;
         return {
             wide: boxes.filter(([, box]) => box.left < 0 || box.right > innerWidth).map(([name]) => name),
             small: boxes.filter(([, box]) => box.width < 43.9 || box.height < 43.9).map(([name]) => name),
             rows: new Set(tools.map((tool) => Math.round(tool.getBoundingClientRect().top))).size,
             fold: [fold('#formula'), fold('#paper'), fold('#actions')],
             scrolls: document.documentElement.scrollWidth > innerWidth,
             surface: $('#paper').getBoundingClientRect().height >= 300,
         };",
        json!([]),
    );
    let expected = json!({ "wide": [], "small": [], "rows": 1, "fold": [true, true, true], "scrolls": false, "surface": true });
    assert_eq!(fits, expected);
    keep(&browser, "page-phone.png");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn what_was_written_is_explained_in_a_tab_of_its_own() {
    let Some((_server, browser)) = open(1000, 700) else { return };
    write(&browser, "pen", "square");
    browser.wait("an answer", "return !document.getElementById('explain').disabled;");
    let latex = browser.value("#latex");
    browser.click("#more > summary");
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

/// Every control has a name, every identifier is there once, and axe-core finds nothing in light and dark.
#[test]
fn the_page_is_accessible() {
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

    let axe =
        std::env::var_os("COMER_AXE").map_or_else(|| repository().join("target/axe/axe.min.js"), Into::into);
    let Ok(axe) = std::fs::read_to_string(&axe) else {
        skip(&format!("there is no {} (COMER_AXE names axe-core's script)", axe.display()));
        return;
    };
    write(&browser, "mouse", "nested");
    latex_is(&browser, r"\frac{a}{1 + \frac{b}{x}}");
    browser.run("$('#history').open = true; $('#more').open = true;", json!([]));
    browser.devtools("Runtime.evaluate", json!({ "expression": axe }));
    let script = "document.documentElement.dataset.theme = arguments[0];
        const { violations } = await axe.run(document);
        return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.flat().join(' '))}`);";
    let check = |state: &str| {
        for theme in ["light", "dark"] {
            assert_eq!(browser.run(script, json!([theme])), json!([]), "{state}, {theme}");
        }
    };
    check("a formula");
    // Other states, the last ones on a phone.
    browser.run("$('#more').open = false; $('#doubts button')?.click();", json!([]));
    check("alternatives of a symbol");
    browser.run("$('#latex').value = '{'; $('#latex').dispatchEvent(new Event('input'));", json!([]));
    browser.wait("an error", "return $('#error').textContent !== '';");
    check("an error");
    browser.run("$('#help').showModal();", json!([]));
    check("help");
    let phone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true });
    browser.devtools("Emulation.setDeviceMetricsOverride", phone);
    browser.run("$('#help').close(); $('#history').open = true;", json!([]));
    check("an error on a phone");
    browser.run(
        "const source = document.createElement('canvas'); [source.width, source.height] = [600, 400];
         const pen = source.getContext('2d'); pen.fillStyle = '#fff'; pen.fillRect(0, 0, 600, 400); pen.lineWidth = 4;
         for (const y of [60, 300]) { pen.strokeRect(60, y, 40, 50); }
         const file = await new Promise((done) => source.toBlob(done));
         $('comer-ink').openPicture({ name: 'squares.png', source, file, shrunk: false });",
        json!([]),
    );
    wait_for_reading(&browser);
    check("a picture on a phone");
}

/// The service worker keeps the page: it loads without the server, and the ink is still there.
#[test]
fn the_page_loads_without_its_server() {
    let Some((mut server, browser)) = open(1000, 700) else { return };
    browser.wait(
        "the service worker",
        "return (await navigator.serviceWorker.getRegistration())?.active?.state === 'activated';",
    );
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    let manifest = browser.devtools("Page.getAppManifest", json!({}));
    assert_eq!((&manifest["errors"], manifest["data"].as_str().is_some()), (&json!([]), true), "{manifest}");
    let count = strokes(&browser);
    assert_eq!(browser.log(), Vec::<String>::new());
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    browser.run("location.reload();", json!([]));
    ready(&browser);
    browser.wait("a message", "return $('#status').textContent.includes('cannot be reached');");
    assert_eq!(strokes(&browser), count);
    assert_eq!(browser.text("#status-actions"), "Try again");
}

/// `COMER_PAGE=docs cargo test -p comer-cli --release --test serve -- screenshots narrow` makes the pictures of the docs.
#[test]
fn screenshots_of_the_page() {
    let Some((_server, browser)) = open(1440, 900) else { return };
    for theme in ["light", "dark"] {
        browser.run("localStorage.setItem('comer.theme', arguments[0]); location.reload();", json!([theme]));
        let themed = format!(
            "const {{ theme, ready }} = document.documentElement.dataset; return ready === 'true' && theme === '{theme}';"
        );
        browser.wait("the theme", &themed);
        write(&browser, "mouse", "quadratic");
        latex_is(&browser, r"x = \frac{-b + \sqrt{b^{2} - 4ac}}{2a}");
        browser.hover("#formula msqrt > mrow > mo");
        keep(&browser, if theme == "light" { "page.png" } else { "page-dark.png" });
        browser.run("$('comer-ink').clear();", json!([]));
    }
}
