//! What can stand at one end of a connection, in which version of the protocol.
//!
//! [`IntoAgent`] and [`IntoClient`] let every function that opens a connection take whatever
//! there is: an implementation of version 1, and with the feature `v2` one of version 2 or
//! [`Both`]. Implementations of version 1 are served as they are. The others stand behind a
//! gate that knows which version the two sides have agreed on, and take batches: arrays of
//! messages, which version 1 does not have.

#[cfg(feature = "v2")]
mod agent;
#[cfg(feature = "v2")]
mod agreed;
#[cfg(feature = "v2")]
mod client;

#[cfg(feature = "v2")]
pub use client::{Initialized, Negotiation};

use crate::runtime::{Peer, Service};
use crate::v1;

/// Marks what speaks protocol version 1.
#[derive(Debug, Clone, Copy)]
pub enum V1 {}

/// Marks what speaks protocol version 2.
#[cfg(feature = "v2")]
#[derive(Debug, Clone, Copy)]
pub enum V2 {}

/// Two implementations of one side, one for each version of the protocol; which of them a
/// connection uses is settled when it is initialized.
///
/// As an agent: the client's request `initialize` decides. One that asks for version 2 or a
/// later one goes to `v2`, any other to `v1`, and the answer always names the version whose
/// agent gave it. Before that only `initialize` is served: other requests are refused with
/// `-32600` and notifications skipped. The version stays undecided while `initialize` fails.
/// Once it is decided, a further `initialize` goes to the same agent and cannot change it.
///
/// As a client: see [`Negotiation`].
///
/// ```no_run
/// # use acp_sdk::{HandlerResult, Result};
/// # struct Old;
/// # impl acp_sdk::v1::Agent for Old {
/// #     async fn new_session(&self, _: &acp_sdk::v1::AgentContext, _: acp_sdk::v1::NewSessionRequest) -> HandlerResult<acp_sdk::v1::NewSessionResponse> { unimplemented!() }
/// #     async fn prompt(&self, _: &acp_sdk::v1::AgentContext, _: acp_sdk::v1::PromptRequest) -> HandlerResult<acp_sdk::v1::PromptResponse> { unimplemented!() }
/// #     async fn cancel(&self, _: &acp_sdk::v1::AgentContext, _: acp_sdk::v1::CancelNotification) -> HandlerResult<()> { Ok(()) }
/// # }
/// # struct New;
/// # impl acp_sdk::v2::Agent for New {
/// #     async fn initialize(&self, _: &acp_sdk::v2::AgentContext, _: acp_sdk::v2::InitializeRequest) -> HandlerResult<acp_sdk::v2::InitializeResponse> { unimplemented!() }
/// #     async fn new_session(&self, _: &acp_sdk::v2::AgentContext, _: acp_sdk::v2::NewSessionRequest) -> HandlerResult<acp_sdk::v2::NewSessionResponse> { unimplemented!() }
/// #     async fn prompt(&self, _: &acp_sdk::v2::AgentContext, _: acp_sdk::v2::PromptRequest) -> HandlerResult<acp_sdk::v2::PromptResponse> { unimplemented!() }
/// #     async fn cancel_session(&self, _: &acp_sdk::v2::AgentContext, _: acp_sdk::v2::CancelSessionNotification) -> HandlerResult<()> { Ok(()) }
/// # }
/// # async fn example() -> Result<()> {
/// acp_sdk::serve_stdio(acp_sdk::Both { v1: Old, v2: New }).await
/// # }
/// ```
///
/// Spec: <https://agentclientprotocol.com/protocol/v2/initialization#version-negotiation>
#[cfg(feature = "v2")]
#[derive(Debug, Clone, Copy)]
pub struct Both<First, Second> {
    /// Speaks version 1.
    pub v1: First,
    /// Speaks version 2.
    pub v2: Second,
}

/// What a connection can serve as its agent.
///
/// Everything that implements [`v1::Agent`] does; with the feature `v2` also what implements
/// `v2::Agent`, and `Both` of them. `V` only tells these apart and is inferred; for
/// a type that implements both traits, name it: `serve_stdio::<V1, _>(agent)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no agent",
    note = "an agent implements `acp_sdk::v1::Agent`"
)]
pub trait IntoAgent<V>: Sized + 'static {
    /// Calls the client.
    type Client: 'static;

    /// What serves a connection on which this is the agent, and what calls the peer on it.
    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Client);
}

/// What a connection can serve as its client.
///
/// Everything that implements [`v1::Client`] does; with the feature `v2` also what implements
/// `v2::Client`, and `Both` of them. `V` is as in [`IntoAgent`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no client",
    note = "a client implements `acp_sdk::v1::Client`"
)]
pub trait IntoClient<V>: Sized + 'static {
    /// Calls the agent.
    type Agent: 'static;

    /// What serves a connection on which this is the client, and what calls the peer on it.
    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Agent);
}

impl<A: v1::Agent> IntoAgent<V1> for A {
    type Client = v1::ClientHandle;

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Client) {
        (v1::AgentService::new(self), v1::ClientHandle::new)
    }
}

impl<C: v1::Client> IntoClient<V1> for C {
    type Agent = v1::AgentHandle;

    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Agent) {
        (v1::ClientService::new(self), v1::AgentHandle::new)
    }
}
