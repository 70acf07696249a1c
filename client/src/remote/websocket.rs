//! The WebSocket transport: one text frame per message.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::http::{Access, Failure};
use super::link::{End, Endpoints, Received};
use super::{RemoteAgent, RemoteError};
use crate::reconnect::queue::{Receiver, Sender};

/// Timeout of the closing handshake.
const CLOSING: Duration = Duration::from_secs(2);

/// Size of the read buffer. It is zeroed before each read, and tungstenite's default is 128 KiB.
const READ_BUFFER: usize = 8 << 10;

type Socket = WebSocketStream<Upgraded>;

/// Opens a WebSocket connection.
///
/// # Errors
///
/// Fails when the server cannot be reached, or rejects the WebSocket handshake.
pub(super) async fn open(
    agent: &RemoteAgent,
    access: &Access,
    endpoints: Endpoints,
) -> Result<(), RemoteError> {
    let url = access.url();
    let socket = connect(agent, access).await?;
    let (sink, stream) = socket.split();
    let idle = agent.limits.idle;
    let Endpoints {
        outgoing,
        incoming,
        end,
    } = endpoints;
    tokio::spawn(async move {
        let reading = read(stream, &incoming, idle, &end, &url);
        let writing = write(sink, outgoing, idle, &end, &url);
        let closed = async {
            writing.await;
            // Time for the server's last messages and its close frame.
            tokio::time::sleep(CLOSING).await;
        };
        tokio::select! {
            () = reading => {}
            () = closed => {}
            () = end.now.cancelled() => {}
        }
        end.now.cancel();
        drop(incoming);
        end.done.cancel();
    });
    Ok(())
}

/// Performs the opening handshake as an HTTP request.
async fn connect(agent: &RemoteAgent, access: &Access) -> Result<Socket, RemoteError> {
    let key = generate_key();
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    if let Ok(key) = HeaderValue::from_str(&key) {
        headers.insert(SEC_WEBSOCKET_KEY, key);
    }
    let response = access.send(access.request(Method::GET, headers)).await;
    let response = response.map_err(|failure| access.error(&failure, "the WebSocket"))?;
    let refused = |reason: &str| RemoteError::Protocol {
        url: access.url(),
        reason: reason.to_owned(),
    };
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused("the server does not support WebSocket here"));
    }
    let accept = response.headers().get(SEC_WEBSOCKET_ACCEPT);
    if accept.is_none_or(|accept| accept.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err(refused(
            "its WebSocket handshake has an invalid Sec-WebSocket-Accept",
        ));
    }
    let upgraded = response.upgrade().await;
    let upgraded = upgraded.map_err(|error| {
        let failure = Failure::NoResponse(super::http::reason(error));
        access.error(&failure, "the WebSocket")
    })?;
    let bytes = agent.limits.message_bytes;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(bytes))
        .max_frame_size(Some(bytes));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

async fn read(
    mut stream: SplitStream<Socket>,
    incoming: &Sender<Received>,
    idle: Duration,
    end: &Arc<End>,
    url: &str,
) {
    let lost = |reason: String| {
        end.fail(RemoteError::Lost {
            url: url.to_owned(),
            reason,
        });
    };
    loop {
        let Ok(next) = timeout(idle, stream.next()).await else {
            return lost(format!(
                "pings were not answered for {} s",
                idle.as_secs_f32()
            ));
        };
        let message = match next {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Close(frame))) => {
                let reason = frame.map(|frame| match frame.reason.as_str() {
                    "" => format!("the server closed it with code {}", frame.code),
                    reason => format!("the server closed it with code {}: {reason}", frame.code),
                });
                return lost(reason.unwrap_or_else(|| "the server closed it".to_owned()));
            }
            // The library answers pings; binary messages are ignored.
            Some(Ok(_)) => continue,
            Some(Err(error)) => return lost(describe(&error)),
            None => return lost("it ended without a close frame".to_owned()),
        };
        if !incoming.send(Received::Message(message)).await {
            return;
        }
    }
}

/// Sends messages and pings, and a close frame after the last message.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outgoing: Receiver<Bytes>,
    idle: Duration,
    end: &Arc<End>,
    url: &str,
) {
    let mut pings = interval((idle / 3).max(Duration::from_millis(1)));
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings.reset();
    loop {
        let message = tokio::select! {
            message = outgoing.receive() => message.map(text),
            _ = pings.tick() => Some(Message::Ping(Bytes::new())),
        };
        let is_last = message.is_none();
        let sent = sink.send(message.unwrap_or(Message::Close(None))).await;
        match sent {
            Ok(()) if is_last => return,
            Ok(()) => {}
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return,
            Err(error) => {
                return end.fail(RemoteError::Lost {
                    url: url.to_owned(),
                    reason: describe(&error),
                });
            }
        }
    }
}

/// Returns a text frame. The bytes are not checked, so that tests can send invalid UTF-8.
fn text(message: Bytes) -> Message {
    Message::Frame(Frame::message(message, OpCode::Data(Data::Text), true))
}

fn describe(error: &Error) -> String {
    match error {
        Error::Capacity(error) => format!("a message exceeds the limit: {error}"),
        Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}
