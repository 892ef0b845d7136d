//! Pictures on the page: dropped, cropped, turned, straightened, shrunk, refused.

use comer::Ink;
use comer_testing::browser::Browser;
use comer_testing::sample;
use serde_json::{Value, json};

use super::page::{latex_is, open, ready, strokes, wait_for_reading};

/// Defines `draw(inks, options)`, which makes a picture file of samples, and `give(files, paste)`.
const HELPERS: &str = "
window.draw = async (inks, { width, height, angle = 0, scale = 1, shear = 0, type = 'image/png', name = 'formula.png', padding = 0 }) => {
    const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext('2d');
    context.fillStyle = '#fdfdfb'; context.fillRect(0, 0, width, height);
    Object.assign(context, { strokeStyle: '#223', lineWidth: 3 * scale, lineCap: 'round', lineJoin: 'round' });
    context.translate(width / 2, height / 2); context.rotate(angle); context.translate(-width / 2, -height / 2);
    for (const { strokes, x, y } of inks) {
        const points = strokes.flat(); const [left, top] = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])));
        for (const stroke of strokes) {
            context.beginPath();
            for (const point of stroke) { context.lineTo(x + (point[0] - left + shear * (point[1] - top)) * scale, y + (point[1] - top) * scale); }
            context.stroke();
        }
    }
    const blob = await new Promise((done) => canvas.toBlob(done, type, 0.9));
    return new File(padding ? [blob, new Uint8Array(padding)] : [blob], name, { type });
};
window.give = (files, paste = false) => {
    const data = new DataTransfer(); files.forEach((file) => data.items.add(file));
    document.body.dispatchEvent(paste ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
        : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
};";

fn open_with_helpers() -> Option<(comer_testing::server::Server, Browser)> {
    let (server, browser) = open(1280, 860)?;
    browser.run(HELPERS, json!([]));
    Some((server, browser))
}

fn ink(name: &str) -> Value {
    let ink = Ink::from_inkml(&sample(name)).unwrap();
    ink.strokes()
        .iter()
        .map(|stroke| stroke.points.iter().map(|point| [point.x, point.y]).collect::<Vec<_>>())
        .collect()
}

fn drop_picture(browser: &Browser, inks: &Value, options: &Value) {
    browser.run("give([await draw(arguments[0], arguments[1])]);", json!([inks, options]));
}

fn centre(browser: &Browser, selector: &str) -> [f64; 2] {
    let script = "const box = $(arguments[0]).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];";
    let place = browser.run(script, json!([selector]));
    [place[0].as_f64().unwrap(), place[1].as_f64().unwrap()]
}

#[test]
fn a_picture_is_cropped_and_that_is_undone() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    let inks = json!([{ "strokes": ink("root"), "x": 40, "y": 40 }, { "strokes": ink("square"), "x": 60, "y": 420 }]);
    drop_picture(&browser, &inks, &json!({ "width": 700, "height": 800 }));
    wait_for_reading(&browser);
    let wait_for_formulas = |count: usize| {
        let script = format!(
            "const {{ reading }} = $('comer-ink').snapshot;
             return reading !== null && (reading.found?.length ?? 1) === {count};"
        );
        browser.wait("the number of formulas", &script);
    };
    wait_for_formulas(2);
    let whole = browser.value("#latex");
    let (from, top) = (
        centre(&browser, ".handle[aria-label^='Bottom right']"),
        centre(&browser, ".handle[aria-label^='Top right']"),
    );
    let middle = (from[1] + top[1]) / 2.0;
    browser.pointer("mouse", &[from, [from[0], middle + 20.0], [from[0], middle]]);
    wait_for_formulas(1);
    latex_is(&browser, r"\sqrt{x + 1}");
    let corners = browser.run("return $('comer-ink').snapshot.picture.crop.corners;", json!([]));
    let low = corners[2][1].as_f64().unwrap();
    assert!((0.4..0.6).contains(&low) && corners[3][1] == corners[2][1], "{corners}");
    browser.keys(&["\u{e009}", "z"]);
    wait_for_formulas(2);
    latex_is(&browser, &whole);
    browser.keys(&["\u{e009}", "z"]);
    assert_eq!(browser.run("return $('#picture').hidden;", json!([])), json!(true));
    browser.keys(&["\u{e009}", "\u{e008}", "Z"]);
    wait_for_formulas(2);
    latex_is(&browser, &whole);
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_picture_is_turned_and_straightened() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    let inks = json!([{ "strokes": ink("root"), "x": 150, "y": 250 }]);
    let quarter = std::f64::consts::FRAC_PI_2;
    drop_picture(&browser, &inks, &json!({ "width": 700, "height": 700, "angle": quarter, "scale": 1.5 }));
    wait_for_reading(&browser);
    // The server tries quarter turns by itself.
    assert_eq!(browser.value("#latex"), r"\sqrt{x + 1}");
    browser.click("[data-picture=left]");
    latex_is(&browser, r"\sqrt{x + 1}");

    // A corner of the quadrilateral goes to the corner of the straightened picture, and the middle of a side to its middle.
    let sampled = browser.run(
        "const { extract } = await import('./picture-warp.js');
         const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [400, 300];
         const context = canvas.getContext('2d'); context.fillStyle = 'white'; context.fillRect(0, 0, 400, 300);
         context.fillStyle = 'black'; context.beginPath();
         for (const [x, y] of [[80, 60], [320, 30], [360, 270], [40, 240]]) { context.lineTo(x, y); }
         context.fill();
         const corners = [[80, 60], [320, 30], [360, 270], [40, 240]].map(([x, y]) => [x / 400, y / 300]);
         const result = extract(canvas, { turns: 0, corners });
         const { data } = result.getContext('2d').getImageData(0, 0, result.width, result.height);
         const dark = data.filter((value, index) => index % 4 === 0 && value < 128).length / (result.width * result.height);
         return [result.width > 250 && result.height > 180, dark > 0.985];",
        json!([]),
    );
    assert_eq!(sampled, json!([true, true]));

    // By keys: each corner for itself.
    browser.click("[data-picture=reset]");
    browser.click("[data-picture=perspective]");
    browser.run("$('.handle:nth-of-type(2)').focus();", json!([]));
    browser.keys(&["\u{e008}", "\u{e012}"]);
    let corners = browser.run(
        "return $('comer-ink').snapshot.picture.crop.corners.map(([x]) => Math.round(x * 100));",
        json!([]),
    );
    assert_eq!(corners, json!([0, 95, 100, 0]));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Several formulas are boxes, and a click on one crops the picture to it. The engine is made up.
#[test]
fn several_formulas_are_boxes_to_click() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    browser.run(
        "const server = $('comer-ink').engine;
         $('comer-ink').engine = {
             info: async () => ({}), mathml: (latex) => server.mathml(latex),
             recognizeImage: async (blob, options) => {
                 const reading = await server.recognizeImage(blob, options);
                 const { width, height } = await createImageBitmap(blob);
                 const found = height < 600 ? null : [{ latex: '1', box: [0, 0, width, height / 2] }, { latex: '2', box: [40, height / 2, 500, height] }];
                 return { ...reading, found, aligned: found && 'both', warnings: [{ code: 'too_small', message: 'The ink is small.' }, { code: 'unread_ink', message: 'Half is unread.' }] };
             },
         };",
        json!([]),
    );
    let inks = json!([{ "strokes": ink("square"), "x": 60, "y": 40 }, { "strokes": ink("root"), "x": 60, "y": 480 }]);
    drop_picture(&browser, &inks, &json!({ "width": 700, "height": 800 }));
    wait_for_reading(&browser);
    let status = browser.text("#status");
    assert!(status.contains("2 formulas found") && status.contains("The ink is small."), "{status}");
    // No stroke shows what was not read of a picture.
    assert!(status.contains("Half is unread."), "{status}");
    let label = browser.run("return $('.found:nth-of-type(2)').ariaLabel;", json!([]));
    assert_eq!(label, "Formula 2, 2: read it alone");
    browser.allow_clipboard();
    browser.click("[data-copy=aligned]");
    browser.wait("the copy", "return (await navigator.clipboard.readText()) === 'both';");
    browser.click(".found:nth-of-type(2)");
    latex_is(&browser, r"\sqrt{x + 1}");
    assert_eq!(browser.run("return $('[data-copy=aligned]').hidden;", json!([])), json!(true));
    let corners = browser.run("return $('comer-ink').snapshot.picture.crop.corners;", json!([]));
    assert!((corners[0][1].as_f64().unwrap() - 0.48).abs() < 0.01, "{corners}");
    assert_eq!(
        browser.run(
            "return document.querySelector('comer-ink').shadowRoot.querySelectorAll('.found').length;",
            json!([])
        ),
        json!(0)
    );
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// The same with the server: each formula is found, read alone, undone, and an entry of the history with its crop.
#[test]
fn formulas_found_by_the_server_are_read_by_a_click() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    let inks = json!([{ "strokes": ink("square"), "x": 60, "y": 60 }, { "strokes": ink("root"), "x": 60, "y": 460 },
        { "strokes": ink("sum"), "x": 80, "y": 860 }]);
    drop_picture(&browser, &inks, &json!({ "width": 1000, "height": 1300, "name": "page.png" }));
    latex_is(&browser, "x^{2} + 1");
    assert!(browser.text("#status").contains("3 formulas found"), "{}", browser.text("#status"));
    for (number, latex) in [(2, r"\sqrt{x + 1}"), (3, r"\sum\limits_{i=1}^{n} x_{i}")] {
        browser.click(&format!(".found:nth-of-type({number})"));
        latex_is(&browser, latex);
        browser.keys(&["\u{e009}", "z"]);
        latex_is(&browser, "x^{2} + 1");
    }
    browser.wait("three entries", "return document.querySelectorAll('#history-list .entry').length === 3;");
    // Redone, the crop survives a reload, and the whole picture is still there.
    browser.keys(&["\u{e009}", "\u{e008}", "Z"]);
    latex_is(&browser, r"\sum\limits_{i=1}^{n} x_{i}");
    let crop = "return $('comer-ink').snapshot.picture.crop.corners;";
    let before = browser.run(crop, json!([]));
    browser.run("location.reload();", json!([]));
    ready(&browser);
    latex_is(&browser, r"\sum\limits_{i=1}^{n} x_{i}");
    assert_eq!(browser.run(crop, json!([])), before);
    browser.click("[data-picture=reset]");
    latex_is(&browser, "x^{2} + 1");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// A reload before it was read loses no picture.
#[test]
fn an_unread_picture_survives_a_reload() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    browser.run(
        "$('comer-ink').engine = { info: async () => ({}), recognizeImage: () => new Promise(() => {}) };",
        json!([]),
    );
    let inks = json!([{ "strokes": ink("fraction"), "x": 60, "y": 60 }]);
    drop_picture(&browser, &inks, &json!({ "width": 700, "height": 400 }));
    browser.wait(
        "the draft",
        "return new Promise((done) => { const opened = indexedDB.open('comer'); opened.onsuccess = () => {
             const count = opened.result.transaction('entries').objectStore('entries').count();
             count.onsuccess = () => { opened.result.close(); done(count.result === 1); }; }; });",
    );
    browser.run("location.reload();", json!([]));
    ready(&browser);
    latex_is(&browser, r"\frac{a}{b}");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Pointing at a symbol frames its place in the picture, also in a crop; and what the network saw is shown on request.
#[test]
fn symbols_light_up_in_the_picture() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    let inks = json!([{ "strokes": ink("square"), "x": 200, "y": 150 }]);
    drop_picture(&browser, &inks, &json!({ "width": 1000, "height": 600 }));
    latex_is(&browser, "x^{2} + 1");
    // The ink itself, in the coordinates of the window.
    let script = "const canvas = $('#picture canvas'); const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const dark = []; for (let at = 0; at < data.length; at += 4) { if (data[at] < 128) { dark.push([(at / 4) % width, Math.floor(at / 4 / width)]); } }
        const box = canvas.getBoundingClientRect(); const scale = box.width / width;
        return [box.x + Math.min(...dark.map(([x]) => x)) * scale, box.x + Math.max(...dark.map(([x]) => x)) * scale];";
    let ends = browser.run(script, json!([]));
    let [left, right] = [0, 1].map(|side| ends[side].as_f64().unwrap());
    let lit = |token: usize| {
        browser.hover(&format!("#formula [data-token='{token}']"));
        browser.wait("a frame", "return $('.outline .place').getAttribute('d') !== null;");
        let script =
            "const { left, right } = $('.outline .place').getBoundingClientRect(); return [left, right];";
        let found = browser.run(script, json!([]));
        [0, 1].map(|side| found[side].as_f64().unwrap())
    };
    let check = |whole: bool| {
        let (x, one) = (lit(0), lit(6));
        let third = (right - left) / 3.0;
        assert!((x[0] - left).abs() < 12.0 && x[1] < left + third, "{whole}: {x:?} in {left} to {right}");
        assert!(
            (one[1] - right).abs() < 12.0 && one[0] > right - third,
            "{whole}: {one:?} in {left} to {right}"
        );
    };
    check(true);
    let corner = centre(&browser, ".handle:nth-of-type(3)");
    browser.pointer("mouse", &[corner, [corner[0] - 30.0, corner[1] - 40.0]]);
    browser.wait("a crop", "return $('comer-ink').snapshot.picture.crop.corners[2][1] < 1;");
    wait_for_reading(&browser);
    latex_is(&browser, "x^{2} + 1");
    check(false);
    browser.click("[data-picture=seen]");
    browser.wait(
        "the image",
        "const seen = $('.seen'); return !seen.hidden && seen.complete && seen.naturalWidth > 50;",
    );
    browser.click("[data-picture=seen]");
    assert_eq!(browser.run("return $('.seen').hidden;", json!([])), json!(true));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// 54 MB, of which most is padding that decoders skip: drawing as many pixels takes too long here.
#[test]
fn a_large_photo_is_shrunk_in_the_browser() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    let inks = json!([{ "strokes": ink("root"), "x": 400, "y": 600 }]);
    let options = json!({ "width": 5000, "height": 3600, "scale": 12, "type": "image/jpeg", "name": "photo.jpg", "padding": 54 << 20 });
    drop_picture(&browser, &inks, &options);
    latex_is(&browser, r"\sqrt{x + 1}");
    let sizes = browser.run(
        "const { file, sent, source } = $('comer-ink').snapshot.picture; return [file.size > 54e6, sent.size < 2e6, source.width <= 2400];",
        json!([]),
    );
    assert_eq!(sizes, json!([true, true, true]));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn several_pictures_are_a_list_and_a_bad_one_is_named() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    browser.run(
        "const made = await Promise.all(arguments[0].map((strokes, index) => draw([{ strokes, x: 40, y: 40 }], { width: 500, height: 300, name: `${index}.png` })));
         give([...made, new File(['nothing'], 'nothing.png', { type: 'image/png' })]);",
        json!([[ink("root"), ink("square"), ink("fraction")]]),
    );
    browser.wait(
        "a message",
        "return $('#toast').textContent.includes('nothing.png is not a picture that can be read');",
    );
    let read = r"return Array.from(document.querySelectorAll('#pictures span'), (span) => span.textContent).join(' | ')
        === '\\sqrt{x + 1} | x^{2} + 1 | \\frac{a}{b}';";
    browser.wait("three formulas", read);
    browser.click("#pictures button:nth-child(3)");
    latex_is(&browser, r"\frac{a}{b}");
    assert_eq!(browser.run("return $('#picture').hidden;", json!([])), json!(false));

    // A failed drop leaves the last answer and shows no broken image.
    browser.run("give([new File(['nothing'], 'broken.jpg', { type: 'image/jpeg' })]);", json!([]));
    browser.wait("a message", "return $('#toast').textContent.includes('broken.jpg');");
    assert_eq!(browser.value("#latex"), r"\frac{a}{b}");
    assert_eq!(browser.run("return $('comer-ink').snapshot.picture.name;", json!([])), json!("2.png"));

    // The picture is in the history, also after a reload.
    browser.run("location.reload();", json!([]));
    ready(&browser);
    latex_is(&browser, r"\frac{a}{b}");
    assert_eq!(browser.run("return $('#picture').hidden;", json!([])), json!(false));
    let thumbnails = browser.run("return document.querySelectorAll('#history-list img').length;", json!([]));
    assert!(thumbnails.as_u64().unwrap() >= 2, "{thumbnails}");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn pictures_are_pasted_and_ink_is_dropped() {
    let Some((_server, browser)) = open_with_helpers() else { return };
    let png = Ink::from_inkml(&sample("root")).unwrap().draw().unwrap().to_png().unwrap();
    browser.run(
        "give([new File([new Uint8Array(arguments[0])], 'formula.png', { type: 'image/png' })], true);",
        json!([png]),
    );
    latex_is(&browser, r"\sqrt{x + 1}");
    let text = String::from_utf8(sample("sum")).unwrap();
    browser.run("give([new File([arguments[0]], 'sum.inkml')]);", json!([text]));
    latex_is(&browser, r"\sum\limits_{i=1}^{n} x_{i}");
    assert!(strokes(&browser) > 4);
    browser.run("give([new File(['{}'], 'empty.json')]);", json!([]));
    browser.wait("a message", "return $('#toast').textContent.includes('empty.json has no strokes');");
    assert_eq!(browser.log(), Vec::<String>::new());
}
