//! Errors of the strict reader.

use std::fmt;

use super::Reader;
use crate::json::errors::push_escaped;

/// Error of the strict reader.
///
/// The reason is boxed to keep results small. Most errors have none, because the lenient pass
/// finds their reason and their place.
#[derive(Debug, PartialEq, Eq)]
pub struct StrictError(Option<Box<Reason>>);

#[derive(Debug, PartialEq, Eq)]
struct Reason {
    at: usize,
    message: String,
}

impl StrictError {
    /// The text is not JSON, or not of the requested type.
    pub(in crate::json) const INVALID: Self = Self(None);

    /// The error of the value that starts at `at`.
    #[cold]
    pub(super) fn new(at: usize, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self(Some(Box::new(Reason { at, message })))
    }

    /// Returns the JSON Pointer of the invalid value in `text`, which must be valid JSON.
    pub(in crate::json) fn path(&self, text: &str) -> String {
        let mut path = String::new();
        if let Some(reason) = &self.0 {
            // Invalid JSON ends the search early; the path so far is used.
            let _ = find(text, reason.at, &mut path);
        }
        path
    }
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(reason) => f.write_str(&reason.message),
            None => f.write_str("invalid JSON"),
        }
    }
}

impl std::error::Error for StrictError {}

/// Writes the JSON Pointer of the value that starts at `at`.
fn find(text: &str, at: usize, path: &mut String) -> Result<(), StrictError> {
    let mut reader = Reader::new(text);
    loop {
        let close = match reader.next()? {
            b'{' if reader.at < at => b'}',
            b'[' if reader.at < at => b']',
            _ => return Ok(()),
        };
        reader.at += 1;
        let (mut first, mut index) = (true, 0);
        // The member or item that ends behind the position contains it.
        loop {
            if !reader.more(close, &mut first)? {
                return Ok(());
            }
            let start = path.len();
            path.push('/');
            if close == b'}' {
                reader.next()?;
                push_escaped(path, reader.string()?.as_str());
                reader.expect(b':')?;
            } else {
                path.push_str(&index.to_string());
            }
            reader.next()?;
            let value = reader.at;
            reader.skip()?;
            if reader.at > at {
                reader.at = value;
                break;
            }
            path.truncate(start);
            index += 1;
        }
    }
}
