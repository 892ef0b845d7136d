//! Middleware of every request: request id, log, metrics, hosts and origins, security headers, CORS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse;

use super::origin;
use super::page;
use super::state::State;
use crate::output::printable;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Resources of this server only; no inline scripts, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
    ("cache-control", "no-cache"),
];

/// Paths with metrics of their own, beside those of the page.
const PATHS: [&str; 7] = [
    "/api/recognize",
    "/api/recognize/batch",
    "/api/mathml",
    "/api/health",
    "/api/model",
    "/api/openapi.json",
    "/metrics",
];

/// A request in progress. If it is dropped before its response, the client has disconnected.
struct Record {
    state: Arc<State>,
    id: String,
    method: Method,
    path: String,
    start: Instant,
    status: Option<StatusCode>,
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut paths = PATHS.into_iter().chain(page::FILES.iter().map(|file| file.path));
        let name = paths.find(|path| *path == self.path).unwrap_or("other");
        match self.status {
            Some(status) => self.state.metrics.answered(name, status.as_u16()),
            None => self.state.metrics.client_gone(),
        }
        if self.state.log {
            eprintln!("{}", self.line());
        }
    }
}

impl Record {
    /// The line of the log. Paths come from clients, and must not control the terminal.
    fn line(&self) -> String {
        let status = self.status.map_or("-".to_string(), |status| status.as_u16().to_string());
        let milliseconds = self.start.elapsed().as_secs_f64() * 1000.0;
        let (time, path) = (time_of_day(), printable(&self.path));
        format!("{time} {} {} {path} {status} {milliseconds:.1} ms", self.id, self.method)
    }
}

/// The current time in UTC, as ISO 8601.
fn time_of_day() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    timestamp(now.as_secs())
}

fn timestamp(seconds: u64) -> String {
    // Civil date from days, by eras of 400 years (146097 days) from 1 March of the year 0.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The request id of the client, if it is well-formed, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let harmless = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    match headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(harmless) {
        Some(id) => id.to_string(),
        None => format!("{:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Handles every request: headers, CORS, metrics, log.
pub async fn handle(Shared(state): Shared<Arc<State>>, request: Request, next: Next) -> Response<Body> {
    let mut record = Record {
        id: request_id(request.headers()),
        method: request.method().clone(),
        path: request.uri().path().to_string(),
        start: Instant::now(),
        status: None,
        state,
    };
    let origin = request.headers().get(header::ORIGIN).filter(|origin| record.state.origins.contains(origin));
    let origin = origin.cloned();
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let key = record.state.keys.check(&record.path, request.headers());
    let refused = origin::check(&request, &record.state.hosts, &record.state.origins);
    let mut response = if let Err(problem) = refused {
        problem.into_response()
    } else if asks && origin.is_some() {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    } else if let Err(problem) = key {
        problem.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        // A response may have its own policy.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    // Allowed origins may read the response.
    let sharing = if origin.is_some() { "cross-origin" } else { "same-origin" };
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static(sharing));
    if !record.state.origins.is_empty() {
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("authorization, content-type, x-request-id"),
        );
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("x-request-id, retry-after"),
        );
    }
    if let Ok(id) = HeaderValue::from_str(&record.id) {
        headers.insert(REQUEST_ID, id);
    }
    record.status = Some(response.status());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(seconds), expected);
        }
    }

    #[test]
    fn the_log_does_not_control_the_terminal() {
        let recognizer = comer::Recognizer::new(comer_testing::golden_model("fusion")).unwrap();
        let state = State::new(recognizer, Default::default(), 1, Vec::new(), Vec::new(), false);
        let record = Record {
            state: Arc::new(state),
            id: "id".into(),
            method: Method::GET,
            path: "/a\u{1b}[2J\u{202e}b".into(),
            start: Instant::now(),
            status: Some(StatusCode::NOT_FOUND),
        };
        let line = record.line();
        assert!(line.contains(" id GET /a\\u{1b}[2J\\u{202e}b 404 ") && line.ends_with(" ms"), "{line:?}");
        assert!(!line.contains(['\u{1b}', '\u{202e}', '\n']), "{line:?}");
    }

    #[test]
    fn strange_identifiers_are_replaced() {
        let id = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(text).unwrap());
            request_id(&headers)
        };
        assert_eq!(id("abc-1.2_X"), "abc-1.2_X");
        for text in ["", "a b", "a\"b", &"x".repeat(65)] {
            assert_ne!(id(text), text);
        }
    }
}
