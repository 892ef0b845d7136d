//! What all requests share.

use std::sync::Arc;

use axum::http::HeaderValue;
use comer::Recognizer;
use tokio::sync::Semaphore;

use super::limits::Limits;
use super::metrics::Metrics;
use super::queue::Queue;

/// The model, the limits, who is waiting, and what was counted.
pub struct State {
    pub recognizer: Arc<Recognizer>,
    pub limits: Limits,
    pub queue: Queue,
    /// Bytes that bodies may still take.
    pub room: Arc<Semaphore>,
    pub metrics: Metrics,
    /// Whose pages may use the interface, beside our own.
    pub origins: Vec<HeaderValue>,
    /// Whether each request is worth a line.
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
