//! A connection over WebSocket: each text frame is a message.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use acp_sdk::MessageTransport;
use acp_sdk::envelope::Envelope;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use super::CONNECTION_ID;
use super::arriving::Arriving;
use super::connections::HttpConnections;
use super::failure::Failure;
use crate::caller::Caller;

/// Bytes of frames that are written together; what is less is written when nothing follows.
const WRITE_BUFFER: usize = 32 << 10;

/// Bytes that are read at once. All of the buffer is set to zero before each read, even before one that finds
/// nothing, so tungstenite's default of 128 KiB costs more than everything else that an update needs.
const READ_BUFFER: usize = 8 << 10;

/// The least bytes a second at which a client is expected to take what lies between it and the server:
/// the buffers of two systems, and at most one message.
const SLOWEST_READER: u64 = 16 << 10;

type WebSocket = WebSocketStream<Arriving<TokioIo<Upgraded>>>;

/// Accepts the upgrade of a request that was checked. The connection lives as long as the socket.
pub(super) fn open(
    connections: &Arc<HttpConnections>,
    caller: Caller,
    upgrade: OnUpgrade,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let place = connections.place(&caller)?;
    let id = acp_server::internal::connection_id().map_err(|_| Failure::AGENT_FAILED)?;
    let settings = &connections.settings;
    let config = WebSocketConfig::default()
        .max_message_size(Some(settings.message_bytes))
        .max_frame_size(Some(settings.message_bytes))
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(settings.waiting_bytes + settings.message_bytes);
    let connections = connections.clone();
    tokio::spawn(async move {
        // The client may be gone.
        if let Ok(upgraded) = upgrade.await {
            let budget = connections.settings.bodies.clone();
            let stream = Arriving::new(TokioIo::new(upgraded), budget, caller.holder);
            let opened = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config));
            serve(&connections, caller, opened.await).await;
        }
        drop(place);
    });
    let mut response = match headers.get(header::SEC_WEBSOCKET_KEY) {
        Some(key) => (
            StatusCode::SWITCHING_PROTOCOLS,
            [
                (header::CONNECTION, "upgrade".to_owned()),
                (header::UPGRADE, "websocket".to_owned()),
                (
                    header::SEC_WEBSOCKET_ACCEPT,
                    derive_accept_key(key.as_bytes()),
                ),
            ],
        )
            .into_response(),
        // Over HTTP/2 any success accepts.
        None => StatusCode::OK.into_response(),
    };
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
        ping_due: false,
        is_blocked: false,
        sent: 0,
        confirmed: 0,
        ended: false,
        revoked: caller.ended.clone(),
        is_closing: false,
    };
    let transport = connections.attached(transport, &caller, "acp/websocket", None);
    let builder = connections
        .builder()
        .drain_timeout(connections.settings.write_timeout);
    let mut running =
        connections
            .server
            .attach_role(builder, transport, caller.role("acp/websocket"));
    let mut leases = connections.server.leases_lost();
    // However it ends, the sessions go on, here or on another node.
    tokio::select! {
        Ok(()) = leases.changed() => {
            let _ = running.shutdown().await;
        }
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
        arrived(socket, &message);
        let text = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return Ok(None),
            _ => continue,
        };
        if Envelope::read(&text).is_initialize() {
            return Ok(Some(text));
        }
        return Err(CloseFrame {
            code: CloseCode::Protocol,
            reason: Utf8Bytes::from_static("the first message must be initialize"),
        });
    }
    Ok(None)
}

/// Gives back the room of what has arrived.
fn arrived(socket: &mut WebSocket, message: &Message) {
    let stream = socket.get_mut();
    match message {
        Message::Text(_) | Message::Binary(_) => stream.message_arrived(),
        control => stream.control_arrived(control.len()),
    }
}

struct Socket {
    socket: WebSocket,
    /// The message that was read to check it.
    first: Option<Bytes>,
    alive: Interval,
    /// Intervals in which the peer sent nothing, and took nothing of what waits for it.
    silent: u64,
    /// A ping that has no room yet. It goes before the next message.
    ping_due: bool,
    /// Whether bytes wait for the peer.
    is_blocked: bool,
    /// Bytes of all messages so far, and of those that the peer has read. A ping has the former, so its
    /// answer is the latter.
    sent: u64,
    confirmed: u64,
    /// The client has closed its side.
    ended: bool,
    /// The client's token is not valid any more.
    revoked: CancellationToken,
    /// The reason of this side's close was sent.
    is_closing: bool,
}

impl Socket {
    fn socket(self: Pin<&mut Self>) -> Pin<&mut WebSocket> {
        Pin::new(&mut self.get_mut().socket)
    }

    /// Returns why this side closes the connection. The sessions go on: unless the token was revoked, the
    /// client connects again, to this server or another one.
    fn reason(&self) -> CloseFrame {
        let (code, reason) = match self.revoked.is_cancelled() {
            true => (CloseCode::Policy, "the token is not valid any more"),
            false => (CloseCode::Restart, "connect again"),
        };
        CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        }
    }

    /// Sends pings to a silent peer. The second one without an answer ends the connection, later if the
    /// peer has much to read before it.
    fn poll_alive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.alive.poll_tick(cx));
            let reading = Duration::from_secs((self.sent - self.confirmed) / SLOWEST_READER);
            let reading = reading.as_nanos() / self.alive.period().as_nanos().max(1);
            if u128::from(self.silent) >= 2 + reading {
                let reason = "the client does not answer pings";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)));
            }
            self.silent += 1;
            self.ping_due = true;
            if let Poll::Ready(ready) = self.poll_room(cx) {
                ready?;
                if let Poll::Ready(flushed) = self.poll_written(cx) {
                    flushed?;
                }
            }
        }
    }

    /// Waits for room, and gives it to a ping first.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let ready = self.socket.poll_ready_unpin(cx);
            ready!(self.progress(ready))?;
            if !std::mem::take(&mut self.ping_due) {
                return Poll::Ready(Ok(()));
            }
            let ping = Message::Ping(Bytes::copy_from_slice(&self.sent.to_be_bytes()));
            self.socket
                .start_send_unpin(ping)
                .map_err(io::Error::other)?;
        }
    }

    /// The peer has answered a ping. An answer to nothing of ours confirms nothing.
    fn confirm(&mut self, sent: &[u8]) {
        let sent = sent.try_into().map_or(0, u64::from_be_bytes);
        if sent <= self.sent {
            self.confirmed = self.confirmed.max(sent);
        }
    }

    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.socket.poll_flush_unpin(cx);
        self.progress(flushed)
    }

    /// Bytes that the peer takes after a wait are a sign of life.
    fn progress(&mut self, written: Poll<tungstenite::Result<()>>) -> Poll<io::Result<()>> {
        if std::mem::replace(&mut self.is_blocked, written.is_pending()) && written.is_ready() {
            self.silent = 0;
        }
        written.map_err(io::Error::other)
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
            if let Some(Ok(message)) = &next {
                arrived(&mut self.socket, message);
            }
            match next {
                Some(Ok(Message::Text(text))) => return Poll::Ready(Ok(Some(text.into()))),
                None | Some(Ok(Message::Close(_))) => self.ended = true,
                Some(Ok(Message::Pong(sent))) => self.confirm(&sent),
                // Binary messages are ignored; pings are answered below.
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    if self.socket.get_ref().is_refused() {
                        let close = CloseFrame {
                            code: CloseCode::Again,
                            reason: Utf8Bytes::from_static("too_many_bytes"),
                        };
                        // The connection ends in any case.
                        let _ = self.socket.start_send_unpin(Message::Close(Some(close)));
                        let _ = self.socket.poll_flush_unpin(cx);
                    }
                    return Poll::Ready(Err(io::Error::other(error)));
                }
            }
        }
    }

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_room(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        self.sent += message.len() as u64;
        let text = Utf8Bytes::try_from(message).map_err(io::Error::other)?;
        let sent = self.socket().start_send(Message::Text(text));
        sent.map_err(io::Error::other)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_written(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ended && !self.is_closing {
            ready!(self.socket.poll_ready_unpin(cx)).map_err(io::Error::other)?;
            self.is_closing = true;
            let close = Message::Close(Some(self.reason()));
            self.socket
                .start_send_unpin(close)
                .map_err(io::Error::other)?;
        }
        self.socket().poll_close(cx).map_err(io::Error::other)
    }
}
