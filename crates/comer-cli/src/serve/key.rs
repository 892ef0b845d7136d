//! Bearer keys: with `--key-file`, every request but the health check needs one.

use std::path::Path;

use anyhow::{Context, Result, bail};
use axum::http::{HeaderMap, StatusCode, header};

use super::problem::Problem;

/// Least length of a key.
const LEAST: usize = 16;

/// The keys that are accepted; without any, every request is.
#[derive(Default)]
pub struct Keys(Vec<String>);

impl Keys {
    /// Reads a file with one key per line. Empty lines and lines that start with # are ignored.
    pub fn open(path: &Path) -> Result<Self> {
        let name = || format!("--key-file {}", path.display());
        let text = comer_files::read_text(path, comer_files::limit::TEXT).with_context(name)?;
        Self::parse(&text).with_context(name)
    }

    pub fn parse(text: &str) -> Result<Self> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.len() < LEAST || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!("line {}: expected a key of at least {LEAST} letters, digits or signs", number + 1);
            }
            keys.push(line.to_string());
        }
        if keys.is_empty() {
            bail!("there is no key in it, expected one per line");
        }
        Ok(Self(keys))
    }

    /// Refuses a request without a key, except for health checks.
    pub fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        if self.0.is_empty() || path == "/api/health" {
            return Ok(());
        }
        let given = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let given = given.and_then(|value| {
            let (scheme, key) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
        });
        match given {
            // All keys are compared, so that the time says nothing about them.
            Some(given) if self.0.iter().fold(false, |found, key| found | is_same(key.as_bytes(), given)) => {
                Ok(())
            }
            Some(_) => Err(Problem::new(StatusCode::UNAUTHORIZED, "the key is not known")),
            None => {
                let detail = "there is no key, expected the header Authorization: Bearer KEY";
                Err(Problem::new(StatusCode::UNAUTHORIZED, detail))
            }
        }
    }
}

/// Compares in a time that depends on the lengths only.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn only_known_keys_are_accepted() {
        let keys = Keys::parse("# of the shop\n0123456789abcdef\n\n  fedcba9876543210  \n").unwrap();
        for value in ["Bearer 0123456789abcdef", "bearer fedcba9876543210", "Bearer  0123456789abcdef "] {
            assert!(keys.check("/api/recognize", &headers(value)).is_ok(), "{value}");
        }
        for value in
            ["Bearer", "Bearer ", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "0123456789abcdef"]
        {
            let problem = keys.check("/api/recognize", &headers(value)).unwrap_err();
            assert_eq!(problem.status, StatusCode::UNAUTHORIZED, "{value}");
        }
        assert!(keys.check("/", &HeaderMap::new()).is_err());
        assert!(keys.check("/api/health", &HeaderMap::new()).is_ok());
        assert!(Keys::default().check("/api/recognize", &HeaderMap::new()).is_ok());
    }

    #[test]
    fn weak_and_missing_keys_are_refused() {
        for (text, word) in [
            ("", "no key"),
            ("# only this\n", "no key"),
            ("short\n", "line 1"),
            ("a b c d e f g h i j\n", "line 1"),
        ] {
            let message = Keys::parse(text).err().unwrap().to_string();
            assert!(message.contains(word), "{text:?}: {message}");
        }
        let message = format!("{:#}", Keys::open(Path::new("/nonexistent/keys")).err().unwrap());
        assert!(message.contains("--key-file /nonexistent/keys"), "{message}");
    }
}
