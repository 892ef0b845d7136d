//! WebAssembly in headless Chromium beside the native code, on one thread: `cargo bench -p comer-wasm [-- --isa avx2]`.
//!
//! Needs `crates/comer-wasm/site`, which `crates/comer-wasm/build` makes. Prints what the page `benchmark.html` shows.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use comer::internal::engine::kernels::{Isa, Kernels};
use comer::{Input, RecognizeOptions, Recognizer};
use comer_testing::browser::Browser;
use comer_testing::file_server::FileServer;
use comer_testing::{repository, sample};

const RUNS: usize = 12;

/// The least milliseconds of several runs.
fn best(recognizer: &Recognizer, bytes: &[u8], options: &RecognizeOptions) -> f64 {
    let run = |_| {
        let start = Instant::now();
        let input = Input::from_bytes(bytes).unwrap();
        recognizer.recognize_with(&input, options).unwrap();
        start.elapsed().as_secs_f64() * 1000.0
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    let site = repository().join("crates/comer-wasm/site");
    assert!(site.exists(), "there is no crates/comer-wasm/site; crates/comer-wasm/build makes it");
    if let Some(name) = std::env::args().skip_while(|argument| argument != "--isa").nth(1) {
        Isa::from_name(&name).expect("--isa: an instruction set of this machine").choose();
    }
    println!("native code with {}", Kernels::detect().isa().name());
    let (recognizer, bytes) = (Recognizer::bundled().unwrap(), sample("digits"));
    let one = RecognizeOptions::new().threads(1);
    let (greedy, beam) = (best(&recognizer, &bytes, &one.clone().greedy()), best(&recognizer, &bytes, &one));
    let Some(browser) = Browser::open(900, 700) else { return };
    let server = FileServer::start(&site);
    browser.go(&server.url(&format!("benchmark.html?native={greedy},{beam}")));
    browser.wait("the figures", "return document.documentElement.dataset.result !== undefined;");
    println!("{}", browser.text("#report"));
}
