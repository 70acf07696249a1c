//! The endpoint `/acp`.
//!
//! A client has a connection, with an id, and that has a stream for messages without a session and
//! one for each session. Over WebSocket all travels in one stream.

mod arriving;
mod connections;
mod envelope;
mod failure;
mod get;
mod position;
mod post;
mod sse;
mod stream;
mod streams;
mod transport;
mod websocket;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};

#[cfg(feature = "rpc")]
pub(super) use self::get::asks_for_websocket;

use self::connections::HttpConnections;
use self::failure::Failure;
pub(super) use self::sse::escape;
use super::EndpointSettings;
use super::access::Shares;
use super::agents::Agents;
use super::caller::Caller;
use super::nodes::{NodeCaller, Unreachable};

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("acp-protocol-version");

pub(super) fn router(agents: &Agents, settings: &EndpointSettings) -> Router {
    let places = Shares::new(settings.connections);
    agents.mount("/acp", |server, path| {
        let (server, path) = (server.clone(), path.into());
        let connections = HttpConnections::new(server, path, settings.clone(), places.clone());
        let methods = MethodRouter::new()
            .post(post::post)
            .get(get::get)
            // A WebSocket over HTTP/2 begins with this method.
            .on(MethodFilter::CONNECT, get::get)
            .delete(delete)
            .layer(from_fn_with_state(connections.clone(), elsewhere));
        methods.with_state(connections)
    })
}

/// Passes a request for a connection of another node on to it. Where that node does not answer, the connection
/// counts as ended: its client opens another one.
async fn elsewhere(
    State(connections): State<Arc<HttpConnections>>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    let id = header(request.headers(), &CONNECTION_ID).ok().flatten();
    // A WebSocket is a connection of its own.
    let id = id.filter(|_| !get::asks_for_websocket(request.headers()));
    let found = id.and_then(|id| connections.node_of(id, &caller));
    let Some((nodes, address)) = found else {
        return next.run(request).await;
    };
    let caller = NodeCaller::new(caller, "acp/http");
    match nodes.pass_on(address, request, caller).await {
        Ok(answer) => answer,
        Err(Unreachable) => Failure::UNKNOWN_CONNECTION.into_response(),
    }
}

/// Ends a connection, but neither its sessions nor their turns.
async fn delete(
    State(connections): State<Arc<HttpConnections>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let id = header(&headers, &CONNECTION_ID)?.ok_or(Failure::NO_CONNECTION_ID)?;
    if connections.find(id, &caller).is_some() && connections.close(id) {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    Err(Failure::UNKNOWN_CONNECTION)
}

/// Returns the value of a header that must be text and come once.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (value.to_str(), values.next()) {
        (Ok(value), None) if value.len() <= LONGEST_ID => Ok(Some(value)),
        _ => Err(Failure::BAD_HEADER),
    }
}

/// The longest id in a header, in bytes.
const LONGEST_ID: usize = 1024;

/// Checks the protocol version that a client may name.
fn check_version(headers: &HeaderMap) -> Result<(), Failure> {
    match header(headers, &PROTOCOL_VERSION)? {
        None | Some("1" | "2") => Ok(()),
        Some(_) => Err(Failure::UNSUPPORTED_VERSION),
    }
}
