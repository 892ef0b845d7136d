//! Load test of a server: concurrent clients that send valid and invalid requests, or disconnect.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::http::Client;
use crate::server::{Server, cpu_seconds};

/// Counts after the warm-up.
#[derive(Debug, Default)]
pub struct LoadFigures {
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a response though the client waited.
    pub unanswered: u64,
    /// Requests whose client disconnected before the response.
    pub disconnected: u64,
    /// Formulas per second.
    pub per_second: f64,
    /// CPU seconds of the server per formula, including everything else that it did.
    pub cpu_seconds: f64,
    /// Memory of the server after the warm-up, and the maximum since then.
    pub memory: (u64, u64),
}

/// Invalid requests and the expected status.
fn bad_requests(picture: &[u8]) -> Vec<(&'static str, &'static str, &'static str, Vec<u8>, u16)> {
    vec![
        ("POST", "/api/recognize", "image/png", Vec::new(), 400),
        ("POST", "/api/recognize", "text/plain", b"x".to_vec(), 415),
        ("POST", "/api/recognize", "image/png", picture[..picture.len() / 2].to_vec(), 422),
        ("POST", "/api/recognize", "application/json", b"[[[NaN, 1]]]".to_vec(), 422),
        ("POST", "/api/recognize", "application/json", vec![b'['; 100_000], 422),
        ("POST", "/api/recognize?nbest=0", "image/png", picture.to_vec(), 400),
        ("POST", "/api/mathml", "text/plain", br"\frac".to_vec(), 422),
        ("GET", "/nothing", "", Vec::new(), 404),
    ]
}

/// Runs `clients` that send `pictures` and invalid requests, for `time` after `warm_up`.
pub fn run(
    server: &Server,
    clients: usize,
    pictures: &[Vec<u8>],
    query: &str,
    warm_up: Duration,
    time: Duration,
) -> LoadFigures {
    let figures = Mutex::new(LoadFigures::default());
    let (read, start) = (AtomicU64::new(0), Instant::now());
    let (address, path) = (server.address, format!("/api/recognize{query}"));
    std::thread::scope(|scope| {
        for number in 0..clients {
            let (figures, read, path) = (&figures, &read, &path);
            scope.spawn(move || {
                let own = run_client(address, number, pictures, path, start, (warm_up, time), read);
                let mut all = figures.lock().unwrap();
                own.statuses
                    .into_iter()
                    .for_each(|(status, count)| *all.statuses.entry(status).or_default() += count);
                all.unanswered += own.unanswered;
                all.disconnected += own.disconnected;
            });
        }
        std::thread::sleep(warm_up);
        let before = server.memory();
        let (mut most, first, started) = (before, read.load(Ordering::Relaxed), Instant::now());
        let cpu = cpu_seconds(server.process.id());
        while started.elapsed() < time {
            std::thread::sleep(Duration::from_millis(100));
            most = most.max(server.memory());
        }
        let count = read.load(Ordering::Relaxed) - first;
        let mut all = figures.lock().unwrap();
        all.per_second = count as f64 / started.elapsed().as_secs_f64();
        all.cpu_seconds = (cpu_seconds(server.process.id()) - cpu) / count.max(1) as f64;
        all.memory = (before, most);
    });
    figures.into_inner().unwrap()
}

/// Sends the requests of one client.
fn run_client(
    address: SocketAddr,
    number: usize,
    pictures: &[Vec<u8>],
    path: &str,
    start: Instant,
    (warm_up, time): (Duration, Duration),
    read: &AtomicU64,
) -> LoadFigures {
    let bad = bad_requests(&pictures[0]);
    let mut figures = LoadFigures::default();
    let mut client = None;
    for index in number.. {
        if start.elapsed() > warm_up + time {
            break;
        }
        let mut open = match client.take().map_or_else(|| Client::new(address), Ok) {
            Ok(open) => open,
            Err(_) => {
                figures.unanswered += 1;
                continue;
            }
        };
        let picture = &pictures[index % pictures.len()];
        if index % 23 == 5 {
            // Disconnects at once.
            let _ = open.send("POST", path, "image/png", picture);
            figures.disconnected += 1;
            continue;
        }
        let (response, expected) = if index % 7 == 3 {
            let (method, path, kind, body, status) = &bad[index / 7 % bad.len()];
            (open.request(method, path, kind, body), *status)
        } else {
            (open.request("POST", path, "image/png", picture), 200)
        };
        match response {
            Ok(response) => {
                *figures.statuses.entry(response.status).or_default() += 1;
                assert!(response.status == expected || response.status == 503, "{expected}: {response:?}");
                if response.status == 200 {
                    read.fetch_add(1, Ordering::Relaxed);
                }
                if response.status == 503 {
                    std::thread::sleep(Duration::from_millis(200));
                }
                if response.header("connection") != Some("close") {
                    client = Some(open);
                }
            }
            Err(_) => figures.unanswered += 1,
        }
    }
    figures
}
