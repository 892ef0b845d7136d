//! Good requests, a table of bad ones, and that the description tells of all of them.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use super::super::limits::Limits;
use super::{Answer, Asker, CROSS, cross, flat, state};

/// A body that never comes.
pub struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

fn form(name: &str, body: &[u8]) -> (String, Vec<u8>) {
    let head = format!("--border\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\r\n");
    ("multipart/form-data; boundary=border".into(), [head.as_bytes(), body, b"\r\n--border--\r\n"].concat())
}

pub const STROKES: &str = "[[[0,0],[10,10],[20,20]],[[20,0],[10,10],[0,20]]]";

async fn check_good_requests(asker: &Asker) {
    let first = asker.recognize("image/png", cross()).await;
    assert_eq!(first.status, StatusCode::OK, "{first:?}");
    let latex = first.json()["latex"].clone();
    let (kind, body) = form("image", &cross());
    let (file_kind, file) = form("file", CROSS.as_bytes());
    // Larger than the default limit of the form parser, below ours.
    let (large_kind, large) = form("image", &[cross(), vec![0; 3 << 20]].concat());
    let cases: [(&str, Vec<u8>, &str); 9] = [
        (&large_kind, large, "picture"),
        ("", cross(), "picture"),
        ("application/octet-stream", cross(), "picture"),
        (&kind, body, "picture"),
        (&file_kind, file, "ink"),
        ("application/inkml+xml", CROSS.into(), "ink"),
        ("text/xml; charset=utf-8", CROSS.into(), "ink"),
        ("application/json", STROKES.into(), "ink"),
        ("", format!("{{\"strokes\": {STROKES}}}").into(), "ink"),
    ];
    for (name, body, expected) in cases {
        let answer = asker.recognize(name, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}: {answer:?}");
        let answer = answer.json();
        assert_eq!((&answer["latex"], &answer["kind"]), (&latex, &json!(expected)), "{name}");
    }
    let path = "/api/recognize?nbest=3&alignment=1&mathml=1&beam=3";
    let answer = asker.ask("POST", path, "application/json", STROKES).await.json();
    assert_eq!(answer["alternatives"].as_array().unwrap().len(), 2);
    let tokens = answer["tokens"].as_array().unwrap().len();
    let strokes = answer["alignment"]["strokes"].as_array().unwrap();
    assert_eq!((strokes.len(), strokes[0].as_array().unwrap().len()), (tokens, 2));
    let others = answer["tokens"][0]["alternatives"].as_array().unwrap();
    assert!(others[0]["token"].is_string() && others[0]["confidence"].as_f64() <= Some(1.0), "{others:?}");
    assert!(answer["mathml"].as_str().unwrap().starts_with("<math"), "{}", answer["mathml"]);
    assert!(answer["alternatives"][1]["mathml"].is_string() && answer["milliseconds"].is_number());

    let answer = asker.ask("POST", "/api/recognize?alignment=1&image=1", "image/png", cross()).await.json();
    assert!(answer["image"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{answer}");
    let boxes = answer["alignment"]["boxes"].as_array().unwrap();
    assert_eq!(boxes.len(), answer["tokens"].as_array().unwrap().len());
    assert!(
        boxes
            .iter()
            .filter_map(Value::as_array)
            .flatten()
            .all(|side| side.as_f64().is_some_and(|side| (-50.0..500.0).contains(&side))),
        "{boxes:?}"
    );

    let constraints = r#"%7B%22prefix%22:[%22y%22,%22=%22],%22tokens%22:%7B%223%22:%22z%22%7D%7D"#;
    let path = format!("/api/recognize?constraints={constraints}");
    let answer = asker.ask("POST", &path, "application/json", STROKES).await.json();
    let token = |index: usize| &answer["tokens"][index]["token"];
    assert_eq!([token(0), token(1), token(3)], ["y", "=", "z"], "{answer}");

    let mathml = asker.ask("POST", "/api/mathml", "text/plain", r"\frac{1}{x}").await;
    assert!(mathml.json()["mathml"].as_str().unwrap().contains("<mfrac"), "{mathml:?}");
    assert_eq!(asker.ask("GET", "/api/health", "", "").await.json()["status"], "ok");
    let model = asker.ask("GET", "/api/model", "", "").await.json();
    assert!(
        model["vocabulary"].as_array().unwrap().len() == 110 && model["parameters"].as_u64() > Some(1000)
    );
    let metrics = asker.ask("GET", "/metrics", "", "").await;
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"), "{metrics:?}");
    assert!(String::from_utf8_lossy(&metrics.body).contains("comer_recognition_seconds_count"));
    assert_eq!(asker.ask("GET", "/api/openapi.json", "", "").await.json()["openapi"], "3.1.0");
    assert!(asker.ask("GET", "/", "", "").await.body.starts_with(b"<!doctype html>"));
}

/// Every answer to a bad request is a problem with a reason.
pub fn assert_problem(answer: &Answer, status: u16, word: &str, name: &str) {
    assert_eq!(answer.status.as_u16(), status, "{name}: {answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json", "{name}");
    let problem = answer.json();
    assert_eq!(problem["status"], status, "{name}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(word), "{name}: {detail:?} lacks {word:?}");
}

async fn check_bad_requests(asker: &Asker) {
    let png = cross();
    let mut huge = png.clone();
    huge[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]); // 30000 x 30000, by its header
    let checksum = crc32fast::hash(&huge[12..29]);
    huge[29..33].copy_from_slice(&checksum.to_be_bytes());
    // 48 million pixels in a quarter of a megabyte.
    let bomb = flat(20_000, 2_400);
    assert!(bomb.len() < 300_000, "{}", bomb.len());
    let laughs = format!(
        "<!DOCTYPE ink [<!ENTITY a \"1 2,\">{}]><ink><trace>&z;</trace></ink>",
        (b'b'..=b'z')
            .map(|letter| format!(
                "<!ENTITY {0} \"{1}\">",
                letter as char,
                format!("&{};", (letter - 1) as char).repeat(10)
            ))
            .collect::<String>()
    );
    let (no_image, wrong_part) = form("text", &png);
    let (kind, part) = form("image", &png);
    let (_, empty_part) = form("image", b"");
    let cut_part = part[..part.len() - 20].to_vec();
    let many = format!("[{}[[1,2]]]", "[[1,2]],".repeat(2_000));
    let long = format!("[[{}[1,2]]]", "[1,2],".repeat(50_000));
    let cases: Vec<(&str, &str, Vec<u8>, u16, &str)> = vec![
        ("nothing", "", vec![], 400, "empty"),
        ("an empty picture", "image/png", vec![], 400, "empty"),
        ("an empty part", &kind, empty_part, 400, "empty"),
        ("a form without a picture", &no_image, wrong_part, 400, "image or file"),
        ("a form without a border", "multipart/form-data", part.clone(), 400, "form"),
        ("a form cut short", &kind, cut_part, 400, "form"),
        ("a text", "text/plain", b"x^2".to_vec(), 415, "text/plain"),
        ("a form of words", "application/x-www-form-urlencoded", png.clone(), 415, "expected image/*"),
        ("a video", "video/mp4", png.clone(), 415, "video/mp4"),
        ("a PDF", "application/pdf", b"%PDF-1.4".to_vec(), 422, "pdftoppm"),
        ("a text as a picture", "image/png", b"this is not a picture".to_vec(), 422, "no known kind"),
        ("a picture as JSON", "application/json", png.clone(), 422, "not JSON"),
        ("a picture as InkML", "application/inkml+xml", png.clone(), 422, "InkML"),
        ("a picture cut short", "image/png", png[..png.len() / 2].to_vec(), 422, "not a readable image"),
        ("a picture without ink", "image/png", flat(60, 40), 422, "no ink"),
        ("a huge picture", "image/png", huge, 422, "30000 x 30000"),
        ("a bomb", "image/png", bomb, 422, "no ink"),
        ("broken JSON", "application/json", b"[[[1, 2".to_vec(), 422, "not JSON"),
        ("deep JSON", "application/json", vec![b'['; 1_000_000], 422, "recursion"),
        ("strokes that are no numbers", "application/json", b"[[[NaN, 1]]]".to_vec(), 422, "not JSON"),
        ("strokes without end", "application/json", b"[[[1e999, 1]]]".to_vec(), 422, "out of range"),
        ("no strokes", "application/json", b"[]".to_vec(), 422, "no strokes"),
        ("too many strokes", "application/json", many.into(), 413, "2001 strokes"),
        ("too many points", "application/json", long.into(), 413, "50001 points"),
        ("broken InkML", "text/xml", b"<ink><trace>1 2".to_vec(), 422, "InkML"),
        ("InkML with NaN", "text/xml", b"<ink><trace>NaN 3, 5 5</trace></ink>".to_vec(), 422, "NaN"),
        ("InkML that multiplies itself", "text/xml", laughs.into(), 422, "InkML"),
        ("too large", "image/png", vec![0; Limits::default().body + 1], 413, "expected at most 16777216"),
    ];
    for (name, kind, body, status, word) in cases {
        assert_problem(&asker.recognize(kind, body).await, status, word, name);
    }
    for (query, word) in [
        ("nbest=0", "nbest"),
        ("nbest=x", "nbest"),
        ("beam=51", "beam"),
        ("alignment=yes", "alignment"),
        ("formulas=two", "one, auto or all"),
        ("n=1", "\"n\""),
        ("constraints=x", "constraints"),
        ("constraints=%7B%22prefix%22:[%22nothing%22]%7D", "\"nothing\""),
        ("constraints=%7B%22tokens%22:%7B%22999%22:%22x%22%7D%7D", "positions below 199"),
    ] {
        let answer = asker.ask("POST", &format!("/api/recognize?{query}"), "image/png", cross()).await;
        assert_problem(&answer, 400, word, query);
    }
    for (name, body, status, word) in [
        ("nothing", b" ".to_vec(), 400, "empty"),
        ("bytes", vec![0xff, 0xfe], 400, "UTF-8"),
        ("half a fraction", br"\frac{1}".to_vec(), 422, "frac"),
        ("too long", vec![b'x'; 20_000], 413, "16384"),
    ] {
        assert_problem(&asker.ask("POST", "/api/mathml", "text/plain", body).await, status, word, name);
    }
}

/// Slow bodies, a full queue, too little time, too many bytes at once.
async fn check_limits(asker: &Asker) {
    let short = Duration::from_millis(50);
    let slow = asker.with(state(Limits { body_time: short, ..Limits::default() }, 1));
    for path in ["/api/recognize", "/api/mathml"] {
        let answer = slow.ask("POST", path, "", Body::new(Endless)).await;
        assert_problem(&answer, 408, "0.05 seconds", path);
    }
    let long = Request::builder().method("POST").uri("/api/recognize").header("content-length", "99999999");
    let answer = slow.send(long.body(Body::new(Endless)).unwrap()).await;
    assert_problem(&answer, 413, "99999999", "a length that is too large is refused before it comes");

    let full = state(Limits { queue: 0, ..Limits::default() }, 1);
    let (wait, end) = std::sync::mpsc::channel::<()>();
    let busy = tokio::spawn({
        let full = full.clone();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        async move { full.queue.run(deadline, move |_| end.recv()).await.map(drop) }
    });
    while full.queue.running() == 0 {
        tokio::task::yield_now().await;
    }
    let answer = asker.with(full.clone()).recognize("image/png", cross()).await;
    assert_problem(&answer, 503, "queue is full", "a full queue");
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
    drop(wait);
    busy.await.unwrap().unwrap();
    assert_eq!(asker.with(full).recognize("image/png", cross()).await.status, StatusCode::OK);

    let hurried = asker.with(state(Limits { work_time: Duration::ZERO, ..Limits::default() }, 1));
    let answer = hurried.recognize("image/png", cross()).await;
    assert_problem(&answer, 503, "within 0 seconds", "no time");

    let narrow = asker.with(state(Limits { all_bodies: 8, ..Limits::default() }, 1));
    for path in ["/api/recognize", "/api/mathml"] {
        assert_problem(&narrow.ask("POST", path, "", "x + y + z + 1").await, 503, "same time", path);
    }
    let unread = asker.with(state(Limits { all_responses: 8, ..Limits::default() }, 1));
    let answer = unread.recognize("image/png", cross()).await;
    assert_problem(&answer, 503, "not received yet", "responses");

    for path in ["/api/recognize", "/api/mathml"] {
        for (name, value, status) in [("host", "evil.example", 421), ("origin", "https://evil.example", 403)]
        {
            let request = Request::post(path).header(name, value).body(Body::from("x")).unwrap();
            assert_problem(&asker.send(request).await, status, "expected", path);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_in_the_description_and_the_description_is_true() {
    let asker = Asker::new(state(Limits::default(), 2));
    check_good_requests(&asker).await;
    check_bad_requests(&asker).await;
    check_limits(&asker).await;
    super::batches::check(&asker).await;
    let description = asker.ask("GET", "/api/openapi.json", "", "").await.json();
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                described.insert((path.clone(), method.clone(), status.parse::<u16>().unwrap()));
                let kinds: Vec<&String> = answer["content"].as_object().unwrap().keys().collect();
                assert_eq!(status != "200", kinds == ["application/problem+json"], "{path} {status}");
            }
        }
    }
    assert_eq!(*asker.seen.lock().unwrap(), described);
    // What it says of limits is what they are.
    let limits = Limits::default();
    let parameters = &description["paths"]["/api/recognize"]["post"]["parameters"];
    assert_eq!(parameters[0]["schema"]["maximum"], limits.answers);
    assert_eq!(parameters[1]["schema"]["maximum"], limits.beam);
    assert_eq!(
        description["components"]["schemas"]["Strokes"]["properties"]["strokes"]["maxItems"],
        limits.strokes
    );
    let batch = &description["paths"]["/api/recognize/batch"]["post"]["requestBody"]["content"];
    assert_eq!(batch["application/json"]["schema"]["properties"]["items"]["maxItems"], limits.batch);
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
}

/// Two crosses, one far below the other: read as one formula with a warning, or found.
#[tokio::test]
async fn several_formulas_are_found_where_they_are_asked_for() {
    let asker = Asker::new(state(Limits::default(), 1));
    let ask = async |more: &str| {
        let cross = |y: u32| format!("[[0,{y}],[40,{0}]],[[40,{y}],[0,{0}]]", y + 60);
        let body = format!("[{},{}]", cross(0), cross(300));
        let path = format!("/api/recognize?greedy=1{more}");
        let answer = asker.ask("POST", &path, "application/json", body).await;
        assert_eq!(answer.status, StatusCode::OK, "{more}: {answer:?}");
        answer.json()
    };
    let place = |top: f64, bottom: f64| json!({ "left": 0.0, "top": top, "right": 40.0, "bottom": bottom });
    let codes = |object: &Value| -> Vec<String> {
        let warnings = object["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["code"].as_str().unwrap().into()).collect()
    };
    let several = "several_formulas".to_string();
    for more in ["&formulas=auto", "&formulas=all"] {
        let found = ask(more).await;
        let formulas = found["formulas"].as_array().unwrap();
        assert_eq!(formulas.len(), 2, "{found}");
        for (formula, (bounds, strokes)) in
            formulas.iter().zip([(place(0.0, 60.0), json!([0, 1])), (place(300.0, 360.0), json!([2, 3]))])
        {
            assert_eq!((&formula["box"], &formula["strokes"]), (&bounds, &strokes), "{found}");
            assert!(formula["latex"].is_string() && !codes(formula).contains(&several), "{found}");
        }
        // The fields at the top are those of the first; the warning is about all.
        for field in ["latex", "confidence", "box", "strokes", "tokens"] {
            assert_eq!(found[field], formulas[0][field], "{field}");
        }
        assert_eq!(codes(&found)[0], several, "{found}");
        assert!(found["aligned"].as_str().unwrap().starts_with(r"\begin{"), "{found}");
    }
    for more in ["", "&formulas=one"] {
        let one = ask(more).await;
        assert_eq!(one["formulas"].as_array().unwrap().len(), 1, "{one}");
        assert_eq!((&one["box"], one.get("aligned")), (&place(0.0, 360.0), None), "{one}");
        assert_eq!(codes(&one)[0], several, "{one}");
        assert!(one["warnings"][0]["message"].as_str().unwrap().contains("read as one"), "{one}");
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_in_words() {
    let asker = Asker::new(state(Limits::default(), 1));
    assert_problem(&asker.ask("GET", "/etc/passwd", "", "").await, 404, "/etc/passwd", "a path");
    assert_problem(&asker.ask("GET", "/../Cargo.toml", "", "").await, 404, "nothing at", "a way up");
    let answer = asker.ask("GET", "/api/recognize", "", "").await;
    assert_problem(&answer, 405, "GET", "a method");
    assert_eq!(answer.header("allow"), "POST");
    assert_eq!(asker.ask("HEAD", "/", "", "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn every_answer_is_guarded_and_has_an_identifier() {
    let asker = Asker::new(state(Limits::default(), 1));
    for path in ["/", "/app.js", "/api/health", "/nothing"] {
        let answer = asker.ask("GET", path, "", "").await;
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{path}");
        assert!(!answer.header("x-request-id").is_empty(), "{path}");
    }
    let named = Request::get("/api/health").header("x-request-id", "mine-7").body(Body::empty()).unwrap();
    assert_eq!(asker.send(named).await.header("x-request-id"), "mine-7");
    // No inline script or style in the page, which the policy would refuse.
    let page = String::from_utf8(asker.ask("GET", "/", "", "").await.body).unwrap();
    assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick="));
    assert_eq!(page.matches("<script").count(), page.matches("<script src=").count());
    assert!(!page.contains("http://") && !page.contains("https://"), "something is loaded from elsewhere");
}

#[tokio::test]
async fn an_explanation_is_a_page_that_may_only_run_its_own_script() {
    let asker = Asker::new(state(Limits::default(), 1));
    let answer = asker.ask("POST", "/api/recognize?greedy=1&explain=1", "image/png", cross()).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("sandbox allow-scripts"), "{policy}");
    let page = String::from_utf8(answer.body).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("id=\"tokens\""), "{page}");
    assert_eq!(asker.recognize("image/png", cross()).await.header("content-type"), "application/json");
}

#[tokio::test]
async fn only_the_origins_that_were_named_may_ask() {
    let asker = Asker::new(state(Limits::default(), 1));
    for (origin, allowed) in [("https://example.org", true), ("https://example.com", false), ("null", false)]
    {
        let request = || Request::builder().uri("/api/health").header("origin", origin);
        let answer = asker.send(request().body(Body::empty()).unwrap()).await;
        assert_eq!(answer.header("access-control-allow-origin") == origin, allowed, "{origin}");
        let before = request().method("OPTIONS").header("access-control-request-method", "POST");
        let answer = asker.send(before.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status == StatusCode::NO_CONTENT, allowed, "{origin}: {answer:?}");
    }
}

#[tokio::test]
async fn what_is_counted_can_be_seen() {
    let asker = Asker::new(state(Limits::default(), 1));
    asker.recognize("image/png", cross()).await;
    asker.recognize("text/plain", "x").await;
    asker.ask("GET", "/some/secret", "", "").await;
    let text = String::from_utf8(asker.ask("GET", "/metrics", "", "").await.body).unwrap();
    for line in [
        r#"comer_requests_total{path="/api/recognize",status="200"} 1"#,
        r#"comer_requests_total{path="/api/recognize",status="415"} 1"#,
        r#"comer_requests_total{path="other",status="404"} 1"#,
        "comer_recognition_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let _: Value = asker.ask("GET", "/api/health", "", "").await.json();
}
