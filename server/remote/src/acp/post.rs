//! POST: a message of the client.

use std::sync::Arc;

use acp_sdk::envelope::Envelope;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header as names};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::connections::{HttpConnection, HttpConnections};
use super::envelope;
use super::failure::Failure;
use super::{CONNECTION_ID, LONGEST_ID, SESSION_ID, check_version, header};
use crate::bodies;
use crate::caller::Caller;

pub(super) async fn post(
    State(connections): State<Arc<HttpConnections>>,
    caller: Caller,
    request: Request,
) -> Result<Response, Failure> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    if !is_json(&headers) {
        return Err(Failure::NOT_JSON);
    }
    check_version(&headers)?;
    // Counts until the message is passed on.
    let whole = bodies::read(body, &caller, &connections.settings).await?;
    let body = &whole.bytes;
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(Failure::BATCH);
    }
    let incoming = Envelope::parse(body).ok_or_else(|| {
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        if is_json {
            Failure::NOT_JSON_RPC
        } else {
            Failure::NOT_JSON_TEXT
        }
    })?;
    if incoming.id.is_some_and(|id| !is_id(id.get())) {
        return Err(Failure::NOT_JSON_RPC);
    }
    let id = header(&headers, &CONNECTION_ID)?;
    let is_initialize = incoming.is_initialize();
    match (id, is_initialize) {
        (None, true) => initialize(&connections, caller, body, &incoming).await,
        (Some(_), true) => Err(Failure::CONNECTED_ALREADY),
        (None, false) => Err(Failure::NO_CONNECTION_ID),
        (Some(id), false) => {
            let connection = connections
                .find(id, &caller)
                .ok_or(Failure::UNKNOWN_CONNECTION)?;
            let session = header(&headers, &SESSION_ID)?;
            pass_on(&connection, body, &incoming, session).await
        }
    }
}

/// Opens a connection, and answers in the body.
async fn initialize(
    connections: &Arc<HttpConnections>,
    caller: Caller,
    body: &Bytes,
    incoming: &Envelope<'_>,
) -> Result<Response, Failure> {
    let request = incoming.id.ok_or(Failure::NOT_JSON_RPC)?;
    let place = connections.place(&caller)?;
    let id = connections.create_id().map_err(|_| Failure::AGENT_FAILED)?;
    let connection = connections.open_http(place, id.clone(), caller);
    // Who goes away before the answer leaves no connection behind.
    let mut guard = CloseUnlessKept {
        connections,
        id: &id,
        kept: false,
    };
    let answer = connection.streams.expect_initialize(request.get());
    connection.receive(body.clone()).await;
    let answer = answer.await.map_err(|_| Failure::AGENT_FAILED)?;
    let mut response = (StatusCode::OK, answer.clone()).into_response();
    let headers = response.headers_mut();
    headers.insert(
        names::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if envelope::is_error(&answer) {
        return Ok(response);
    }
    guard.kept = true;
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(CONNECTION_ID, id);
    }
    Ok(response)
}

struct CloseUnlessKept<'a> {
    connections: &'a HttpConnections,
    id: &'a str,
    kept: bool,
}

impl Drop for CloseUnlessKept<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.connections.close(self.id);
        }
    }
}

/// Passes a message on, after noting where its answer goes.
async fn pass_on(
    connection: &HttpConnection,
    body: &Bytes,
    incoming: &Envelope<'_>,
    header: Option<&str>,
) -> Result<Response, Failure> {
    let mut message = body.clone();
    let named = incoming.session();
    if let (Some(header), Some(named)) = (header, named.as_deref())
        && header != named
    {
        return Err(Failure::SESSIONS_DISAGREE);
    }
    match (incoming.method.as_deref(), incoming.id) {
        (Some(method), id) => {
            let scoped = envelope::is_session_scoped(method);
            let session = named.as_deref().or(header).filter(|_| scoped);
            if named.is_none()
                && let Some(session) = session
                && let Some((at, comma)) = envelope::first_member(incoming, body)
            {
                message = with_session(body, at, comma, session);
            }
            if let Some(id) = id
                && !connection.streams.expect(id.get(), method, session)
            {
                return Err(Failure::TOO_MANY_REQUESTS);
            }
            // A client that names no session in the header opens its stream only later.
            if header.is_none()
                && envelope::joins_session(method)
                && let Some(session) = session
            {
                connection.streams.redirect(session);
            }
        }
        (None, Some(id)) => connection.streams.answered(id.get()),
        (None, None) => return Err(Failure::NOT_JSON_RPC),
    }
    if connection.receive(message).await {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    Err(Failure::UNKNOWN_CONNECTION)
}

/// Returns the message with the session of the header in its parameters.
fn with_session(body: &Bytes, at: usize, comma: bool, session: &str) -> Bytes {
    let (before, after) = body.split_at(at);
    // A text always has a JSON form.
    let session = serde_json::to_string(session).unwrap_or_default();
    let comma = if comma { "," } else { "" };
    let member = format!(r#""sessionId":{session}{comma}"#);
    [before, member.as_bytes(), after].concat().into()
}

/// Returns whether this JSON is the id of a request: text or a number, of bounded length.
fn is_id(json: &str) -> bool {
    let is_scalar =
        json.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
    is_scalar && json.len() <= LONGEST_ID
}

/// Returns whether the body is JSON in UTF-8, by its type.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(names::CONTENT_TYPE);
    let Some(value) = value.and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts
        .next()
        .is_some_and(|media| media.eq_ignore_ascii_case("application/json"));
    let is_utf8 = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.trim().eq_ignore_ascii_case("charset")
            || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    };
    is_json && parts.all(is_utf8)
}
