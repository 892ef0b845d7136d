//! The files of the web page, which are part of the program.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

/// A file of the page.
#[derive(Clone, Copy)]
pub struct File {
    pub path: &'static str,
    text: &'static str,
}

/// The page itself as `/`, and the files that it loads by their names.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[
            File { path: "/", text: include_str!("../../web/index.html") },
            $(File { path: concat!("/", $name), text: include_str!(concat!("../../web/", $name)) }),+
        ]
    };
}

/// All of them.
pub const FILES: &[File] = files![
    "app.js",
    "comer-ink-template.js",
    "comer-ink.css",
    "comer-ink.js",
    "controls.css",
    "default-engine.js",
    "engine-error.js",
    "engine.js",
    "export.js",
    "formula-view.js",
    "history-store.js",
    "history.js",
    "icon-maskable.svg",
    "icon.svg",
    "ink-surface.js",
    "ink.js",
    "latex.js",
    "manifest.webmanifest",
    "picture-stage.js",
    "picture-warp.js",
    "pictures.js",
    "reading.js",
    "result-panel.js",
    "server-engine.js",
    "service-worker.js",
    "session.js",
    "shortcuts.js",
    "speech.js",
    "style.css",
    "theme.js",
    "toast.js",
    "undo.js",
    "viewport.js",
];

impl File {
    fn content_type(self) -> &'static str {
        match self.path.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("webmanifest") => "application/manifest+json",
            _ => "text/html; charset=utf-8",
        }
    }

    pub fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.text));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The folder, the program and the service worker, which keeps the page for use without the server.
    #[test]
    fn every_file_is_served_and_kept_by_the_service_worker() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
        let served = FILES.iter().map(|file| file.path.trim_start_matches('/').to_string());
        let served: BTreeSet<String> =
            served.map(|name| if name.is_empty() { "index.html".into() } else { name }).collect();
        assert_eq!(served, names);
        let worker = FILES.iter().find(|file| file.path == "/service-worker.js").unwrap().text;
        let list = worker.split("const FILES = [").nth(1).unwrap().split(']').next().unwrap();
        let kept = list.split(',').map(|name| name.trim().trim_matches('\'')).filter(|name| !name.is_empty());
        let kept: BTreeSet<String> =
            kept.map(|name| if name == "./" { "index.html".into() } else { name.to_string() }).collect();
        let without_worker = names.into_iter().filter(|name| name != "service-worker.js").collect();
        assert_eq!(kept, without_worker);
    }
}
