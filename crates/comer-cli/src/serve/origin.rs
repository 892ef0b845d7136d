//! Which pages may use the server: the host that a request names, and the origin of the page that sends it.
//!
//! A page elsewhere can send requests to a server on this machine, and with a DNS name that changes its address (DNS
//! rebinding) even read the responses. So a request must name this server by an address, by `localhost` or by a name that was
//! allowed, and one with a body must come from our own page, from an allowed origin, or from no page at all.

use std::net::{Ipv4Addr, Ipv6Addr};

use anyhow::{Result, bail};
use axum::http::{HeaderValue, Method, Request, StatusCode, header};

use super::problem::Problem;

/// An origin as browsers send it.
pub fn parse(text: &str) -> Result<HeaderValue> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match (host, HeaderValue::from_str(text)) {
        (Some(host), Ok(value)) if !host.is_empty() && !host.contains(['/', ' ', '*']) => Ok(value),
        _ => bail!("--allow-origin {text}: expected an origin such as https://example.org, without a path"),
    }
}

/// A name of this server, without a port.
pub fn parse_host(text: &str) -> Result<String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_part) {
        bail!("--allow-host {text}: expected a name such as example.org, without a port");
    }
    Ok(text.to_ascii_lowercase())
}

/// Refuses requests that name another host, and those with a body that a page of another origin sends.
pub fn check<B>(request: &Request<B>, hosts: &[String], origins: &[HeaderValue]) -> Result<(), Problem> {
    let headers = request.headers();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let named = headers.get_all(header::HOST).iter().map(text);
    let authorities: Vec<String> =
        named.chain(request.uri().authority().map(|authority| authority.to_string())).collect();
    for authority in &authorities {
        let name = name_of(authority).to_ascii_lowercase();
        if !is_own(&name) && !hosts.contains(&name) {
            let detail = format!(
                "the request is for host {name:?}, expected an address, localhost or a name given by --allow-host"
            );
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
        }
    }
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method()) {
        return Ok(());
    }
    let origin = headers.get(header::ORIGIN);
    let is_same = match headers.get("sec-fetch-site") {
        // What the browser says, which also knows the name of a proxy before this server. Plain HTTP lacks it.
        Some(site) => site == "same-origin" || site == "none",
        None => origin.is_none_or(|origin| {
            let origin = text(origin);
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            authority.is_some_and(|authority| authorities.iter().any(|own| own == authority))
        }),
    };
    if !is_same && !origin.is_some_and(|origin| origins.contains(origin)) {
        let detail = "the request comes from a page of another origin, expected one given by --allow-origin";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(())
}

/// The host of an authority without its port.
fn name_of(authority: &str) -> &str {
    match authority.rfind(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or(authority),
    }
}

/// Whether a host needs no DNS. Names below `localhost` are those of this machine (RFC 6761).
fn is_own(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<Ipv4Addr>().is_ok()
        || inner.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_origins_and_names_are_allowed_to_be_named() {
        assert!(parse("https://example.org").is_ok() && parse("http://localhost:3000").is_ok());
        for text in ["*", "example.org", "https://example.org/", "https://", "https://*.example.org", "null"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse_host("Example.org").unwrap(), "example.org");
        for text in ["", "example.org:80", "http://example.org", "a b"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }

    /// The status for a request with these headers; 200 if it is not refused.
    fn status(method: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri("/api/recognize");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let origins = [parse("https://allowed.org").unwrap()];
        let result = check(&request.body(()).unwrap(), &["comer.example".into()], &origins);
        result.map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn names_that_dns_may_change_are_misdirected() {
        for host in [
            "127.0.0.1:8765",
            "192.168.1.7",
            "[::1]:8765",
            "localhost:8765",
            "COMER.example:1",
            "a.localhost",
        ] {
            assert_eq!(status("GET", &[("host", host)]), 200, "{host}");
        }
        for host in
            ["evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1", "1.2.3"]
        {
            assert_eq!(status("GET", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status("GET", &[("host", "localhost"), ("host", "evil.example")]), 421);
        assert_eq!(status("GET", &[]), 200);
    }

    #[test]
    fn pages_of_other_origins_cannot_send_pictures() {
        let own = ("host", "localhost:8765");
        for (headers, expected) in [
            (vec![own], 200),
            (vec![own, ("origin", "http://localhost:8765")], 200),
            (vec![own, ("origin", "https://localhost:8765")], 200),
            (vec![own, ("origin", "https://allowed.org")], 200),
            (vec![own, ("origin", "http://localhost:9999")], 403),
            (vec![own, ("origin", "https://evil.example")], 403),
            (vec![own, ("origin", "null")], 403),
            (vec![own, ("sec-fetch-site", "cross-site")], 403),
            (vec![own, ("sec-fetch-site", "same-origin")], 200),
            (vec![own, ("sec-fetch-site", "none")], 200),
            (vec![own, ("origin", "https://behind.proxy"), ("sec-fetch-site", "same-origin")], 200),
            (vec![own, ("origin", "https://allowed.org"), ("sec-fetch-site", "cross-site")], 200),
        ] {
            assert_eq!(status("POST", &headers), expected, "{headers:?}");
        }
        assert_eq!(status("GET", &[own, ("origin", "https://evil.example")]), 200);
    }
}
