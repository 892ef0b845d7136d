//! When work has to end before it is finished: a deadline or a cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::error::{Error, Result};

/// A deadline and a cancellation, either of which may be absent.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// The time from which work is an error.
    pub deadline: Option<Instant>,
    /// Cancels the work from another thread.
    pub cancel: Option<CancelToken>,
}

impl Interrupt {
    /// The error that ends the work now, if any does.
    pub fn check(&self) -> Result<()> {
        if self.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::Cancelled);
        }
        // The clock is only read if there is a deadline: not every platform has one.
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::DeadlineExceeded);
        }
        Ok(())
    }
}

/// Cancels the preparation of inputs and recognitions from another thread. Clones share their state.
///
/// ```
/// use comer::{CancelToken, RecognizeOptions};
///
/// let token = CancelToken::new();
/// let options = RecognizeOptions::new().cancel_token(&token);
/// // In another thread:
/// token.cancel();
/// assert!(token.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels everything that has this token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn interrupts_say_why() {
        let token = CancelToken::new();
        let cancel = Interrupt { deadline: None, cancel: Some(token.clone()) };
        assert!(cancel.check().is_ok() && Interrupt::default().check().is_ok());
        let at = |deadline: Instant| Interrupt { deadline: Some(deadline), ..cancel.clone() };
        assert!(at(Instant::now() + Duration::from_secs(3600)).check().is_ok());
        let late = at(Instant::now());
        assert!(matches!(late.check(), Err(Error::DeadlineExceeded)));
        token.cancel();
        assert!(matches!(cancel.check(), Err(Error::Cancelled)));
        assert!(matches!(late.check(), Err(Error::Cancelled)));
    }
}
