//! WebSocket: the upgrade, messages, and the end.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::super::{Check, NamedCheck};
use crate::harness::{Outcome, Stop, fail, inconclusive, skip};
use crate::remote::{Frame, Opcode, Server, WebSocket, over_websocket, refused_upgrade};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("remote.websocket", Run(|cx| over_websocket(cx, upgrade))),
    (
        "remote.websocket-connection-id",
        Run(|cx| over_websocket(cx, connection_id)),
    ),
    (
        "remote.websocket-unasked",
        Run(|cx| over_websocket(cx, unasked)),
    ),
    (
        "remote.websocket-version",
        Run(|cx| over_websocket(cx, version)),
    ),
    (
        "remote.websocket-first-message",
        Run(|cx| over_websocket(cx, first_message)),
    ),
    (
        "remote.websocket-messages",
        Run(|cx| over_websocket(cx, messages)),
    ),
    (
        "remote.websocket-answers-once",
        Run(|cx| over_websocket(cx, answers_once)),
    ),
    (
        "remote.websocket-broken-json",
        Run(|cx| over_websocket(cx, broken_json)),
    ),
    (
        "remote.websocket-batch",
        Run(|cx| over_websocket(cx, batch)),
    ),
    (
        "remote.websocket-close",
        Run(|cx| over_websocket(cx, close)),
    ),
    (
        "remote.websocket-sessions-survive",
        Run(|cx| over_websocket(cx, sessions_survive)),
    ),
];

async fn upgrade(server: &Server) -> Outcome {
    let response = refused_upgrade(server, &server.upgrade_request()).await?;
    response.has_status(&[101])?;
    WebSocket::open(server).await.map(drop)
}

async fn connection_id(server: &Server) -> Outcome {
    let one = WebSocket::open(server).await?;
    let other = WebSocket::open(server).await?;
    let id = |socket: &WebSocket<'_>| {
        let id = socket
            .response
            .header("acp-connection-id")
            .map(str::to_owned);
        let visible = id.filter(|id| id.bytes().all(|byte| byte.is_ascii_graphic()));
        visible.filter(|id| !id.is_empty())
    };
    match (id(&one), id(&other)) {
        (Some(id), Some(other)) if id == other => fail(format!(
            "expected connections with ids of their own, got {id:?} twice"
        )),
        (Some(_), Some(_)) => Ok(()),
        _ => Err(one
            .response
            .wrong("expected the header acp-connection-id with visible characters, got none")),
    }
}

async fn unasked(server: &Server) -> Outcome {
    let response = refused_upgrade(server, &server.upgrade_request()).await?;
    for name in ["sec-websocket-protocol", "sec-websocket-extensions"] {
        if response.headers.contains_key(name) {
            return Err(response.wrong(format!(
                "expected no {name}, which was not asked for, got one"
            )));
        }
    }
    Ok(())
}

async fn version(server: &Server) -> Outcome {
    let request = server.upgrade_request().with("sec-websocket-version", "12");
    let response = refused_upgrade(server, &request).await?;
    response.is_refusal()?;
    let named = response.headers.get_all("sec-websocket-version").iter();
    let mut named = named.filter_map(|value| value.to_str().ok());
    // That of the other WebSockets of the suite.
    match named.any(|list| list.split(',').any(|version| version.trim() == "13")) {
        true => Ok(()),
        false => Err(response.wrong(
            "expected the header sec-websocket-version with 13, which the server understands, got none",
        )),
    }
}

async fn first_message(server: &Server) -> Outcome {
    let request = server.upgrade_request();
    let mut socket = WebSocket::without_initialize(server, &request).await?;
    let (id, message) = socket.request("session/new", socket.setup());
    socket.text(message.to_string()).await;
    // What has a method is no answer, whatever its id.
    let is_answer = |message: &Value| {
        message.get("method").is_none() && (message["id"] == json!(id) || message["id"].is_null())
    };
    let limit = server.env.turn_timeout;
    match socket.message(limit, is_answer).await? {
        Some(answer) if answer.get("error").is_some() => {}
        Some(answer) => return fail(format!("expected a refusal of session/new, got {answer}")),
        None if socket.has_ended() => {}
        None => {
            return fail(
                "expected an error or the end after session/new before initialize, got neither",
            );
        }
    }
    WebSocket::open(server).await.map(drop)
}

async fn messages(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let session = socket.new_session().await?;
    socket.turn(&session, &["hello"]).await?;
    for frame in &socket.frames {
        let is_known = matches!(
            frame.opcode,
            Opcode::CONTINUATION
                | Opcode::TEXT
                | Opcode::BINARY
                | Opcode::CLOSE
                | Opcode::PING
                | Opcode::PONG
        );
        let reason = match frame {
            _ if !is_known => "a reserved opcode",
            Frame {
                is_masked: true, ..
            } => "a mask",
            Frame { reserved: 1.., .. } => "a reserved bit set",
            Frame {
                opcode: Opcode::BINARY,
                ..
            } => "the type binary",
            _ => continue,
        };
        return fail(format!(
            "expected frames of text without a mask, got {reason}"
        ));
    }
    let updates = socket.messages.iter().flatten();
    let updates = updates.filter(|message| message["params"]["sessionId"] == json!(session));
    match updates.count() {
        0 => inconclusive("the agent sent no update"),
        _ => Ok(()),
    }
}

async fn answers_once(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let session = socket.new_session().await?;
    socket.turn(&session, &["hello"]).await?;
    socket.new_session().await?;
    let mut seen = Vec::new();
    for message in socket.messages.iter().flatten() {
        if message.get("method").is_some() {
            continue;
        }
        if seen.contains(&&message["id"]) {
            return fail(format!(
                "expected one answer to a request, got two: {message}"
            ));
        }
        seen.push(&message["id"]);
    }
    Ok(())
}

async fn broken_json(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    socket.text("{\"jsonrpc\": \"2.0\", \"method\"").await;
    let is_error = |message: &Value| message.get("error").is_some();
    let limit = server.env.turn_timeout;
    let Some(answer) = socket.message(limit, is_error).await? else {
        return Err(socket.missing("the answer to broken JSON"));
    };
    if answer["error"]["code"] != json!(ErrorCode::PARSE_ERROR) || !answer["id"].is_null() {
        return fail(format!(
            "expected error -32700 with the id null, got {answer}"
        ));
    }
    socket.still_serves("broken JSON").await
}

async fn batch(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let (one, first) = socket.request("session/new", socket.setup());
    let (other, second) = socket.request("session/new", socket.setup());
    socket.text(json!([first, second]).to_string()).await;
    let is_answer = |message: &Value| {
        let id = message
            .get("id")
            .filter(|_| message.get("method").is_none());
        id.is_some_and(|id| id.is_null() || *id == json!(one) || *id == json!(other))
    };
    let limit = server.env.turn_timeout;
    match socket.message(limit, is_answer).await? {
        Some(answer) if answer.get("error").is_some() => {}
        Some(answer) => {
            return fail(format!("expected a refusal of the batch, got {answer}"));
        }
        None if socket.has_ended() => {
            return WebSocket::open(server).await.map(drop);
        }
        None => return Err(socket.missing("the refusal of a batch")),
    }
    socket.still_serves("a batch").await?;
    let carried_out = socket.messages.iter().flatten().any(|message| {
        let id = &message["id"];
        message.get("result").is_some() && (*id == json!(one) || *id == json!(other))
    });
    match carried_out {
        true => fail("expected a refused batch not to be carried out, got a result"),
        false => Ok(()),
    }
}

async fn close(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let code = 1000_u16.to_be_bytes().to_vec();
    socket.frame(&Frame::new(Opcode::CLOSE, code)).await;
    match socket.ends("a close frame", None).await? {
        Some(_) => Ok(()),
        None => fail("expected a close frame in answer to one, got the end of the connection"),
    }
}

async fn sessions_survive(server: &Server) -> Outcome {
    let mut first = WebSocket::open(server).await?;
    if first.agent["agentCapabilities"]["loadSession"] != json!(true) {
        return skip("the agent does not declare `loadSession`");
    }
    let session = first.new_session().await?;
    first.turn(&session, &["hello"]).await?;
    // The socket ends without a word.
    drop(first);
    let mut socket = WebSocket::open(server).await?;
    let mut params = socket.setup();
    params["sessionId"] = json!(session);
    let loaded = socket.call("session/load", params).await;
    loaded.map(drop).map_err(|stop| match stop {
        Stop::Fail(mut failure) => {
            failure.reason = format!(
                "expected the session to outlive its connection, got a failure: {}",
                failure.reason
            );
            Stop::Fail(failure)
        }
        other => other,
    })
}
