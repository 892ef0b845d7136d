//! A web server for the files of a folder, as any host of static files is one.

use std::io::{BufRead, BufReader, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A running server, which stops when dropped.
pub struct FileServer {
    /// Where it listens.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FileServer {
    /// Serves a folder on a free port.
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("the address");
        let (folder, stop) = (folder.to_path_buf(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let serve = move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let folder = folder.clone();
                // A browser that goes away in the middle of a file is no failure.
                std::thread::spawn(move || stream.and_then(|stream| answer(&folder, stream)));
            }
        };
        Self { address, stop, thread: Some(std::thread::spawn(serve)) }
    }

    /// The address of a file.
    pub fn url(&self, file: &str) -> String {
        format!("http://localhost:{}/{file}", self.address.port())
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(folder: &Path, mut stream: TcpStream) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = request.split(' ').nth(1).and_then(|path| path.split('?').next()).unwrap_or_default();
    let path = if path.ends_with('/') { format!("{path}index.html") } else { path.to_string() };
    let (status, kind, body) = match std::fs::read(folder.join(path.trim_start_matches('/'))) {
        Ok(body) => ("200 OK", content_type(&PathBuf::from(&path)), body),
        Err(_) => ("404 Not Found", "text/plain", Vec::new()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("wasm") => "application/wasm",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
