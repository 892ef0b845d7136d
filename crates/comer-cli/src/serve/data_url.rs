//! Files inside JSON: data URLs, or base64 alone.

use super::problem::Problem;

/// The bytes of `data:image/png;base64,...`, or of base64 without the prefix.
pub fn decode(text: &str) -> Result<Vec<u8>, Problem> {
    let encoded = match text.strip_prefix("data:") {
        None if text.starts_with("http:") || text.starts_with("https:") => {
            return Err(Problem::bad_request(
                "src is a web address, expected a data URL: this server fetches nothing",
            ));
        }
        None => text,
        Some(url) => match url.split_once(',') {
            Some((head, data)) if head.ends_with(";base64") => data,
            _ => {
                return Err(Problem::bad_request(
                    "src is a data URL without ;base64, expected data:TYPE;base64,DATA",
                ));
            }
        },
    };
    base64(encoded).ok_or_else(|| Problem::bad_request("src is not base64, expected data:TYPE;base64,DATA"))
}

/// Decodes base64 (RFC 4648), standard or URL-safe, with or without padding. White space is ignored.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut count) = (0u32, 0);
    let mut characters = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    for byte in characters.by_ref() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => {
                // At most one more padding character follows.
                let rest: Vec<u8> = characters.by_ref().collect();
                let most = if count == 2 { 1 } else { 0 };
                if count < 2 || rest.len() > most || rest.iter().any(|&byte| byte != b'=') {
                    return None;
                }
                break;
            }
            _ => return None,
        };
        group = group << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&group.to_be_bytes()[1..]);
            (group, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        2 => bytes.push((group >> 4) as u8),
        3 => bytes.extend_from_slice(&[(group >> 10) as u8, (group >> 2) as u8]),
        _ => return None,
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length() {
        for (text, expected) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zg", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9v\nYmFy", b"foobar"),
            ("+/-_", &[0xfb, 0xff, 0xbf]),
        ] {
            assert_eq!(base64(text).as_deref(), Some(expected), "{text:?}");
        }
        for text in ["Z", "Zg=x", "Z===", "=", "Zm9v=", "Zg===", "Zm8==", "Zm9v!"] {
            assert_eq!(base64(text), None, "{text:?}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(base64(&comer_eval::html::base64(&all)).unwrap(), all);
    }

    #[test]
    fn data_urls_and_what_is_none() {
        assert_eq!(decode("data:image/png;base64,Zm9v").unwrap(), b"foo");
        assert_eq!(decode("Zm9v").unwrap(), b"foo");
        for (text, word) in [
            ("https://example.org/a.png", "fetches nothing"),
            ("data:text/plain,foo", ";base64"),
            ("data:;base64,Z", "not base64"),
        ] {
            assert!(decode(text).unwrap_err().detail.contains(word), "{text}");
        }
    }
}
