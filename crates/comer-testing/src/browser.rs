//! Headless Chromium: one page loaded once, or a session driven over WebDriver.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::request;
use crate::skip;

/// Polls of [`Browser::wait`] and [`Browser::newest_tab`] before they give up, and the pause between two.
const POLLS: usize = 1_500;
const PAUSE: Duration = Duration::from_millis(20);

/// The script that defines `$`.
const FIND: &str =
    "const $ = (selector) => document.querySelector(selector) ?? Array.from(document.querySelectorAll('*'))
    .map((element) => element.shadowRoot?.querySelector(selector)).find(Boolean) ?? null;";

/// Loads a file with flags such as `--dump-dom` and returns the output of Chromium. Skips the test if there is no Chromium.
pub fn load_file(file: &Path, flags: &[String]) -> Option<String> {
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
    let profile = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(&program);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    let Ok(output) = command.args(flags).arg(format!("file://{}", file.display())).output() else {
        skip(&format!("{program} is missing (set CHROMIUM to the browser)"));
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Adds `script` to a page, loads it, and returns the title as JSON, which the script should set. Errors of the page are
/// collected in the variable `wrong`. Skips the test if there is no Chromium.
pub fn run_script(page: &str, script: &str) -> Option<Value> {
    const LISTEN: &str = "<script>
const wrong = [];
addEventListener('error', (event) => wrong.push(event.message || 'a resource did not load'), true);
console.error = (...what) => wrong.push(what.join(' '));
</script>";
    let page = page.replacen("<head>", &format!("<head>{LISTEN}"), 1);
    let page = page.replacen("</body>", &format!("<script>{script}</script></body>"), 1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).expect("the page can be written");
    let page = load_file(&file, &["--dump-dom".into()])?;
    let title = page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.unwrap_or_default();
    Some(serde_json::from_str(title).unwrap_or_else(|_| panic!("the title is {title:?}")))
}

/// A WebDriver session.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    /// Opens a window of this size. Skips the test if there is no driver.
    pub fn open(width: u32, height: u32) -> Option<Self> {
        let program = std::env::var("CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".into());
        let driver =
            Command::new(&program).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else {
            skip(&format!("{program} is missing (set CHROMEDRIVER to the driver of the browser)"));
            return None;
        };
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "{program} ended");
            let port = line.split("successfully on port ").nth(1);
            if let Some(port) = port.and_then(|rest| rest.trim().trim_end_matches('.').parse::<u16>().ok()) {
                break port;
            }
        };
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let mut browser = Self { driver, address: ([127, 0, 0, 1], port).into(), session: String::new() };
        let mut options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
                "--disable-dev-shm-usage", format!("--window-size={width},{height}")],
        });
        if let Ok(chromium) = std::env::var("CHROMIUM") {
            options["binary"] = chromium.into();
        }
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let answer = browser.post("/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        browser.session = format!("/session/{}", answer["sessionId"].as_str().expect("a session"));
        // The size of the page itself, as the window includes its frame.
        let page = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.devtools("Emulation.setDeviceMetricsOverride", page);
        Some(browser)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = request(self.address, "POST", path, "application/json", body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()["value"].take()
    }

    fn command(&self, name: &str, body: Value) -> Value {
        self.post(&format!("{}/{name}", self.session), &body)
    }

    /// Sends a command of the DevTools protocol.
    pub fn devtools(&self, name: &str, parameters: Value) -> Value {
        self.command("goog/cdp/execute", json!({ "cmd": name, "params": parameters }))
    }

    /// Opens a page.
    pub fn go(&self, url: &str) {
        self.command("url", json!({ "url": url }));
    }

    /// Switches to the newest tab once there are `count`.
    pub fn newest_tab(&self, count: usize) {
        for _ in 0..POLLS {
            let answer =
                request(self.address, "GET", &format!("{}/window/handles", self.session), "", b"").json();
            let tabs = answer["value"].as_array().expect("a list of tabs").clone();
            if tabs.len() == count {
                self.command("window", json!({ "handle": tabs[count - 1] }));
                return;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("there are not {count} tabs");
    }

    /// Lets the page read the clipboard.
    pub fn allow_clipboard(&self) {
        self.command(
            "permissions",
            json!({ "descriptor": { "name": "clipboard-read" }, "state": "granted" }),
        );
    }

    /// Runs a script, which may `await`, and returns its result. Its `$(selector)` finds an element of the page or of a
    /// custom element.
    pub fn run(&self, script: &str, arguments: Value) -> Value {
        let script = format!("return (async () => {{ {script} }})();").replace("arguments[", "given[");
        let script = format!("const given = arguments; {FIND} {script}");
        self.command("execute/sync", json!({ "script": script, "args": arguments }))
    }

    /// The text of an element; empty if there is none.
    pub fn text(&self, selector: &str) -> String {
        let text = self.run("return $(arguments[0])?.textContent ?? '';", json!([selector]));
        text.as_str().unwrap_or_default().to_string()
    }

    /// The value of a control.
    pub fn value(&self, selector: &str) -> String {
        let text = self.run("return $(arguments[0]).value;", json!([selector]));
        text.as_str().unwrap_or_default().to_string()
    }

    /// Waits until a script returns true.
    pub fn wait(&self, what: &str, script: &str) {
        for _ in 0..POLLS {
            if self.run(script, json!([])) == Value::Bool(true) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        let page = self.run("return $('.result')?.innerText;", json!([]));
        panic!("timed out waiting for {what}: {:?} {page}", self.log());
    }

    /// Clicks in the middle of an element.
    pub fn click(&self, selector: &str) {
        let centre = self.run(
            "const element = $(arguments[0]); element.scrollIntoView({ block: 'nearest' });
             const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];",
            json!([selector]),
        );
        let point = [centre[0].as_f64().unwrap(), centre[1].as_f64().unwrap()];
        self.pointer("mouse", &[point]);
    }

    /// Moves the mouse over an element.
    pub fn hover(&self, selector: &str) {
        let centre = self.run(
            "const box = $(arguments[0]).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];",
            json!([selector]),
        );
        let moves = json!([{ "type": "pointerMove", "duration": 0, "x": centre[0].as_f64().unwrap() as i64, "y": centre[1].as_f64().unwrap() as i64 }]);
        self.command(
            "actions",
            json!({ "actions": [{ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": moves }] }),
        );
    }

    /// Draws one stroke.
    pub fn pointer(&self, kind: &str, points: &[[f64; 2]]) {
        let go = |point: &[f64; 2]| json!({ "type": "pointerMove", "duration": 0, "x": point[0].round() as i64, "y": point[1].round() as i64 });
        let mut actions = vec![go(&points[0]), json!({ "type": "pointerDown", "button": 0 })];
        actions.extend(points[1..].iter().map(go));
        actions.push(json!({ "type": "pointerUp", "button": 0 }));
        let source = json!({ "type": "pointer", "id": kind, "parameters": { "pointerType": kind }, "actions": actions });
        self.command("actions", json!({ "actions": [source] }));
    }

    /// Presses keys at once, as in `["\u{e009}", "z"]` for Ctrl+Z.
    pub fn keys(&self, keys: &[&str]) {
        let down = keys.iter().map(|key| json!({ "type": "keyDown", "value": key }));
        let up = keys.iter().rev().map(|key| json!({ "type": "keyUp", "value": key }));
        let actions: Vec<Value> = down.chain(up).collect();
        self.command(
            "actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        );
    }

    /// The browser's log since the last call.
    pub fn log(&self) -> Vec<String> {
        let lines = self.command("se/log", json!({ "type": "browser" }));
        lines.as_array().unwrap().iter().map(|line| line["message"].to_string()).collect()
    }

    /// A screenshot as a PNG.
    pub fn picture(&self) -> Vec<u8> {
        let answer = request(self.address, "GET", &format!("{}/screenshot", self.session), "", b"");
        from_base64(answer.json()["value"].as_str().unwrap())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = std::panic::catch_unwind(|| request(self.address, "DELETE", &self.session, "", b""));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for letter in text.bytes() {
        let Some(value) = letters.iter().position(|&other| other == letter) else { continue };
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
