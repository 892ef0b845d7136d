//! The page as static files.

use comer::{Ink, Input, Recognizer};
use comer_testing::browser::Browser;
use comer_testing::file_server::FileServer;
use comer_testing::sample;
use serde_json::{Value, json};

use crate::{SAMPLES, built, native, tokens};

fn ready(browser: &Browser) {
    browser.wait("the scripts", "return document.documentElement.dataset.ready === 'true';");
}

fn strokes(name: &str) -> Value {
    let ink = Ink::from_inkml(&sample(name)).unwrap();
    let stroke = |stroke: &comer::Stroke| -> Value {
        stroke.points.iter().map(|point| json!([point.x, point.y])).collect()
    };
    ink.strokes().iter().map(stroke).collect()
}

fn write(browser: &Browser, name: &str) {
    browser.run("$('comer-ink').importStrokes(arguments[0]);", json!([strokes(name)]));
}

fn latex_is(browser: &Browser, expected: &str) {
    let script = format!(
        "return $('#latex').value === {} && $('#formula').dataset.state === 'shown';",
        json!(expected)
    );
    browser.wait(&format!("{expected} in the box"), &script);
}

/// In a Web Worker: the samples as natively, a picture as file and as pixels, a correction, errors, cancelling.
#[test]
fn the_page_recognises_without_a_server() {
    let Some(folder) = built("site") else { return };
    let Some(browser) = Browser::open(1280, 860) else { return };
    let server = FileServer::start(&folder);
    browser.go(&server.url(""));
    ready(&browser);
    let recognizer = Recognizer::bundled().unwrap();
    for name in SAMPLES {
        let expected = native(&recognizer, &Input::from_bytes(&sample(name)).unwrap(), 5);
        let reading = browser
            .run("return $('comer-ink').engine.recognizeStrokes(arguments[0]);", json!([strokes(name)]));
        assert_eq!(tokens(&reading), expected.best.tokenized(), "{name}");
    }
    write(&browser, "square");
    latex_is(&browser, "x^{2} + 1");
    let words = browser.run("return $('#formula .math').ariaLabel;", json!([]));
    assert_eq!(words, "x squared plus 1");

    // The same pixels as a PNG file and as the pixels of a canvas.
    let both = browser.run(
        "const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [500, 300];
         const pen = canvas.getContext('2d', { willReadFrequently: true }); pen.fillStyle = '#fff'; pen.fillRect(0, 0, 500, 300); pen.lineWidth = 5;
         for (const stroke of $('comer-ink').strokes) { pen.beginPath(); stroke.forEach(([x, y]) => pen.lineTo(x / 2, y / 2)); pen.stroke(); }
         const blob = await new Promise((done) => canvas.toBlob(done));
         const file = await $('comer-ink').engine.recognizeImage(blob);
         const { Recognizer } = await import('./comer-wasm/index.js');
         const recognizer = await Recognizer.load();
         const options = { nbest: 5, alignment: true };
         const pixels = await recognizer.recognizeImage(pen.getImageData(0, 0, 500, 300), options);
         const late = recognizer.recognizeImage(pen.getImageData(0, 0, 500, 300), { signal: AbortSignal.abort() });
         const aborted = await late.catch((error) => error.name);
         const wrong = await recognizer.recognizeStrokes([[[0, 0]]], { nbest: 99 }).catch(({ kind, message }) => [kind, message]);
         const after = await recognizer.recognizeStrokes($('comer-ink').strokes);
         recognizer.terminate();
         return { file: file.formulas.map(({ latex }) => latex), pixels: pixels.formulas.map(({ latex }) => latex), aborted, wrong,
             after: after.formulas[0].latex, regions: file.regions.length };",
        json!([]),
    );
    assert_eq!(both["file"], both["pixels"], "{both}");
    assert_eq!((&both["file"][0], &both["after"]), (&json!("x^{2} + 1"), &json!("x^{2} + 1")));
    assert_eq!(both["aborted"], "AbortError", "{both}");
    assert_eq!(both["wrong"][0], "input", "{both}");
    assert!(both["wrong"][1].as_str().unwrap().contains("nbest"), "{both}");
    assert!(both["regions"].as_u64() > Some(3), "{both}");

    // Two lines of ink in a picture are two formulas, here and with the server.
    let found = browser.run(
        "const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [900, 1100];
         const pen = canvas.getContext('2d'); pen.fillStyle = '#fff'; pen.fillRect(0, 0, 900, 1100); pen.lineWidth = 4;
         for (const dy of [0, 550]) { for (const stroke of $('comer-ink').strokes) { pen.beginPath(); stroke.forEach(([x, y]) => pen.lineTo(x / 2, y / 2 + dy)); pen.stroke(); } }
         const { found, warnings } = await $('comer-ink').engine.recognizeImage(await new Promise((done) => canvas.toBlob(done)));
         return [found?.map(({ latex }) => latex), found?.[1].box[1] > 550, Array.isArray(warnings)];",
        json!([]),
    );
    assert_eq!(found, json!([["x^{2} + 1", "x^{2} + 1"], true, true]));

    // The same as strokes: the page frames both, and reads the second one on demand.
    let lines = "const { strokes } = $('comer-ink'); const points = strokes.flat().map(([, y]) => y);
        const down = 3 * (Math.max(...points) - Math.min(...points));
        return [...strokes, ...arguments[0].map((stroke) => stroke.map(([x, y]) => [x, y + down]))];";
    let lines = browser.run(lines, json!([strokes("fraction")]));
    browser.run("$('comer-ink').importStrokes(arguments[0]);", json!([lines]));
    latex_is(&browser, "x^{2} + 1");
    assert!(browser.text("#status").contains("2 formulas found"), "{}", browser.text("#status"));
    browser.click("#status-actions [aria-label^='Formula 2']");
    latex_is(&browser, r"\frac{a}{b}");
    write(&browser, "square");
    latex_is(&browser, "x^{2} + 1");

    let corrected = browser.run(
        "const { formulas: [{ tokens, latex }] } = await $('comer-ink').engine.recognizeStrokes($('comer-ink').strokes, { constraints: { prefix: ['X'] } });
         return [latex, tokens[0].confidence];",
        json!([]),
    );
    assert_eq!(corrected, json!(["X^{2} + 1", 1]));
    // LaTeX is previewed, and what is wrong with it shown.
    let preview = browser.run(
        "const { engine } = $('comer-ink');
         return [await engine.mathml('\\\\frac 1 2'), await engine.mathml('{').catch(({ kind, token }) => [kind, token])];",
        json!([]),
    );
    assert!(preview[0].as_str().unwrap().contains("<mfrac"), "{preview}");
    assert_eq!(preview[1][0], "input", "{preview}");
    assert!(browser.text("#privacy").contains("in this browser and sent to nobody"));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Once it was loaded, the page opens and recognises with its host gone.
#[test]
fn the_page_works_offline() {
    let Some(folder) = built("site") else { return };
    let Some(browser) = Browser::open(1000, 700) else { return };
    let server = FileServer::start(&folder);
    browser.go(&server.url(""));
    ready(&browser);
    browser.wait(
        "the service worker",
        "return (await navigator.serviceWorker.getRegistration())?.active?.state === 'activated';",
    );
    write(&browser, "square");
    latex_is(&browser, "x^{2} + 1");
    let manifest = browser.devtools("Page.getAppManifest", json!({}));
    assert_eq!((&manifest["errors"], manifest["data"].as_str().is_some()), (&json!([]), true), "{manifest}");
    assert_eq!(browser.log(), Vec::<String>::new());
    drop(server);
    browser.run("location.reload();", json!([]));
    browser
        .wait("another document", "return performance.getEntriesByType('navigation')[0].type === 'reload';");
    ready(&browser);
    // The ink was kept, and is read again.
    latex_is(&browser, "x^{2} + 1");
    write(&browser, "digits");
    latex_is(&browser, "1234567890");
}
