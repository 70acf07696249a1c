//! GET: a stream of server-sent events, or a WebSocket.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, HeaderValue, header as names};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;

use super::connections::HttpConnections;
use super::failure::Failure;
use super::position::Position;
use super::streams::Name;
use super::{CONNECTION_ID, SESSION_ID, check_version, header, sse, websocket};
use crate::caller::Caller;
use crate::metrics::Open;

pub(super) async fn get(
    State(connections): State<Arc<HttpConnections>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Response> {
    let (mut parts, _) = request.into_parts();
    let upgrade = parts.extensions.get::<OnUpgrade>().cloned();
    // It checks the request. Its socket would hide the bytes of a message that is not whole.
    let checked = WebSocketUpgrade::from_request_parts(&mut parts, &connections).await;
    let answer = match (checked, upgrade) {
        (Ok(_), Some(upgrade)) => websocket::open(&connections, caller, upgrade, &parts.headers),
        (Err(rejection), _) if asks_for_websocket(&parts.headers) => {
            return Err(refused(rejection, &parts.headers));
        }
        _ => stream(&connections, &caller, &parts.headers),
    };
    answer.map_err(Failure::into_response)
}

/// The only version of WebSocket that there is (RFC 6455).
const WEBSOCKET_VERSION: HeaderValue = HeaderValue::from_static("13");

/// Adds the version of WebSocket to the refusal of a client of another version.
fn refused(rejection: impl IntoResponse, headers: &HeaderMap) -> Response {
    let mut response = rejection.into_response();
    if headers.get(names::SEC_WEBSOCKET_VERSION) != Some(&WEBSOCKET_VERSION) {
        let headers = response.headers_mut();
        headers.insert(names::SEC_WEBSOCKET_VERSION, WEBSOCKET_VERSION);
    }
    response
}

pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(names::UPGRADE);
    upgrade.is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

fn stream(
    connections: &Arc<HttpConnections>,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    if !accepts_events(headers) {
        return Err(Failure::NOT_ACCEPTABLE);
    }
    check_version(headers)?;
    let id = header(headers, &CONNECTION_ID)?.ok_or(Failure::NO_CONNECTION_ID)?;
    let connection = connections
        .find(id, caller)
        .ok_or(Failure::UNKNOWN_CONNECTION)?;
    let session = header(headers, &SESSION_ID)?;
    let name = session.map_or(Name::Connection, |id| Name::Session(id.into()));
    // A cursor that is none counts as absent.
    let cursor = headers.get("last-event-id");
    let cursor = cursor.and_then(|cursor| cursor.to_str().ok()?.parse::<Position>().ok());
    let streams = connection.streams.clone();
    if !streams.can_continue(&name, cursor) {
        // Of a session that another node has. Its client is sent what it is missing by another connection.
        connections.close(id);
        return Err(Failure::UNKNOWN_CONNECTION);
    }
    let reader = streams.open(&name, cursor);
    let reader = reader.ok_or(Failure::TOO_MANY_STREAMS)?;
    let (keep_alive, open) = {
        let settings = &connections.settings;
        (settings.keep_alive, Open::new(&settings.metrics.streams))
    };
    let body = sse::body(streams, name, reader, keep_alive, open);
    let mut response = body.into_response();
    let response_headers = response.headers_mut();
    for (name, value) in [
        (names::CONTENT_TYPE, "text/event-stream"),
        (names::CACHE_CONTROL, "no-cache"),
        // Proxies must not wait for more.
        (names::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response_headers.insert(name, HeaderValue::from_static(value));
    }
    for name in [CONNECTION_ID, SESSION_ID] {
        if let Some(value) = headers.get(&name) {
            response_headers.insert(name, value.clone());
        }
    }
    Ok(response)
}

/// Returns whether the client accepts server-sent events. Without the header it accepts all.
fn accepts_events(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(names::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let ranges = values.filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let refused = parts.any(|parameter| {
            let quality = parameter.strip_prefix("q=");
            quality.is_some_and(|quality| quality.parse() == Ok(0.0))
        });
        let matches = ["text/event-stream", "text/*", "*/*"];
        !refused
            && matches
                .iter()
                .any(|known| media.eq_ignore_ascii_case(known))
    })
}
