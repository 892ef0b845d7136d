//! The handlers of the API.

use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State as Shared};
use axum::http::{HeaderValue, Response, StatusCode, Uri, header};
use axum::response::IntoResponse;
use comer::{AlignmentDetail, Constraints, Formula, InputOptions, RecognizeOptions, Warning};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::answer::answer;
use super::body::receive;
use super::problem::Problem;
use super::queue::{Refused, Stop};
use super::request::{self, Upload, Wanted};
use super::state::State;
use crate::explanation;
use crate::reading::page_json;

/// The OpenAPI description, with the version of the program.
pub static OPENAPI: LazyLock<String> =
    LazyLock::new(|| include_str!("openapi.json").replace("{version}", env!("CARGO_PKG_VERSION")));

/// Policy of an explanation page, which has inline scripts and images and needs nothing else.
const EXPLANATION_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts";

pub type Pairs = Query<Vec<(String, String)>>;

fn typed(kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A response of a recognition. Until the client has received it, or has gone, it counts towards the memory quota.
fn counted(state: &State, kind: &'static str, text: String) -> Result<Response<Body>, Problem> {
    let size = u32::try_from(text.len()).ok();
    let share = size.and_then(|size| state.responses.clone().try_acquire_many_owned(size).ok());
    let share = share.ok_or_else(|| Problem::busy("too many responses are not received yet", 1))?;
    struct Counted(String, #[expect(dead_code, reason = "released when dropped")] OwnedSemaphorePermit);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Ok(typed(kind, Bytes::from_owner(Counted(text, share))))
}

fn as_json(value: &Value) -> Response<Body> {
    typed("application/json", value.to_string())
}

/// The response of a recognition.
pub fn json_response(state: &State, value: &Value) -> Result<Response<Body>, Problem> {
    counted(state, "application/json", value.to_string())
}

/// `POST /api/recognize`.
pub async fn recognize(
    Shared(state): Shared<Arc<State>>,
    pairs: Result<Pairs, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let wanted = wanted(pairs, &state)?;
    let (parts, body) = request.into_parts();
    request::check_type(&parts.headers)?;
    let received = receive(&parts, body, state.limits.body, &state.limits, &state.body_quota).await?;
    let upload = request::upload(&parts.headers, received.bytes.clone()).await?;
    let deadline = Instant::now() + state.limits.work_time;
    queued(&state, received, deadline, move |state, stop| respond(state, &upload, &wanted, stop)).await
}

/// The query parameters.
pub fn wanted(
    pairs: Result<Pairs, axum::extract::rejection::QueryRejection>,
    state: &State,
) -> Result<Wanted, Problem> {
    let Query(pairs) = pairs.map_err(|error| Problem::bad_request(error.body_text()))?;
    Wanted::new(&pairs, &state.limits)
}

/// Runs CPU-bound work once a core is free. The body keeps its share of the memory quota until then.
async fn queued<T: Send + 'static>(
    state: &Arc<State>,
    body: impl Send + 'static,
    deadline: Instant,
    work: impl FnOnce(&State, &Stop) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let own = state.clone();
    let work = move |stop: &Stop| {
        let result = work(&own, stop);
        drop(body);
        result
    };
    let busy = |detail: String| {
        let waiting = state.queue.occupied() as f64 / state.queue.threads() as f64;
        Problem::busy(detail, (waiting * state.metrics.mean_seconds()).ceil().clamp(1.0, 60.0) as u64)
    };
    match state.queue.run(deadline, work).await {
        Ok(result) => result,
        Err(Refused::Full) => {
            Err(busy(format!("the queue is full: {} requests are waiting", state.limits.queue)))
        }
        Err(Refused::Late) => {
            let seconds = state.limits.work_time.as_secs_f64();
            Err(busy(format!("no core was free within {seconds} seconds")))
        }
        Err(Refused::Broken) => {
            let detail = "the recognition panicked; this is a bug";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
        }
    }
}

/// The answer to one item of a batch, by the deadline of the batch.
pub async fn answer_to(
    state: &Arc<State>,
    upload: Upload,
    wanted: Wanted,
    body: impl Send + 'static,
    deadline: Instant,
) -> Result<Value, Problem> {
    let work = move |state: &State, stop: &Stop| timed_answer(&read(state, &upload, &wanted, stop)?, &wanted);
    queued(state, body, deadline, work).await
}

/// The CPU-bound part of a request, without the response.
fn read(state: &State, upload: &Upload, wanted: &Wanted, stop: &Stop) -> Result<Page, Problem> {
    let start = std::time::Instant::now();
    let failed = |error: comer::Error| match error {
        comer::Error::DeadlineExceeded | comer::Error::Cancelled => {
            let detail = format!("not finished within {} seconds", state.limits.work_time.as_secs_f64());
            Problem::busy(detail, 1)
        }
        // The query is at fault, not the picture.
        error @ (comer::Error::UnknownToken { .. } | comer::Error::Config { .. }) => {
            Problem::bad_request(error.to_string())
        }
        error => Problem::unreadable(error.to_string()),
    };
    let deadline = stop.deadline.into_std();
    let preparation = InputOptions::new().raw(wanted.raw).cancel_token(&stop.token).deadline(deadline);
    let (inputs, warnings) = upload.read(&preparation, wanted.formulas, &state.limits, &failed)?;
    let mut options = RecognizeOptions::new()
        .search(wanted.search.clone())
        .alignment(if wanted.explain { AlignmentDetail::Full } else { AlignmentDetail::Attention })
        .constraints(wanted.constraints.clone())
        .threads(1)
        .cancel_token(&stop.token)
        .deadline(deadline);
    let mut formulas = Vec::with_capacity(inputs.len());
    for input in inputs {
        formulas.push(state.recognizer.recognize_formula(input, &options).map_err(&failed)?);
        // Constraints are about the first formula.
        options = options.constraints(Constraints::default());
    }
    let time = start.elapsed();
    state.metrics.recognized(time);
    Ok(Page { formulas, warnings, time })
}

/// The formulas of an upload.
struct Page {
    formulas: Vec<Formula>,
    warnings: Vec<Warning>,
    time: Duration,
}

fn timed_answer(page: &Page, wanted: &Wanted) -> Result<Value, Problem> {
    let alignment = wanted.alignment != AlignmentDetail::None;
    let mut formulas = Vec::with_capacity(page.formulas.len());
    for formula in &page.formulas {
        let mut object = answer(formula, alignment, wanted.mathml);
        if wanted.image {
            let png =
                formula.input.image().to_png().map_err(|error| Problem::unreadable(error.to_string()))?;
            object["image"] = format!("data:image/png;base64,{}", comer_eval::html::base64(&png)).into();
        }
        formulas.push(object);
    }
    let mut answer = page_json(formulas, &page.warnings);
    answer["milliseconds"] = json!((page.time.as_secs_f64() * 10_000.0).round() / 10.0);
    Ok(answer)
}

/// The CPU-bound part of a request.
fn respond(state: &State, upload: &Upload, wanted: &Wanted, stop: &Stop) -> Result<Response<Body>, Problem> {
    let page = read(state, upload, wanted, stop)?;
    if let (true, Some(Formula { input, recognition, .. })) = (wanted.explain, page.formulas.first()) {
        let page = explanation::page(&state.recognizer, input, recognition);
        let page = page.map_err(|error| Problem::unreadable(format!("{error:#}")))?;
        let mut response = counted(state, "text/html; charset=utf-8", page)?;
        let policy = HeaderValue::from_static(EXPLANATION_POLICY);
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        return Ok(response);
    }
    json_response(state, &timed_answer(&page, wanted)?)
}

/// `POST /api/mathml`.
pub async fn mathml(Shared(state): Shared<Arc<State>>, request: Request) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    let received = receive(&parts, body, state.limits.formula, &state.limits, &state.body_quota).await?;
    let latex = std::str::from_utf8(&received.bytes)
        .map_err(|error| Problem::bad_request(format!("the formula is not UTF-8: {error}")))?;
    if latex.trim().is_empty() {
        return Err(Problem::bad_request("the body is empty, expected LaTeX"));
    }
    match comer_eval::mathml::mathml(latex) {
        Ok(mathml) => Ok(as_json(&json!({ "mathml": mathml }))),
        Err(error) => Err(Problem::unreadable(error.to_string())),
    }
}

/// `GET /api/health`.
pub async fn health(Shared(state): Shared<Arc<State>>) -> Response<Body> {
    let (running, occupied) = (state.queue.running(), state.queue.occupied());
    as_json(&json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "running": running,
        "waiting": occupied.saturating_sub(running),
    }))
}

/// `GET /api/model`.
pub async fn model(Shared(state): Shared<Arc<State>>) -> Response<Body> {
    let recognizer = &state.recognizer;
    as_json(&json!({
        "config": recognizer.config(),
        "vocabulary": recognizer.tokens(),
        "provenance": recognizer.provenance(),
        "parameters": recognizer.parameters(),
    }))
}

/// `GET /api/openapi.json`.
pub async fn openapi() -> Response<Body> {
    typed("application/json", OPENAPI.as_str())
}

/// `GET /metrics`.
pub async fn metrics(Shared(state): Shared<Arc<State>>) -> Response<Body> {
    typed("text/plain; version=0.0.4", state.metrics.text(&state.queue))
}

/// Any other path.
pub async fn not_found(uri: Uri) -> Response<Body> {
    let detail = format!("nothing at {}; see /api/openapi.json", uri.path());
    Problem::new(StatusCode::NOT_FOUND, detail).into_response()
}

/// Any other method.
pub async fn not_allowed(request: Request) -> Response<Body> {
    let detail = format!("method {} is not allowed for {}", request.method(), request.uri().path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into_response()
}
