//! The events of a session as server-sent events, in the vocabularies of both sets of routes.
//!
//! The `id` of an event is its number in the session's log, as at `/acp`.

mod documented;
mod openoxide;
mod otter;
mod reader;
mod text;
mod view;

pub(super) use documented::DocumentedEvent;
pub(super) use reader::{Dialect, EventReader};
pub(super) use view::View;

use acp_server::internal::session::TurnResult;
use acp_server::{PromptHandle, Session};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::failure::Failure;
use super::query::Parameters;
use super::state::{Id, Rest};
use crate::access::Share;
use crate::caller::Caller;

/// Where a stream begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// `live`: with the next event; `start` (default): with the first. The header `Last-Event-ID`
    /// goes before.
    #[param(value_type = String, required = false, pattern = "^(live|start)$")]
    from: Option<String>,
}

/// The cursor of a stream, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "read from the headers themselves")]
pub(super) struct LastEventId {
    /// Only the events after this number. What is no integer counts as absent
    #[param(rename = "Last-Event-ID", value_type = Option<String>, required = false)]
    last_event_id: (),
}

pub(super) async fn stream(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    dialect: Dialect,
    Parameters(from): Parameters<From>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let is_live = match from.from.as_deref() {
        None | Some("start") => false,
        Some("live") => true,
        Some(other) => {
            let detail = format!("from: expected live or start, got {other:?}");
            return Err(Failure::invalid_query(detail));
        }
    };
    rest.record(&id).await?;
    let place = place(&rest, &caller)?;
    let session = rest.open(&caller, &id).await?;
    let cursor = cursor(&headers).or((!is_live).then_some(0));
    let reader = EventReader::new(session, cursor, dialect, place, caller.ended, &rest);
    let reader = reader
        .await
        .map_err(|error| Failure::internal("session_read_failed", error.to_string()))?;
    Ok(response(reader))
}

/// Takes the place of a further stream, or of an answer that is waited for.
///
/// # Errors
///
/// 503, when there is none for the caller.
pub(super) fn place(rest: &Rest, caller: &Caller) -> Result<Share, Failure> {
    rest.stream_place(caller).ok_or_else(|| {
        let limit = rest.settings().event_streams;
        Failure::overloaded("too_many_streams").message(format!(
            "as many streams are open as the limit of {limit}, or this token's share, permits; try again later"
        ))
    })
}

/// Returns why a prompt had no turn, for people.
pub(super) fn no_turn(result: &TurnResult) -> String {
    let reason = match &result.stop {
        Ok(_) => "it was cancelled",
        Err(error) => error.as_response().message.as_str(),
    };
    format!("the prompt had no turn: {reason}")
}

/// Returns what reads the events of a prompt's turn.
pub(super) fn of_prompt(
    rest: &Rest,
    caller: Caller,
    session: Session,
    prompt: PromptHandle,
    dialect: Dialect,
    place: Share,
) -> EventReader {
    EventReader::of_prompt(session, prompt, dialect, place, caller.ended, rest)
}

/// Returns the response that a reader writes.
pub(super) fn response(reader: EventReader) -> Response {
    let mut response = Body::from_stream(reader.stream()).into_response();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        // Proxies must not wait for more.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the number of the last event that the client has; what is no integer counts as absent.
fn cursor(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get("last-event-id")?.to_str().ok()?.trim();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // What is too large for a number is behind every event.
    let number = digits.parse().unwrap_or(u64::MAX);
    Some(if is_negative { 0 } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_an_integer() {
        let cursor = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_str(text).unwrap());
            cursor(&headers)
        };
        assert_eq!(super::cursor(&HeaderMap::new()), None);
        for (text, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("-3", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("", None),
            ("-", None),
            ("7.1", None),
            ("seven", None),
        ] {
            assert_eq!(cursor(text), expected, "{text:?}");
        }
    }
}
