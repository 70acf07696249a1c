//! Requests over HTTP for sessions and connections that other nodes have.

use std::io;
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::{Server, log_repeated};
use acp_server_remote::internal::{NODE_CALLER, NodeCaller, Unreachable};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use tokio::time::Instant;

use crate::Settings;
use crate::place::{self, Place, Purpose};

/// Seconds after which a client asks again: the node may be gone, and its leases end.
const RETRY_AFTER: &str = "2";

/// Time limit for the node of a connection to answer a request without a body.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The same for a request with a body, which may arrive slowly: within 60 s unless the server has another limit.
const BODY_LIMIT: Duration = Duration::from_secs(75);

/// The longest silence within an answer. In a stream of events nodes send a sign of life every 15 s.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Headers that belong to one hop.
const OF_A_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Passes a request on to the node of a session; returns it if this node has the session, or may open it.
pub(crate) async fn forward(
    settings: &Settings,
    server: &Server,
    session: &SessionId,
    request: Request,
    caller: &NodeCaller,
) -> Result<Response, Request> {
    let purpose = match *request.method() {
        // A transcript is read from the store. A stream of events opens the session.
        Method::GET | Method::HEAD if !request.uri().path().ends_with("/events") => Purpose::Read,
        _ => place::purpose(&caller.role().access),
    };
    let Place::Node(address) = place::find(server, session, purpose).await else {
        return Err(request);
    };
    let passed = tokio::select! {
        answer = pass_on(settings, &address, request, caller) => answer,
        () = left(settings, server, session, &address) => {
            settings.metrics.node_failure();
            log_repeated!(warn, %session, address, "a node has lost a session before it has answered");
            return Ok(again("session_moved", "the node with the session has not answered, and has it no more"));
        }
    };
    match passed {
        Ok(answer) => Ok(response(answer, caller)),
        Err(error) => {
            settings.metrics.node_failure();
            log_repeated!(warn, %session, address, %error, "a node does not answer");
            Ok(again(
                "node_unreachable",
                "the node with the session does not answer. The session is opened on another node if that does not change",
            ))
        }
    }
}

/// Waits until a node does not have a session any more, as one that hangs, or until the store has not said so
/// for as long as a session is looked for. An answer itself has no time limit, for a turn may take hours.
async fn left(settings: &Settings, server: &Server, session: &SessionId, address: &str) {
    let mut seen = Instant::now();
    loop {
        tokio::time::sleep(settings.owner_interval).await;
        match place::owner(server, session).await {
            Ok(Some(owner)) if owner.address.as_deref() == Some(address) => seen = Instant::now(),
            Err(_) if seen.elapsed() < settings.takeover_limit => {}
            _ => return,
        }
    }
}

/// Passes a request on to the node that has its connection.
pub(crate) async fn to_connection(
    settings: &Settings,
    address: &str,
    request: Request,
    caller: &NodeCaller,
) -> Result<Response, Unreachable> {
    let limit = match *request.method() {
        Method::POST => BODY_LIMIT,
        _ => ANSWER_LIMIT,
    };
    let passed = tokio::time::timeout(limit, pass_on(settings, address, request, caller));
    let error = match passed.await {
        Ok(Ok(answer)) => return Ok(response(answer, caller)),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer after {} s", limit.as_secs()),
    };
    settings.metrics.node_failure();
    log_repeated!(
        warn,
        address,
        error,
        "a node with a connection does not answer"
    );
    Err(Unreachable)
}

/// Passes a request on, in the name of its sender. Neither body is held in memory.
async fn pass_on(
    settings: &Settings,
    address: &str,
    request: Request,
    caller: &NodeCaller,
) -> reqwest::Result<reqwest::Response> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("{}{path}", address.trim_end_matches('/'));
    let mut headers = parts.headers;
    remove_of_a_hop(&mut headers);
    // Whoever asks a node in the name of clients says neither by their headers.
    headers.remove(header::AUTHORIZATION);
    headers.remove(NODE_CALLER);
    settings.metrics.node_request();
    settings
        .http
        .request(parts.method, url)
        .headers(headers)
        .bearer_auth(settings.node_secret.secret())
        .header(NODE_CALLER, caller.header())
        .body(reqwest::Body::wrap_stream(body.into_data_stream()))
        .send()
        .await
}

fn again(error: &str, message: &str) -> Response {
    let text =
        format!(r#"{{"error":"{error}","message":"{message}; try again in {RETRY_AFTER} s"}}"#);
    let headers = [
        (header::RETRY_AFTER, RETRY_AFTER),
        (header::CONTENT_TYPE, "application/json"),
    ];
    (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
}

/// Returns an answer of another node. Its body ends with the token of the client.
fn response(answer: reqwest::Response, caller: &NodeCaller) -> Response {
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    remove_of_a_hop(&mut headers);
    let body = answer.bytes_stream().map_err(io::Error::other);
    let body = Box::pin(body.take_until(caller.ended()));
    let mut response = Response::new(Body::from_stream(until_silent(body)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Ends a body that has no sign of life: its node may hang.
fn until_silent<S>(body: S) -> impl Stream<Item = io::Result<Bytes>>
where
    S: Stream<Item = io::Result<Bytes>> + Unpin,
{
    stream::unfold(Some(body), |body| async {
        let mut body = body?;
        match tokio::time::timeout(SILENCE_LIMIT, body.next()).await {
            Ok(Some(next)) => Some((next, Some(body))),
            Ok(None) => None,
            Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
        }
    })
}

fn remove_of_a_hop(headers: &mut HeaderMap) {
    // A client may name further ones in `Connection`.
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_A_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_a_sign_of_life_ends() {
        let silent = stream::iter([Ok(Bytes::from("first"))]).chain(stream::pending());
        let mut body = Box::pin(until_silent(Box::pin(silent)));
        assert_eq!(body.next().await.unwrap().unwrap(), "first");
        let from = Instant::now();
        let ended = body.next().await.unwrap().unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        assert_eq!(from.elapsed(), SILENCE_LIMIT);
        assert!(body.next().await.is_none());
    }
}
