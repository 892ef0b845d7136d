//! Clients on a real connection: slow ones, ones that leave, and what happens to them when the server ends.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::super::limits::Limits;
use super::super::state::State;
use super::super::{app, connection};
use super::{CROSS, slow_picture, state};

struct Running {
    state: Arc<State>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(limits: Limits, threads: usize) -> Running {
    let state = state(limits, threads);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let stopped = async move { drop(stopped.await) };
    let task = tokio::spawn(connection::serve(listener, app(state.clone()), limits, stopped));
    Running { state, address, stop, task }
}

/// Waits for something to happen.
async fn until(what: &str, test: &dyn Fn() -> bool) {
    for _ in 0..20_000 {
        if test() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{what}: it never happened");
}

fn head(length: usize) -> String {
    format!("POST /api/recognize?greedy=1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n")
}

/// Sends bytes one at a time, with a pause between them, until there is a response, which is returned.
fn drip(address: SocketAddr, at_once: &str, slowly: &str, pause: Duration) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(at_once.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(pause)).unwrap();
    for byte in slowly.bytes() {
        if stream.write_all(&[byte]).is_err() || stream.read_to_end(&mut answer).is_ok() {
            break;
        }
        if !answer.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_get_408() {
    let limits = Limits {
        head_time: Duration::from_millis(300),
        body_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = start(limits, 1).await;
    let pause = Duration::from_millis(60);
    for (name, at_once, slowly) in
        [("head", String::new(), head(CROSS.len())), ("body", head(CROSS.len()), CROSS.to_string())]
    {
        let address = server.address;
        let answer = spawn_blocking(move || drip(address, &at_once, &slowly, pause)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{name}: {answer:?}");
        assert!(
            answer.contains("application/problem+json") && answer.contains("\"status\":408"),
            "{name}: {answer}"
        );
    }
    // One that sends nothing at all is disconnected without a response.
    let mut silent = TcpStream::connect(server.address).unwrap();
    assert_eq!(spawn_blocking(move || silent.read(&mut [0; 10]).unwrap()).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_leave_free_their_place() {
    let server = start(Limits { queue: 1, ..Limits::default() }, 1).await;
    let (wait, end) = std::sync::mpsc::channel::<()>();
    let busy = tokio::spawn({
        let state = server.state.clone();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        async move { state.queue.run(deadline, move |_| end.recv()).await.map(drop) }
    });
    until("the core is taken", &|| server.state.queue.running() == 1).await;
    // One after the other waits in the only place and leaves it.
    for _ in 0..5 {
        let mut client = TcpStream::connect(server.address).unwrap();
        client.write_all((head(CROSS.len()) + CROSS).as_bytes()).unwrap();
        until("the client waits", &|| server.state.queue.occupied() == 2).await;
        drop(client);
        until("its place is free", &|| server.state.queue.occupied() == 1).await;
    }
    drop(wait);
    busy.await.unwrap().unwrap();
    let text = server.state.metrics.text(&server.state.queue);
    assert!(text.contains("comer_clients_gone_total 5"), "{text}");
    assert!(text.contains("comer_recognition_seconds_count 0"), "nothing was computed for them: {text}");

    // One that leaves while its formula is read.
    let mut client = TcpStream::connect(server.address).unwrap();
    let request = head(CROSS.len()).replace("greedy=1", "beam=50");
    client.write_all((request + CROSS).as_bytes()).unwrap();
    until("it is read", &|| server.state.queue.running() == 1).await;
    drop(client);
    until("the core is free", &|| server.state.queue.occupied() == 0).await;
    let text = server.state.metrics.text(&server.state.queue);
    assert!(text.contains("comer_recognition_seconds_count 0"), "it was stopped: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_is_finished_at_the_end() {
    let server = start(Limits::default(), 1).await;
    let mut idle = TcpStream::connect(server.address).unwrap();
    let mut client = TcpStream::connect(server.address).unwrap();
    let (first, second) = CROSS.split_at(20);
    // The server asks for the body once it has begun to handle the request.
    let expecting = head(CROSS.len()).replace("host:", "expect: 100-continue\r\nhost:");
    client.write_all(expecting.as_bytes()).unwrap();
    let (mut client, go_on) = spawn_blocking(move || {
        let mut go_on = [0; 25];
        client.read_exact(&mut go_on).unwrap();
        (client, go_on)
    })
    .await
    .unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(first.as_bytes()).unwrap();
    server.stop.send(()).unwrap();
    // New connections are refused once it has stopped listening.
    while TcpStream::connect(server.address).is_ok() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    client.write_all(second.as_bytes()).unwrap();
    let answer = spawn_blocking(move || {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"latex\""), "{answer}");
    assert_eq!(idle.read(&mut [0; 10]).unwrap(), 0);
    server.task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_refused_before_its_end_still_gets_its_answer() {
    let server = start(Limits { body: 1000, ..Limits::default() }, 1).await;
    let address = server.address;
    let answer = spawn_blocking(move || {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(head(50_000_000).as_bytes()).unwrap();
        let _ = client.write_all(&vec![7; 3_000_000]);
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer:?}");
}

/// A client that asks for pages until the server no longer takes its requests, and reads nothing.
fn unread(address: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let request = "GET /api/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
    while client.write_all(request.as_bytes()).is_ok() {}
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read_lose_their_place() {
    let limits = Limits { connections: 2, write_time: Duration::from_millis(300), ..Limits::default() };
    let server = start(limits, 1).await;
    let address = server.address;
    let answer = spawn_blocking(move || {
        // They hold all places at first.
        let _held = [unread(address), unread(address)];
        let mut client = TcpStream::connect(address).unwrap();
        client
            .write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_does_not_keep_the_server_from_stopping() {
    // The longest wait for the end is the sum of these two; reading has its own limit.
    let limits = Limits { write_time: Duration::from_secs(3600), ..Limits::default() };
    let server = start(limits, 1).await;
    let address = server.address;
    let _held = spawn_blocking(move || unread(address)).await.unwrap();
    server.stop.send(()).unwrap();
    let waited = tokio::time::timeout(limits.body_time + limits.work_time / 2, server.task).await;
    assert!(waited.is_ok(), "the server waits for a client that does not read");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_do_not_arrive_do_not_keep_the_server_from_stopping() {
    let long = Duration::from_secs(3600);
    let limits = Limits { head_time: long, body_time: long, work_time: long, ..Limits::default() };
    let server = start(limits, 1).await;
    let whole = "GET /api/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    // Half a head, half a head after a request, half a body. Once there is a response, the server has the rest too.
    let expecting = head(100).replace("host:", "expect: 100-continue\r\nhost:");
    let mut clients = Vec::new();
    for (request, response) in [
        ("GET / HT", ""),
        (&format!("{whole}GET / HT"), "HTTP/1.1 200 OK\r\n"),
        (&expecting, "HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let mut client = TcpStream::connect(server.address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut start = vec![0; response.len()];
        let read = spawn_blocking(move || client.read_exact(&mut start).map(|()| (client, start)));
        let (client, start) = read.await.unwrap().unwrap();
        assert_eq!(start, response.as_bytes());
        clients.push(client);
    }
    clients[2].write_all(b"{").unwrap();
    server.stop.send(()).unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(60), server.task).await.is_ok(), "the server waits");
    let mut answer = String::new();
    let _ = clients[2].read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("the server stopped"), "{answer}");
}

/// A body without end that counts how much of it is taken.
struct Counted(Arc<AtomicUsize>);

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        static PIECE: [u8; 64 << 10] = [0; 64 << 10];
        self.0.fetch_add(PIECE.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(&PIECE)))))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_keeps_little_of_what_is_not_read() {
    let taken = Arc::new(AtomicUsize::new(0));
    let own = taken.clone();
    let endless = axum::routing::get(async move || Body::new(Counted(own.clone())));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/", endless);
    let server = tokio::spawn(connection::serve(listener, app, Limits::default(), std::future::pending()));
    let mut client = TcpStream::connect(address).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&client, 64 << 10).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let (mut last, mut unchanged) = (0, 0);
    while unchanged < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = taken.load(Ordering::Relaxed);
        unchanged = if now > 0 && now == last { unchanged + 1 } else { 0 };
        last = now;
    }
    // Without a limit the system takes megabytes.
    assert!(last < 2 << 20, "{last} bytes were taken");
    server.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_picture_is_given_up_in_time_and_when_its_client_leaves() {
    let picture = slow_picture();
    let request =
        [head(picture.len()).replace("host:", "connection: close\r\nhost:").as_bytes(), &picture].concat();
    let server = start(Limits { work_time: Duration::from_millis(300), ..Limits::default() }, 1).await;
    let mut best = Duration::MAX;
    // Other programs may hold the cores for a while.
    for _ in 0..5 {
        let (address, request) = (server.address, request.clone());
        let waited = spawn_blocking(move || {
            let mut client = TcpStream::connect(address).unwrap();
            client.write_all(&request).unwrap();
            let sent = Instant::now();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("within 0.3 seconds"), "{answer}");
            sent.elapsed()
        });
        best = best.min(waited.await.unwrap());
        if best < Duration::from_millis(800) {
            break;
        }
    }
    assert!(best < Duration::from_millis(800), "the answer came after {best:?}");

    let server = start(Limits::default(), 1).await;
    let mut client = TcpStream::connect(server.address).unwrap();
    client.write_all(&request).unwrap();
    until("it is cleaned", &|| server.state.queue.running() == 1).await;
    drop(client);
    until("the core is free", &|| server.state.queue.occupied() == 0).await;
    let text = server.state.metrics.text(&server.state.queue);
    assert!(text.contains("comer_recognition_seconds_count 0"), "it was stopped: {text}");
}
