//! State shared by all requests.

use std::sync::Arc;

use axum::http::HeaderValue;
use comer::Recognizer;
use tokio::sync::Semaphore;

use super::limits::Limits;
use super::metrics::Metrics;
use super::queue::Queue;

/// The model, the limits, the queue and the metrics.
pub struct State {
    pub recognizer: Arc<Recognizer>,
    pub limits: Limits,
    pub queue: Queue,
    /// Memory quota of request bodies, in bytes.
    pub room: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Origins that may use the API, beside our own.
    pub origins: Vec<HeaderValue>,
    /// Whether to log requests.
    pub log: bool,
}

impl State {
    pub fn new(
        recognizer: Recognizer,
        limits: Limits,
        threads: usize,
        origins: Vec<HeaderValue>,
        log: bool,
    ) -> Self {
        Self {
            recognizer: Arc::new(recognizer),
            limits,
            queue: Queue::new(threads, limits.queue),
            room: Arc::new(Semaphore::new(limits.all_bodies)),
            metrics: Metrics::default(),
            origins,
            log,
        }
    }
}
