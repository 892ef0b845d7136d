//! How long an answer takes, and what 64 clients get out of the server beside `comer bench` on the same pictures.
//!
//! `cargo bench -p comer-cli --bench serve -- [--seconds 60] [--clients 64] [--threads 2]`, with COMER_MODEL or the
//! bundled model.
#![allow(clippy::print_stdout, reason = "figures are what it is for")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use comer::internal::latex::tokenize;
use comer::{Ink, Input, RecognizeOptions, Recognizer};
use comer_testing::http::Client;
use comer_testing::server::{Server, cpu_seconds};
use comer_testing::{load, sample};
use rayon::prelude::*;
use serde_json::json;

const SAMPLES: [&str; 9] =
    ["circle", "digits", "fraction", "integral", "power", "quadratic", "root", "square", "sum"];

fn argument(name: &str, default: usize) -> usize {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|argument| argument == name);
    at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
}

fn main() {
    let own = std::env::var_os("COMER_MODEL").map(PathBuf::from);
    let bundled = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../comer-model-crohme/comer.safetensors");
    let model = own.unwrap_or_else(bundled);
    latency(&model);
    load_test(&model);
}

/// From the request after the last stroke to the answer, for the ten digits.
fn latency(model: &Path) {
    let server = Server::start(env!("CARGO_BIN_EXE_comer"), Some(model), &["--quiet"]);
    let ink = Ink::from_inkml(&sample("digits")).unwrap();
    let strokes: Vec<Vec<[f64; 2]>> = ink
        .strokes()
        .iter()
        .map(|stroke| stroke.points.iter().map(|point| [point.x, point.y]).collect())
        .collect();
    let body = json!({ "strokes": strokes }).to_string();
    println!(
        "answer to the strokes of {} (10 symbols), one client, 40 times",
        ink.latex().unwrap_or_default()
    );
    let queries = [
        ("greedy", "?greedy=1"),
        ("beam 10", "?beam=10"),
        ("beam 10 as the page asks", "?nbest=5&alignment=1&mathml=1"),
    ];
    for (name, query) in queries {
        let mut client = Client::new(server.address).unwrap();
        let mut times: Vec<f64> = (0..42)
            .map(|_| {
                let start = Instant::now();
                let path = format!("/api/recognize{query}");
                let response = client.request("POST", &path, "application/json", body.as_bytes()).unwrap();
                assert_eq!(
                    tokenize(response.json()["latex"].as_str().unwrap()),
                    tokenize(ink.latex().unwrap())
                );
                start.elapsed().as_secs_f64() * 1000.0
            })
            .skip(2)
            .collect();
        times.sort_by(f64::total_cmp);
        println!("  {name:<26} median {:6.1} ms, 95 % within {:6.1} ms", times[20], times[37]);
    }
}

/// Pictures a second and CPU seconds a picture of the recogniser alone, on all `threads` for a while.
///
/// CPU time is the cost of the server even if the machine is busy.
fn alone(recognizer: &Recognizer, pictures: &[Input], threads: usize) -> (f64, f64) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let many: Vec<Input> = pictures.iter().cycle().take(8 * pictures.len()).cloned().collect();
    let (start, cpu) = (Instant::now(), cpu_seconds(std::process::id()));
    let options = RecognizeOptions::new().threads(1);
    let read = pool
        .install(|| many.par_iter().map(|input| recognizer.recognize_with(input, &options)).count())
        as f64;
    (read / start.elapsed().as_secs_f64(), (cpu_seconds(std::process::id()) - cpu) / read)
}

/// Pictures a second by `comer bench` on a set.
fn bench(model: &Path, set: &Path, threads: usize) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
    command.args(["bench", "--json", "--split", "own", "--rounds", "5", "--threads", &threads.to_string()]);
    let output = command.arg("--model").arg(model).arg("--data").arg(set).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    figures["images_per_second"].as_f64().unwrap()
}

fn load_test(model: &Path) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (seconds, clients) = (argument("--seconds", 60), argument("--clients", 64));
    let threads = argument("--threads", cores);
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("own/img");
    std::fs::create_dir_all(&images).unwrap();
    let mut captions = String::new();
    let mut pictures = Vec::new();
    for name in SAMPLES {
        let ink = Ink::from_inkml(&sample(name)).unwrap();
        captions += &format!("{name}\t{}\n", ink.latex().unwrap());
        pictures.push(ink.draw().unwrap().to_png().unwrap());
        std::fs::write(images.join(format!("{name}.png")), &pictures[pictures.len() - 1]).unwrap();
    }
    std::fs::write(folder.path().join("own/caption.txt"), captions).unwrap();

    let recognizer = Recognizer::open(model).unwrap();
    let drawn: Vec<Input> = SAMPLES.iter().map(|name| Input::from_bytes(&sample(name)).unwrap()).collect();
    let before = bench(model, folder.path(), threads);
    let alone_before = alone(&recognizer, &drawn, threads);
    let server = Server::start(
        env!("CARGO_BIN_EXE_comer"),
        Some(model),
        &["--quiet", "--threads", &threads.to_string()],
    );
    let (warm_up, time) = (Duration::from_secs(10), Duration::from_secs(seconds as u64));
    let figures = load::run(&server, clients, &pictures, "?beam=10", warm_up, time);
    drop(server);
    let alone_after = alone(&recognizer, &drawn, threads);
    let after = bench(model, folder.path(), threads);
    println!("{clients} clients for {seconds} s, beam 10, {threads} threads, good, bad and leaving");
    println!("  responses by status        {:?}, {} disconnected", figures.statuses, figures.disconnected);
    println!("  without an answer          {}", figures.unanswered);
    let (start, most) = figures.memory;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let growth = 100.0 * (most as f64 / start as f64 - 1.0);
    println!(
        "  memory                     {:.1} MiB, at most {:.1} later ({growth:+.1} %)",
        mebibytes(start),
        mebibytes(most)
    );
    println!("  comer bench, before, after {before:.2}, {after:.2} images/s");
    println!("  the recogniser alone       {:.2}, {:.2}", alone_before.0, alone_after.0);
    let share = |of: f64| 100.0 * figures.per_second / of;
    println!(
        "  served                     {:.2} a second: {:.0} % of comer bench (its best round), {:.0} % of the recogniser",
        figures.per_second,
        share(before.midpoint(after)),
        share(alone_before.0.midpoint(alone_after.0))
    );
    let alone = alone_before.1.midpoint(alone_after.1);
    println!(
        "  CPU time a formula         {:.1} ms served, {:.1} ms by the recogniser alone: {:.0} % of its throughput",
        1000.0 * figures.cpu_seconds,
        1000.0 * alone,
        100.0 * alone / figures.cpu_seconds
    );
}
