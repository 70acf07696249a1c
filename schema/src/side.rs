//! Who handles a method: the value of `x-side`.

use std::fmt;

use crate::Error;

/// The most bytes that the name of a side has.
const MAX_BYTES: usize = 32;

/// Who handles a method, by the name in `x-side`.
///
/// A document chooses the names of its two roles, such as `agent` and `client`. Three names
/// have a fixed meaning: [`BOTH`](Self::BOTH), [`PROTOCOL`](Self::PROTOCOL) and
/// [`PROXY`](Self::PROXY).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// The name, filled up with zeros.
    name: [u8; MAX_BYTES],
}

impl Side {
    /// The agent of ACP.
    pub const AGENT: Self = Self::constant(b"agent");
    /// The client of ACP.
    pub const CLIENT: Self = Self::constant(b"client");
    /// Both roles: each may send the method, and each handles it.
    pub const BOTH: Self = Self::constant(b"both");
    /// The connection itself, at both ends; implementations do not see the method.
    pub const PROTOCOL: Self = Self::constant(b"protocol");
    /// A proxy between the two roles.
    pub const PROXY: Self = Self::constant(b"proxy");

    /// Creates a side from its name.
    ///
    /// # Errors
    /// Fails unless the name consists of 1 to 32 lower-case ASCII letters, digits, `-` and
    /// `_`, and starts with a letter.
    pub fn new(name: &str) -> Result<Self, Error> {
        let is_part =
            |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'_');
        let bytes = name.as_bytes();
        let valid = bytes.len() <= MAX_BYTES
            && bytes.first().is_some_and(u8::is_ascii_lowercase)
            && bytes.iter().all(|c| is_part(*c));
        match valid {
            true => Ok(Self::constant(bytes)),
            false => Err(Error::Side { name: name.into() }),
        }
    }

    const fn constant(bytes: &[u8]) -> Self {
        let mut name = [0; MAX_BYTES];
        let mut index = 0;
        while index < bytes.len() {
            name[index] = bytes[index];
            index += 1;
        }
        Self { name }
    }

    /// Returns the name, as in `x-side`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.name.iter().position(|c| *c == 0);
        let name = self.name.get(..end.unwrap_or(MAX_BYTES));
        // The name is ASCII by construction.
        std::str::from_utf8(name.unwrap_or_default()).unwrap_or_default()
    }

    /// Whether the side is one of the document's two roles.
    #[must_use]
    pub fn is_role(self) -> bool {
        !matches!(self, Self::BOTH | Self::PROTOCOL | Self::PROXY)
    }

    /// Whether a method of this side is handled by `side`.
    #[must_use]
    pub fn includes(self, side: Self) -> bool {
        self == side || (self == Self::BOTH && side.is_role())
    }
}

impl AsRef<str> for Side {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Side").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, Side};

    #[test]
    fn names_have_a_form() {
        let long = "a".repeat(MAX_BYTES);
        for name in ["agent", "code-editor", "k2_x", &long] {
            assert_eq!(
                Side::new(name).map(|side| side.to_string()).ok().as_deref(),
                Some(name)
            );
        }
        let longer = "a".repeat(MAX_BYTES + 1);
        for name in ["", "Agent", "1st", "a b", "é", "a\0", &longer] {
            assert!(Side::new(name).is_err(), "{name:?}");
        }
        assert_eq!(Side::new("client").ok(), Some(Side::CLIENT));
    }

    #[test]
    fn both_includes_roles_only() {
        assert!(Side::BOTH.includes(Side::AGENT) && Side::AGENT.includes(Side::AGENT));
        assert!(!Side::BOTH.includes(Side::PROTOCOL) && !Side::AGENT.includes(Side::BOTH));
    }
}
