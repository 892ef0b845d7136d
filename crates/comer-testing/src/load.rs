//! Load on a server: many clients at once that send good and bad requests or disconnect.

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
    /// Clients that disconnected before their response.
    pub left: u64,
    /// Formulas read in a second.
    pub per_second: f64,
    /// Seconds of the server's CPU time for each of them, all else that it did included.
    pub cpu_seconds: f64,
    /// Memory of the server after the warm-up, and the most since.
    pub memory: (u64, u64),
}

/// Requests that are not answered with 200, and what they are answered with.
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

/// Lets `clients` send `pictures` and other things for as long as `time` after `warm_up`.
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
                let own = visit(address, number, pictures, path, start, (warm_up, time), read);
                let mut all = figures.lock().unwrap();
                own.statuses
                    .into_iter()
                    .for_each(|(status, count)| *all.statuses.entry(status).or_default() += count);
                all.unanswered += own.unanswered;
                all.left += own.left;
            });
        }
        std::thread::sleep(warm_up);
        let before = server.memory();
        let (mut most, first, began) = (before, read.load(Ordering::Relaxed), Instant::now());
        let cpu = cpu_seconds(server.process.id());
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(100));
            most = most.max(server.memory());
        }
        let count = read.load(Ordering::Relaxed) - first;
        let mut all = figures.lock().unwrap();
        all.per_second = count as f64 / began.elapsed().as_secs_f64();
        all.cpu_seconds = (cpu_seconds(server.process.id()) - cpu) / count.max(1) as f64;
        all.memory = (before, most);
    });
    figures.into_inner().unwrap()
}

/// One client's requests.
fn visit(
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
    for turn in number.. {
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
        let picture = &pictures[turn % pictures.len()];
        if turn % 23 == 5 {
            // Leaves at once; the connection ends here.
            let _ = open.send("POST", path, "image/png", picture);
            figures.left += 1;
            continue;
        }
        let (answer, expected) = if turn % 7 == 3 {
            let (method, path, kind, body, status) = &bad[turn / 7 % bad.len()];
            (open.ask(method, path, kind, body), *status)
        } else {
            (open.ask("POST", path, "image/png", picture), 200)
        };
        match answer {
            Ok(answer) => {
                *figures.statuses.entry(answer.status).or_default() += 1;
                assert!(answer.status == expected || answer.status == 503, "{expected}: {answer:?}");
                if answer.status == 200 {
                    read.fetch_add(1, Ordering::Relaxed);
                }
                if answer.status == 503 {
                    std::thread::sleep(Duration::from_millis(200));
                }
                if answer.header("connection") != Some("close") {
                    client = Some(open);
                }
            }
            Err(_) => figures.unanswered += 1,
        }
    }
    figures
}
