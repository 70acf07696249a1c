//! Texts that every node of one secret can make and read, and nobody else: tickets, tokens of sessions and ids
//! of connections.
//!
//! They are encrypted, so clients learn neither the address of a node nor the hash of a token from them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::token::Token;

/// The key is derived from the secret for this use only.
const USE: &[u8] = b"acp-server: texts that nodes seal for clients, version 1";

/// What a sealed text is. It is not read as anything else.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Ticket,
    SessionToken,
    Connection,
}

impl Purpose {
    fn label(self) -> Aad<&'static [u8]> {
        Aad::from(match self {
            Self::Ticket => b"ticket",
            Self::SessionToken => b"session token",
            Self::Connection => b"connection",
        })
    }
}

/// The key of all nodes, derived from their secret.
pub(crate) struct Seal(LessSafeKey);

impl Seal {
    pub(crate) fn new(secret: &Token) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.secret().as_bytes());
        let key = UnboundKey::new(&CHACHA20_POLY1305, hmac::sign(&secret, USE).as_ref());
        Self(LessSafeKey::new(
            key.expect("SHA-256 has the length of a key"),
        ))
    }

    /// Returns claims as text of visible ASCII characters, different each time.
    ///
    /// # Errors
    ///
    /// When the system has no source of random numbers.
    pub(crate) fn seal(
        &self,
        purpose: Purpose,
        claims: &impl Serialize,
    ) -> Result<String, getrandom::Error> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)?;
        // Claims are plain structs.
        let mut sealed = serde_json::to_vec(claims).unwrap_or_default();
        let nonce_of_key = Nonce::assume_unique_for_key(nonce);
        let done = self
            .0
            .seal_in_place_append_tag(nonce_of_key, purpose.label(), &mut sealed);
        done.expect("claims are shorter than the cipher's limit");
        sealed.splice(0..0, nonce);
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Returns the claims of a text that a node of the same secret has sealed.
    pub(crate) fn open<T: DeserializeOwned>(&self, purpose: Purpose, text: &str) -> Option<T> {
        let mut sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, claims) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let claims = self.0.open_in_place(nonce, purpose.label(), claims).ok()?;
        serde_json::from_slice(claims).ok()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(secret: &str) -> Seal {
        Seal::new(&secret.parse().unwrap())
    }

    #[test]
    fn a_text_is_read_by_nodes_of_the_same_secret_as_what_it_is() {
        let (first, second) = (seal("a-secret-of-all-nodes"), seal("a-secret-of-all-nodes"));
        let text = first.seal(Purpose::Ticket, &"claims").unwrap();
        assert_eq!(
            second.open(Purpose::Ticket, &text),
            Some("claims".to_owned())
        );
        assert_eq!(second.open::<String>(Purpose::Connection, &text), None);
        let foreign = seal("a-secret-of-another");
        assert_eq!(foreign.open::<String>(Purpose::Ticket, &text), None);
        assert_ne!(first.seal(Purpose::Ticket, &"claims").unwrap(), text);
    }

    #[test]
    fn a_text_that_was_changed_is_not_read() {
        let seal = seal("a-secret-of-all-nodes");
        let text = seal.seal(Purpose::Ticket, &"claims").unwrap();
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'A' {
                "B"
            } else {
                "A"
            };
            let mut changed = text.clone();
            changed.replace_range(at..=at, other);
            assert_eq!(seal.open::<String>(Purpose::Ticket, &changed), None);
        }
        for wrong in ["", "A", &text[1..], &text[..text.len() - 1], "ä"] {
            assert_eq!(seal.open::<String>(Purpose::Ticket, wrong), None);
        }
    }
}
