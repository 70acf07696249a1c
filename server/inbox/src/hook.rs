//! The receiving side of webhooks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Inbox, InboxError, Inner, Message, Origin};

/// Bytes of a secret at least.
const SHORTEST_SECRET: usize = 16;

/// Bytes of a call's body at most: it becomes a prompt.
const LONGEST_BODY: usize = 256 << 10;

/// Characters of a name.
const LONGEST_NAME: usize = 64;

/// A webhook: whoever has its secret can prompt the session. `Debug` does not show the secret.
#[derive(Clone)]
pub struct Hook {
    name: String,
    secret: Vec<u8>,
}

/// What a caller shows that it has the secret.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Credentials<'a> {
    /// The HMAC-SHA256 of the body with the secret, in hexadecimal digits, with or without `sha256=`
    /// before them: the header `X-Hub-Signature-256`.
    Signature(&'a str),
    /// The secret itself: `Authorization: Bearer` or `X-Gitlab-Token`.
    Token(&'a str),
}

/// Why a webhook, or a call of it, is refused. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The name cannot be part of a path.
    #[error("webhook {0:?}: a name has 1 to {LONGEST_NAME} letters, digits, `-` or `_`")]
    Name(String),
    /// The secret is too short to be one.
    #[error(
        "webhook {0}: the secret has less than {SHORTEST_SECRET} bytes; `openssl rand -hex 32` makes one"
    )]
    Secret(String),
    /// Another open session has a webhook with this name.
    #[error("webhook {0} belongs to another open session; close that one or use another name")]
    InUse(String),
    /// There is no webhook with this name, or its session is not open.
    #[error("there is no webhook {0} in an open session")]
    Unknown(String),
    /// The caller has not shown that it has the secret.
    #[error("webhook {0}: the signature or token is wrong")]
    Unauthorized(String),
    /// The body is no text, or too long for a prompt.
    #[error("webhook {name}: the body {reason}")]
    Body {
        /// The name of the webhook.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The inbox does not take the message.
    #[error("webhook {name}: {error}")]
    Inbox {
        /// The name of the webhook.
        name: String,
        /// The reason.
        error: InboxError,
    },
}

impl Hook {
    /// Creates a webhook.
    ///
    /// # Errors
    ///
    /// [`HookError::Name`] and [`HookError::Secret`].
    pub fn new(name: impl Into<String>, secret: impl AsRef<[u8]>) -> Result<Self, HookError> {
        let (name, secret) = (name.into(), secret.as_ref().to_vec());
        let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(in_name) {
            return Err(HookError::Name(name));
        }
        match secret.len() < SHORTEST_SECRET {
            true => Err(HookError::Secret(name)),
            false => Ok(Self { name, secret }),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks, in constant time, that the caller has the secret.
    ///
    /// # Errors
    ///
    /// [`HookError::Unauthorized`].
    pub fn verify(&self, credentials: Credentials<'_>, body: &[u8]) -> Result<(), HookError> {
        let has_secret = match credentials {
            Credentials::Signature(text) => {
                let digits = text.strip_prefix("sha256=").unwrap_or(text);
                // An HMAC takes keys of any length.
                let mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok();
                let signature = from_hex(digits);
                mac.zip(signature).is_some_and(|(mac, signature)| {
                    mac.chain_update(body).verify_slice(&signature).is_ok()
                })
            }
            // Of the hashes, so that the time does not tell the length either.
            Credentials::Token(token) => {
                let (given, expected) = (Sha256::digest(token), Sha256::digest(&self.secret));
                given.as_slice().ct_eq(expected.as_slice()).into()
            }
        };
        match has_secret {
            true => Ok(()),
            false => Err(HookError::Unauthorized(self.name.clone())),
        }
    }

    fn message(&self, body: &[u8]) -> Result<Message, HookError> {
        let invalid = |reason: String| HookError::Body {
            name: self.name.clone(),
            reason,
        };
        if body.len() > LONGEST_BODY {
            return Err(invalid(format!("has more than {LONGEST_BODY} bytes")));
        }
        let body = std::str::from_utf8(body).map_err(|_| invalid("is no UTF-8 text".to_owned()))?;
        let prompt = match body.trim() {
            "" => format!("The webhook {} was called.", self.name),
            body => format!("The webhook {} was called with:\n\n{body}", self.name),
        };
        Ok(Message::new(Origin::Webhook(self.name.clone()), prompt))
    }
}

/// Returns the bytes of hexadecimal digits.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature(_) => "Signature",
            Self::Token(_) => "Token",
        })
    }
}

/// The webhooks of an agent's open sessions. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Hooks(Arc<Mutex<ByName>>);

/// Webhooks with their inboxes.
type ByName = BTreeMap<String, (Hook, Weak<Inner>)>;

impl Hooks {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a webhook for an inbox, until the inbox ends.
    ///
    /// # Errors
    ///
    /// [`HookError::InUse`] if the inbox of another session has one with this name.
    pub fn add(&self, hook: Hook, inbox: &Inbox) -> Result<(), HookError> {
        let mut hooks = self.hooks();
        hooks.retain(|_, (_, inbox)| is_open(inbox));
        if let Some((_, other)) = hooks.get(hook.name())
            && !other.ptr_eq(&Arc::downgrade(&inbox.0))
        {
            return Err(HookError::InUse(hook.name));
        }
        hooks.insert(hook.name.clone(), (hook, Arc::downgrade(&inbox.0)));
        Ok(())
    }

    /// Receives a call: verifies it at once. What is returned queues its body as a prompt, and completes once
    /// the store has it, as [`Inbox::deliver`].
    ///
    /// # Errors
    ///
    /// [`HookError::Unknown`], [`HookError::Unauthorized`], [`HookError::Body`] and
    /// [`HookError::Inbox`].
    pub fn receive(
        &self,
        name: &str,
        credentials: Credentials<'_>,
        body: &[u8],
    ) -> impl Future<Output = Result<(), HookError>> + Send + use<> {
        let verified = self.verified(name, credentials, body);
        async move {
            let (name, delivered) = verified?;
            let delivered = delivered.await;
            delivered.map_err(|error| HookError::Inbox { name, error })
        }
    }

    /// Returns the name of the webhook, and what delivers the call.
    fn verified(
        &self,
        name: &str,
        credentials: Credentials<'_>,
        body: &[u8],
    ) -> Result<
        (
            String,
            impl Future<Output = Result<(), InboxError>> + Send + use<>,
        ),
        HookError,
    > {
        let found = self.hooks().get(name).cloned();
        let unknown = || HookError::Unknown(name.to_owned());
        let (hook, inbox) = found.ok_or_else(unknown)?;
        hook.verify(credentials, body)?;
        let inbox = inbox.upgrade().map(Inbox).ok_or_else(unknown)?;
        let delivered = inbox.deliver(hook.message(body)?);
        Ok((hook.name, delivered))
    }

    fn hooks(&self) -> MutexGuard<'_, ByName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_open(inbox: &Weak<Inner>) -> bool {
    inbox
        .upgrade()
        .is_some_and(|inbox| !inbox.sender.is_closed())
}
