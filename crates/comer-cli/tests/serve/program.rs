//! End-to-end tests of `comer serve`: load and shutdown.

use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use comer::Ink;
use comer_testing::http::{Client, request};
use comer_testing::server::{Server, tiny_model};
use comer_testing::{load, sample};

const PROGRAM: &str = env!("CARGO_BIN_EXE_comer");

/// The short form of `cargo bench -p comer-cli --bench serve`, with a tiny model.
#[test]
fn many_clients_do_no_harm() {
    let server = Server::start(PROGRAM, Some(tiny_model()), &["--quiet", "--threads", "2"]);
    let picture = |name| Ink::from_inkml(&sample(name)).unwrap().draw().unwrap().to_png().unwrap();
    let pictures = ["square", "fraction", "root"].map(picture);
    let second = Duration::from_secs(1);
    let figures = load::run(&server, 64, &pictures, "?greedy=1", second, 4 * second);
    assert!(figures.statuses.keys().all(|&status| status < 500 || status == 503), "{figures:?}");
    assert_eq!(figures.unanswered, 0, "{figures:?}");
    assert!(figures.statuses[&200] > 20 && figures.disconnected > 0, "{figures:?}");
    // The queue becomes empty.
    let is_idle = || {
        let health = request(server.address, "GET", "/api/health", "", b"").json();
        health["running"] == 0 && health["waiting"] == 0
    };
    let idle = (0..3_000).any(|_| {
        std::thread::sleep(second / 50);
        is_idle()
    });
    assert!(idle, "requests are still in the queue");
}

#[test]
fn excess_requests_get_503_with_retry_after() {
    let server = Server::start(PROGRAM, Some(tiny_model()), &["--quiet", "--threads", "1", "--queue", "0"]);
    let picture = Ink::from_inkml(&sample("quadratic")).unwrap().draw().unwrap().to_png().unwrap();
    let mut clients: Vec<Client> = (0..8).map(|_| Client::new(server.address).unwrap()).collect();
    for client in &mut clients {
        client.send("POST", "/api/recognize?beam=50", "image/png", &picture).unwrap();
    }
    let answers: Vec<_> = clients.iter_mut().map(|client| client.receive().unwrap()).collect();
    assert!(answers.iter().any(|answer| answer.status == 200), "{answers:?}");
    let refused = answers.iter().find(|answer| answer.status == 503).expect("one too many");
    assert!(
        refused.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok()),
        "{refused:?}"
    );
}

#[cfg(unix)]
#[test]
fn sigterm_ends_it_after_the_current_request() {
    let mut server = Server::start(PROGRAM, Some(tiny_model()), &[]);
    let ink = sample("square");
    let mut client = Client::new(server.address).unwrap();
    let head = format!(
        "POST /api/recognize?greedy=1 HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        ink.len()
    );
    client.write(head.as_bytes()).unwrap();
    // The server sends 100 Continue when it starts to handle the request.
    assert_eq!(client.receive().unwrap().status, 100);
    client.write(&ink[..100]).unwrap();
    let killed = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().unwrap();
    assert!(killed.success());
    // New connections are refused once it has stopped listening.
    while TcpStream::connect(server.address).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    client.write(&ink[100..]).unwrap();
    let answer = client.receive().unwrap();
    assert!(answer.status == 200 && answer.json()["latex"].is_string(), "{answer:?}");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn bad_arguments_are_named() {
    let run = |more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        let output = command.args(["serve", "--model"]).arg(tiny_model()).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (arguments, word) in [
        (&["--listen", &address][..], "--listen"),
        (&["--threads", "0"], "--threads"),
        (&["--max-body", "0"], "--max-body"),
        (&["--max-seconds", "0"], "--max-seconds"),
        (&["--allow-origin", "*"], "--allow-origin"),
    ] {
        let talk = run(arguments);
        assert!(talk.contains(word), "{talk}");
    }
}

/// Bodies of many small objects and lists, which take fifty times their bytes if all of them are kept.
#[cfg(target_os = "linux")]
#[test]
fn hostile_json_costs_no_more_than_its_size_class() {
    let server = Server::start(PROGRAM, Some(tiny_model()), &["--quiet", "--threads", "1"]);
    let list = |item: &str| format!("{}{item}", format!("{item},").repeat((4 << 20) / (item.len() + 1)));
    let objects = list(r#"{"":0}"#);
    for (path, body) in [
        ("/api/recognize", format!("[[{objects}]]")),
        ("/api/recognize", format!(r#"{{"src":[{objects}]}}"#)),
        ("/api/recognize/batch", format!(r#"{{"items":[{objects}]}}"#)),
        ("/api/recognize/batch", format!(r#"{{"items":[[{objects}]]}}"#)),
        ("/api/recognize/batch", format!(r#"{{"items":[{}]}}"#, list("[]"))),
    ] {
        let before = server.most_memory();
        let answer = request(server.address, "POST", path, "application/json", body.as_bytes());
        assert!(answer.status < 500, "{path}, {body:.30}: {answer:?}");
        let grown = server.most_memory() - before;
        // The body itself is among it.
        assert!(grown < (100 << 20), "{grown} bytes for {path}, {body:.30} of {}", body.len());
    }
}
