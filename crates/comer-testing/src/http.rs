//! A minimal HTTP/1.1 client.

use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Status line and headers in lower case.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// The value of a header, by its name in lower case.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// A connection that stays open between requests.
pub struct Client {
    stream: TcpStream,
}

impl Client {
    /// Connects to a server.
    pub fn new(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// Sends a request without waiting for its response.
    pub fn send(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<()> {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
        if !kind.is_empty() {
            head += &format!("content-type: {kind}\r\n");
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend_from_slice(body);
        self.stream.write_all(&bytes)
    }

    /// Sends raw bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads one response.
    pub fn receive(&mut self) -> Result<HttpResponse> {
        let broken = |reason: &str| Error::other(reason.to_string());
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 << 10];
        let mut more = |bytes: &mut Vec<u8>| match self.stream.read(&mut buffer) {
            Ok(0) => Err(broken("the connection was closed")),
            Ok(count) => {
                bytes.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) => Err(error),
        };
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            more(&mut bytes)?;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| broken("no status"))?;
        let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
        let length = length.unwrap_or(0);
        while bytes.len() < end + 4 + length {
            more(&mut bytes)?;
        }
        Ok(HttpResponse { status, head, body: bytes[end + 4..end + 4 + length].to_vec() })
    }

    /// Sends a request and reads its response.
    pub fn request(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<HttpResponse> {
        self.send(method, path, kind, body)?;
        self.receive()
    }
}

/// Sends one request on a new connection.
pub fn request(address: SocketAddr, method: &str, path: &str, kind: &str, body: &[u8]) -> HttpResponse {
    Client::new(address).and_then(|mut client| client.request(method, path, kind, body)).unwrap()
}
