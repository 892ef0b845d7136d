//! How much a request may ask for; `docs/serve.md` lists the same.

use std::time::Duration;

use anyhow::{Result, bail};

/// What is refused beyond.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of all bodies that are being read or wait for a core.
    pub all_bodies: usize,
    /// Bytes of a formula to be shown as MathML.
    pub formula: usize,
    /// Strokes of an ink.
    pub strokes: usize,
    /// Points of an ink.
    pub points: usize,
    /// Answers to one request.
    pub answers: usize,
    /// Prefixes that each reading direction keeps.
    pub beam: usize,
    /// Requests that wait for a core.
    pub queue: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// For the head of a request to arrive, and for an idle connection to stay.
    pub head_time: Duration,
    /// For the body of a request to arrive.
    pub body_time: Duration,
    /// From the body's arrival to the answer.
    pub work_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 << 20,
            all_bodies: 256 << 20,
            formula: 16 << 10,
            strokes: 2_000,
            points: 50_000,
            answers: 20,
            beam: 50,
            queue: 64,
            connections: 1_024,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(30),
            work_time: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Refuses what cannot work.
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
