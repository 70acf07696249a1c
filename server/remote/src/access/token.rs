//! One token: a secret that stands for a right.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The least number of characters of a token.
const SHORTEST: usize = 16;

/// The greatest number of characters of a token.
const LONGEST: usize = 1024;

/// A secret text that clients send as `Authorization: Bearer TOKEN`.
///
/// `Debug` does not show it.
#[derive(Clone)]
pub struct Token(String);

/// A text that cannot be a token. The error does not contain it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a token of {SHORTEST} to {LONGEST} visible ASCII characters, got {problem}; \
     `openssl rand -hex 32` makes one"
)]
#[non_exhaustive]
pub struct TokenError {
    /// What the text has instead, such as `6 characters`.
    pub problem: String,
}

impl TokenError {
    fn new(problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self { problem }
    }
}

impl Token {
    /// Creates a random token: 256 bits, as 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// When the system has no source of random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Hash(bytes).digits()))
    }

    /// Takes a text that this crate has made.
    pub(super) fn issued(text: String) -> Self {
        Self(text)
    }

    /// Returns the secret.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 hash of the secret, `sha256:` and hexadecimal digits: it shows whether two
    /// tokens are the same, and not what they are.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!("sha256:{}", self.hash().digits())
    }

    /// Returns whether a text is this secret, in a time that does not depend on either.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.hash().is_same(&Hash::of(text)).into()
    }

    pub(super) fn hash(&self) -> Hash {
        Hash::of(&self.0)
    }
}

impl FromStr for Token {
    type Err = TokenError;

    /// Takes a token from a text, without the white space around it.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::new("white space or other characters"));
        }
        if !(SHORTEST..=LONGEST).contains(&text.len()) {
            return Err(TokenError::new(format!("{} characters", text.len())));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The SHA-256 hash of a token, which is all that a server keeps of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(super) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Returns the hash as 64 hexadecimal digits.
    pub(super) fn digits(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a hash of 64 lower-case hexadecimal digits.
    pub(super) fn of_digits(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 2 * bytes.len() || !text.bytes().all(is_hexadecimal) {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Compares in a time that does not depend on the values.
    pub(super) fn is_same(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens_differ_and_are_tokens() {
        let (first, second) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(first.secret(), second.secret());
        assert_eq!(first.secret().len(), 64);
        let parsed: Token = format!(" {}\n", first.secret()).parse().unwrap();
        assert!(bool::from(parsed.hash().is_same(&first.hash())));
        assert!(!bool::from(parsed.hash().is_same(&second.hash())));
    }

    #[test]
    fn a_hash_is_read_from_its_digits() {
        let hash = Hash::of("a-secret-of-sorts");
        assert_eq!(Hash::of_digits(&hash.digits()), Some(hash));
        let digits = hash.digits();
        for wrong in ["", &digits[1..], &digits.to_uppercase(), &"ä".repeat(32)] {
            assert_eq!(Hash::of_digits(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let token: Token = "a-secret-of-sorts".parse().unwrap();
        assert!(!format!("{token:?} {:?}", token.hash()).contains("secret"));
    }

    #[test]
    fn short_long_and_unprintable_texts_are_no_tokens() {
        let long = "a".repeat(LONGEST + 1);
        for text in [
            "",
            "short",
            "fifteen-letters",
            "a token with spaces",
            "ünicode-is-refused",
            &long,
        ] {
            let error = text.parse::<Token>().unwrap_err().to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        let error = "secret".parse::<Token>().unwrap_err();
        assert!(format!("{error:?}").contains("6 characters"), "{error:?}");
        assert!(error.to_string().contains("16 to 1024"), "{error}");
    }
}
