//! The server without a socket, with a tiny random model; `connections` adds one.

mod batches;
mod connections;
mod mutations;
mod requests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use comer::{Image, Recognizer};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::limits::Limits;
use super::state::State;

pub const CROSS: &str = "<ink><trace>0 0, 10 10, 20 20</trace><trace>20 0, 10 10, 0 20</trace></ink>";

/// A server whose answers mean nothing, but come.
fn state(limits: Limits, threads: usize) -> Arc<State> {
    let origins = vec![super::origin::parse("https://example.org").unwrap()];
    let recognizer = Recognizer::new(comer_testing::golden_model("fusion")).unwrap();
    Arc::new(State::new(recognizer, limits, threads, origins, Vec::new(), false))
}

/// A cross in a pen of three pixels, as a PNG.
fn cross() -> Vec<u8> {
    comer::Ink::from_inkml(CROSS.as_bytes()).unwrap().draw().unwrap().to_png().unwrap()
}

fn flat(width: usize, height: usize) -> Vec<u8> {
    Image::new(width, height, vec![0; width * height]).unwrap().to_png().unwrap()
}

/// Seven million pixels of noise, which take more than a second to clean.
fn slow_picture() -> Vec<u8> {
    let mut random = comer_testing::Random(3);
    let levels = (0..3000 * 2400).map(|_| if random.uniform() < 0.5 { 0 } else { 255 });
    Image::new(3000, 2400, levels.collect()).unwrap().to_png().unwrap()
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Asks an app, and remembers which answers of the description were seen.
struct Asker {
    app: Router,
    seen: Arc<Mutex<BTreeSet<(String, String, u16)>>>,
}

impl Asker {
    fn new(state: Arc<State>) -> Self {
        Self { app: super::app(state), seen: Arc::default() }
    }

    /// Another app, the same memory.
    fn with(&self, state: Arc<State>) -> Self {
        Self { app: super::app(state), seen: self.seen.clone() }
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().to_string().to_lowercase(), request.uri().path().to_string());
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        self.seen.lock().unwrap().insert((path, method, parts.status.as_u16()));
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    async fn ask(&self, method: &str, path: &str, kind: &str, body: impl Into<Body>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    async fn recognize(&self, kind: &str, body: impl Into<Body>) -> Answer {
        self.ask("POST", "/api/recognize?greedy=1", kind, body).await
    }
}
