//! `POST /api/recognize/batch`: several pictures or inks in one request, answered in order.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::Response;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::api::{self, Pairs};
use super::body::receive;
use super::problem::Problem;
use super::request::{self, Kind, Upload};
use super::state::State;

/// Recognises every item on a core of its own; an item that fails has an error in its place.
pub async fn recognize(
    Shared(state): Shared<Arc<State>>,
    pairs: Result<Pairs, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let wanted = api::wanted(pairs, &state)?;
    if wanted.explain {
        return Err(Problem::bad_request("parameter explain is for single pictures: use /api/recognize"));
    }
    let (parts, body) = request.into_parts();
    let kind = request::batch_type(&parts.headers)?;
    let received =
        Arc::new(receive(&parts, body, state.limits.body, &state.limits, &state.body_quota).await?);
    let items = match kind {
        Kind::Json => json_items(&received.bytes)?,
        _ => request::parts(&parts.headers, received.bytes.clone()).await?.into_iter().map(Ok).collect(),
    };
    if items.is_empty() || items.len() > state.limits.batch {
        let most = state.limits.batch;
        let detail = format!("there are {} items, expected 1 to {most}", items.len());
        return Err(if items.is_empty() { Problem::bad_request(detail) } else { Problem::too_large(detail) });
    }
    let mut results = vec![Value::Null; items.len()];
    // As many as there are cores, so that a batch does not fill the queue. Dropped tasks are cancelled.
    let cores = Arc::new(Semaphore::new(state.queue.threads()));
    let mut tasks = JoinSet::new();
    for (number, item) in items.into_iter().enumerate() {
        let Ok(core) = cores.clone().acquire_owned().await else { break };
        let (state, wanted, received) = (state.clone(), wanted.clone(), received.clone());
        tasks.spawn(async move {
            let result = match item {
                Ok(upload) => api::answer_to(&state, upload, wanted, received).await,
                Err(problem) => Err(problem),
            };
            drop(core);
            (number, result)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let Ok((number, result)) = done else { continue };
        results[number] = result.unwrap_or_else(|problem| json!({ "error": problem.json() }));
    }
    api::json_response(&state, &json!({ "results": results }))
}

/// The items of `{"items": [...]}`: data URLs, objects with one under `src`, or strokes.
fn json_items(bytes: &Bytes) -> Result<Vec<Result<Upload, Problem>>, Problem> {
    let body: Value = serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad_request(format!("the body is not JSON: {error}")))?;
    let expected =
        "expected {\"items\": [{\"src\": \"data:image/png;base64,...\"}, {\"strokes\": [...]}, ...]}";
    let items = body.get("items").and_then(Value::as_array);
    let items =
        items.ok_or_else(|| Problem::bad_request(format!("there is no list called items, {expected}")))?;
    Ok(items.iter().map(item).collect())
}

fn item(item: &Value) -> Result<Upload, Problem> {
    if let Some(source) = item.as_str().or_else(|| item.get("src").and_then(Value::as_str)) {
        return request::embedded(source);
    }
    if item.is_array() || item.get("strokes").is_some() {
        return Ok(Upload { kind: Kind::Json, bytes: item.to_string().into() });
    }
    Err(Problem::bad_request("the item has neither src nor strokes, expected a data URL or strokes"))
}
