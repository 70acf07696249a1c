//! A token as the file has it.

use std::time::SystemTime;

use acp_sdk::v1::SessionId;
use acp_server::Access;
use acp_server::internal::clock;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::token::{Hash, Token};

/// What precedes the session in the name of a session's token. No name of a command contains it.
const SESSION: &str = "session:";

/// A token of a [`TokenFile`](super::TokenFile).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Entry", try_from = "Entry")]
#[non_exhaustive]
pub struct NamedToken {
    /// What it is called. Of a session's token that `POST /session` issued: `session:ID`.
    pub name: String,
    /// What it permits.
    pub access: Access,
    /// When it was added.
    pub created: SystemTime,
    /// When it ends; `None`: never.
    pub expires: Option<SystemTime>,
    pub(in super::super) hash: Hash,
}

/// A token as the file has it. A member that this version does not know could limit the token.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    access: Right,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Right {
    Full,
    ReadOnly,
    Session,
}

impl NamedToken {
    pub(super) fn new(
        name: String,
        access: Access,
        expires: Option<SystemTime>,
        token: &Token,
    ) -> Self {
        Self {
            name,
            access,
            created: SystemTime::now(),
            expires,
            hash: token.hash(),
        }
    }

    /// Returns whether the token has ended by itself.
    #[must_use]
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns whether it is the same token with the same right, whenever it expires.
    pub(in super::super) fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.access, self.hash) == (&other.name, &other.access, other.hash)
    }

    /// Returns whether a server issued it for a session.
    pub(in super::super) fn is_of_session(&self) -> bool {
        self.name.starts_with(SESSION)
    }
}

impl From<NamedToken> for Entry {
    fn from(token: NamedToken) -> Self {
        let (access, session) = match token.access {
            Access::Full => (Right::Full, None),
            Access::ReadOnly => (Right::ReadOnly, None),
            Access::Session(session) => (Right::Session, Some(session.to_string())),
        };
        Self {
            name: token.name,
            sha256: token.hash.digits(),
            access,
            session,
            created: clock::text_of(token.created),
            expires: token.expires.map(clock::text_of),
        }
    }
}

impl TryFrom<Entry> for NamedToken {
    type Error = String;

    fn try_from(entry: Entry) -> Result<Self, String> {
        let name = &entry.name;
        let time = |text: String| {
            let time = text.parse::<Timestamp>().map(SystemTime::from);
            time.map_err(|_| format!("{text:?} as a time of the token {name:?}"))
        };
        let access = match (entry.access, entry.session) {
            (Right::Full, None) => Access::Full,
            (Right::ReadOnly, None) => Access::ReadOnly,
            (Right::Session, Some(session)) => Access::Session(session.into()),
            _ => {
                return Err(format!(
                    "a token {name:?} whose access and session disagree"
                ));
            }
        };
        let hash = Hash::of_digits(&entry.sha256);
        Ok(Self {
            hash: hash.ok_or_else(|| format!("no SHA-256 hash of the token {name:?}"))?,
            created: time(entry.created)?,
            expires: entry.expires.map(time).transpose()?,
            access,
            name: entry.name,
        })
    }
}

/// Returns the name of a session's token.
pub(in super::super) fn session_name(session: &SessionId) -> String {
    format!("{SESSION}{session}")
}
