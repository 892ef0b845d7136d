//! The surface of the page: nothing out of reach, pan and zoom, cost of a move, what belongs to what, nothing lost by a reload.

use comer::Ink;
use comer_testing::browser::Browser;
use comer_testing::sample;
use serde_json::json;

use super::page::{keep, latex_is, open, placed, ready, strokes, surface, wait_for_reading, write};

fn resize(browser: &Browser, width: u32, height: u32) {
    let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    browser.devtools("Emulation.setDeviceMetricsOverride", metrics);
    let script =
        format!("return innerWidth === {width} && $('comer-ink').view.width === $('#paper').clientWidth;");
    browser.wait("the new size", &script);
}

/// Whether every point of the ink is on the screen.
const ALL_VISIBLE: &str = "const { scale, x, y, width, height } = $('comer-ink').view;
    return $('comer-ink').strokes.flat().every(([left, top]) =>
        left * scale + x >= 0 && left * scale + x <= width && top * scale + y >= 0 && top * scale + y <= height);";

#[test]
fn ink_stays_in_reach_when_the_window_changes() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    let [left, top, width, height] = surface(&browser);
    for [x, y] in [[10.0, 10.0], [width - 40.0, height - 110.0]] {
        browser.pointer(
            "mouse",
            &[[left + x, top + y], [left + x + 12.0, top + y + 20.0], [left + x + 25.0, top + y]],
        );
    }
    for (width, height) in [(700, 600), (390, 844), (844, 390), (1280, 860)] {
        resize(&browser, width, height);
        assert_eq!(browser.run(ALL_VISIBLE, json!([])), json!(true), "{width} x {height}");
    }
    // Back at the first size, the ink is where it was.
    let view = browser.run("const { scale, x, y } = $('comer-ink').view; return [scale, x, y];", json!([]));
    assert_eq!(view, json!([1, 0, 0]));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn two_fingers_wheel_and_keys_move_the_surface_and_draw_nothing() {
    let Some((_server, browser)) = open(1000, 700) else { return };
    browser.devtools("Emulation.setTouchEmulationEnabled", json!({ "enabled": true, "maxTouchPoints": 2 }));
    write(&browser, "mouse", "square");
    let count = strokes(&browser);
    let [left, top, width, height] = surface(&browser);
    let [x, y] = [left + width / 2.0, top + height / 2.0];
    let touch = |kind: &str, distances: &[f64]| {
        let points: Vec<_> =
            distances.iter().enumerate().map(|(id, dx)| json!({ "x": x + dx, "y": y, "id": id })).collect();
        browser.devtools("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points }));
    };
    touch("touchStart", &[-40.0]);
    touch("touchStart", &[-40.0, 40.0]);
    for distance in [50.0, 60.0, 80.0] {
        touch("touchMove", &[-distance, distance]);
    }
    touch("touchEnd", &[]);
    browser.wait("twice the size", "return Math.abs($('comer-ink').view.scale - 2) < 0.01;");
    assert_eq!(strokes(&browser), count, "the first finger began no stroke");
    browser.keys(&["0"]);
    browser.wait("everything", "const { scale, x } = $('comer-ink').view; return scale === 1 && x === 0;");

    // However far one pans, some ink stays.
    let wheel = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 100_000, "deltaY": 0 });
    browser.devtools("Input.dispatchMouseEvent", wheel);
    browser.wait("a shift", "return $('comer-ink').view.x < -50;");
    let reachable = "const { scale, x, width } = $('comer-ink').view;
        return $('comer-ink').strokes.flat().some(([left]) => left * scale + x >= 0 && left * scale + x <= width);";
    assert_eq!(browser.run(reachable, json!([])), json!(true));
    browser.run("$('#ink').focus();", json!([]));
    browser.keys(&["\u{e012}"]);
    browser.keys(&["+"]);
    browser.wait("a larger scale", "return $('comer-ink').view.scale === 1.25;");
    // Writing works at any scale: what is drawn on the screen is where the pen was.
    browser.keys(&["0"]);
    browser.keys(&["-"]);
    browser.pointer("mouse", &[[x, y + 200.0], [x + 20.0, y + 205.0], [x + 40.0, y + 200.0]]);
    let drawn = browser.run(
        "const { scale, x, y } = $('comer-ink').view; const box = $('#paper').getBoundingClientRect();
         const [left, top] = $('comer-ink').strokes.at(-1)[0];
         return [Math.round(left * scale + x + box.x), Math.round(top * scale + y + box.y)];",
        json!([]),
    );
    assert_eq!(drawn, json!([x.round() as i64, (y + 200.0).round() as i64]));
    browser.click("#fit");
    assert_eq!(browser.run(ALL_VISIBLE, json!([])), json!(true));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// With 3000 points on the surface a move draws one segment: nothing is cleared, and no path is built.
#[test]
fn a_move_costs_the_same_however_much_ink_there_is() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    browser.run(
        "$('comer-ink').strokes = Array.from({ length: 60 }, (_, row) => Array.from({ length: 50 }, (_, column) =>
             [40 + (row % 12) * 50 + column, 60 + Math.floor(row / 12) * 90 + 30 * Math.sin(column / 5 + row)]));",
        json!([]),
    );
    let counted = browser.run(
        "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
         const calls = { stroke: 0, clearRect: 0, paths: 0 };
         for (const name of ['stroke', 'clearRect']) {
             const own = CanvasRenderingContext2D.prototype[name];
             CanvasRenderingContext2D.prototype[name] = function (...given) { calls[name]++; return own.apply(this, given); };
         }
         const Own = Path2D; window.Path2D = class extends Own { constructor(...given) { super(...given); calls.paths++; } };
         const canvas = $('#ink'); const box = canvas.getBoundingClientRect(); canvas.setPointerCapture = () => {};
         const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, pointerType: 'mouse', isPrimary: true,
             button: type === 'pointermove' ? -1 : 0, buttons: 1, clientX: box.x + x, clientY: box.y + y, bubbles: true, composed: true }));
         send('pointerdown', 50, 500);
         calls.stroke = 0;
         const frames = []; const handlers = []; let last = null;
         await new Promise((done) => { let count = 0; const tick = (time) => {
             if (last !== null) { frames.push(time - last); }
             last = time;
             const start = performance.now(); send('pointermove', 53 + 3 * count, 500 + 40 * Math.sin(count / 8)); handlers.push(performance.now() - start);
             if (++count < 120) { requestAnimationFrame(tick); } else { done(); }
         }; requestAnimationFrame(tick); });
         const seen = { ...calls };
         send('pointerup', 410, 500);
         const quantile = (values, share) => [...values].sort((one, other) => one - other)[Math.floor(share * (values.length - 1))];
         return { seen, points: $('comer-ink').strokes.flat().length, frames: [quantile(frames, 0.5), quantile(frames, 0.95)],
             handlers: [quantile(handlers, 0.5), quantile(handlers, 0.95)] };",
        json!([]),
    );
    eprintln!("median and 95 % in ms: frames {}, handlers {}", counted["frames"], counted["handlers"]);
    assert_eq!(counted["seen"], json!({ "stroke": 120, "clearRect": 0, "paths": 0 }), "{counted}");
    assert!(counted["points"].as_u64().unwrap() > 3_100, "{counted}");
}

#[test]
fn unfinished_ink_survives_a_reload() {
    let Some((_server, browser)) = open(1000, 700) else { return };
    write(&browser, "mouse", "square");
    let before = browser.run("return $('comer-ink').strokes;", json!([]));
    // At once, before it was read.
    browser.run("location.reload();", json!([]));
    ready(&browser);
    assert_eq!(browser.run("return $('comer-ink').strokes;", json!([])), before);
    latex_is(&browser, "x^{2} + 1");
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// The colour of the finished canvas beside the first point of each stroke, as the name of the colour that it is.
const COLOURS: &str = "const style = getComputedStyle($('#paper'));
    const names = { [style.color]: 'ink', [style.outlineColor]: 'lit', [style.textDecorationColor]: 'unread' };
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const { width, height } = $('.finished');
    const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
    context.drawImage($('.finished'), 0, 0);
    return $('comer-ink').strokes.map((stroke) => {
        const [x, y] = stroke[Math.floor(stroke.length / 4)];
        const [red, green, blue, alpha] = context.getImageData(Math.round(x), Math.round(y), 1, 1).data;
        return alpha > 200 ? names[`rgb(${red}, ${green}, ${blue})`] ?? 'other' : 'faint';
    });";

#[test]
fn a_symbol_and_its_strokes_light_each_other() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    write(&browser, "mouse", "square");
    latex_is(&browser, "x^{2} + 1");
    let ink = Ink::from_inkml(&sample("square")).unwrap();
    let plus = &ink.symbols().iter().find(|symbol| symbol.label == "+").unwrap().strokes;
    let expected: Vec<&str> =
        (0..ink.strokes().len()).map(|stroke| if plus.contains(&stroke) { "lit" } else { "faint" }).collect();
    browser.hover("#formula mo");
    assert_eq!(browser.run(COLOURS, json!([])), json!(expected));
    browser.hover("h1");
    assert_eq!(browser.run(COLOURS, json!([])), json!(vec!["ink"; expected.len()]));
    // The other way round: each of its strokes lights the symbol.
    let shapes = placed("square", surface(&browser), 0.0, 1.0);
    for &stroke in plus {
        let [x, y] = shapes[stroke][shapes[stroke].len() / 4];
        let script = "$('#ink').dispatchEvent(new PointerEvent('pointermove',
            { pointerType: 'mouse', buttons: 0, clientX: arguments[0], clientY: arguments[1], bubbles: true }));
            return $('#formula .lit')?.textContent;";
        assert_eq!(browser.run(script, json!([x, y])), json!("+"), "stroke {stroke}");
    }
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_stroke_that_was_not_read_is_marked() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    let [left, top, width, height] = surface(&browser);
    for stroke in placed("square", [left, top, width, height], -150.0, 0.6) {
        browser.pointer("mouse", &stroke);
    }
    let [x, y] = [left + width - 60.0, top + height - 80.0];
    browser.pointer("mouse", &[[x, y], [x + 4.0, y + 3.0], [x + 8.0, y + 1.0]]);
    wait_for_reading(&browser);
    assert!(browser.text("#status").ends_with("1 stroke was not read"), "{}", browser.text("#status"));
    let colours = browser.run(COLOURS, json!([]));
    let colours = colours.as_array().unwrap();
    assert_eq!(
        (&colours[6], colours.iter().filter(|&colour| colour == "unread").count()),
        (&json!("unread"), 1)
    );
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Two lines are two formulas: framed, counted, each read alone on demand, copied as lines; a reload keeps the choice.
#[test]
fn two_written_lines_are_two_formulas() {
    let Some((_server, browser)) = open(1280, 860) else { return };
    let [left, top, width, height] = surface(&browser);
    for (name, share) in [("square", 0.0), ("fraction", 0.5)] {
        for stroke in placed(name, [left, top + share * height, width, height / 2.0], 0.0, 0.5) {
            browser.pointer("mouse", &stroke);
        }
    }
    browser.wait("both formulas", "return $('#status').textContent.includes('2 formulas found');");
    latex_is(&browser, "x^{2} + 1");
    let ink = Ink::from_inkml(&sample("square")).unwrap();
    let (first, all) = (ink.strokes().len(), strokes(&browser) as usize);
    // The frames: the shown one is solid, the other dashed.
    let framed = "const { strokes } = $('comer-ink'); const { outlineColor } = getComputedStyle($('#paper'));
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const { width, height } = $('.finished');
        const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
        context.drawImage($('.finished'), 0, 0);
        return arguments[0].map(([from, to]) => {
            const points = strokes.slice(from, to).flat();
            const [left, right] = [Math.min, Math.max].map((pick) => pick(...points.map(([x]) => x)));
            const line = Math.round(Math.max(...points.map(([, y]) => y)) + 15);
            const { data } = context.getImageData(Math.round(left), line - 1, Math.round(right - left), 3);
            const columns = Math.round(right - left);
            const colour = (at) => `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
            const seen = Array.from({ length: columns }, (_, x) => [0, 1, 2].some((row) => {
                const at = 4 * (row * columns + x); return data[at + 3] > 200 && colour(at) === outlineColor; }));
            return seen.filter(Boolean).length / columns;
        });";
    let shares = |browser: &Browser| -> [f64; 2] {
        let found = browser.run(framed, json!([[[0, first], [first, all]]]));
        [0, 1].map(|line| found[line].as_f64().unwrap())
    };
    let [shown, other] = shares(&browser);
    assert!(shown > 0.95 && (0.2..0.8).contains(&other), "{shown} {other}");
    assert_eq!(browser.text("#status-actions"), "12As one");
    keep(&browser, "two-formulas.png");
    browser.allow_clipboard();
    browser.click("[data-copy=aligned]");
    browser.wait(
        "the copy",
        r"const text = await navigator.clipboard.readText(); return text.startsWith('\\begin{') && text.includes('x^{2} + 1') && text.includes('\\frac{a}{b}');",
    );

    browser.click("#status-actions [aria-label^='Formula 2']");
    latex_is(&browser, r"\frac{a}{b}");
    let [other, shown] = shares(&browser);
    assert!(shown > 0.95 && (0.2..0.8).contains(&other), "{shown} {other}");
    // Its symbols light its own strokes.
    browser.hover("#formula [data-token='2']");
    let colours = browser.run(COLOURS, json!([]));
    let lit: Vec<usize> = (0..all).filter(|&stroke| colours[stroke] == "lit").collect();
    assert!(!lit.is_empty() && lit.iter().all(|&stroke| stroke >= first), "{colours}");
    browser.run("location.reload();", json!([]));
    ready(&browser);
    latex_is(&browser, r"\frac{a}{b}");
    assert!(browser.text("#status").contains("2 formulas found"), "{}", browser.text("#status"));

    browser.click("#status-actions [aria-label^='Read all']");
    browser.wait("one formula", "return $('#status-actions [aria-pressed=true]')?.textContent === 'As one';");
    assert_ne!(browser.value("#latex"), r"\frac{a}{b}");
    browser.keys(&["\u{e009}", "z"]);
    latex_is(&browser, r"\frac{a}{b}");
    assert_eq!(browser.log(), Vec::<String>::new());
}
