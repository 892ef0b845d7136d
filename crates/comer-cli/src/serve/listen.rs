//! The address to listen on, as people write it: a port, or a host and a port.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

/// `8765` and `localhost:8765` are on this machine only; `0.0.0.0:8765` is on all interfaces.
pub fn parse(text: &str) -> Result<SocketAddr, String> {
    let expected =
        || "expected a port such as 8765, or an address and a port such as 0.0.0.0:8765".to_string();
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let Some((host, port)) = text.rsplit_once(':') else { return Err(expected()) };
    if host.is_empty() || port.parse::<u16>().is_err() {
        return Err(expected());
    }
    let addresses = text.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    // Most clients try IPv4 for a name such as localhost.
    addresses.min_by_key(SocketAddr::is_ipv6).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_names_and_addresses() {
        for (text, expected) in [
            ("8765", "127.0.0.1:8765"),
            ("localhost:8765", "127.0.0.1:8765"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:8765", "[::1]:8765"),
            ("127.0.0.1:0", "127.0.0.1:0"),
        ] {
            assert_eq!(parse(text), Ok(expected.parse().unwrap()), "{text}");
        }
        for text in ["", "localhost", ":8765", "localhost:", "localhost:99999", "99999", "127.0.0.1"] {
            let message = parse(text).unwrap_err();
            assert!(message.contains("expected a port"), "{text}: {message}");
        }
    }
}
