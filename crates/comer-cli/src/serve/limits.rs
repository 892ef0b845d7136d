//! Limits of the server; also listed in `docs/serve.md`.

use std::time::Duration;

use anyhow::{Result, bail};

/// Limits of requests and connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request body.
    pub body: usize,
    /// Bytes of all bodies in progress or waiting.
    pub all_bodies: usize,
    /// Bytes of all responses that clients have not received yet.
    pub all_responses: usize,
    /// Bytes of a formula for `/api/mathml`.
    pub formula: usize,
    /// Strokes of an ink.
    pub strokes: usize,
    /// Points of an ink.
    pub points: usize,
    /// Answers per request.
    pub answers: usize,
    /// Beam size.
    pub beam: usize,
    /// Items of a batch.
    pub batch: usize,
    /// Waiting requests.
    pub queue: usize,
    /// Open connections.
    pub connections: usize,
    /// Timeout of a request head and of an idle connection.
    pub head_time: Duration,
    /// Timeout of a request body.
    pub body_time: Duration,
    /// Time limit from the body to the response.
    pub work_time: Duration,
    /// How long a client may leave a response unread. Receiving [`WRITE_RATE`] bytes gives it a second more, up to this.
    pub write_time: Duration,
}

/// Bytes per second; slower clients are disconnected once they have used up [`Limits::write_time`].
pub const WRITE_RATE: u32 = 4 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 << 20,
            all_bodies: 256 << 20,
            all_responses: 256 << 20,
            formula: 16 << 10,
            strokes: 2_000,
            points: 50_000,
            answers: 20,
            beam: 50,
            batch: 100,
            queue: 64,
            connections: 1_024,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(30),
            work_time: Duration::from_secs(30),
            write_time: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// Checks the values.
    pub fn validate(&self) -> Result<()> {
        if self.body == 0 || self.body > self.all_bodies {
            bail!("--max-body: expected from 1 to {} mebibytes", self.all_bodies >> 20);
        }
        if self.queue > 100_000 {
            bail!("--queue {}: expected at most 100000", self.queue);
        }
        if self.work_time.is_zero() || self.work_time > Duration::from_secs(3_600) {
            bail!("--max-seconds {}: expected from 1 to 3600", self.work_time.as_secs());
        }
        Ok(())
    }
}
