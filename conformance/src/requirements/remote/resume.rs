//! Signs of life, ids of events, and streams that are opened again.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Check, NamedCheck};
use crate::harness::{Outcome, fail, inconclusive, skip};
use crate::remote::{Connection, Server, over_http};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("remote.keep-alive", Run(|cx| over_http(cx, keep_alive))),
    ("remote.event-ids", Run(|cx| over_http(cx, event_ids))),
    ("remote.resume", Run(|cx| over_http(cx, resume))),
    ("remote.resume-turn", Run(|cx| over_http(cx, resume_turn))),
    (
        "remote.unknown-cursor",
        Run(|cx| over_http(cx, unknown_cursor)),
    ),
];

/// Proxies end what is silent for a minute; some of them earlier.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

async fn keep_alive(server: &Server) -> Outcome {
    let limit = KEEP_ALIVE.min(server.env.turn_timeout);
    let mut connection = Connection::open(server).await?;
    // A greeting is no sign of life.
    connection.quiet().await?;
    match connection.comment(limit).await? {
        true => Ok(()),
        false => fail(format!(
            "expected a comment on an idle stream, got none within {} s",
            limit.as_secs_f32()
        )),
    }
}

/// A session with a turn behind it, whose stream is the second one. Skips when its events have no ids.
async fn numbered(server: &Server) -> Outcome<(Connection<'_>, String)> {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    connection.turn(&session, &["hello"]).await?;
    connection.turn(&session, &["tool", "hello"]).await?;
    connection.quiet().await?;
    if connection.events(1).next().is_none() {
        return skip("the server sends no ids of events");
    }
    Ok((connection, session))
}

async fn event_ids(server: &Server) -> Outcome {
    let (connection, _) = numbered(server).await?;
    let mut seen: Vec<&str> = Vec::new();
    for (place, id, _) in connection.events(1) {
        if seen.contains(&id) {
            return Err(connection.wrong(
                place,
                format!("expected events with ids of their own, got {id:?} twice"),
            ));
        }
        seen.push(id);
    }
    Ok(())
}

async fn resume(server: &Server) -> Outcome {
    let (mut connection, session) = numbered(server).await?;
    // Requests that were answered need not come again.
    let events = |connection: &Connection<'_>, stream: usize| -> Vec<(String, Value)> {
        let events = connection
            .events(stream)
            .filter(|(.., value)| value.get("method").is_none() || value.get("id").is_none());
        events
            .map(|(_, id, value)| (id.to_owned(), value.clone()))
            .collect()
    };
    let all = events(&connection, 1);
    let mut stream = 1;
    for cut in [0, all.len() / 2, all.len().saturating_sub(2)] {
        connection.close_stream(stream);
        let Some((cursor, _)) = all.get(cut) else {
            continue;
        };
        let expected = all.get(cut + 1..).unwrap_or_default();
        let request = connection
            .stream(Some(&session))
            .with("last-event-id", cursor);
        stream = match connection.try_listen(&request, Some(&session)).await? {
            Ok(stream) => stream,
            Err(response) => {
                return Err(
                    response.wrong("expected the stream to be continued, got another response")
                );
            }
        };
        connection
            .until_events(server.env.timeout, stream, expected.len())
            .await?;
        connection.quiet().await?;
        let found = events(&connection, stream);
        if found != expected {
            let ids = |events: &[(String, Value)]| {
                let ids: Vec<_> = events.iter().map(|(id, _)| id.clone()).collect();
                ids.join(", ")
            };
            return fail(match ids(&found) == ids(expected) {
                true => format!(
                    "expected the same events after {cursor:?}, got the same ids with other data"
                ),
                false => format!(
                    "expected the events [{}] after {cursor:?}, got [{}]",
                    ids(expected),
                    ids(&found)
                ),
            });
        }
    }
    Ok(())
}

async fn resume_turn(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    let request = connection.prompt(&session, &["slow"]).await?;
    let limit = server.env.turn_timeout;
    let is_update = |message: &Value| message["method"] == "session/update";
    if connection
        .until_message(limit, 0, is_update)
        .await?
        .is_none()
    {
        return inconclusive("the agent sent no update while it worked");
    }
    let Some(cursor) = connection.events(1).last().map(|(_, id, _)| id.to_owned()) else {
        return skip("the server sends no ids of events");
    };
    connection.close_stream(1);
    let before: Vec<_> = connection
        .events(1)
        .map(|(_, id, _)| id.to_owned())
        .collect();
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel",
        "params": {"sessionId": session}});
    connection.tell(&cancel, Some(&session)).await?;
    let again = connection
        .stream(Some(&session))
        .with("last-event-id", &cursor);
    let stream = match connection.try_listen(&again, Some(&session)).await? {
        Ok(stream) => stream,
        Err(response) => {
            return Err(response.wrong("expected the stream to be continued, got another response"));
        }
    };
    connection.reply(request, "session/prompt").await?;
    connection.quiet().await?;
    // What was on its way at the cut was not read, so that it comes again.
    for (place, id, _) in connection.events(stream) {
        if before.iter().any(|seen| seen == id) {
            return Err(connection.wrong(
                place,
                format!("expected events after the cursor, got {id:?} again"),
            ));
        }
    }
    let answers = connection.messages();
    let answers =
        answers.filter(|(_, of, message)| *of == stream && message["id"] == json!(request));
    match answers.count() {
        1 => Ok(()),
        count => fail(format!("expected one answer to the prompt, got {count}")),
    }
}

async fn unknown_cursor(server: &Server) -> Outcome {
    let (mut connection, session) = numbered(server).await?;
    connection.close_stream(1);
    for cursor in ["not-a-cursor", "99999999999999999999999999", "-1"] {
        let request = connection
            .stream(Some(&session))
            .with("last-event-id", cursor);
        let response = server.send(&request).await?;
        if response.status.is_server_error() {
            return Err(
                response.wrong("expected the stream, or a refusal (4xx), got another response")
            );
        }
    }
    connection.still_serves().await
}
