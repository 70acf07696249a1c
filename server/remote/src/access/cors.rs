//! Cross-origin resource sharing with the pages of listed origins.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The headers that pages may send.
const ALLOWED: &str = "Authorization, Content-Type, Last-Event-ID, Acp-Connection-Id, \
    Acp-Session-Id, Acp-Protocol-Version";

/// The headers that pages may read.
const EXPOSED: &str = "Acp-Connection-Id, Acp-Session-Id, Retry-After";

/// Returns whether a browser asks what a page may send.
pub(super) fn is_preflight(request: &Parts) -> bool {
    let method = &header::ACCESS_CONTROL_REQUEST_METHOD;
    request.method == Method::OPTIONS && request.headers.contains_key(method)
}

/// Answers a preflight request, whatever it asks for: the browser compares.
pub(super) fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets the page of a listed origin read a response, errors too.
pub(super) fn mark(headers: &mut HeaderMap, listed: Option<HeaderValue>) {
    // A cache must not give the answer to one origin to another one.
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = listed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}
