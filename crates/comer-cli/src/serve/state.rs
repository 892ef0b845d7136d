//! State shared by all requests.

use std::sync::Arc;

use axum::http::HeaderValue;
use comer::Recognizer;
use tokio::sync::Semaphore;

use super::key::Keys;
use super::limits::Limits;
use super::metrics::Metrics;
use super::queue::Queue;

/// The model, the limits, the queue and the metrics.
pub struct State {
    pub recognizer: Arc<Recognizer>,
    pub limits: Limits,
    pub queue: Queue,
    /// Memory quota of request bodies, in bytes.
    pub body_quota: Arc<Semaphore>,
    /// Memory quota of responses, in bytes.
    pub responses: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Origins that may use the API, beside our own.
    pub origins: Vec<HeaderValue>,
    /// Names that the server may be addressed by, beside addresses and localhost.
    pub hosts: Vec<String>,
    /// Keys that requests need; none if they need no key.
    pub keys: Keys,
    /// Whether to log requests.
    pub log: bool,
}

impl State {
    pub fn new(
        recognizer: Recognizer,
        limits: Limits,
        threads: usize,
        origins: Vec<HeaderValue>,
        hosts: Vec<String>,
        log: bool,
    ) -> Self {
        Self {
            recognizer: Arc::new(recognizer),
            limits,
            queue: Queue::new(threads, limits.queue),
            body_quota: Arc::new(Semaphore::new(limits.all_bodies)),
            responses: Arc::new(Semaphore::new(limits.all_responses)),
            metrics: Metrics::default(),
            origins,
            hosts,
            keys: Keys::default(),
            log,
        }
    }
}
