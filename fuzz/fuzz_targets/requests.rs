//! Any request, through the router of the server with a tiny model: an answer or a problem, never a failure of the server.
#![no_main]

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use comer::Recognizer;
use http_body_util::BodyExt;
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;
use tower::ServiceExt;

static SERVER: LazyLock<(Runtime, Router)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    // Made by the example that makes the corpus: two tokens, so that hardly any time goes into searching.
    let model = include_bytes!("../corpus/model_file/fusion");
    let recognizer = Recognizer::from_bytes(model).expect("a model");
    (runtime, comer_cli::router(recognizer))
});

/// A request as in HTTP: method and target, headers, an empty line, the body.
fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = bytes[..end].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let (method, target) = str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    request.body(bytes[end + 4..].to_vec().into()).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(request) = request(bytes) else { return };
    let (runtime, router) = &*SERVER;
    runtime.block_on(async {
        let Ok(response) = router.clone().oneshot(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        assert!(!status.is_server_error(), "{status}: {}", body.escape_ascii());
    });
});
