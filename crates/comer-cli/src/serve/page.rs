//! The page: files that are part of the program.

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

fn file(kind: &'static str, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub async fn index() -> Response<Body> {
    file("text/html; charset=utf-8", include_str!("../../web/index.html"))
}

pub async fn script() -> Response<Body> {
    file("text/javascript; charset=utf-8", include_str!("../../web/script.js"))
}

pub async fn style() -> Response<Body> {
    file("text/css; charset=utf-8", include_str!("../../web/style.css"))
}

pub async fn icon() -> Response<Body> {
    file("image/svg+xml", include_str!("../../web/icon.svg"))
}
