//! Thousands of requests that are almost right, through the router: an answer or a problem, never a panic. COMER_FUZZ_TURNS
//! is their number.

use axum::http::StatusCode;
use comer_eval::html::base64;
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
    let turns = std::env::var("COMER_FUZZ_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(3_000);
    let mut random = Random(7);
    let form = [FORM.as_bytes(), &cross(), b"\r\n--b--\r\n"].concat();
    let url = format!("data:image/png;base64,{}", base64(&cross()));
    let embedded = format!(r#"{{"src": "{url}"}}"#);
    let batch = format!(r#"{{"items": ["{url}", {{"src": "{url}"}}, {STROKES}, [[[0, 0], [9, 9]]]]}}"#);
    const ONE: &str = "/api/recognize?greedy=1";
    const BATCH: &str = "/api/recognize/batch?greedy=1";
    let seeds: [(&str, &str, &[u8]); 9] = [
        (ONE, "multipart/form-data; boundary=b", &form),
        (ONE, "application/json", STROKES.as_bytes()),
        (ONE, "application/inkml+xml", CROSS.as_bytes()),
        (ONE, "image/png", &cross()),
        (ONE, "", STROKES.as_bytes()),
        (ONE, "application/json", embedded.as_bytes()),
        (BATCH, "application/json", batch.as_bytes()),
        (BATCH, "multipart/form-data; boundary=b", &form),
        (
            "/api/mathml",
            "text/plain",
            br"\sqrt[3]{x_1^2} + \begin{pmatrix} a & \frac12 \\ \text{if} & \R \end{pmatrix}",
        ),
    ];
    let mut good = [0; 3];
    for turn in 0..turns {
        let (path, kind, body) = seeds[turn % seeds.len()];
        let (mut kind, mut body) = (kind.as_bytes().to_vec(), body.to_vec());
        mutate(if turn % 10 == 0 && !kind.is_empty() { &mut kind } else { &mut body }, &mut random);
        let Ok(kind) = axum::http::HeaderValue::from_bytes(&kind) else { continue };
        let request = axum::http::Request::post(path).header("content-type", kind);
        let answer = asker.send(request.body(body.clone().into()).unwrap()).await;
        let expected = [200, 400, 413, 415, 422];
        assert!(expected.contains(&answer.status.as_u16()), "{answer:?} for {}", body.escape_ascii());
        let place = [ONE, BATCH].iter().position(|known| *known == path).unwrap_or(2);
        good[place] += usize::from(answer.status == StatusCode::OK);
    }
    assert!(good.iter().all(|&good| good > turns / 60), "only {good:?} requests were still right");
}
