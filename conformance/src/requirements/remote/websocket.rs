//! WebSocket: the upgrade, messages, and the end.

use serde_json::{Value, json};

use super::super::{Check, Requirement, info, should};
use crate::harness::{Outcome, Stop, fail, inconclusive, skip};
use crate::remote::{Frame, Opcode, Server, WebSocket, over_websocket, refused_upgrade};

use Check::Run;

const UPGRADE: &str = "remote-transport#connection-establishment-get-with-upgrade";
const MESSAGES: &str = "remote-transport#bidirectional-messaging";

pub(super) const ROWS: &[Requirement] = &[
    should(
        "remote.websocket",
        UPGRADE,
        "GET /acp […] Upgrade: websocket […] HTTP 101 Switching Protocols",
        Run(|cx| over_websocket(cx, upgrade)),
    ),
    should(
        "remote.websocket-connection-id",
        UPGRADE,
        "The `Acp-Connection-Id` is returned in the upgrade response headers.",
        Run(|cx| over_websocket(cx, connection_id)),
    ),
    should(
        "remote.websocket-unasked",
        "websocket#section-4.2.2",
        "an extension present in this list must have been sent by the client",
        Run(|cx| over_websocket(cx, unasked)),
    ),
    should(
        "remote.websocket-version",
        "websocket#section-4.2.2",
        "does not match a version understood by the server, the server MUST abort",
        Run(|cx| over_websocket(cx, version)),
    ),
    should(
        "remote.websocket-first-message",
        UPGRADE,
        "The client must still send `initialize` as the first JSON-RPC message",
        Run(|cx| over_websocket(cx, first_message)),
    ),
    should(
        "remote.websocket-messages",
        MESSAGES,
        "All messages are WebSocket text frames containing JSON-RPC.",
        Run(|cx| over_websocket(cx, messages)),
    ),
    should(
        "remote.websocket-answers-once",
        "jsonrpc#response_object",
        "When a rpc call is made, the Server MUST reply with a Response",
        Run(|cx| over_websocket(cx, answers_once)),
    ),
    should(
        "remote.websocket-broken-json",
        "jsonrpc#error_object",
        "Invalid JSON was received by the server.",
        Run(|cx| over_websocket(cx, broken_json)),
    ),
    should(
        "remote.websocket-batch",
        "remote-transport#content-negotiation-and-validation",
        "Batch JSON-RPC requests return 501.",
        Run(|cx| over_websocket(cx, batch)),
    ),
    should(
        "remote.websocket-close",
        "websocket#section-5.5.1",
        "the endpoint MUST send a Close frame in response",
        Run(|cx| over_websocket(cx, close)),
    ),
    info(
        "remote.websocket-sessions-survive",
        "remote-transport#v1",
        "A session persists on the server independently of any one connection",
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
        (Some(id), Some(other)) if id == other => {
            fail(format!("two connections have the same id {id:?}"))
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err(one
            .response
            .wrong("expected the header acp-connection-id with visible characters")),
    }
}

async fn unasked(server: &Server) -> Outcome {
    let response = refused_upgrade(server, &server.upgrade_request()).await?;
    for name in ["sec-websocket-protocol", "sec-websocket-extensions"] {
        if response.headers.contains_key(name) {
            return Err(response.wrong(format!("{name} was not asked for")));
        }
    }
    Ok(())
}

async fn version(server: &Server) -> Outcome {
    let request = server.upgrade_request().with("sec-websocket-version", "12");
    refused_upgrade(server, &request).await?.is_refusal()
}

async fn first_message(server: &Server) -> Outcome {
    let request = server.upgrade_request();
    let mut socket = WebSocket::without_initialize(server, &request).await?;
    let (id, message) = socket.request("session/new", socket.setup());
    socket.text(message.to_string()).await;
    let is_answer = |message: &Value| message["id"] == json!(id) || message["id"].is_null();
    let limit = server.env.turn_timeout;
    match socket.message(limit, is_answer).await? {
        Some(answer) if answer.get("error").is_some() => {}
        Some(answer) => return fail(format!("expected a refusal of session/new, got {answer}")),
        None if socket.has_ended() => {}
        None => return fail("session/new before initialize got no answer and no end"),
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
            } => "a mask, which frames of servers must not have",
            Frame { reserved: 1.., .. } => "a reserved bit set",
            Frame {
                opcode: Opcode::BINARY,
                ..
            } => "the type binary",
            _ => continue,
        };
        return fail(format!("a frame of the server has {reason}"));
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
            return fail(format!("a request is answered twice: {message}"));
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
    if answer["error"]["code"] != json!(-32700) || !answer["id"].is_null() {
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
        true => fail("the batch was refused and carried out"),
        false => Ok(()),
    }
}

async fn close(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let code = 1000_u16.to_be_bytes().to_vec();
    socket.frame(&Frame::new(Opcode::CLOSE, code)).await;
    match socket.ends("a close frame", None).await? {
        Some(_) => Ok(()),
        None => fail("the server ended the connection without a close frame in answer to one"),
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
                "the session is gone with its connection: {}",
                failure.reason
            );
            Stop::Fail(failure)
        }
        other => other,
    })
}
