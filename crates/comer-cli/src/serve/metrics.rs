//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::queue::Queue;

/// Upper bounds of the histogram buckets in seconds.
const BUCKETS: [f64; 10] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Counters since the start of the server.
#[derive(Default)]
pub struct Metrics {
    /// By path and status.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// Clients that disconnected before their response.
    gone: AtomicU64,
    /// Recognitions per bucket; the last is unbounded.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
}

impl Metrics {
    /// Counts a response.
    pub fn answered(&self, path: &'static str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(|broken| broken.into_inner());
        *requests.entry((path, status)).or_default() += 1;
    }

    /// Counts a client that disconnected before its response.
    pub fn client_gone(&self) {
        self.gone.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a recognition and its time without waiting.
    pub fn recognized(&self, time: Duration) {
        let class = BUCKETS.iter().position(|&bound| time.as_secs_f64() <= bound).unwrap_or(BUCKETS.len());
        self.buckets[class].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// Mean seconds per recognition; 0 before the first.
    pub fn mean_seconds(&self) -> f64 {
        let count: u64 = self.buckets.iter().map(|class| class.load(Ordering::Relaxed)).sum();
        self.microseconds.load(Ordering::Relaxed) as f64 / 1e6 / count.max(1) as f64
    }

    /// The metrics as text.
    pub fn text(&self, queue: &Queue) -> String {
        let mut text = String::new();
        let head = |name: &str, kind: &str, help: &str| {
            format!("# HELP comer_{name} {help}\n# TYPE comer_{name} {kind}\n")
        };
        text += &head("requests_total", "counter", "Responses by path and status.");
        for ((path, status), count) in
            self.requests.lock().unwrap_or_else(|broken| broken.into_inner()).iter()
        {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "comer_requests_total{{path=\"{path}\",status=\"{status}\"}} {count}");
        }
        text += &head("clients_gone_total", "counter", "Clients that disconnected before their response.");
        let _ = writeln!(text, "comer_clients_gone_total {}", self.gone.load(Ordering::Relaxed));
        text += &head("running", "gauge", "Recognitions in progress.");
        let _ = writeln!(text, "comer_running {}", queue.running());
        text += &head("waiting", "gauge", "Requests waiting for a core.");
        let _ = writeln!(text, "comer_waiting {}", queue.occupied().saturating_sub(queue.running()));
        text += &head("threads", "gauge", "Recognitions that may run at the same time.");
        let _ = writeln!(text, "comer_threads {}", queue.threads());
        text += &head("recognition_seconds", "histogram", "Time per recognition without waiting.");
        let mut count = 0;
        for (index, class) in self.buckets.iter().enumerate() {
            count += class.load(Ordering::Relaxed);
            let bound = BUCKETS.get(index).map_or("+Inf".to_string(), f64::to_string);
            let _ = writeln!(text, "comer_recognition_seconds_bucket{{le=\"{bound}\"}} {count}");
        }
        let seconds = self.microseconds.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(
            text,
            "comer_recognition_seconds_sum {seconds}\ncomer_recognition_seconds_count {count}"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_in_the_format_of_prometheus() {
        let metrics = Metrics::default();
        metrics.answered("/", 200);
        metrics.answered("/", 200);
        metrics.answered("/api/recognize", 422);
        metrics.recognized(Duration::from_millis(40));
        metrics.recognized(Duration::from_secs(60));
        let text = metrics.text(&Queue::new(2, 3));
        for line in [
            r#"comer_requests_total{path="/",status="200"} 2"#,
            r#"comer_requests_total{path="/api/recognize",status="422"} 1"#,
            r#"comer_recognition_seconds_bucket{le="0.025"} 0"#,
            r#"comer_recognition_seconds_bucket{le="0.05"} 1"#,
            r#"comer_recognition_seconds_bucket{le="+Inf"} 2"#,
            "comer_recognition_seconds_sum 60.04",
            "comer_recognition_seconds_count 2",
            "comer_threads 2",
            "comer_running 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!((metrics.mean_seconds() - 30.02).abs() < 1e-9);
    }
}
