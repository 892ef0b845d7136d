//! Request bodies, with limits on size, time and total memory.

use std::future::pending;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::guard::STOP_TIME;
use super::limits::Limits;
use super::problem::Problem;

/// A body with its share of the memory quota, which is released when dropped.
pub struct Received {
    pub bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

/// Whether the server stops; every request of a connection has it among its extensions.
#[derive(Clone)]
pub struct Stopping(pub watch::Receiver<bool>);

/// Completes when the server has been stopping for [`STOP_TIME`].
async fn stopped(parts: &Parts) {
    match parts.extensions.get::<Stopping>() {
        Some(Stopping(told)) => {
            let _ = told.clone().wait_for(|stopping| *stopping).await;
            sleep(STOP_TIME).await;
        }
        None => pending().await,
    }
}

/// Reads a body of at most `most` bytes.
pub async fn receive(
    parts: &Parts,
    body: Body,
    most: usize,
    limits: &Limits,
    body_quota: &Arc<Semaphore>,
) -> Result<Received, Problem> {
    let too_large =
        |found: String| Problem::too_large(format!("the body has {found} bytes, expected at most {most}"));
    let length =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(length) = length.filter(|&length| length > most as u64) {
        return Err(too_large(length.to_string()));
    }
    let reading = timeout(limits.body_time, collect(body, most, body_quota, &too_large));
    let received = tokio::select! {
        received = reading => received,
        () = stopped(parts) => {
            return Err(Problem::busy("the server stopped before the body was received", 1));
        }
    };
    received.unwrap_or_else(|_| {
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
