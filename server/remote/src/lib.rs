//! Agents behind HTTP, server-sent events and WebSocket.
//!
//! [`serve()`] serves all endpoints on a listener, as the command `acp-server serve` does. Programs that
//! have a web server mount the parts: [`router`] returns the endpoints as a router of axum.
//!
//! | path | what it serves |
//! |---|---|
//! | `/acp` | the protocol: POST, GET (server-sent events or WebSocket) and DELETE |
//! | `/rpc` | calls and subscriptions for simple clients ([`rpc()`], feature `rpc`) |
//! | `/` | a web page that shows sessions, and prompts ([`page()`]); asks for a token itself |
//! | `/session…`, `/sessions…`, `/runs…` and others | [`rest()`]: REST and server-sent events; `/openapi.json` describes them |
//! | `/hooks/{name}` | webhooks, by a secret of their own ([`hooks()`]) |
//! | `/metrics` | numbers for a monitoring system ([`Metrics`]) |
//! | `/healthz` | `{"status":"ok", …}`, without a token |
//! | `/readyz` | whether new work should come here, without a token |
//!
//! [`protect`] puts checks of host, origin, token and rate in front of it, [`listen()`] serves it on a
//! socket, with or without TLS.
//!
//! A connection is a window on sessions: its loss ends neither them nor their turns. The guide is
//! `docs/remote.md`.

mod access;
mod acp;
mod agents;
mod bodies;
mod caller;
mod failure;
mod health;
mod hooks;
mod listen;
mod metrics;
mod nodes;
mod page;
mod request_log;
mod rest;
#[cfg(feature = "rpc")]
mod rpc;
mod secured;
mod serve;
mod settings;
mod share;

pub use access::{
    AccessControl, Host, HostError, Hosts, IssueError, NamedToken, Origin, Token, TokenError,
    TokenFile, TokenFileError, Tokens, protect, require_full, ticket_route,
};
pub use agents::{Agents, AgentsError, ServedAgent};
pub use bodies::BodyBudget;
pub use hooks::{HookAnswer, HookCall, hooks};
pub use listen::{ListenSettings, Tls, TlsError, TlsFiles, listen};
pub use metrics::Metrics;
pub use page::page;
pub use request_log::{AnsweredRequest, log_requests};
pub use rest::rest;
#[cfg(feature = "rpc")]
pub use rpc::rpc;
pub use secured::Secured;
pub use serve::{NodeEndpoint, ServeSettings, serve};
pub use settings::EndpointSettings;
pub use share::{Reply, SendTranscript, Transcript};

/// What other crates of this project, and the tests of this one, use beside the API. It changes without notice.
#[doc(hidden)]
pub mod internal {
    pub use crate::nodes::{Joined, NODE_CALLER, NodeCaller, Nodes, Pace, Unreachable};
    pub use crate::rest::{Right, rest_routes};
}

use axum::Router;

use health::HEALTH;
use hooks::HOOKS;
use page::PAGE;

/// Returns the endpoints of a server, or of several agents, without access control.
///
/// Spec: <https://agentclientprotocol.com/rfds/streamable-http-websocket-transport>
pub fn router(agents: impl Into<Agents>, settings: &EndpointSettings) -> Router {
    let agents = agents.into();
    acp::router(&agents, settings).merge(health::route(agents))
}
