//! Accepts connections: a limit on their number, timeouts for slow clients, graceful shutdown.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::body::Stopping;
use super::guard::{Activity, Guarded};
use super::limits::Limits;

/// Largest request head in bytes.
const MAX_HEAD: usize = 16 << 10;
/// How long to drain a client that is still sending after its response, so that it can read the response.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes of a response that the system keeps for a client that does not read; by itself it would keep megabytes.
const SEND_BUFFER: usize = 256 << 10;

/// The response to an incomplete head.
const SLOW_HEAD: &str = "{\"type\":\"about:blank\",\"title\":\"Request Timeout\",\"status\":408,\
    \"detail\":\"the head of the request was not received in time\"}";

/// Serves connections until `stop`, then finishes the requests in progress.
pub async fn serve(listener: TcpListener, app: Router, limits: Limits, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let (stopping, told) = watch::channel(false);
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let (app, told) = (app.clone(), told.clone());
                connections.spawn(async move {
                    answer(stream, app, limits, told).await;
                    drop(place);
                });
            }
            // Most likely out of file descriptors: try again.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
    drop(listener);
    // Fails only if there are no connections.
    let _ = stopping.send(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(limits.work_time + limits.write_time.max(LINGER), finished).await;
}

/// Serves one connection.
async fn answer(stream: TcpStream, app: Router, limits: Limits, mut told: watch::Receiver<bool>) {
    // Responses are small and should not be delayed.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
    let activity = Arc::new(Activity::default());
    let service = TowerToHyperService::new(app);
    type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;
    let (own, stop) = (activity.clone(), Stopping(told.clone()));
    let service = service_fn(move |mut request: Request<Incoming>| -> Answer {
        request.extensions_mut().insert(stop.clone());
        own.handling.store(true, Ordering::Relaxed);
        let (own, response) = (own.clone(), service.call(request));
        Box::pin(async move {
            let response = response.await;
            own.handling.store(false, Ordering::Relaxed);
            response
        })
    });
    let stream = Guarded::new(stream, limits.write_time, activity.clone());
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut stopping = *told.borrow();
    if stopping {
        activity.stopping.store(true, Ordering::Relaxed);
        Pin::new(&mut connection).graceful_shutdown();
    }
    let result = loop {
        tokio::select! {
            result = poll_fn(|context| connection.poll_without_shutdown(context)) => break result,
            _ = told.changed(), if !stopping => {
                stopping = true;
                activity.stopping.store(true, Ordering::Relaxed);
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner().into_inner();
    if result.as_ref().is_err_and(is_guard_timeout) {
        // What the client does not read must not stay in the buffers of the system either.
        let _ = stream.set_zero_linger();
        return;
    }
    let unfinished = !parts.read_buf.is_empty();
    if result.is_err_and(|error| error.is_timeout()) && unfinished {
        let head =
            "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/problem+json";
        let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{SLOW_HEAD}", SLOW_HEAD.len());
        let _ = timeout(LINGER, stream.write_all(text.as_bytes())).await;
    }
    let _ = stream.shutdown().await;
    if !stopping {
        // Closing with unread bytes would reset the connection before the client has read the response.
        let mut rest = [0; 4096];
        let drain = async { while matches!(stream.read(&mut rest).await, Ok(1..)) {} };
        let _ = timeout(LINGER, drain).await;
    }
}

/// Whether a client did not read its response in time, or did not send its request before the server stopped.
fn is_guard_timeout(error: &hyper::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| error.kind() == ErrorKind::TimedOut)
}
