//! The program itself: it holds under many clients, and ends when it is told to.

use std::process::Command;
use std::time::{Duration, Instant};

use comer::Ink;

use super::http::{Client, ask};
use super::load;
use super::server::{Server, sample, tiny_model};

/// The short form of `cargo bench -p comer-cli --bench serve`, with a tiny model.
#[test]
fn many_clients_do_no_harm() {
    let server = Server::start(Some(tiny_model()), &["--quiet", "--threads", "2"]);
    let picture = |name| Ink::from_inkml(&sample(name)).unwrap().draw().unwrap().to_png().unwrap();
    let pictures = ["square", "fraction", "root"].map(picture);
    let second = Duration::from_secs(1);
    let figures = load::run(&server, 64, &pictures, "?greedy=1", second, 4 * second);
    assert!(figures.statuses.keys().all(|&status| status < 500 || status == 503), "{figures:?}");
    assert_eq!(figures.unanswered, 0, "{figures:?}");
    assert!(figures.statuses[&200] > 20 && figures.left > 0, "{figures:?}");
    // Nobody is left behind in the queue.
    let start = Instant::now();
    loop {
        let health = ask(server.address, "GET", "/api/health", "", b"").json();
        if health["running"] == 0 && health["waiting"] == 0 {
            break;
        }
        assert!(start.elapsed() < 10 * second, "{health}");
        std::thread::sleep(second / 50);
    }
}

#[test]
fn more_than_can_wait_are_told_to_come_again() {
    let server = Server::start(Some(tiny_model()), &["--quiet", "--threads", "1", "--queue", "0"]);
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
fn a_word_ends_it_when_its_work_is_done() {
    let mut server = Server::start(Some(tiny_model()), &[]);
    let ink = sample("square");
    let mut client = Client::new(server.address).unwrap();
    let head = format!(
        "POST /api/recognize?greedy=1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        ink.len()
    );
    client.write(head.as_bytes()).unwrap();
    client.write(&ink[..100]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let told = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().unwrap();
    assert!(told.success());
    std::thread::sleep(Duration::from_millis(100));
    client.write(&ink[100..]).unwrap();
    let answer = client.receive().unwrap();
    assert!(answer.status == 200 && answer.json()["latex"].is_string(), "{answer:?}");
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn what_cannot_be_served_says_why() {
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
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
