//! `POST /api/recognize/batch`: several pictures or inks in one request, answered in order.

use std::fmt;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::Response;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

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
    let most = state.limits.batch;
    let (items, count) = match kind {
        Kind::Json => json_items(&received.bytes, most)?,
        _ => {
            let items = request::parts(&parts.headers, received.bytes.clone()).await?;
            let count = items.len();
            (items, count)
        }
    };
    if !(1..=most).contains(&count) {
        let detail = format!("there are {count} items, expected 1 to {most}");
        return Err(if count == 0 { Problem::bad_request(detail) } else { Problem::too_large(detail) });
    }
    // One for the whole batch.
    let deadline = Instant::now() + state.limits.work_time;
    let mut results = vec![Value::Null; items.len()];
    // As many as there are cores, so that a batch does not fill the queue. Dropped tasks are cancelled.
    let cores = Arc::new(Semaphore::new(state.queue.threads()));
    let mut tasks = JoinSet::new();
    for (number, upload) in items.into_iter().enumerate() {
        let Ok(core) = cores.clone().acquire_owned().await else { break };
        let (state, wanted, received) = (state.clone(), wanted.clone(), received.clone());
        tasks.spawn(async move {
            let result = api::answer_to(&state, upload, wanted, received, deadline).await;
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

/// The items of `{"items": [...]}`, at most `most` of them and how many there are: data URLs, objects with one under `src`, or
/// strokes. What is in them is parsed later.
fn json_items(bytes: &Bytes, most: usize) -> Result<(Vec<Upload>, usize), Problem> {
    let not_json = |error| Problem::bad_request(format!("the body is not JSON: {error}"));
    let body = match serde_json::from_slice::<ItemsBody>(bytes) {
        Err(error) if !error.is_data() => return Err(not_json(error)),
        body => body.ok(),
    };
    let expected =
        "expected {\"items\": [{\"src\": \"data:image/png;base64,...\"}, {\"strokes\": [...]}, ...]}";
    let list = body.and_then(|body| body.items).filter(|items| items.get().starts_with('['));
    let list =
        list.ok_or_else(|| Problem::bad_request(format!("there is no list called items, {expected}")))?;
    let mut items = Vec::new();
    let count = Deserializer::from_str(list.get()).deserialize_seq(Items { items: &mut items, most });
    let upload = |item: &RawValue| Upload { kind: Kind::Item, bytes: bytes.slice_ref(item.get().as_bytes()) };
    Ok((items.into_iter().map(upload).collect(), count.map_err(not_json)?))
}

#[derive(Deserialize)]
struct ItemsBody<'a> {
    #[serde(borrow)]
    items: Option<&'a RawValue>,
}

/// Keeps the first items of a list and counts all of them.
struct Items<'a, 'de> {
    items: &'a mut Vec<&'de RawValue>,
    most: usize,
}

impl<'de> Visitor<'de> for Items<'_, 'de> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        while self.items.len() < self.most
            && let Some(item) = list.next_element()?
        {
            self.items.push(item);
        }
        let mut count = self.items.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
