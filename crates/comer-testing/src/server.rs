//! `comer serve` as a child process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use comer::internal::Precision;

use crate::golden_model;

/// A running server, which is killed when dropped.
pub struct Server {
    /// The process.
    pub process: Child,
    /// Its address.
    pub address: SocketAddr,
}

impl Server {
    /// Starts `program serve` on a free port, with the bundled model if none is given.
    pub fn start(program: &str, model: Option<&Path>, more: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more);
        if let Some(model) = model {
            command.arg("--model").arg(model);
        }
        let mut process = command.env_remove("COMER_MODEL").stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        // Without a reader the pipe would fill up and the server would block.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self { process, address }
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Resident memory of the process in bytes.
    pub fn memory(&self) -> u64 {
        self.figure("VmRSS:")
    }

    /// The most that [`Self::memory`] ever was.
    pub fn most_memory(&self) -> u64 {
        self.figure("VmHWM:")
    }

    fn figure(&self, name: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
    }
}

/// CPU seconds of another process.
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

/// The file of a tiny random model; its results are meaningless.
pub fn tiny_model() -> &'static Path {
    static MODEL: OnceLock<PathBuf> = OnceLock::new();
    MODEL.get_or_init(|| {
        let path = folder().join("tiny.safetensors");
        golden_model("fusion").save(&path, Precision::F32).unwrap();
        path
    })
}
