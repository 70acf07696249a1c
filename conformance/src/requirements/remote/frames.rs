//! WebSocket frames, whole and in parts, right and wrong.

use serde_json::{Value, json};

use super::super::{Check, NamedCheck};
use crate::harness::{Outcome, fail};
use crate::remote::{Frame, Opcode, Server, WebSocket, is_answer, over_websocket};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "remote.websocket-binary",
        Run(|cx| over_websocket(cx, binary)),
    ),
    (
        "remote.websocket-fragments",
        Run(|cx| over_websocket(cx, fragments)),
    ),
    ("remote.websocket-ping", Run(|cx| over_websocket(cx, ping))),
    (
        "remote.websocket-unmasked",
        Run(|cx| over_websocket(cx, unmasked)),
    ),
    ("remote.websocket-utf8", Run(|cx| over_websocket(cx, utf8))),
    (
        "remote.websocket-reserved-bits",
        Run(|cx| over_websocket(cx, reserved_bits)),
    ),
    (
        "remote.websocket-reserved-opcode",
        Run(|cx| over_websocket(cx, reserved_opcode)),
    ),
    (
        "remote.websocket-continuation",
        Run(|cx| over_websocket(cx, continuation)),
    ),
    (
        "remote.websocket-long-ping",
        Run(|cx| over_websocket(cx, long_ping)),
    ),
    (
        "remote.websocket-large-frame",
        Run(|cx| over_websocket(cx, large_frame)),
    ),
];

async fn binary(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let (id, message) = socket.request("session/new", socket.setup());
    let frame = Frame::new(Opcode::BINARY, message.to_string());
    socket.frame(&frame).await;
    socket.still_serves("a binary frame").await?;
    let answered = socket
        .messages
        .iter()
        .flatten()
        .find(|message| is_answer(message, id));
    match answered {
        Some(answer) => fail(format!(
            "expected no answer to a binary frame, got {answer}"
        )),
        None => Ok(()),
    }
}

/// The id of a request in fragments of five bytes, which always end within one of its characters. A server
/// that decodes each fragment by itself answers with another id.
const FRAGMENTS: &str = "\u{1f600}\u{1f600}\u{1f600}";

async fn fragments(server: &Server) -> Outcome {
    server.needs_session()?;
    let mut socket = WebSocket::open(server).await?;
    let (_, mut message) = socket.request("session/new", socket.setup());
    message["id"] = json!(FRAGMENTS);
    let text = message.to_string().into_bytes();
    socket.frame(&Frame::part(Opcode::TEXT, Vec::new())).await;
    for piece in text.chunks(5) {
        let piece = piece.to_vec();
        socket
            .frame(&Frame::part(Opcode::CONTINUATION, piece))
            .await;
    }
    socket
        .frame(&Frame::new(Opcode::CONTINUATION, Vec::new()))
        .await;
    let is_answer = |message: &Value| message.get("method").is_none() && message["id"] == FRAGMENTS;
    let limit = server.env.turn_timeout;
    let Some(answer) = socket.message(limit, is_answer).await? else {
        return Err(socket.missing("the answer to session/new in fragments, with its id"));
    };
    match answer.get("result") {
        Some(_) => Ok(()),
        None => fail(format!(
            "expected a result of session/new in fragments, got {answer}"
        )),
    }
}

async fn ping(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let (id, message) = socket.request("session/new", socket.setup());
    let text = message.to_string().into_bytes();
    let (before, after) = text.split_at(text.len() / 2);
    let payload = b"between".to_vec();
    socket
        .frame(&Frame::part(Opcode::TEXT, before.to_vec()))
        .await;
    socket
        .frame(&Frame::new(Opcode::PING, payload.clone()))
        .await;
    // Others may come unasked, as signs of life.
    let is_pong = |frame: &Frame| frame.opcode == Opcode::PONG && frame.payload == payload;
    let limit = server.env.turn_timeout;
    if socket.wait_for(limit, is_pong).await?.is_none() {
        let mut pongs = socket.frames.iter();
        let other = pongs.find(|frame| frame.opcode == Opcode::PONG);
        return match other.map(|pong| String::from_utf8_lossy(&pong.payload).into_owned()) {
            Some(found) => fail(format!(
                "expected a pong with the ping's text, got {found:?}"
            )),
            None => Err(socket.missing("the pong to a ping between fragments")),
        };
    }
    socket
        .frame(&Frame::new(Opcode::CONTINUATION, after.to_vec()))
        .await;
    socket.reply(id, "session/new").await.map(drop)
}

/// Sends a frame with a request that must not be read, and expects the end.
async fn refused(server: &Server, what: &str, change: impl FnOnce(&mut Frame)) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let (id, message) = socket.request("session/new", socket.setup());
    let mut frame = Frame::new(Opcode::TEXT, message.to_string());
    change(&mut frame);
    socket.frame(&frame).await;
    socket.ends(what, Some(id)).await?;
    WebSocket::open(server).await?.still_serves(what).await
}

async fn unmasked(server: &Server) -> Outcome {
    refused(server, "an unmasked frame", |frame| frame.is_masked = false).await
}

async fn utf8(server: &Server) -> Outcome {
    let mut socket = WebSocket::open(server).await?;
    let mut params = socket.setup();
    params["_meta"] = json!({"text": "?"});
    let (id, message) = socket.request("session/new", params);
    let text: Vec<u8> = message
        .to_string()
        .bytes()
        .map(|byte| if byte == b'?' { 0xff } else { byte })
        .collect();
    let what = "text that is not UTF-8";
    socket.frame(&Frame::new(Opcode::TEXT, text)).await;
    socket.ends(what, Some(id)).await?;
    WebSocket::open(server).await?.still_serves(what).await
}

async fn reserved_bits(server: &Server) -> Outcome {
    refused(server, "a reserved bit", |frame| frame.reserved = 2).await
}

async fn reserved_opcode(server: &Server) -> Outcome {
    refused(server, "a reserved opcode", |frame| {
        frame.opcode = Opcode(3)
    })
    .await
}

/// Sends a frame that must not be answered. The standard does not say what a server does then: it may end the
/// connection or go on.
async fn unanswered(
    server: &Server,
    mut socket: WebSocket<'_>,
    what: &str,
    frame: &Frame,
    answer: impl FnOnce(&WebSocket<'_>) -> Option<String>,
) -> Outcome {
    socket.frame(frame).await;
    let served = socket.still_serves(what).await;
    if let Some(answer) = answer(&socket) {
        return fail(format!("expected no answer to {what}, got {answer}"));
    }
    if !socket.has_ended() {
        served?;
    }
    WebSocket::open(server).await?.still_serves(what).await
}

async fn continuation(server: &Server) -> Outcome {
    let what = "a continuation without a beginning";
    let mut socket = WebSocket::open(server).await?;
    let (id, message) = socket.request("session/new", socket.setup());
    let frame = Frame::new(Opcode::CONTINUATION, message.to_string());
    let answer = |socket: &WebSocket<'_>| {
        let mut messages = socket.messages.iter().flatten();
        let answer = messages.find(|message| is_answer(message, id));
        answer.map(ToString::to_string)
    };
    unanswered(server, socket, what, &frame, answer).await
}

async fn long_ping(server: &Server) -> Outcome {
    let what = "a ping of 126 bytes";
    let socket = WebSocket::open(server).await?;
    let frame = Frame::new(Opcode::PING, vec![b'x'; 126]);
    let answer = |socket: &WebSocket<'_>| {
        let mut frames = socket.frames.iter();
        // One with nothing of the ping may have come unasked.
        let is_answered =
            frames.any(|frame| frame.opcode == Opcode::PONG && frame.payload.starts_with(b"x"));
        is_answered.then(|| "a pong".to_owned())
    };
    unanswered(server, socket, what, &frame, answer).await
}

/// The bytes that a frame announces, and how many of them are sent at most.
const ANNOUNCED: u64 = 1 << 40;
const SENT: usize = 64 << 20;
const PIECE: usize = 64 << 10;

async fn large_frame(server: &Server) -> Outcome {
    let what = "a frame of a tebibyte";
    let mut socket = WebSocket::open(server).await?;
    let head = Frame::new(Opcode::TEXT, Vec::new()).head(ANNOUNCED);
    socket.raw(&head).await;
    let piece = vec![b'x'; PIECE];
    for _ in 0..SENT / PIECE {
        // A server that does not read any more has refused it as well.
        if !socket.raw(&piece).await {
            break;
        }
    }
    socket.ends(what, None).await?;
    WebSocket::open(server).await?.still_serves(what).await
}
