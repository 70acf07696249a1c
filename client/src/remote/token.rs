//! A bearer token and its sources.

use std::fmt;
use std::path::Path;

use reqwest::header::HeaderValue;

use super::RemoteError;

/// The longest token that is read, in bytes.
const MAX_BYTES: u64 = 8 << 10;

/// A bearer token. Its value appears in no message and not in its `Debug` form.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

impl Token {
    /// Creates a token from a string. Surrounding white space is removed.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Token`] if it is empty, longer than 8 KiB, or has characters other than visible
    /// ASCII.
    pub fn new(text: impl AsRef<str>) -> Result<Self, RemoteError> {
        Self::read(text.as_ref(), "the token")
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Token`] if the file cannot be read, and under the conditions of
    /// [`new`](Self::new).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, RemoteError> {
        use std::io::Read as _;
        let source = format!("the token file {}", path.as_ref().display());
        let failed = |reason: String| RemoteError::Token {
            origin: source.clone(),
            reason,
        };
        let file = std::fs::File::open(path.as_ref()).map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| failed(error.to_string()))?;
        Self::read(&text, &source)
    }

    /// Reads a token from an environment variable; `None` if it is not set.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`new`](Self::new).
    pub fn from_env(variable: &str) -> Result<Option<Self>, RemoteError> {
        let Some(value) = std::env::var_os(variable) else {
            return Ok(None);
        };
        let source = format!("the environment variable {variable}");
        Self::read(&value.to_string_lossy(), &source).map(Some)
    }

    fn read(text: &str, source: &str) -> Result<Self, RemoteError> {
        let failed = |reason: &str| RemoteError::Token {
            origin: source.to_owned(),
            reason: reason.to_owned(),
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(failed("it is empty"));
        }
        if text.len() as u64 > MAX_BYTES {
            return Err(failed("it is longer than 8 KiB"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(failed("it has characters other than visible ASCII"));
        }
        let mut value = HeaderValue::try_from(format!("Bearer {text}"))
            .map_err(|_| failed("it is not a valid header value"))?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Returns the value of the header `Authorization`.
    pub(super) fn authorization(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::new(" s3cret\n").unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(token.authorization(), "Bearer s3cret");
        assert!(!format!("{:?}", token.authorization()).contains("s3cret"));
        for text in ["", " ", "s3cret\ns3cret", "s3crét"] {
            let error = Token::new(text).unwrap_err().to_string();
            assert!(!error.contains("s3cr"), "{error}");
        }
    }

    #[test]
    fn a_file_has_the_token_and_an_end_of_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "s3cret\n").unwrap();
        assert_eq!(
            Token::from_file(&path).unwrap(),
            Token::new("s3cret").unwrap()
        );
        let error = Token::from_file(dir.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
