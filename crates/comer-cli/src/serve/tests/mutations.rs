//! Thousands of requests that are almost right, through the router: an answer or a problem, never a panic.

use axum::http::StatusCode;
use comer_testing::Random;

use super::super::limits::Limits;
use super::{Asker, CROSS, cross, state};

const FORM: &str = "--b\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a\"\r\ncontent-type: image/png\r\n\r\n";
const STROKES: &str = r#"{"strokes": [{"x": [0, 10, 20], "y": [0, 10, 20]}, [[20, 0], [10, 10], [0, 20]]]}"#;

/// Changes, doubles, removes or inserts some bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + (random.uniform() * 4.0) as usize {
        let place = (random.uniform() * bytes.len() as f32) as usize;
        let end = (place + (random.uniform() * 12.0) as usize).min(bytes.len());
        match (random.uniform() * 4.0) as usize {
            0 if place < bytes.len() => bytes[place] = (random.uniform() * 256.0) as u8,
            1 => drop(bytes.drain(place..end)),
            2 => {
                let part = bytes[place..end].to_vec();
                bytes.splice(place..place, part);
            }
            _ => bytes.insert(place, b"\r\n\"{}[]<>-;,0e9\xff\0"[(random.uniform() * 17.0) as usize]),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_almost_right_never_break_the_server() {
    let asker = Asker::new(state(Limits::default(), 2));
    let mut random = Random(7);
    let form = [FORM.as_bytes(), &cross(), b"\r\n--b--\r\n"].concat();
    let seeds: [(&str, &[u8]); 5] = [
        ("multipart/form-data; boundary=b", &form),
        ("application/json", STROKES.as_bytes()),
        ("application/inkml+xml", CROSS.as_bytes()),
        ("image/png", &cross()),
        ("", STROKES.as_bytes()),
    ];
    let mut good = 0;
    for turn in 0..3_000 {
        let (kind, body) = seeds[turn % seeds.len()];
        let (mut kind, mut body) = (kind.as_bytes().to_vec(), body.to_vec());
        mutate(if turn % 10 == 0 && !kind.is_empty() { &mut kind } else { &mut body }, &mut random);
        let Ok(kind) = axum::http::HeaderValue::from_bytes(&kind) else { continue };
        let request = axum::http::Request::post("/api/recognize?greedy=1").header("content-type", kind);
        let answer = asker.send(request.body(body.clone().into()).unwrap()).await;
        let expected = [200, 400, 413, 415, 422];
        assert!(expected.contains(&answer.status.as_u16()), "{answer:?} for {}", body.escape_ascii());
        good += usize::from(answer.status == StatusCode::OK);
    }
    assert!(good > 100, "only {good} requests were still right");
}
