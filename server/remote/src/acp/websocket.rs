//! A connection over WebSocket: each text frame is a message.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use acp_sdk::{MessageTransport, Transport};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderValue;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::time::{Interval, MissedTickBehavior};

use super::CONNECTION_ID;
use super::connections::HttpConnections;
use super::envelope::Incoming;
use super::failure::Failure;
use crate::caller::Caller;

/// Bytes of frames that are written together; what is less is written when nothing follows.
const WRITE_BUFFER: usize = 32 << 10;

/// Bytes that are read at once. All of the buffer is set to zero before each read, even before one that finds
/// nothing, so tungstenite's default of 128 KiB costs more than everything else that an update needs.
const READ_BUFFER: usize = 8 << 10;

/// Accepts the upgrade. The connection lives as long as the socket.
pub(super) fn open(
    connections: &Arc<HttpConnections>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    let place = connections
        .place(&caller)
        .ok_or(Failure::TOO_MANY_CONNECTIONS)?;
    let id = acp_server::internal::connection_id().map_err(|_| Failure::AGENT_FAILED)?;
    let settings = &connections.settings;
    let connections = connections.clone();
    let upgrade = upgrade
        .max_message_size(settings.message_bytes)
        .max_frame_size(settings.message_bytes)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(settings.waiting_bytes + settings.message_bytes);
    let mut response = upgrade.on_upgrade(async move |socket| {
        serve(&connections, caller, socket).await;
        drop(place);
    });
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(CONNECTION_ID, id);
    }
    Ok(response)
}

async fn serve(connections: &HttpConnections, caller: Caller, mut socket: WebSocket) {
    let first = tokio::time::timeout(connections.settings.write_timeout, first(&mut socket));
    let first = match first.await {
        Ok(Ok(Some(first))) => first,
        Ok(Err(close)) => {
            // The socket ends in any case.
            let _ = socket.send(Message::Close(Some(close))).await;
            return;
        }
        _ => return,
    };
    let mut alive = tokio::time::interval(connections.settings.keep_alive);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    alive.reset();
    let transport = Socket {
        socket,
        first: Some(first),
        alive,
        silent: 0,
        ended: false,
    };
    let builder = connections
        .builder()
        .drain_timeout(connections.settings.write_timeout);
    let mut running =
        connections
            .server
            .attach_as(builder, Transport::messages(transport), caller.access);
    // However it ends, the sessions go on.
    tokio::select! {
        _ = running.closed() => {}
        () = caller.ended.cancelled() => {
            let _ = running.shutdown().await;
        }
        () = connections.settings.stop.cancelled() => {
            let _ = running.shutdown().await;
        }
    }
}

/// Returns the first message, which must be `initialize`.
async fn first(socket: &mut WebSocket) -> Result<Option<Bytes>, CloseFrame> {
    while let Some(message) = socket.next().await {
        let Ok(message) = message else {
            return Ok(None);
        };
        let text = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return Ok(None),
            _ => continue,
        };
        let parsed = Incoming::parse(&text);
        if parsed.is_ok_and(|parsed| parsed.method.as_deref() == Some("initialize")) {
            return Ok(Some(text));
        }
        return Err(CloseFrame {
            code: close_code::PROTOCOL,
            reason: Utf8Bytes::from_static("the first message must be initialize"),
        });
    }
    Ok(None)
}

struct Socket {
    socket: WebSocket,
    /// The message that was read to check it.
    first: Option<Bytes>,
    alive: Interval,
    /// Signs of life without an answer.
    silent: u32,
    ended: bool,
}

impl Socket {
    fn socket(self: Pin<&mut Self>) -> Pin<&mut WebSocket> {
        Pin::new(&mut self.get_mut().socket)
    }

    /// Sends pings to a silent peer. The second one without an answer ends the connection.
    fn poll_alive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.alive.poll_tick(cx));
            if self.silent >= 2 {
                let reason = "the client does not answer pings";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)));
            }
            self.silent += 1;
            // A socket that is not ready has something to send, which is a sign of life too.
            if let Poll::Ready(ready) = self.socket.poll_ready_unpin(cx) {
                ready.map_err(io::Error::other)?;
                let ping = Message::Ping(Bytes::new());
                self.socket
                    .start_send_unpin(ping)
                    .map_err(io::Error::other)?;
                if let Poll::Ready(Err(error)) = self.socket.poll_flush_unpin(cx) {
                    return Poll::Ready(Err(io::Error::other(error)));
                }
            }
        }
    }
}

impl MessageTransport for Socket {
    fn poll_receive(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        loop {
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            let Poll::Ready(next) = self.as_mut().socket().poll_next(cx) else {
                return self.poll_alive(cx).map(|alive| alive.map(|()| None));
            };
            self.silent = 0;
            match next {
                Some(Ok(Message::Text(text))) => return Poll::Ready(Ok(Some(text.into()))),
                None | Some(Ok(Message::Close(_))) => self.ended = true,
                // Binary messages are ignored; pings are answered below.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            }
        }
    }

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_ready(cx).map_err(io::Error::other)
    }

    fn start_send(self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        let text = Utf8Bytes::try_from(message).map_err(io::Error::other)?;
        let sent = self.socket().start_send(Message::Text(text));
        sent.map_err(io::Error::other)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_flush(cx).map_err(io::Error::other)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_close(cx).map_err(io::Error::other)
    }
}
