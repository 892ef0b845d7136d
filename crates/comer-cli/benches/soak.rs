//! Ten minutes of good, bad, slow, unread, cancelled and huge requests: statuses, latencies, memory, free places.
//!
//! `cargo bench -p comer-cli --bench soak -- [--seconds 600] [--clients 12] [--threads 2]`, on the loopback interface only,
//! with COMER_MODEL or the bundled model. Fails on a 5xx other than 503, on a lost place, and on memory that grows.
#![allow(clippy::print_stdout, reason = "figures are what it is for")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use comer::Ink;
use comer_testing::http::{Client, request};
use comer_testing::server::Server;
use comer_testing::{Random, sample};

/// What clients met.
#[derive(Default)]
struct Figures {
    /// Responses by kind of request and status; 0 for none.
    statuses: BTreeMap<(&'static str, u16), u64>,
    /// Milliseconds of the good requests.
    times: Vec<f64>,
}

struct Soak {
    address: SocketAddr,
    pictures: Vec<Vec<u8>>,
    end: Instant,
    figures: Mutex<Figures>,
}

/// Connections at the end, of the 1024 that the server accepts. Needs as many open files.
const PLACES: usize = 1000;

fn argument(name: &str, default: usize) -> usize {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == name);
    at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
}

impl Soak {
    fn count(&self, kind: &'static str, status: u16) {
        *self.figures.lock().unwrap().statuses.entry((kind, status)).or_default() += 1;
    }

    /// One client, which does something else each time.
    fn visit(&self, seed: u64) {
        let mut random = Random(seed);
        while Instant::now() < self.end {
            let picture = &self.pictures[(random.uniform() * self.pictures.len() as f32) as usize];
            match (random.uniform() * 20.0) as usize {
                0 => self.slow(picture),
                1 => self.unread(),
                2 => self.cancelled(picture),
                3 => self.huge(),
                4 => self.send("explain", "/api/recognize?greedy=1&explain=1", "image/png", picture),
                5 => {
                    self.send("broken picture", "/api/recognize", "image/png", &garbled(picture, &mut random))
                }
                6 => self.send("bad query", "/api/recognize?nbest=x", "image/png", picture),
                7 => self.send("bad JSON", "/api/recognize", "application/json", &[b'['; 10_000]),
                8 => self.send("unknown path", "/nowhere", "", b""),
                _ => self.good(picture),
            }
        }
    }

    fn send(&self, kind: &'static str, path: &str, media: &str, body: &[u8]) {
        let answer =
            Client::new(self.address).and_then(|mut client| client.request("POST", path, media, body));
        self.count(kind, answer.map_or(0, |answer| answer.status));
    }

    fn good(&self, picture: &[u8]) {
        let start = Instant::now();
        let answer = Client::new(self.address)
            .and_then(|mut client| client.request("POST", "/api/recognize?greedy=1", "image/png", picture));
        let status = answer.map_or(0, |answer| answer.status);
        self.count("good", status);
        if status == 200 {
            self.figures.lock().unwrap().times.push(start.elapsed().as_secs_f64() * 1000.0);
        } else {
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends its body in small pieces, and ends in the middle.
    fn slow(&self, picture: &[u8]) {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return self.count("slow", 0) };
        let head = format!(
            "POST /api/recognize HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            picture.len()
        );
        let _ = stream.write_all(head.as_bytes());
        for piece in picture.chunks(picture.len() / 20 + 1).take(10) {
            let _ = stream.write_all(piece);
            std::thread::sleep(Duration::from_millis(100));
        }
        self.count("slow, gave up", 0);
    }

    /// Asks for much and reads nothing until it is disconnected.
    fn unread(&self) {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return self.count("unread", 0) };
        let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
        let request = "GET /api/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
        while stream.write_all(request.as_bytes()).is_ok() && Instant::now() < self.end {}
        std::thread::sleep(Duration::from_secs(1));
        self.count("unread, gave up", 0);
    }

    /// Leaves while its formula is read.
    fn cancelled(&self, picture: &[u8]) {
        if let Ok(mut client) = Client::new(self.address) {
            let _ = client.send("POST", "/api/recognize?beam=50", "image/png", picture);
            std::thread::sleep(Duration::from_millis(20));
        }
        self.count("cancelled", 0);
    }

    /// Announces more than is allowed, and sends some of it.
    fn huge(&self) {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return self.count("huge", 0) };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
        let head = "POST /api/recognize HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&vec![7; 1 << 20]);
        let mut answer = [0; 12];
        let status = stream
            .read_exact(&mut answer)
            .ok()
            .and_then(|()| std::str::from_utf8(&answer[9..]).ok()?.parse().ok());
        self.count("huge", status.unwrap_or(0));
    }
}

/// The picture with some bytes changed.
fn garbled(picture: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = picture.to_vec();
    for _ in 0..8 {
        let place = (random.uniform() * bytes.len() as f32) as usize;
        bytes[place] ^= 1 << (random.uniform() * 8.0) as u8;
    }
    bytes
}

fn main() {
    let seconds = argument("--seconds", 600);
    let (clients, threads) = (argument("--clients", 12), argument("--threads", 2));
    let model = std::env::var_os("COMER_MODEL").map(PathBuf::from);
    let options = ["--quiet", "--threads", &threads.to_string()];
    let mut server = Server::start(env!("CARGO_BIN_EXE_comer"), model.as_deref(), &options);
    let names = ["circle", "fraction", "power", "quadratic", "root", "sum"];
    let pictures =
        names.map(|name| Ink::from_inkml(&sample(name)).unwrap().draw().unwrap().to_png().unwrap());
    let start = Instant::now();
    let soak = Soak {
        address: server.address,
        pictures: pictures.into(),
        end: start + Duration::from_secs(seconds as u64),
        figures: Mutex::default(),
    };
    // Memory settles in the first third; the rest is compared in two halves.
    let mut memory = Vec::new();
    std::thread::scope(|scope| {
        for number in 0..clients {
            let soak = &soak;
            scope.spawn(move || soak.visit(0x9e37_79b9 + 7 * number as u64));
        }
        while Instant::now() < soak.end {
            std::thread::sleep(Duration::from_millis((seconds as u64 * 1000 / 60).max(50)));
            memory.push(server.memory());
        }
    });
    let Figures { statuses, mut times } = soak.figures.into_inner().unwrap();
    times.sort_by(f64::total_cmp);
    let quantile =
        |share: f64| times.get((share * (times.len() as f64 - 1.0)) as usize).copied().unwrap_or(0.0);
    println!("{clients} clients for {seconds} s, {threads} threads");
    for ((kind, status), count) in &statuses {
        println!("  {kind:<16} {status:>3}  {count}");
    }
    println!("  good requests    {}, p50 {:.0} ms, p99 {:.0} ms", times.len(), quantile(0.5), quantile(0.99));
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let shown: Vec<String> =
        memory.iter().step_by(6).map(|&bytes| format!("{:.0}", mebibytes(bytes))).collect();
    println!("  RSS in MiB       {}", shown.join(" "));
    let settled = &memory[memory.len() / 3..];
    let (first, second) = settled.split_at(settled.len() / 2);
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0) as f64;
    let growth = 100.0 * (most(second) / most(first) - 1.0);
    println!("  memory growth    {growth:+.1} % between the halves of the last two thirds");

    // Every place is free again: health says nothing runs or waits, once the last ones have been given up.
    let deadline = Instant::now() + Duration::from_secs(60);
    let health = loop {
        let health = request(server.address, "GET", "/api/health", "", b"").json();
        if (health["running"] == 0 && health["waiting"] == 0) || Instant::now() > deadline {
            break health;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    println!("  at the end       {health}");
    // As many connections as there are places but a few: each is accepted and answered.
    let mut held: Vec<Client> = (0..PLACES).map(|_| Client::new(server.address).unwrap()).collect();
    let answered = held.iter_mut().filter_map(|client| client.request("GET", "/api/health", "", b"").ok());
    let answered = answered.filter(|answer| answer.status == 200).count();
    drop(held);
    println!("  at once          {answered} of {PLACES} connections were answered");
    let pid = server.process.id().to_string();
    let stopping = Instant::now();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = server.process.wait().unwrap();
    println!("  SIGTERM          {status}, after {:.1} s", stopping.elapsed().as_secs_f64());

    let bad: u64 =
        statuses.iter().filter(|((_, status), _)| *status >= 500 && *status != 503).map(|(_, n)| n).sum();
    assert_eq!(bad, 0, "responses of 5xx other than 503");
    assert!(health["running"] == 0 && health["waiting"] == 0, "places are lost");
    assert_eq!(answered, PLACES, "connections are lost");
    assert!(growth < 5.0, "memory grows");
    assert!(status.success());
}
