//! Implementations of several versions as one agent or client.

use std::fmt;
use std::marker::PhantomData;

use super::agreement::Agreement;
use super::router::{Entry, Row, VersionRouter};
use super::{IntoAgent, IntoClient, Negotiation, ProtocolVersion};
use crate::runtime::{Peer, Service};

/// Agents, or clients, of several protocol versions. The connection speaks the version that
/// `initialize` settles.
///
/// As an agent, the client's request decides. The highest version that is not above the
/// requested one serves it. For a client that asks for less than every version here, the
/// lowest decides: version 1 answers with its own number, later versions refuse with `-32022`.
/// The response always names the version that gave it. Until a response succeeds, other
/// requests are refused with `-32600` and notifications are skipped. Once the version is
/// settled, another `initialize` cannot change it; in version 2 it is refused with `-32600` after
/// any other request.
///
/// As a client, see [`Negotiation`].
///
/// ```no_run
/// # use acp_sdk::{HandlerResult, v1};
/// # struct MyAgent;
/// # impl v1::Agent for MyAgent {
/// #     async fn new_session(&self, _: &v1::AgentContext, _: v1::NewSessionRequest) -> HandlerResult<v1::NewSessionResponse> { unimplemented!() }
/// #     async fn prompt(&self, _: &v1::AgentContext, _: v1::PromptRequest) -> HandlerResult<v1::PromptResponse> { unimplemented!() }
/// #     async fn cancel(&self, _: &v1::AgentContext, _: v1::CancelNotification) -> HandlerResult<()> { Ok(()) }
/// # }
/// # async fn example() -> acp_sdk::Result<()> {
/// use acp_sdk::{MultiVersion, V1};
///
/// // With the feature `v2`, `.version::<V2>(…)` adds an agent of version 2.
/// let agent = MultiVersion::agent().version::<V1>(MyAgent);
/// acp_sdk::serve_stdio(agent).await
/// # }
/// ```
///
/// Spec: <https://agentclientprotocol.com/protocol/v2/initialization#version-negotiation>
#[must_use]
pub struct MultiVersion<Side> {
    /// In ascending order of versions.
    entries: Vec<Entry>,
    side: PhantomData<fn() -> Side>,
}

/// Marks a [`MultiVersion`] of agents.
#[derive(Debug, Clone, Copy)]
pub enum AgentSide {}

/// Marks a [`MultiVersion`] of clients.
#[derive(Debug, Clone, Copy)]
pub enum ClientSide {}

/// Stands for a version to be negotiated, where a type is asked for.
#[derive(Debug, Clone, Copy)]
pub enum AnyVersion {}

impl MultiVersion<AgentSide> {
    /// Creates an agent without versions.
    pub fn agent() -> Self {
        Self::new()
    }

    /// Adds the agent of a version. It replaces an earlier one of that version.
    pub fn version<V: ProtocolVersion>(self, agent: impl IntoAgent<V>) -> Self {
        self.add(Entry::new::<V>(agent.into_dispatch()))
    }
}

impl MultiVersion<ClientSide> {
    /// Creates a client without versions.
    pub fn client() -> Self {
        Self::new()
    }

    /// Adds the client of a version. It replaces an earlier one of that version.
    pub fn version<V: ProtocolVersion>(self, client: impl IntoClient<V>) -> Self {
        self.add(Entry::new::<V>(client.into_dispatch()))
    }
}

impl<Side> MultiVersion<Side> {
    fn new() -> Self {
        Self {
            entries: Vec::new(),
            side: PhantomData,
        }
    }

    fn add(mut self, entry: Entry) -> Self {
        let number = entry.row.number;
        self.entries.retain(|other| other.row.number != number);
        let lower = self
            .entries
            .iter()
            .filter(|other| other.row.number < number);
        let place = lower.count();
        self.entries.insert(place, entry);
        self
    }

    fn rows(&self) -> Vec<Row> {
        self.entries.iter().map(|entry| entry.row).collect()
    }
}

impl<Side> fmt::Debug for MultiVersion<Side> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}

impl IntoAgent<AnyVersion> for MultiVersion<AgentSide> {
    /// The type of a typed caller depends on the version: handlers get it in their context.
    type Client = Peer;

    fn into_dispatch(self) -> impl Service {
        VersionRouter::agent(self.entries)
    }

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Peer) {
        (self.into_dispatch(), std::convert::identity)
    }
}

impl IntoClient<AnyVersion> for MultiVersion<ClientSide> {
    type Agent = Negotiation;

    fn into_dispatch(self) -> impl Service {
        VersionRouter::client(self.entries, Agreement::default())
    }

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Negotiation) {
        let (agreement, rows) = (Agreement::default(), self.rows());
        let router = VersionRouter::client(self.entries, agreement.clone());
        (router, |peer| Negotiation::new(peer, agreement, rows))
    }
}
