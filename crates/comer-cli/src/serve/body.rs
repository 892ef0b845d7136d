//! Request bodies, with limits on size, time and total memory.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::limits::Limits;
use super::problem::Problem;

/// A body with its share of the memory quota, which is released when dropped.
pub struct Received {
    pub bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// Reads a body of at most `most` bytes.
pub async fn receive(
    headers: &HeaderMap,
    body: Body,
    most: usize,
    limits: &Limits,
    body_quota: &Arc<Semaphore>,
) -> Result<Received, Problem> {
    let too_large =
        |found: String| Problem::too_large(format!("the body has {found} bytes, expected at most {most}"));
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(length) = length.filter(|&length| length > most as u64) {
        return Err(too_large(length.to_string()));
    }
    let reading = collect(body, most, body_quota, &too_large);
    timeout(limits.body_time, reading).await.unwrap_or_else(|_| {
        let seconds = limits.body_time.as_secs_f64();
        let detail = format!("the body was not received within {seconds} seconds");
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
    })
}

async fn collect(
    mut body: Body,
    most: usize,
    body_quota: &Arc<Semaphore>,
    too_large: &impl Fn(String) -> Problem,
) -> Result<Received, Problem> {
    let mut bytes = Vec::new();
    let mut taken: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Problem::bad_request(format!("the body is incomplete: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(too_large(format!("more than {most}")));
        }
        let share = u32::try_from(data.len())
            .ok()
            .and_then(|size| body_quota.clone().try_acquire_many_owned(size).ok());
        let share = share.ok_or_else(|| Problem::busy("too many request bodies at the same time", 1))?;
        match &mut taken {
            Some(taken) => taken.merge(share),
            None => taken = Some(share),
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Received { bytes: bytes.into(), _room: taken })
}
