//! JSON-RPC for simple clients: calls and subscriptions at `/rpc`.
//!
//! Clients of the protocol itself answer requests of the agent and read streams. Here a client only
//! calls: it subscribes to a session's events, and answers questions by a call. Files and terminals of
//! the client are out of reach.

mod context;
mod events;
mod link;
mod methods;
mod nodes;
mod request_id;
mod turns;
mod typed_method;

use std::sync::Arc;

use acp_server::Server;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use jsonrpsee::Methods;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::server::{
    BatchRequestConfig, PingConfig, RandomStringIdProvider, ServerBuilder, ServerConfig,
    ServerHandle, TowerServiceBuilder, stop_channel,
};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use self::context::Context;
use super::EndpointSettings;
use super::access::Shares;
use super::acp::asks_for_websocket;
use super::agents::Agents;
use super::bodies;
use super::caller::Caller;
use super::failure::Failure;
use super::metrics::Open;

/// Messages that wait to be written to a WebSocket. Subscriptions wait for room.
const OUTGOING: u32 = 16;

/// Subscriptions of a WebSocket.
const SUBSCRIPTIONS: u32 = 256;

/// Returns the facade of a server, or of several agents, at `/rpc`, over HTTP and WebSocket, without access control.
///
/// | method | |
/// |---|---|
/// | `initialize`, `authenticate`, `session_new`, `session_load`, `session_list`, … | as the protocol's methods, with `_` for `/`; replays are left out |
/// | `session_prompt`, `session_prompt_start` | answer at the end of the turn, or at once |
/// | `session_cancel`, `session_state` | as in the protocol, and as `_acp-sdk/session/state` |
/// | `session_subscribe`, `session_unsubscribe` | events after a number, over WebSocket |
/// | `session_events` | the same by long poll |
/// | `permission_respond`, `elicitation_respond` | answer a question of an event |
///
/// Parameters are objects. The guide is `docs/rest.md`.
pub fn rpc(agents: impl Into<Agents>, settings: &EndpointSettings) -> Router {
    let bytes = u32::try_from(settings.message_bytes).unwrap_or(u32::MAX);
    let connections = u32::try_from(settings.connections).unwrap_or(u32::MAX);
    let ping = PingConfig::new()
        .ping_interval(settings.keep_alive)
        .inactive_limit(settings.keep_alive * 3)
        .max_failures(2);
    let config = ServerConfig::builder()
        .max_request_body_size(bytes)
        .max_response_body_size(bytes)
        .max_connections(connections)
        .max_subscriptions_per_connection(SUBSCRIPTIONS)
        .set_batch_request_config(BatchRequestConfig::Disabled)
        .set_message_buffer_capacity(OUTGOING)
        .enable_ws_ping(ping)
        .set_id_provider(RandomStringIdProvider::new(24))
        .build();
    let places = Shares::new(settings.connections);
    agents.into().mount("/rpc", |server, path| {
        let facade = Facade {
            server: server.clone(),
            path: path.into(),
            settings: settings.clone(),
            places: places.clone(),
            methods: methods::all().map(Into::into),
            builder: ServerBuilder::with_config(config.clone()).to_service_builder(),
        };
        post(handle).get(handle).with_state(Arc::new(facade))
    })
}

struct Facade {
    server: Server,
    /// Where the agent's calls are.
    path: Arc<str>,
    settings: EndpointSettings,
    /// Of requests and WebSockets.
    places: Arc<Shares>,
    methods: Result<Methods, RegisterMethodError>,
    builder: TowerServiceBuilder<tower::layer::util::Identity, tower::layer::util::Identity>,
}

/// Serves one request, or all calls of one WebSocket.
async fn handle(
    State(facade): State<Arc<Facade>>,
    caller: Caller,
    mut request: Request,
) -> Response {
    let is_websocket = asks_for_websocket(request.headers());
    if *request.method() == axum::http::Method::GET && !is_websocket {
        let reason = "use POST, or GET with an upgrade to WebSocket";
        return (
            StatusCode::UPGRADE_REQUIRED,
            [(header::UPGRADE, "websocket")],
            reason,
        )
            .into_response();
    }
    let methods = match &facade.methods {
        Ok(methods) => methods.clone(),
        Err(error) => return failed(error),
    };
    let Some(place) = facade.places.take(caller.holder, 1) else {
        return too_many();
    };
    let ended = caller.ended.clone();
    let sender = caller.clone();
    let (server, path) = (facade.server.clone(), facade.path.clone());
    let context = Context::new(server, path, &facade.settings, caller);
    request.extensions_mut().insert(Arc::new(context));
    let (parts, body) = request.into_parts();
    // jsonrpsee would read without a limit of time and of the bytes of all requests.
    let body = match bodies::read(body, &sender, &facade.settings).await {
        Ok(body) => body,
        Err(error) => return Failure::from(error).into_response(),
    };
    let request = Request::from_parts(parts, Body::from(body.bytes.clone()));
    let (stop, handle) = stop_channel();
    let mut service = facade.builder.clone().build(methods, stop);
    if is_websocket {
        let closing = facade.settings.stop.clone();
        let open = Open::new(&facade.settings.metrics.rpc_connections);
        tokio::spawn(async move {
            end(handle, ended, closing).await;
            drop((open, place));
        });
        return answer(service.call(request).await);
    }
    let answered = answer(service.call(request).await);
    drop(place);
    answered
}

fn too_many() -> Response {
    let reason = "as many requests and WebSockets are open at /rpc as the server allows, \
                  all or this token's; try again later";
    let retry = [(header::RETRY_AFTER, "5")];
    (StatusCode::SERVICE_UNAVAILABLE, retry, reason).into_response()
}

fn answer<E: std::fmt::Display>(answered: Result<jsonrpsee::server::HttpResponse, E>) -> Response {
    match answered {
        Ok(response) => response.map(Body::new),
        Err(error) => failed(&error),
    }
}

/// Ends a WebSocket when its token or the server does. Ends itself with the socket.
async fn end(socket: ServerHandle, token: CancellationToken, server: CancellationToken) {
    tokio::select! {
        () = socket.clone().stopped() => return,
        () = token.cancelled() => {}
        () = server.cancelled() => {}
    }
    // A socket that has ended already needs no end.
    let _ = socket.stop();
    socket.stopped().await;
}

fn failed(error: &dyn std::fmt::Display) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}
