//! What the transport demands of clients.

use serde_json::Value;

use super::super::assertions::first;
use super::super::played::{ClientCheck, Played};
use super::super::scripted_agent::SESSION;
use super::log::Asked;
use super::scripted_agent::{ASKED, CONNECTION, COOKIE};
use super::websocket;
use crate::harness::{Failure, Outcome, Stop, fail, inconclusive};
use crate::wire::{excerpt, read_envelope};

/// The requirements of clients over the remote transport.
pub(in crate::clients) const CHECKS: &[ClientCheck] = &[
    ("client.remote-initialize", initialize),
    ("client.remote-connection-id", connection_id),
    ("client.remote-session-id", session_id),
    ("client.remote-content-type", content_type),
    ("client.remote-accept", accept),
    ("client.remote-connection-stream", connection_stream),
    ("client.remote-session-stream", session_stream),
    ("client.remote-one-message", one_message),
    ("client.remote-answers", answers),
    ("client.remote-cookies", cookies),
    ("client.remote-delete", delete),
    ("client.remote-event-format", takes_part),
    ("client.remote-reconnect", reconnect),
    ("client.remote-unauthorized", stops),
    ("client.remote-gone", stops),
    ("client.remote-websocket-initialize", websocket_initialize),
    ("client.remote-websocket-messages", websocket_messages),
    ("client.remote-websocket-close", websocket_close),
    ("client.remote-websocket-fragments", takes_part_in_frames),
    ("client.remote-websocket-ping", websocket_ping),
];

/// Why a connection need not have ended.
const GOES_ON: &str = "the client did not end, and may use its connection still";

/// A failure at one request.
fn wrong<T>(asked: &Asked, reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::Fail(Box::new(Failure {
        reason: reason.into(),
        sent: None,
        came: Some(asked.describe()),
    })))
}

/// The requests that belong to a connection: a client may open another one.
fn on_a_connection(played: &Played) -> Outcome<impl Iterator<Item = &Asked>> {
    let requests = later(played)?.filter(|asked| asked.calls() != Some("initialize"));
    let mut requests = requests.peekable();
    if requests.peek().is_none() {
        return inconclusive("the client sent no request after initialize");
    }
    Ok(requests)
}

/// The requests over HTTP: a client may try a WebSocket, which these scenarios do not have.
fn over_http(played: &Played) -> impl Iterator<Item = &Asked> {
    let requests = played.remote.requests.iter();
    requests.filter(|asked| !asked.is_upgrade())
}

/// The requests after `initialize`.
fn later(played: &Played) -> Outcome<impl Iterator<Item = &Asked>> {
    let mut requests = over_http(played);
    match requests.find(|asked| asked.calls() == Some("initialize")) {
        Some(_) => Ok(requests),
        None => fail(format!(
            "the client did not post initialize{}",
            played.stderr_tail()
        )),
    }
}

fn initialize(played: &Played) -> Outcome {
    let Some(asked) = over_http(played).next() else {
        return fail(format!(
            "the client sent no request{}",
            played.stderr_tail()
        ));
    };
    if asked.method != "POST" || asked.calls() != Some("initialize") {
        return wrong(asked, "expected initialize as the first request");
    }
    if asked.header("acp-connection-id").is_some() {
        return wrong(asked, "initialize names a connection");
    }
    match later(played)?.find(|asked| asked.calls() == Some("initialize")) {
        Some(asked) => wrong(asked, "initialize was posted twice"),
        None => Ok(()),
    }
}

fn connection_id(played: &Played) -> Outcome {
    for asked in on_a_connection(played)? {
        if asked.header("acp-connection-id") != Some(CONNECTION) {
            return wrong(
                asked,
                "expected the header acp-connection-id of the connection",
            );
        }
    }
    Ok(())
}

fn session_id(played: &Played) -> Outcome {
    let mut count = 0;
    for asked in later(played)? {
        let is_answer = asked.message["id"] == ASKED && asked.calls().is_none();
        let names_session = asked.message["params"]["sessionId"] == SESSION;
        if !is_answer && !names_session {
            continue;
        }
        if asked.header("acp-session-id") != Some(SESSION) {
            return wrong(asked, "expected the header acp-session-id of the session");
        }
        count += 1;
    }
    match count {
        0 => inconclusive("the client posted nothing of a session"),
        _ => Ok(()),
    }
}

fn content_type(played: &Played) -> Outcome {
    let requests = played.remote.requests.iter();
    for asked in requests.filter(|asked| asked.method == "POST") {
        let kind = asked.header("content-type").unwrap_or_default();
        let media = kind.split(';').next().unwrap_or_default().trim();
        if !media.eq_ignore_ascii_case("application/json") {
            return wrong(
                asked,
                format!("expected the type application/json, got {kind:?}"),
            );
        }
    }
    later(played).map(drop)
}

fn accept(played: &Played) -> Outcome {
    let mut streams = later(played)?
        .filter(|asked| asked.method == "GET")
        .peekable();
    if streams.peek().is_none() {
        // Whether it opens one is another row's question.
        return inconclusive("the client opened no stream");
    }
    for asked in streams {
        let accept = asked.header("accept").unwrap_or_default();
        if !accept.to_ascii_lowercase().contains("text/event-stream") {
            return wrong(asked, format!("expected text/event-stream, got {accept:?}"));
        }
    }
    Ok(())
}

fn connection_stream(played: &Played) -> Outcome {
    let is_stream = |asked: &Asked| opens_stream(asked, None);
    before(
        played,
        is_stream,
        "session/new",
        "the stream of the connection",
    )
}

fn session_stream(played: &Played) -> Outcome {
    let is_stream = |asked: &Asked| opens_stream(asked, Some(SESSION));
    before(
        played,
        is_stream,
        "session/prompt",
        "the stream of the session",
    )
}

/// Whether the server has opened a stream of this session, or that of the connection.
fn opens_stream(asked: &Asked, session: Option<&str>) -> bool {
    asked.method == "GET" && asked.status == 200 && asked.header("acp-session-id") == session
}

/// The stream is opened before this request is posted.
fn before(
    played: &Played,
    is_stream: impl Fn(&Asked) -> bool,
    method: &str,
    what: &str,
) -> Outcome {
    for asked in later(played)? {
        if is_stream(asked) {
            return Ok(());
        }
        if asked.calls() == Some(method) {
            return wrong(asked, format!("{what} was not opened before {method}"));
        }
    }
    fail(format!(
        "the client did not open {what}{}",
        played.stderr_tail()
    ))
}

/// What is wrong with a message, if it is none of JSON-RPC.
fn defect(message: &Value) -> Option<String> {
    let (_, defects) = read_envelope(message);
    let defect = defects.first()?;
    let (message, reason) = (excerpt(message), &defect.message);
    Some(format!(
        "expected a JSON-RPC message, got {message}: {reason}"
    ))
}

fn one_message(played: &Played) -> Outcome {
    let requests = played.remote.requests.iter();
    for asked in requests.filter(|asked| asked.method == "POST") {
        if let Some(reason) = defect(&asked.message) {
            return wrong(asked, reason);
        }
    }
    later(played).map(drop)
}

fn answers(played: &Played) -> Outcome {
    let mut posts = later(played)?.filter(|asked| asked.method == "POST");
    let answer = posts.find(|asked| asked.calls().is_none() && asked.message["id"] == ASKED);
    match answer {
        Some(asked) if asked.message["result"]["outcome"].is_object() => Ok(()),
        Some(asked) => wrong(asked, "expected the outcome of a permission"),
        None => fail(format!(
            "the client did not answer session/request_permission{}",
            played.stderr_tail()
        )),
    }
}

fn cookies(played: &Played) -> Outcome {
    for asked in on_a_connection(played)? {
        let cookies = asked.header("cookie").unwrap_or_default();
        if !cookies.split(';').any(|cookie| cookie.trim() == COOKIE) {
            return wrong(asked, "expected the cookie that initialize has set");
        }
    }
    Ok(())
}

fn delete(played: &Played) -> Outcome {
    match later(played)?.find(|asked| asked.method == "DELETE") {
        Some(asked) if asked.header("acp-connection-id") == Some(CONNECTION) => Ok(()),
        Some(asked) => wrong(
            asked,
            "expected the header acp-connection-id of the connection",
        ),
        None if played.exit.is_none() => inconclusive(GOES_ON),
        None => fail("the client ended without DELETE"),
    }
}

/// All of the scenario has arrived: the client answered, got the end of the turn, and left.
fn takes_part(played: &Played) -> Outcome {
    answers(played)?;
    ended_well(played)
}

fn ended_well(played: &Played) -> Outcome {
    match played.exit {
        Some(Some(0)) => Ok(()),
        Some(_) => fail(format!("the client failed{}", played.stderr_tail())),
        None => fail(format!(
            "the client did not come to its end{}",
            played.stderr_tail()
        )),
    }
}

fn reconnect(played: &Played) -> Outcome {
    let streams = later(played)?
        .filter(|asked| asked.method == "GET" && asked.header("acp-session-id") == Some(SESSION));
    let streams: Vec<_> = streams.collect();
    let Some(again) = streams.get(1) else {
        return inconclusive("the client did not open the stream again that was cut");
    };
    match again.header("last-event-id") {
        Some("1") => ended_well(played),
        Some(other) => wrong(again, format!("expected Last-Event-ID 1, got {other:?}")),
        None => wrong(again, "the stream was opened again without Last-Event-ID"),
    }
}

/// How many requests a client may make that is refused.
const ATTEMPTS: usize = 20;

fn stops(played: &Played) -> Outcome {
    let refused = played.remote.requests.iter();
    let refused = refused
        .filter(|asked| matches!(asked.status, 401 | 404))
        .count();
    match (refused, played.exit) {
        (0, _) => inconclusive(format!("nothing was refused{}", played.stderr_tail())),
        (ATTEMPTS.., _) => fail(format!("the client was refused {refused} times")),
        (_, None) => inconclusive("the client goes on, and may show the refusal to its user"),
        (_, Some(Some(0))) => fail("the client ended as if nothing had been refused"),
        (_, Some(_)) => Ok(()),
    }
}

fn websocket_initialize(played: &Played) -> Outcome {
    let messages = &played.remote.messages;
    match messages.first() {
        None => fail(format!(
            "the client sent no message over WebSocket{}",
            played.stderr_tail()
        )),
        Some(message) if message["method"] != "initialize" => fail(format!(
            "expected initialize as the first message, got {message}"
        )),
        Some(_) => first(played, "initialize").map(drop),
    }
}

fn websocket_messages(played: &Played) -> Outcome {
    if let Some(violation) = played.remote.faults.first() {
        return fail(violation.clone());
    }
    match played.remote.messages.iter().find_map(defect) {
        Some(reason) => fail(reason),
        None => websocket_answers(played),
    }
}

fn websocket_answers(played: &Played) -> Outcome {
    let mut messages = played.remote.messages.iter();
    let answer = messages.find(|message| message["id"] == ASKED && message.get("method").is_none());
    match answer {
        Some(_) => Ok(()),
        None => fail(format!(
            "the client did not answer session/request_permission{}",
            played.stderr_tail()
        )),
    }
}

fn websocket_close(played: &Played) -> Outcome {
    match played.remote.closed {
        true => Ok(()),
        false if played.exit.is_none() => inconclusive(GOES_ON),
        false => fail("the client ended its WebSocket without a close frame"),
    }
}

fn takes_part_in_frames(played: &Played) -> Outcome {
    websocket_answers(played)?;
    ended_well(played)
}

fn websocket_ping(played: &Played) -> Outcome {
    match played
        .remote
        .pongs
        .iter()
        .any(|pong| pong == websocket::PING)
    {
        true => Ok(()),
        false => fail(match played.remote.pongs.first() {
            Some(other) => format!(
                "expected a pong with the data of the ping, got {:?}",
                String::from_utf8_lossy(other)
            ),
            None => format!("expected a pong, got none{}", played.stderr_tail()),
        }),
    }
}
