//! Who sends a request.

use std::sync::Arc;

use acp_server::Access;
use tokio_util::sync::CancellationToken;

use super::shares::Holder;
use super::token::Hash;

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody's: no token is needed, or the program has issued a ticket.
    Program,
    /// The server's.
    Master,
    /// That for reading.
    Reader,
    /// A session's.
    Session,
    /// A token of the file.
    Named(Arc<str>),
}

impl Owner {
    /// Returns how the audit log calls it.
    pub(crate) fn label(&self) -> Arc<str> {
        match self {
            Self::Program => "nobody's token".into(),
            Self::Master => "master".into(),
            Self::Reader => "reading token".into(),
            Self::Session => "session token".into(),
            Self::Named(name) => format!("token {name}").into(),
        }
    }

    /// Returns the name of a token of the file.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// Who sends a request: what the token permits, and which token it is, for the request rate.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) access: Access,
    pub(crate) owner: Owner,
    /// `None` where no token is needed.
    pub(crate) token: Option<Hash>,
    /// Cancelled when the token ends; what was opened with it ends then, too.
    pub(crate) ended: CancellationToken,
    /// When a session's token was issued that is valid at every node, in milliseconds since 1970.
    pub(crate) issued: Option<u64>,
    /// Another node has passed the request on: it is answered here.
    pub(crate) is_passed_on: bool,
    /// The client has logged in at the node that has passed the request on.
    pub(crate) is_logged_in: bool,
}

impl Identity {
    /// Returns whose share counts.
    pub(crate) fn holder(&self) -> Holder {
        match (&self.owner, self.token) {
            (Owner::Named(_), Some(token)) => Holder::Token(token),
            _ if self.access == Access::Full => Holder::Master,
            (_, Some(token)) => Holder::Token(token),
            (_, None) => Holder::Address(None),
        }
    }
}
