//! The files of the web page, which are part of the program.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

/// A file of the page.
#[derive(Clone, Copy)]
pub struct File {
    pub path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// All of them.
pub const FILES: [File; 13] = [
    File { path: "/", kind: HTML, text: include_str!("../../web/index.html") },
    File { path: "/style.css", kind: CSS, text: include_str!("../../web/style.css") },
    File { path: "/icon.svg", kind: SVG, text: include_str!("../../web/icon.svg") },
    File { path: "/theme.js", kind: SCRIPT, text: include_str!("../../web/theme.js") },
    File { path: "/script.js", kind: SCRIPT, text: include_str!("../../web/script.js") },
    File { path: "/state.js", kind: SCRIPT, text: include_str!("../../web/state.js") },
    File { path: "/strokes.js", kind: SCRIPT, text: include_str!("../../web/strokes.js") },
    File { path: "/reading.js", kind: SCRIPT, text: include_str!("../../web/reading.js") },
    File { path: "/formula.js", kind: SCRIPT, text: include_str!("../../web/formula.js") },
    File { path: "/away.js", kind: SCRIPT, text: include_str!("../../web/away.js") },
    File { path: "/explain.js", kind: SCRIPT, text: include_str!("../../web/explain.js") },
    File { path: "/files.js", kind: SCRIPT, text: include_str!("../../web/files.js") },
    File { path: "/earlier.js", kind: SCRIPT, text: include_str!("../../web/earlier.js") },
];

impl File {
    pub fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.text));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        response
    }
}
