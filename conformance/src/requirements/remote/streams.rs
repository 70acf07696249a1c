//! GET: the streams, and what travels on which.

use serde_json::{Value, json};

use super::super::{Check, NamedCheck};
use super::posts::UNKNOWN;
use crate::harness::{Outcome, fail, inconclusive, skip};
use crate::remote::{Connection, Reply, Server, over_http};
use crate::wire::is_output;

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("remote.event-stream", Run(|cx| over_http(cx, event_stream))),
    ("remote.accept", Run(|cx| over_http(cx, accept))),
    ("remote.no-accept", Run(|cx| over_http(cx, no_accept))),
    (
        "remote.get-without-connection",
        Run(|cx| over_http(cx, get_without_connection)),
    ),
    (
        "remote.get-of-unknown-connection",
        Run(|cx| over_http(cx, get_of_unknown_connection)),
    ),
    (
        "remote.connection-stream",
        Run(|cx| over_http(cx, connection_stream)),
    ),
    (
        "remote.session-stream",
        Run(|cx| over_http(cx, session_stream)),
    ),
    (
        "remote.sessions-apart",
        Run(|cx| over_http(cx, sessions_apart)),
    ),
    (
        "remote.agent-requests",
        Run(|cx| over_http(cx, agent_requests)),
    ),
    (
        "remote.answer-accepted",
        Run(|cx| over_http(cx, answer_accepted)),
    ),
    ("remote.load", Run(|cx| over_http(cx, load))),
    (
        "remote.early-session-stream",
        Run(|cx| over_http(cx, early_session_stream)),
    ),
    ("remote.order", Run(|cx| over_http(cx, order))),
    ("remote.answers-once", Run(|cx| over_http(cx, answers_once))),
    ("remote.events", Run(|cx| over_http(cx, events))),
    (
        "remote.second-stream",
        Run(|cx| over_http(cx, second_stream)),
    ),
    (
        "remote.stream-stays-open",
        Run(|cx| over_http(cx, stream_stays_open)),
    ),
    (
        "remote.stream-after-close",
        Run(|cx| over_http(cx, stream_after_close)),
    ),
];

async fn event_stream(server: &Server) -> Outcome {
    // A stream of each connection is opened once: what a second one gets is another matter.
    let connection = Connection::without_streams(server).await?;
    is_stream(&server.send(&connection.stream(None)).await?)?;
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session_without_stream().await?;
    is_stream(&server.send(&connection.stream(Some(&session))).await?)
}

fn is_stream(response: &crate::remote::Response) -> Outcome {
    response.has_status(&[200])?;
    match response.content_type() == "text/event-stream" {
        true => Ok(()),
        false => Err(response.wrong("expected the type text/event-stream, got another")),
    }
}

async fn accept(server: &Server) -> Outcome {
    let connection = Connection::without_streams(server).await?;
    let request = connection.stream(None).with("accept", "application/json");
    server.send(&request).await?.has_status(&[406])
}

async fn no_accept(server: &Server) -> Outcome {
    let connection = Connection::without_streams(server).await?;
    let request = connection.stream(None).without("accept");
    server.send(&request).await?.has_status(&[200, 406])
}

async fn get_without_connection(server: &Server) -> Outcome {
    server.send(&server.get()).await?.has_status(&[400])
}

async fn get_of_unknown_connection(server: &Server) -> Outcome {
    let request = server.get().with("acp-connection-id", UNKNOWN);
    server.send(&request).await?.has_status(&[404])
}

async fn connection_stream(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    connection.new_session().await?;
    // The stream of the first session must not get it.
    let params = connection.setup(None);
    let reply = connection.result("session/new", params, None).await?;
    is_on(&connection, reply.at, reply.stream, None)
}

async fn session_stream(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    let reply = connection.turn(&session, &["hello"]).await?;
    is_on(&connection, reply.at, reply.stream, Some(&session))?;
    match updates_on_their_stream(&connection)? {
        0 => inconclusive("the agent sent no update"),
        _ => Ok(()),
    }
}

async fn sessions_apart(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let sessions = [
        connection.new_session().await?,
        connection.new_session().await?,
    ];
    let mut requests = Vec::new();
    for session in &sessions {
        requests.push((session, connection.prompt(session, &["hello"]).await?));
    }
    for (session, request) in requests {
        let reply = connection.reply(request, "session/prompt").await?;
        is_on(&connection, reply.at, reply.stream, Some(session))?;
    }
    connection.quiet().await?;
    updates_on_their_stream(&connection).map(drop)
}

/// What names a session is on the stream of that session. Yields how many there are.
fn updates_on_their_stream(connection: &Connection<'_>) -> Outcome<usize> {
    let mut count = 0;
    for (place, stream, message) in connection.messages() {
        if let Some(session) = message["params"]["sessionId"].as_str() {
            is_on(connection, place, stream, Some(session))?;
            count += 1;
        }
    }
    Ok(count)
}

fn is_on(
    connection: &Connection<'_>,
    place: usize,
    stream: usize,
    session: Option<&str>,
) -> Outcome {
    if connection.session_of(stream) == session {
        return Ok(());
    }
    let expected = match session {
        Some(session) => format!("the stream of session {session}"),
        None => "the stream of the connection".to_owned(),
    };
    Err(connection.wrong(
        place,
        format!("expected it on {expected}, got it on another stream"),
    ))
}

/// Has the agent ask something. Yields the connection and the answers' places.
async fn asked(server: &Server) -> Outcome<(Connection<'_>, String)> {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    connection.turn(&session, &["permission", "tool"]).await?;
    let is_request =
        |message: &Value| message.get("method").is_some() && message.get("id").is_some();
    if !connection
        .messages()
        .any(|(.., message)| is_request(message))
    {
        return skip("the agent made no request");
    }
    Ok((connection, session))
}

async fn agent_requests(server: &Server) -> Outcome {
    let (connection, session) = asked(server).await?;
    let mut count = 0;
    for (place, stream, message) in connection.messages() {
        let is_request = message.get("method").is_some() && message.get("id").is_some();
        // A request that names no session is not tied to one.
        if is_request && message["params"]["sessionId"] == json!(session) {
            is_on(&connection, place, stream, Some(&session))?;
            count += 1;
        }
    }
    match count {
        0 => skip("the agent made no request that names the session"),
        _ => Ok(()),
    }
}

async fn answer_accepted(server: &Server) -> Outcome {
    let (connection, _) = asked(server).await?;
    for response in &connection.answers {
        response.has_status(&[202])?;
        if !response.body.is_empty() {
            return Err(response.wrong("expected an empty body, got another"));
        }
    }
    Ok(())
}

/// Loads a session as servers allow it: its stream is opened before, if it is not refused, and the
/// header is left out if the server does not know the session yet. Yields whether the stream is open, and
/// the answer.
pub(super) async fn load_leniently(
    connection: &mut Connection<'_>,
    session: &str,
) -> Outcome<(bool, Reply)> {
    let request = connection.stream(Some(session));
    let early = connection.try_listen(&request, Some(session)).await?;
    if let Err(response) = &early {
        response.has_status(&[200, 403, 404])?;
    }
    let params = connection.setup(Some(session));
    let message = json!({"jsonrpc": "2.0", "id": 1000, "method": "session/load", "params": params});
    let response = connection.post(&message, Some(session)).await?;
    if response.status.as_u16() == 404 {
        connection.tell(&message, None).await?;
    } else {
        response.is_success()?;
    }
    let reply = connection.reply(1000, "session/load").await?;
    match reply.value.get("result") {
        Some(_) => Ok((early.is_ok(), reply)),
        None => Err(connection.wrong(reply.at, "expected a result of session/load, got an error")),
    }
}

/// A session with a turn in it, of a connection that is left alone.
pub(super) async fn with_history(server: &Server) -> Outcome<(Connection<'_>, String)> {
    let mut connection = Connection::open(server).await?;
    if connection.agent["agentCapabilities"]["loadSession"] != json!(true) {
        return skip("the agent does not declare `loadSession`");
    }
    let session = connection.new_session().await?;
    connection.turn(&session, &["hello"]).await?;
    Ok((connection, session))
}

async fn load(server: &Server) -> Outcome {
    let (first, session) = with_history(server).await?;
    // A server need not show a session on two connections at once.
    drop(first);
    let mut connection = Connection::open(server).await?;
    let (is_open, reply) = load_leniently(&mut connection, &session).await?;
    is_on(&connection, reply.at, reply.stream, None)?;
    if !is_open {
        connection.listen(Some(&session)).await?;
    }
    // The order between streams is open.
    let limit = server.env.timeout;
    let is_update = |message: &Value| message["method"] == "session/update";
    if connection
        .until_message(limit, 0, is_update)
        .await?
        .is_none()
    {
        return inconclusive("the agent replayed nothing");
    }
    updates_on_their_stream(&connection).map(drop)
}

async fn early_session_stream(server: &Server) -> Outcome {
    let (first, session) = with_history(server).await?;
    drop(first);
    let mut connection = Connection::open(server).await?;
    let (is_open, _) = load_leniently(&mut connection, &session).await?;
    if !is_open {
        connection.listen(Some(&session)).await?;
    }
    let reply = connection.turn(&session, &["hello"]).await?;
    connection.is_turn(
        &reply,
        "expected a turn in the loaded session, got an error",
    )
}

async fn order(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    let reply = connection.turn(&session, &["tool", "permission"]).await?;
    connection.quiet().await?;
    let mut calls = Vec::new();
    for (place, _, message) in connection.messages() {
        let update = &message["params"]["update"];
        let id = update["toolCallId"].as_str();
        match (update["sessionUpdate"].as_str(), id) {
            (Some("tool_call"), Some(id)) => calls.push(id.to_owned()),
            (Some("tool_call_update"), Some(id)) if !calls.iter().any(|call| call == id) => {
                let reason = "expected the tool call before its updates, got an update first";
                return Err(connection.wrong(place, reason));
            }
            _ => {}
        }
        let is_of_turn = update["sessionUpdate"].as_str().is_some_and(is_output);
        if place > reply.at && is_of_turn {
            let reason =
                "expected the updates of a turn before the answer to its prompt, got one after it";
            return Err(connection.wrong(place, reason));
        }
    }
    match calls.is_empty() {
        true => skip("the agent made no tool call"),
        false => Ok(()),
    }
}

async fn answers_once(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    connection.new_session().await?;
    connection.turn(&session, &["hello"]).await?;
    connection.quiet().await?;
    let mut seen: Vec<&Value> = Vec::new();
    for (place, _, message) in connection.messages() {
        if message.get("method").is_some() {
            continue;
        }
        if seen.contains(&&message["id"]) {
            return Err(connection.wrong(place, "expected one answer to a request, got two"));
        }
        seen.push(&message["id"]);
    }
    Ok(())
}

async fn events(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    connection.turn(&session, &["hello"]).await?;
    connection.quiet().await?;
    if let Some(place) = connection.junk() {
        return Err(connection.wrong(
            place,
            "expected a JSON-RPC message in an event, got other data",
        ));
    }
    for (place, _, message) in connection.messages() {
        let is_message = message["jsonrpc"] == "2.0"
            && (message.get("method").is_some()
                || message.get("id").is_some()
                    && message.get("result").is_some() != message.get("error").is_some());
        if !is_message {
            return Err(connection.wrong(
                place,
                "expected a JSON-RPC message in an event, got other data",
            ));
        }
    }
    Ok(())
}

async fn second_stream(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    let request = connection.stream(Some(&session));
    if let Err(response) = connection.try_listen(&request, Some(&session)).await? {
        response.has_status(&[200, 409])?;
    }
    let id = connection.prompt(&session, &["hello"]).await?;
    connection.reply(id, "session/prompt").await?;
    connection.quiet().await?;
    let answers = connection.messages();
    let answers = answers.filter(|(.., message)| message["id"] == json!(id));
    match answers.count() {
        1 => Ok(()),
        count => fail(format!(
            "expected one answer to the prompt on two streams, got {count}"
        )),
    }
}

async fn stream_stays_open(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    for _ in 0..2 {
        connection.turn(&session, &["hello"]).await?;
        connection.quiet().await?;
    }
    no_end(&connection)
}

async fn stream_after_close(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let capabilities = &connection.agent["agentCapabilities"];
    if !capabilities["sessionCapabilities"]["close"].is_object() {
        return skip("the agent does not declare `sessionCapabilities.close`");
    }
    let session = connection.new_session().await?;
    let params = json!({"sessionId": session});
    connection
        .result("session/close", params, Some(&session))
        .await?;
    connection.quiet().await?;
    no_end(&connection)?;
    connection.still_serves().await
}

fn no_end(connection: &Connection<'_>) -> Outcome {
    match connection.end() {
        Some(place) => Err(connection.wrong(
            place,
            "expected the stream to stay open with its connection, got its end",
        )),
        None => Ok(()),
    }
}
