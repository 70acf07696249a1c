//! Agents behind HTTP, server-sent events and WebSocket.
//!
//! [`router`] returns the endpoints as a router of axum, for programs that have a web server.
//! The command `acp-server serve` binds an address itself.
//!
//! | path | what it serves |
//! |---|---|
//! | `/acp` | the protocol: POST, GET (server-sent events or WebSocket) and DELETE |
//!
//! A connection is a window on sessions: its loss ends neither them nor their turns. The guide is
//! `docs/remote.md`.

mod acp;
mod settings;

pub use settings::Settings;

use axum::Router;

use crate::Server;

/// Returns the endpoints of a server, without checks of who asks.
///
/// Spec: <https://agentclientprotocol.com/rfds/streamable-http-websocket-transport>
pub fn router(server: Server, settings: &Settings) -> Router {
    acp::router(server, settings)
}
