//! Requests of the REST interface for sessions that other nodes have.

use acp_sdk::v1::SessionId;
use acp_server::{Server, log_repeated};
use acp_server_remote::internal::{NODE_CALLER, NodeCaller};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use crate::Settings;
use crate::place::{self, Place, Purpose};

/// Seconds after which a client asks again: the node may be gone, and its leases end.
const RETRY_AFTER: &str = "2";

/// Headers that belong to one hop.
const OF_A_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Passes a request on; returns it if this node has the session, or may open it.
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
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("{}{path}", address.trim_end_matches('/'));
    let mut headers = parts.headers;
    remove_of_a_hop(&mut headers);
    headers.remove(header::AUTHORIZATION);
    settings.metrics.node_request();
    let sent = settings
        .http
        .request(parts.method, url)
        .headers(headers)
        .bearer_auth(settings.node_secret.secret())
        .header(NODE_CALLER, caller.header())
        .body(reqwest::Body::wrap_stream(body.into_data_stream()))
        .send();
    match sent.await {
        Ok(answer) if answer.status() == StatusCode::CONFLICT => Ok(settled(answer).await),
        Ok(answer) => Ok(response(answer)),
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

/// Returns the answer of a node that refused. The session may have left it while the request was on its way:
/// then the next attempt finds it.
async fn settled(answer: reqwest::Response) -> Response {
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    let Ok(body) = answer.bytes().await else {
        return again("node_unreachable", "the node with the session has ended");
    };
    let refusal: Option<Value> = serde_json::from_slice(&body).ok();
    if refusal.is_some_and(|refusal| refusal["error"] == "session_in_use") {
        return again("session_moved", "the session has moved to another node");
    }
    remove_of_a_hop(&mut headers);
    (status, headers, body).into_response()
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

fn response(answer: reqwest::Response) -> Response {
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    remove_of_a_hop(&mut headers);
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
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
