//! The WebSocket transport: a text frame for each message.

use std::io;

use bytes::{Bytes, BytesMut};
use hyper::Method;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{CLOSING, Incoming, Outgoing, RESPONSE, refusal};
use crate::transport::{Endpoint, Frame, Opcode, accepts_websocket};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// How many pongs wait to be sent; more pings than that have no answer.
const PONGS: usize = 16;

type Socket = TokioIo<Upgraded>;

/// Opens a WebSocket.
///
/// # Errors
/// When the server cannot be reached, or rejects the handshake.
pub(super) async fn connect(endpoint: &Endpoint) -> io::Result<Socket> {
    let headers = endpoint.upgrade_headers();
    let response = endpoint.send(Method::GET, headers, Bytes::new(), RESPONSE);
    let mut response = response.await?;
    let status = response.status().as_u16();
    if status != 101 {
        let body = super::http::body(response).await.unwrap_or_default();
        return Err(io::Error::other(refusal("the WebSocket", status, &body)));
    }
    if !accepts_websocket(response.headers()) {
        let reason = "the WebSocket handshake of the server has an invalid Sec-WebSocket-Accept";
        return Err(io::Error::other(reason));
    }
    match timeout(RESPONSE, hyper::upgrade::on(&mut response)).await {
        Ok(socket) => Ok(TokioIo::new(socket.map_err(io::Error::other)?)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Exchanges messages until either side closes the connection.
///
/// # Errors
/// When it was not the suite that has closed it first.
pub(super) async fn exchange(
    socket: Socket,
    outgoing: Outgoing,
    incoming: Incoming,
) -> Result<(), String> {
    let (reader, writer) = tokio::io::split(socket);
    let (pongs, pings) = mpsc::channel(PONGS);
    let writing = async {
        write(writer, outgoing, pings).await?;
        tokio::time::sleep(CLOSING).await;
        Ok(())
    };
    tokio::select! {
        ended = read(reader, incoming, pongs) => ended,
        ended = writing => ended,
    }
}

/// Sends messages and pongs, and a close frame after the last message.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut outgoing: Outgoing,
    mut pings: mpsc::Receiver<Bytes>,
) -> Result<(), String> {
    // Its future is not dropped with a part of a line.
    let (frames, mut queued) = mpsc::channel(1);
    let lines = async move {
        while let Some(message) = outgoing.next().await {
            let sent = frames.send(Frame::new(Opcode::TEXT, message)).await;
            if sent.is_err() {
                break;
            }
        }
        let _ = frames.send(Frame::new(Opcode::CLOSE, Bytes::new())).await;
        Ok(())
    };
    let write = async {
        loop {
            let frame = tokio::select! {
                frame = queued.recv() => frame,
                Some(payload) = pings.recv() => Some(Frame::new(Opcode::PONG, payload)),
            };
            let Some(frame) = frame else { return Ok(()) };
            let written = async {
                writer.write_all(&frame.encode()).await?;
                writer.flush().await
            };
            written
                .await
                .map_err(|error: io::Error| error.to_string())?;
        }
    };
    tokio::try_join!(lines, write).map(drop)
}

/// Passes messages on, and pings to the writer.
async fn read(
    mut reader: impl AsyncRead + Unpin,
    incoming: Incoming,
    pongs: mpsc::Sender<Bytes>,
) -> Result<(), String> {
    let mut bytes = BytesMut::new();
    // The message whose last frame has not come.
    let mut begun = BytesMut::new();
    loop {
        while let Some(frame) = Frame::decode(&mut bytes)? {
            match frame.opcode {
                Opcode::TEXT | Opcode::CONTINUATION => {
                    begun.extend_from_slice(&frame.payload);
                    if begun.len() > acp_sdk::limits::MAX_MESSAGE_BYTES {
                        return Err("a message of the server exceeds the limit".to_owned());
                    }
                    if frame.is_last && !incoming.pass(&begun.split()).await {
                        return Ok(());
                    }
                }
                Opcode::CLOSE => {
                    let code = frame.close_code().unwrap_or(1005);
                    let reason = frame.payload.get(2..).unwrap_or_default();
                    let reason = acp_sdk::text::one_line(&String::from_utf8_lossy(reason), 200);
                    return Err(format!("the server closed it with code {code}: {reason}"));
                }
                // The server sends too many without reading, if there is no place.
                Opcode::PING => drop(pongs.try_send(frame.payload)),
                // Messages are text.
                _ => {}
            }
        }
        bytes.reserve(PIECE);
        match reader.read_buf(&mut bytes).await {
            Ok(1..) => {}
            Ok(0) => return Err("it ended without a close frame".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
}
