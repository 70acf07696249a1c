//! The scenarios over WebSocket.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::log::Asked;
use super::scripted_agent::{CONNECTION, Piece, ScriptedAgent, Which};
use crate::remote::{Frame, Opcode};

/// What a ping says.
pub(super) const PING: &[u8] = b"between fragments";

/// Accepts an upgrade.
pub(super) fn respond(
    stage: &Arc<ScriptedAgent>,
    mut asked: Asked,
    mut request: Request<Incoming>,
) -> Response<()> {
    let mut response = Response::new(());
    let key = asked.header("sec-websocket-key").unwrap_or_default();
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let headers = response.headers_mut();
    for (name, value) in [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("acp-connection-id", CONNECTION),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(accept) = accept {
        headers.insert("sec-websocket-accept", accept);
    }
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    asked.status = 101;
    stage.note(asked);
    let stage = stage.clone();
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            // It ends as the client ends it.
            let _ = converse(&stage, TokioIo::new(upgraded)).await;
        }
        stage.end();
    });
    response
}

async fn converse(
    stage: &ScriptedAgent,
    socket: TokioIo<hyper::upgrade::Upgraded>,
) -> std::io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(socket);
    let mut streams = [
        stage.open(Which::Connection, None),
        stage.open(Which::Session, None),
    ];
    let [connection, session] = &mut streams;
    let (mut bytes, mut begun) = (BytesMut::new(), None);
    loop {
        while let Some(frame) = Frame::decode(&mut bytes).map_err(|violation| {
            stage.note_frames(|log| log.faults.push(violation.clone()));
            std::io::Error::other(violation)
        })? {
            if !take(stage, &frame, &mut begun, &mut writer).await? {
                return Ok(());
            }
        }
        let piece = tokio::select! {
            read = reader.read_buf(&mut bytes) => {
                if read? == 0 {
                    return Ok(());
                }
                continue;
            }
            Some(piece) = connection.recv() => piece,
            Some(piece) = session.recv() => piece,
        };
        if let Piece::Bytes(message) = piece {
            write(&mut writer, &message, stage.scenario.is_rough).await?;
        }
    }
}

/// Takes a frame of the client; whether there may be more.
async fn take(
    stage: &ScriptedAgent,
    frame: &Frame,
    begun: &mut Option<BytesMut>,
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
) -> std::io::Result<bool> {
    if !frame.is_masked {
        stage.note_frames(|log| log.faults.push("a frame is not masked".to_owned()));
    }
    if frame.reserved != 0 {
        stage.note_frames(|log| log.faults.push("a frame has a reserved bit set".to_owned()));
    }
    match frame.opcode {
        opcode @ (Opcode::TEXT | Opcode::CONTINUATION) => {
            if begun.is_some() != (opcode == Opcode::CONTINUATION) {
                let violation = "a frame does not continue the message that was begun";
                stage.note_frames(|log| log.faults.push(violation.to_owned()));
            }
            let mut text = begun.take().unwrap_or_default();
            text.extend_from_slice(&frame.payload);
            if text.len() > acp_sdk::limits::MAX_MESSAGE_BYTES {
                let violation = format!("a message has more than {} bytes", text.len());
                stage.note_frames(|log| log.faults.push(violation));
                return Ok(false);
            }
            match frame.is_last {
                true => message(stage, &text, writer).await?,
                false => *begun = Some(text),
            }
        }
        Opcode::PING => {
            write_frame(writer, Frame::new(Opcode::PONG, frame.payload.clone())).await?;
        }
        Opcode::PONG => stage.note_frames(|log| log.pongs.push(frame.payload.to_vec())),
        Opcode::CLOSE => {
            stage.note_frames(|log| log.closed = true);
            write_frame(writer, Frame::new(Opcode::CLOSE, frame.payload.clone())).await?;
            return Ok(false);
        }
        Opcode(code) => {
            let violation = format!("a frame has the opcode {code}");
            stage.note_frames(|log| log.faults.push(violation));
        }
    }
    Ok(true)
}

async fn message(
    stage: &ScriptedAgent,
    text: &[u8],
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
) -> std::io::Result<()> {
    let message: Value = match serde_json::from_slice(text) {
        Ok(message) => message,
        Err(error) => {
            stage.note_frames(|log| log.faults.push(format!("a frame is no JSON: {error}")));
            return Ok(());
        }
    };
    stage.note_frames(|log| log.messages.push(message.clone()));
    if message["method"] == "initialize" {
        let answer = stage.initialize(&message).to_string();
        return write(writer, answer.as_bytes(), false).await;
    }
    stage.receive(&message);
    Ok(())
}

/// Writes a message; roughly: in fragments, with a ping between them and a binary frame before.
async fn write(
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    message: &[u8],
    is_rough: bool,
) -> std::io::Result<()> {
    let text = Bytes::copy_from_slice(message);
    if !is_rough {
        return write_frame(writer, Frame::new(Opcode::TEXT, text)).await;
    }
    write_frame(writer, Frame::new(Opcode::BINARY, text.clone())).await?;
    let middle = text.len() / 2;
    write_frame(writer, Frame::part(Opcode::TEXT, text.slice(..middle))).await?;
    write_frame(writer, Frame::new(Opcode::PING, PING)).await?;
    for byte in text.iter().skip(middle) {
        write_frame(writer, Frame::part(Opcode::CONTINUATION, vec![*byte])).await?;
    }
    write_frame(writer, Frame::new(Opcode::CONTINUATION, Bytes::new())).await
}

async fn write_frame(
    writer: &mut (impl tokio::io::AsyncWrite + Unpin),
    frame: Frame,
) -> std::io::Result<()> {
    let frame = Frame {
        is_masked: false,
        ..frame
    };
    writer.write_all(&frame.encode()).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::super::scenario;
    use super::*;

    /// What is wrong with these frames.
    async fn faults(frames: &[Frame]) -> Vec<String> {
        let stage = ScriptedAgent::new(scenario("remote-websocket"));
        let (mut begun, mut writer) = (None, Vec::new());
        for frame in frames {
            let goes_on = take(&stage, frame, &mut begun, &mut writer).await;
            assert!(goes_on.unwrap());
        }
        stage.finish().1.faults
    }

    async fn frames_are_in_order() {
        let text = r#"{"jsonrpc":"2.0","method":"_x"}"#;
        let (begin, end) = text.split_at(9);
        let begin = || Frame::part(Opcode::TEXT, begin);
        let end = |opcode| Frame::new(opcode, end);
        let ping = Frame::new(Opcode::PING, PING);
        let sound = [begin(), ping, end(Opcode::CONTINUATION)];
        assert_eq!(faults(&sound).await, Vec::<String>::new());
        let whole = |opcode| Frame::new(opcode, text);
        assert_eq!(faults(&[whole(Opcode::TEXT)]).await, Vec::<String>::new());
        assert_eq!(faults(&[whole(Opcode::CONTINUATION)]).await.len(), 1);
        assert_eq!(faults(&[begin(), end(Opcode::TEXT)]).await.len(), 1);
    }

    #[tokio::test]
    async fn a_frame_continues_the_message_that_was_begun() {
        frames_are_in_order().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_frame_continues_the_message_that_was_begun_on_several_threads() {
        frames_are_in_order().await;
    }
}
