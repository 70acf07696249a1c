//! POST: what opens a connection, what is accepted, and what is refused.

use acp_sdk::ErrorCode;
use serde_json::json;

use super::super::{Check, NamedCheck};
use crate::harness::{Outcome, fail};
use crate::remote::{Connection, Server, over_http, unknown_notification};

use Check::Run;

/// A connection that no server has opened.
pub(super) const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("remote.initialize", Run(|cx| over_http(cx, initialize))),
    (
        "remote.connection-id",
        Run(|cx| over_http(cx, connection_id)),
    ),
    ("remote.accepted", Run(|cx| over_http(cx, accepted))),
    ("remote.content-type", Run(|cx| over_http(cx, content_type))),
    (
        "remote.content-type-parameters",
        Run(|cx| over_http(cx, content_type_parameters)),
    ),
    (
        "remote.post-without-connection",
        Run(|cx| over_http(cx, post_without_connection)),
    ),
    (
        "remote.post-to-unknown-connection",
        Run(|cx| over_http(cx, post_to_unknown_connection)),
    ),
    (
        "remote.post-without-session",
        Run(|cx| over_http(cx, post_without_session)),
    ),
    ("remote.batch", Run(|cx| over_http(cx, batch))),
    ("remote.broken-json", Run(|cx| over_http(cx, broken_json))),
    (
        "remote.not-a-message",
        Run(|cx| over_http(cx, not_a_message)),
    ),
];

async fn initialize(server: &Server) -> Outcome {
    let response = server.send(&server.initialize()).await?;
    response.has_status(&[200])?;
    if response.content_type() != "application/json" {
        return Err(
            response.wrong("expected a body of the type application/json, got another type")
        );
    }
    let answer = response.json()?;
    if answer["id"] != json!(0) || !answer["result"]["protocolVersion"].is_u64() {
        return Err(response.wrong("expected the result of initialize, got another body"));
    }
    Ok(())
}

async fn connection_id(server: &Server) -> Outcome {
    let one = Connection::without_streams(server).await?;
    let other = Connection::without_streams(server).await?;
    let is_visible = one.id.bytes().all(|byte| byte.is_ascii_graphic());
    match (is_visible, one.id == other.id) {
        (true, false) => Ok(()),
        (false, _) => fail(format!(
            "expected an id of visible characters, got {:?}",
            one.id
        )),
        (_, true) => fail(format!(
            "expected connections with ids of their own, got {:?} twice",
            one.id
        )),
    }
}

async fn accepted(server: &Server) -> Outcome {
    let connection = Connection::open(server).await?;
    let request = json!({"jsonrpc": "2.0", "id": "a", "method": "session/new",
        "params": connection.setup(None)});
    for message in [unknown_notification(), request] {
        let response = connection.post(&message, None).await?;
        response.has_status(&[202])?;
        if !response.body.is_empty() {
            return Err(response.wrong("expected an empty body, got another"));
        }
    }
    Ok(())
}

async fn content_type(server: &Server) -> Outcome {
    for kind in ["text/plain", "application/json-seq", "application/xml"] {
        let request = server.initialize().with("content-type", kind);
        server.send(&request).await?.has_status(&[415])?;
    }
    let request = server.initialize().without("content-type");
    server.send(&request).await?.has_status(&[415])?;
    let connection = Connection::without_streams(server).await?;
    let request = server.post(&unknown_notification());
    let request = connection.of_this(request, None);
    let request = request.with("content-type", "application/x-www-form-urlencoded");
    server.send(&request).await?.has_status(&[415])
}

async fn content_type_parameters(server: &Server) -> Outcome {
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let request = server.initialize().with("content-type", kind);
        server.send(&request).await?.is_success()?;
    }
    Ok(())
}

async fn post_without_connection(server: &Server) -> Outcome {
    let response = server.send(&server.post(&unknown_notification())).await?;
    response.has_status(&[400])
}

async fn post_to_unknown_connection(server: &Server) -> Outcome {
    let request = server.post(&unknown_notification());
    let request = request.with("acp-connection-id", UNKNOWN);
    server.send(&request).await?.has_status(&[404])
}

/// Clients leave the header out, so that a server may take the session from the parameters; but then
/// it does.
async fn post_without_session(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let session = connection.new_session().await?;
    let text = server.prompt(&["hello"])?;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let message =
        json!({"jsonrpc": "2.0", "id": 1000, "method": "session/prompt", "params": params});
    let response = connection.post(&message, None).await?;
    if response.status.as_u16() != 400 {
        response.is_success()?;
        let reply = connection.reply(1000, "session/prompt").await?;
        let reason = "expected a result of the prompt that was accepted, got an error";
        connection.is_turn(&reply, reason)?;
    }
    connection.still_serves().await
}

async fn batch(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    let new = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "session/new",
        "params": connection.setup(None)})
    };
    let message = json!([new(1001), new(1002)]);
    connection.post(&message, None).await?.is_refusal()?;
    connection.still_serves().await?;
    let answered = connection.messages().find(|(_, _, message)| {
        let id = message["id"].as_u64();
        message.get("result").is_some() && matches!(id, Some(1001 | 1002))
    });
    match answered.map(|(place, ..)| place) {
        Some(place) => Err(connection.wrong(
            place,
            "expected a refused batch not to be carried out, got a result",
        )),
        None => Ok(()),
    }
}

async fn broken_json(server: &Server) -> Outcome {
    let broken = ["{\"jsonrpc\": \"2.0\", \"method\"", "", "\u{feff}nonsense"];
    let mut connection = Connection::open(server).await?;
    for text in broken {
        answered(
            &mut connection,
            text,
            &[ErrorCode::PARSE_ERROR, ErrorCode::INVALID_REQUEST],
        )
        .await?;
    }
    connection.still_serves().await
}

async fn not_a_message(server: &Server) -> Outcome {
    let mut connection = Connection::open(server).await?;
    for text in ["{\"some\": \"thing\"}", "7", "null"] {
        answered(&mut connection, text, &[ErrorCode::INVALID_REQUEST]).await?;
    }
    connection.still_serves().await
}

/// A body that is no message is refused by the status, or by an error on the stream.
async fn answered(connection: &mut Connection<'_>, text: &str, codes: &[ErrorCode]) -> Outcome {
    let request = connection.server.initialize().body(text.to_owned());
    let request = connection.of_this(request, None);
    let response = connection.server.send(&request).await?;
    if !response.status.is_success() {
        return response.is_refusal();
    }
    let limit = connection.server.env.turn_timeout;
    let before = connection.log.len();
    let is_error = |message: &serde_json::Value| {
        let code = crate::wire::error_code(&message["error"]);
        message["id"].is_null() && code.is_some_and(|code| codes.contains(&code))
    };
    let place = connection.until_message(limit, before, is_error).await?;
    match place {
        Some(_) => Ok(()),
        None => Err(response
            .wrong("expected a refusal, or an error on the stream of the connection, got neither")),
    }
}
