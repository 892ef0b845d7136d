//! A connection whose client has to read its responses, and to send its requests before the server stops.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::limits::WRITE_RATE;

/// How long a client may leave its response unread, or its request unfinished, once the server stops.
pub const STOP_TIME: Duration = Duration::from_secs(2);

/// A stream that fails with [`ErrorKind::TimedOut`] when its client does not receive what is written. Time spent waiting is
/// taken from an allowance; received bytes refill it. Once the server stops, it also fails if the head of a request does not
/// arrive.
pub struct Guarded<S> {
    stream: S,
    allowance: Allowance,
    /// Since when nothing could be written, and the timer for it.
    blocked: Option<(Instant, Pin<Box<Sleep>>)>,
    /// The end of the time for the head of a request, once the server stops.
    last_read: Option<Pin<Box<Sleep>>>,
    activity: Arc<Activity>,
}

/// What else happens on a connection.
#[derive(Default)]
pub struct Activity {
    /// Set when the server stops.
    pub stopping: AtomicBool,
    /// Whether a request is handled, from the end of its head to its response.
    pub handling: AtomicBool,
}

/// How long a client may still keep us waiting.
#[derive(Clone, Copy)]
struct Allowance {
    limit: Duration,
    left: Duration,
}

impl Allowance {
    /// After a wait, the client has received some bytes.
    fn update(&mut self, waited: Duration, received: usize) {
        let earned = Duration::from_secs_f64(received as f64 / f64::from(WRITE_RATE));
        self.left = (self.left.saturating_sub(waited) + earned).min(self.limit);
    }
}

impl<S> Guarded<S> {
    pub fn new(stream: S, limit: Duration, activity: Arc<Activity>) -> Self {
        let allowance = Allowance { limit, left: limit };
        Self { stream, allowance, blocked: None, last_read: None, activity }
    }

    pub fn into_inner(self) -> S {
        self.stream
    }

    /// The result of a write, or a timeout.
    fn check(&mut self, context: &mut Context, result: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match result {
            Poll::Pending => {
                let stopping = self.activity.stopping.load(Ordering::Relaxed);
                let allowance =
                    if stopping { self.allowance.left.min(STOP_TIME) } else { self.allowance.left };
                let (since, timer) = self.blocked.get_or_insert_with(|| {
                    let now = Instant::now();
                    (now, Box::pin(sleep_until(now + allowance)))
                });
                let deadline = *since + allowance;
                if timer.deadline() != deadline {
                    timer.as_mut().reset(deadline);
                }
                ready!(timer.as_mut().poll(context));
                Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read its response")))
            }
            Poll::Ready(result) => {
                let waited = self.blocked.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
                self.allowance.update(waited, *result.as_ref().unwrap_or(&0));
                Poll::Ready(result)
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context, buffer: &mut ReadBuf) -> Poll<Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Activity { stopping, handling } = &*self.activity;
        let is_busy = handling.load(Ordering::Relaxed) || self.blocked.is_some();
        if result.is_ready() || is_busy || !stopping.load(Ordering::Relaxed) {
            return result;
        }
        ready!(self.last_read.get_or_insert_with(|| Box::pin(sleep(STOP_TIME))).as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the server stops before the request was received")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context, bytes: &[u8]) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        slices: &[IoSlice],
    ) -> Poll<Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[test]
    fn slow_clients_keep_their_allowance_and_slower_ones_use_it_up() {
        let limit = Duration::from_secs(15);
        // Seconds between two kilobytes, and how many kilobytes are received before the end.
        for (seconds, expected) in [(0.2, 10_000), (0.25, 10_000), (1.0, 19), (14.0, 1), (15.0, 0)] {
            let mut allowance = Allowance { limit, left: limit };
            let received = (0..10_000).take_while(|_| {
                let waited = Duration::from_secs_f64(seconds);
                let in_time = waited < allowance.left;
                allowance.update(waited, 1 << 10);
                in_time
            });
            assert_eq!(received.count(), expected, "{seconds} s");
        }
    }

    #[tokio::test]
    async fn a_client_that_never_reads_is_given_up() {
        let (own, _other) = duplex(64);
        let mut own = Guarded::new(own, Duration::from_millis(50), Arc::default());
        let error = own.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_reads_a_byte_now_and_then_is_given_up() {
        let (own, mut other) = duplex(64);
        let mut own = Guarded::new(own, Duration::from_millis(100), Arc::default());
        let reader = tokio::spawn(async move {
            while other.read_u8().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let error = own.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(own);
        reader.await.unwrap();
    }
}
