//! `comer serve` as a child process, with a tiny random model or the bundled one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use comer::internal::Precision;

use super::common;

pub struct Server {
    pub process: Child,
    pub address: SocketAddr,
}

impl Server {
    /// With the bundled model if none is given.
    pub fn start(model: Option<&Path>, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comer"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more);
        if let Some(model) = model {
            command.arg("--model").arg(model);
        }
        let mut process = command.env_remove("COMER_MODEL").stderr(Stdio::piped()).spawn().unwrap();
        let mut talk = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        // What it says from now on has to go somewhere, or it would stand still.
        std::thread::spawn(move || std::io::copy(&mut talk, &mut std::io::sink()));
        Self { process, address }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Bytes of memory that the process has taken.
    pub fn memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
    }
}

/// Seconds of CPU time that a process has taken.
pub fn cpu_seconds(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name in parentheses; the 14th and 15th fields of all, in hundredths.
    let fields = status.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

/// A model that answers at random, but answers.
pub fn tiny_model() -> &'static Path {
    static MODEL: OnceLock<PathBuf> = OnceLock::new();
    MODEL.get_or_init(|| {
        let path = folder().join("tiny.safetensors");
        common::golden_model("fusion").save(&path, Precision::F32).unwrap();
        path
    })
}

/// One of the formulas of this repository.
pub fn sample(name: &str) -> Vec<u8> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    std::fs::read(samples.join(format!("{name}.inkml"))).unwrap()
}
