//! Several items in one request, pictures inside JSON, and keys.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use comer_eval::html::base64;
use serde_json::{Value, json};

use super::super::key::Keys;
use super::super::limits::Limits;
use super::super::state::State;
use super::requests::{Endless, STROKES, assert_problem};
use super::{Asker, CROSS, cross, slow_picture, state};

const PATH: &str = "/api/recognize/batch?greedy=1";

fn form(parts: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, content) in parts {
        let head =
            format!("--border\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\r\n");
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(b"--border--\r\n");
    ("multipart/form-data; boundary=border".into(), body)
}

fn data_url(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", base64(bytes))
}

/// Every answer of the description.
pub async fn check(asker: &Asker) {
    let single = asker.recognize("image/png", cross()).await.json();
    let results = |answer: super::Answer| {
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        answer.json()["results"].as_array().unwrap().clone()
    };
    let summary = |result: &Value| match result.get("error") {
        Some(error) => error["status"].clone(),
        None => {
            assert!(result["milliseconds"].is_number() && result["confidence"].is_number(), "{result}");
            assert_eq!(result["latex"], single["latex"]);
            result["kind"].clone()
        }
    };
    let strokes: Value = serde_json::from_str(STROKES).unwrap();
    let items = json!({ "items": [
        { "src": data_url(&cross()) }, { "src": data_url(b"nothing") }, { "strokes": strokes }, strokes, data_url(CROSS.as_bytes()),
        { "src": "https://example.org/a.png" }, { "image": 7 }, { "strokes": [] }, { "src": base64(&cross()) },
    ] });
    let found = results(asker.ask("POST", PATH, "application/json", items.to_string()).await);
    let expected = json!(["picture", 422, "ink", "ink", "ink", 400, 400, 422, "picture"]);
    assert_eq!(found.iter().map(summary).collect::<Vec<_>>(), *expected.as_array().unwrap());
    assert!(found[5]["error"]["detail"].as_str().unwrap().contains("fetches nothing"));

    let (kind, body) =
        form(&[("image", &cross()), ("text", b"ignored"), ("file", CROSS.as_bytes()), ("image", b"")]);
    let found = results(asker.ask("POST", PATH, &kind, body).await);
    assert_eq!(found.iter().map(summary).collect::<Vec<_>>(), [json!("picture"), json!("ink"), json!(422)]);

    // Many more items than cores, each in its place.
    let many: Vec<Value> =
        (0..20).map(|n| if n % 3 == 0 { json!("!") } else { json!({ "strokes": strokes }) }).collect();
    let found =
        results(asker.ask("POST", PATH, "application/json", json!({ "items": many }).to_string()).await);
    assert!(
        found.iter().enumerate().all(|(n, result)| result.get("error").is_some() == (n % 3 == 0)),
        "{found:?}"
    );

    for (name, kind, body, status, word) in [
        ("no JSON", "application/json", "[".to_string(), 400, "not JSON"),
        ("no items", "application/json", "{}".into(), 400, "expected {\"items\""),
        ("no object", "application/json", "7".into(), 400, "expected {\"items\""),
        ("items that are no list", "application/json", "{\"items\":{}}".into(), 400, "expected {\"items\""),
        ("an empty list", "application/json", json!({ "items": [] }).to_string(), 400, "0 items"),
        (
            "too many",
            "application/json",
            json!({ "items": vec![1; 101] }).to_string(),
            413,
            "expected 1 to 100",
        ),
        ("a picture", "image/png", String::new(), 415, "image/png"),
    ] {
        assert_problem(&asker.ask("POST", PATH, kind, body).await, status, word, name);
    }
    let explain =
        asker.ask("POST", &format!("{PATH}&explain=1"), "application/json", items.to_string()).await;
    assert_problem(&explain, 400, "explain", "an explanation");
    let slow = asker.with(state(Limits { body_time: Duration::from_millis(50), ..Limits::default() }, 1));
    assert_problem(&slow.ask("POST", PATH, "", Body::new(Endless)).await, 408, "0.05 seconds", "slow");
    let narrow = asker.with(state(Limits { all_bodies: 8, ..Limits::default() }, 1));
    assert_problem(&narrow.ask("POST", PATH, "", items.to_string()).await, 503, "same time", "much");

    // A single picture inside JSON.
    let found =
        asker.recognize("application/json", json!({ "src": data_url(&cross()) }).to_string()).await.json();
    assert_eq!((&found["latex"], &found["kind"]), (&single["latex"], &json!("picture")));
    let answer = asker.recognize("application/json", json!({ "src": "data:text/plain,x" }).to_string()).await;
    assert_problem(&answer, 400, ";base64", "a data URL of text");

    let mut guarded = Arc::into_inner(state(Limits::default(), 1)).expect("nobody else has it");
    guarded.keys = Keys::parse("0123456789abcdef\n").unwrap();
    check_keys(&asker.with(Arc::new(guarded))).await;
}

async fn check_keys(asker: &Asker) {
    let send = async |path: &str, key: Option<&str>| {
        let mut request = Request::builder().method("POST").uri(path).header("content-type", "image/png");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        asker.send(request.body(Body::from(cross())).unwrap()).await
    };
    for key in [None, Some("0123456789abcdeX")] {
        let answer = send("/api/recognize?greedy=1", key).await;
        assert_problem(&answer, 401, "key", "no key");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    assert_eq!(send("/api/recognize?greedy=1", Some("0123456789abcdef")).await.status, StatusCode::OK);
    assert_eq!(asker.ask("GET", "/api/health", "", "").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_one_deadline() {
    let limits = Limits { work_time: Duration::from_millis(300), ..Limits::default() };
    let asker = Asker::new(state(limits, 1));
    let items = json!({ "items": vec![data_url(&slow_picture()); 4] });
    let answer = asker.ask("POST", PATH, "application/json", items.to_string()).await.json();
    let details: Vec<&str> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            assert_eq!(result["error"]["status"], 503, "{result}");
            result["error"]["detail"].as_str().unwrap()
        })
        .collect();
    // The time of the first one is that of all.
    assert_eq!(details[1..], ["no core was free within 0.3 seconds"; 3], "{details:?}");
}

#[tokio::test]
async fn a_page_needs_a_key_too() {
    let mut guarded: State = Arc::into_inner(state(Limits::default(), 1)).expect("nobody else has it");
    guarded.keys = Keys::parse("0123456789abcdef\n").unwrap();
    let asker = Asker::new(Arc::new(guarded));
    assert_problem(&asker.ask("GET", "/", "", "").await, 401, "expected the header", "the page");
    assert_problem(&asker.ask("GET", "/metrics", "", "").await, 401, "expected the header", "metrics");
}
