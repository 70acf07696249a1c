//! Clients of version 2, and those that speak both versions: what they may send first, and
//! which of them hears what the agent sends.

use std::fmt;

use serde_core::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::agreed::{Agreed, Version, too_early, version_in};
use super::{Both, IntoClient, V1, V2};
use crate::error::{Error, Result};
use crate::json::encode_raw;
use crate::runtime::{
    HandlerFuture, IncomingNotification, IncomingRequest, Method as _, Peer, Service,
};
use crate::{v1, v2};

impl<C: v2::Client> IntoClient<V2> for C {
    type Agent = v2::AgentHandle;

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Agent) {
        (Alone(v2::ClientService::new(self)), v2::AgentHandle::new)
    }
}

impl<C: v1::Client, D: v2::Client> IntoClient<Both<V1, V2>> for Both<C, D> {
    type Agent = Negotiation;

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Agent) {
        let agreed = Agreed::default();
        let gate = Gate {
            agreed: agreed.clone(),
            first: v1::ClientService::new(self.v1),
            second: v2::ClientService::new(self.v2),
        };
        (gate, |peer| Negotiation { peer, agreed })
    }
}

/// An agent whose version is not known yet: what a client that offers [`Both`] connects to.
///
/// Until the answer to `initialize` is read, the agent's requests are refused with `-32600`
/// and its notifications skipped. What it writes after the answer reaches the client of the
/// version that the answer names.
///
/// ```no_run
/// # use acp_sdk::{Both, Initialized, Result, v1, v2};
/// # async fn example(old: impl v1::Client, new: impl v2::Client) -> Result<()> {
/// # let (reader, writer) = (tokio::io::empty(), tokio::io::sink());
/// let (agent, driver) = acp_sdk::connect(Both { v1: old, v2: new }, reader, writer);
/// tokio::spawn(driver);
/// let info = v2::Implementation::new("my-editor", "1.0");
/// let initialized = agent
///     .initialize(
///         v1::InitializeRequest::new(v1::ProtocolVersion::V1),
///         v2::InitializeRequest::new(v2::ProtocolVersion::V2, info),
///     )
///     .await?;
/// match initialized {
///     Initialized::V1 { agent, answer } => { /* v1::AgentHandle */ }
///     Initialized::V2 { agent, answer } => { /* v2::AgentHandle */ }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Negotiation {
    peer: Peer,
    agreed: Agreed,
}

/// What an agent answered to `initialize`, with what calls it from now on.
#[derive(Debug, Clone)]
pub enum Initialized {
    /// The connection speaks version 1.
    V1 {
        /// Calls the agent.
        agent: v1::AgentHandle,
        /// What the agent says of itself.
        answer: Box<v1::InitializeResponse>,
    },
    /// The connection speaks version 2.
    V2 {
        /// Calls the agent.
        agent: v2::AgentHandle,
        /// What the agent says of itself.
        answer: Box<v2::InitializeResponse>,
    },
}

impl Negotiation {
    /// Sends one `initialize` that agents of either version can read, and learns which of them
    /// this is.
    ///
    /// The message asks for version 2 and has the members of both requests; their
    /// `protocol_version` does not matter, and where `_meta` differ under a key, that of
    /// version 2 counts. May be called again when it failed.
    ///
    /// # Errors
    ///
    /// [`Error::Response`] when the agent refuses: with `-32022` when it speaks later versions
    /// only. [`Error::UnsupportedVersion`] when it answers with another version than these
    /// two; the connection is then closed on this side. Else as any call.
    pub async fn initialize(
        &self,
        v1: v1::InitializeRequest,
        v2: v2::InitializeRequest,
    ) -> Result<Initialized> {
        const NAME: &str = v2::methods::Initialize::NAME;
        let params = joined(&v1, &v2)?;
        let agreed = self.agreed.clone();
        let preview = move |result: &RawValue| {
            if let Ok(version) = version_in(result.get())
                && let Some(version) = Version::of(version)
            {
                agreed.settle(version);
            }
        };
        let result = self.peer.call_previewed(NAME, &params, Box::new(preview));
        let result = result.await?;
        let version = version_in(result.get()).map_err(|error| Error::Decode {
            method: NAME.to_owned(),
            path: error.path,
            reason: error.message,
        })?;
        let peer = self.peer.clone();
        match Version::of(version) {
            Some(Version::First) => Ok(Initialized::V1 {
                answer: Box::new(peer.decode(NAME, &result)?),
                agent: v1::AgentHandle::new(peer),
            }),
            Some(Version::Second) => Ok(Initialized::V2 {
                answer: Box::new(peer.decode(NAME, &result)?),
                agent: v2::AgentHandle::new(peer),
            }),
            None => {
                peer.finish();
                Err(Error::UnsupportedVersion { version })
            }
        }
    }

    /// The other end of the connection, for calls without types.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

/// The members of both requests. No name but `_meta` and the version's is in both.
fn joined(v1: &v1::InitializeRequest, v2: &v2::InitializeRequest) -> Result<Map<String, Value>> {
    let mut joined = members(v1)?;
    for (name, value) in members(v2)? {
        match (joined.get_mut(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
            (_, value) => drop(joined.insert(name, value)),
        }
    }
    joined.insert("protocolVersion".to_owned(), (Version::Second as u8).into());
    Ok(joined)
}

/// The members of a request.
fn members(request: &impl Serialize) -> Result<Map<String, Value>> {
    let unwritable = |error: &dyn fmt::Display| Error::Encode {
        method: v2::methods::Initialize::NAME.to_owned(),
        reason: error.to_string(),
    };
    let raw = encode_raw(request).map_err(|error| unwritable(&error))?;
    serde_json::from_str(raw.get()).map_err(|error| unwritable(&error))
}

/// Hands what the agent sends to the client of the version agreed on.
struct Gate<C, D> {
    agreed: Agreed,
    first: v1::ClientService<C>,
    second: v2::ClientService<D>,
}

impl<C: v1::Client, D: v2::Client> Service for Gate<C, D> {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        match self.agreed.version() {
            Some(Version::First) => self.first.request(request),
            Some(Version::Second) => self.second.request(request),
            None => {
                let error = too_early(request.method());
                request.refuse(error)
            }
        }
    }

    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
        match self.agreed.version() {
            Some(Version::First) => self.first.notification(note),
            Some(Version::Second) => self.second.notification(note),
            None => {
                let error = too_early(note.method());
                note.skip(&error)
            }
        }
    }

    fn takes_batches(&self) -> bool {
        self.agreed.version() == Some(Version::Second)
    }
}

/// A client of version 2 alone: there is nothing to agree on.
struct Alone<C>(v2::ClientService<C>);

impl<C: v2::Client> Service for Alone<C> {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        self.0.request(request)
    }

    fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
        self.0.notification(note)
    }

    fn takes_batches(&self) -> bool {
        true
    }
}
