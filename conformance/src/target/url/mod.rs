//! An agent behind a URL, as a pair of sockets on which messages are lines.
//!
//! The client is plain: it opens nothing again, sends nothing again, and does what the proposal of the
//! transport says and no more. What real servers do besides is named where it is accepted.

mod http;
mod stream;
mod websocket;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::Link;
use super::running::Behind;
use super::within::{runtime, sockets};
use crate::transport::Endpoint;
use crate::{Error, Result};

/// How many messages of the agent wait to be read.
const WAITING: usize = 64;

/// How long the response to a request may take.
const RESPONSE: Duration = Duration::from_secs(60);

/// How long the server has for its last messages, once the suite has closed the connection.
const CLOSING: Duration = Duration::from_secs(2);

/// Connects to an agent.
pub(super) fn start(endpoint: &Endpoint, filter: Option<Behind>) -> Result<Link> {
    let failed = Error::starting(endpoint.url());
    let runtime = runtime().map_err(failed)?;
    let socket = match endpoint.is_websocket() {
        true => Some(runtime.block_on(websocket::connect(endpoint))),
        false => None,
    };
    let socket = socket.transpose().map_err(failed)?;
    let (output, input, (reader, writer)) = sockets(runtime).map_err(failed)?;
    let (sender, messages) = mpsc::channel(WAITING);
    let incoming = Incoming(sender);
    let outgoing = Outgoing(BufReader::new(reader));
    let ended = Arc::new(Mutex::new(String::new()));
    let end = ended.clone();
    let endpoint = endpoint.clone();
    runtime.spawn(async move {
        let ended = match socket {
            Some(socket) => websocket::exchange(socket, outgoing, incoming).await,
            None => http::exchange(endpoint, outgoing, incoming).await,
        };
        if let Err(reason) = ended {
            *end.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        }
    });
    runtime.spawn(write(messages, writer));
    Ok(Link::new(output, input, None, filter).explained_by(ended))
}

/// The messages of the suite.
struct Outgoing(BufReader<OwnedReadHalf>);

impl Outgoing {
    /// Returns the next message; `None` at the end.
    ///
    /// Nothing else may be done with it while this waits: what it has read would be lost.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let mut line = Vec::new();
            match self.0.read_until(b'\n', &mut line).await {
                Ok(1..) => {}
                _ => return None,
            }
            line.pop_if(|last| *last == b'\n');
            // An empty line is no message.
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }
}

/// Where the messages of the agent go.
#[derive(Clone, Debug)]
struct Incoming(mpsc::Sender<Vec<u8>>);

impl Incoming {
    /// Passes a message on; whether anybody takes it.
    async fn pass(&self, message: &[u8]) -> bool {
        // On one line: line feeds stand between the tokens of JSON only.
        let spaced = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
        let line = message.iter().map(spaced).chain([b'\n']).collect();
        self.0.send(line).await.is_ok()
    }
}

/// Writes each message as a line, until nobody sends any more.
async fn write(mut messages: mpsc::Receiver<Vec<u8>>, mut writer: OwnedWriteHalf) {
    while let Some(line) = messages.recv().await {
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
    // The suite sees the end of the output; it may be gone.
    let _ = writer.shutdown().await;
}

/// Says that the server has answered a request with another status than one of success.
fn refusal(what: &str, status: u16, body: &[u8]) -> String {
    let shown = acp_sdk::text::one_line(&String::from_utf8_lossy(body), 200);
    let shown = match shown.is_empty() {
        true => shown,
        false => format!(" ({shown})"),
    };
    let remedy = match status {
        401 => "; the token is missing or wrong: pass the server's token",
        403 => "; the server rejects this host, origin or token",
        404 => "; check the path of the URL, which is /acp on most servers",
        301 | 302 | 307 | 308 => "; redirects are not followed, use the final URL",
        _ => "",
    };
    format!("the server refused {what} with status {status}{shown}{remedy}")
}
