//! Protocol versions: the table of those in this crate, and their negotiation.
//!
//! A version is a document with the keyword `x-version` and a row of the table below. The
//! generator makes of the document a marker type that implements [`ProtocolVersion`], and
//! services that implement [`IntoAgent`] and [`IntoClient`]. [`MultiVersion`] combines any
//! number of versions, those of other crates included.

mod agreement;
mod multi;
mod negotiation;
mod router;

pub(crate) use agreement::{Negotiating, version_in};
pub use multi::{AgentSide, AnyVersion, ClientSide, MultiVersion};
pub use negotiation::{Negotiated, Negotiation, Offer};
pub use router::single_version;

use crate::runtime::{Params, Payload, Peer, Service};

/// A version of the protocol, by the marker type that is generated from its document.
pub trait ProtocolVersion: 'static {
    /// The number that `initialize` negotiates.
    const NUMBER: u16;
    /// Whether the id of a request may be null.
    const NULL_IDS: bool;
    /// Whether `initialize` may be repeated after other requests.
    const LATE_INITIALIZE: bool;
    /// The error code with which an agent refuses a client that asks for an older version.
    /// `None`: the agent answers with its own version, and the client decides.
    const UNSUPPORTED_CODE: Option<i32>;
    /// Required members that requests of later versions may lack, with JSON to read instead.
    const INITIALIZE_DEFAULTS: &'static [(&'static str, &'static str)];
    /// The params of `initialize`.
    type InitializeRequest: Params;
    /// The result of `initialize`.
    type InitializeResponse: Payload;
    /// Calls an agent.
    type AgentHandle: 'static;

    /// Sets the version that a response names.
    fn set_version(response: &mut Self::InitializeResponse);

    /// Creates the caller of an agent.
    fn agent_handle(peer: Peer) -> Self::AgentHandle;
}

/// Conversion into the service of an agent.
///
/// Implemented for every type that implements `v1::Agent` or, with the feature `v2`,
/// `v2::Agent`, for [`MultiVersion`], and for the `AgentService` that other crates generate.
/// `V` tells these apart and is inferred; for a type that implements several traits, name it:
/// `serve_stdio::<V1, _>(agent)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an agent",
    note = "implement `acp_sdk::v1::Agent`; an agent of a trait generated in another crate goes into its `AgentService`"
)]
pub trait IntoAgent<V>: Sized + 'static {
    /// Calls the client.
    type Client: Clone + Send + Sync + 'static;

    /// Returns the dispatch of messages to the agent, without version negotiation.
    #[doc(hidden)]
    fn into_dispatch(self) -> impl Service;

    /// Returns the service for a connection, and the constructor of the caller of its client.
    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Client);
}

/// Conversion into the service of a client.
///
/// Implemented for every type that implements `v1::Client` or, with the feature `v2`,
/// `v2::Client`, for [`MultiVersion`], and for the `ClientService` that other crates generate.
/// `V` is as in [`IntoAgent`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a client",
    note = "implement `acp_sdk::v1::Client`; a client of a trait generated in another crate goes into its `ClientService`"
)]
pub trait IntoClient<V>: Sized + 'static {
    /// Calls the agent.
    type Agent: Clone + Send + Sync + 'static;

    /// Returns the dispatch of messages to the client, without version negotiation.
    #[doc(hidden)]
    fn into_dispatch(self) -> impl Service;

    /// Returns the service for a connection, and the constructor of the caller of its agent.
    fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Agent);
}

/// Lets implementations of a version's traits stand at one end of a connection as they are.
macro_rules! versions {
    ($($(#[$attribute:meta])* $module:ident::$marker:ident;)*) => {$(
        $(#[$attribute])*
        impl<A: crate::$module::Agent> IntoAgent<crate::$module::$marker> for A {
            type Client = crate::$module::ClientHandle;

            fn into_dispatch(self) -> impl Service {
                crate::$module::AgentService::new(self)
            }

            fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Client) {
                crate::$module::AgentService::new(self).into_service()
            }
        }

        $(#[$attribute])*
        impl<C: crate::$module::Client> IntoClient<crate::$module::$marker> for C {
            type Agent = crate::$module::AgentHandle;

            fn into_dispatch(self) -> impl Service {
                crate::$module::ClientService::new(self)
            }

            fn into_service(self) -> (impl Service, impl FnOnce(Peer) -> Self::Agent) {
                crate::$module::ClientService::new(self).into_service()
            }
        }
    )*};
}

// The table: a row per version.
versions! {
    v1::V1;
    #[cfg(feature = "v2")]
    v2::V2;
}
