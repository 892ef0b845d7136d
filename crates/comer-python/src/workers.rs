//! Runs work on threads of its own without the GIL, and cancels it on Ctrl-C.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use comer::CancelToken;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// How often signals are handled.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` in a pool of `threads`, one per core by default.
///
/// The pool lives as long as the call: threads do not survive a fork, and Python programs fork.
pub fn run<T: Send + 'static>(
    py: Python,
    threads: Option<usize>,
    work: impl FnOnce(&CancelToken) -> T + Send + 'static,
) -> PyResult<T> {
    if threads == Some(0) {
        return Err(PyValueError::new_err("threads is 0, expected at least 1"));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .thread_name(|number| format!("comer-{number}"))
        // A panic ends the call with an exception, not the process.
        .panic_handler(|_| {})
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("the threads could not be started: {error}")))?;
    let cancel = CancelToken::new();
    let (sender, receiver) = channel();
    let token = cancel.clone();
    pool.spawn(move || {
        let _ = sender.send(work(&token));
    });
    py.detach(move || {
        loop {
            match receiver.recv_timeout(INTERVAL) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("an internal error ended the recognition"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                        cancel.cancel();
                        let _ = receiver.recv();
                        return Err(interrupt);
                    }
                }
            }
        }
    })
}
