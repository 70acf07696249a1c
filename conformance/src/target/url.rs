//! An agent behind a URL, as a pair of sockets on which messages are lines.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use acp_client::remote::{RawReceiver, RawSender, Received, Refused, RemoteAgent, connect_raw};
use acp_sdk::ErrorCode;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::Link;
use super::running::Behind;
use super::within::{Input, runtime};
use crate::{Error, Result};

/// Connects to an agent.
pub(super) fn start(agent: &RemoteAgent, filter: Option<Behind>) -> Result<Link> {
    let failed = |source| Error::Start {
        command: agent.url(),
        source,
    };
    let runtime = runtime().map_err(failed)?;
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    theirs.set_nonblocking(true).map_err(failed)?;
    let output = ours.try_clone().map_err(failed)?;
    let connected = runtime.block_on(connect_raw(agent));
    let (sender, receiver) = connected.map_err(|error| failed(std::io::Error::other(error)))?;
    let _context = runtime.enter();
    let theirs = tokio::net::UnixStream::from_std(theirs).map_err(failed)?;
    let (reader, writer) = theirs.into_split();
    let ended = Arc::new(Mutex::new(String::new()));
    runtime.spawn(send(reader, sender));
    runtime.spawn(receive(receiver, writer, ended.clone()));
    Ok(Link::new(output, Input(ours), None, filter).explained_by(ended))
}

/// Sends each line as a message. The end of the lines closes the connection.
async fn send(reader: OwnedReadHalf, sender: RawSender) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        match reader.read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        let message = line.strip_suffix(b"\n").unwrap_or(&line);
        // An empty line is no message.
        if message.trim_ascii().is_empty() {
            continue;
        }
        if sender.send(Bytes::copy_from_slice(message)).await.is_err() {
            return;
        }
    }
}

/// Writes each message as a line, and why they have ended.
async fn receive(mut receiver: RawReceiver, mut writer: OwnedWriteHalf, ended: Arc<Mutex<String>>) {
    loop {
        let line = match receiver.receive().await {
            Ok(Some(Received::Message(message))) => line(&message),
            Ok(Some(Received::Refused(refused))) => match answer(&refused) {
                Some(line) => line,
                None => continue,
            },
            Ok(Some(_)) => continue,
            Ok(None) => break,
            Err(error) => {
                let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                *ended = error.to_string();
                break;
            }
        };
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
    // The suite sees the end of the output; it may be gone.
    let _ = writer.shutdown().await;
}

/// A message on one line: line feeds stand between its tokens only.
fn line(message: &[u8]) -> Vec<u8> {
    let spaced = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
    message.iter().map(spaced).chain([b'\n']).collect()
}

/// What a refusal is among messages: over HTTP, a status is the answer to a request that is not
/// passed on to the agent.
fn answer(refused: &Refused) -> Option<Vec<u8>> {
    let id = refused.request.as_deref();
    let id: Option<Value> = id.and_then(|id| serde_json::from_str(id).ok());
    let mut answer = match &refused.body {
        Some(body) => serde_json::from_slice(body).ok()?,
        None => {
            let error =
                json!({"code": ErrorCode::INVALID_REQUEST, "message": refused.error.to_string()});
            id.as_ref()?;
            json!({"jsonrpc": "2.0", "id": null, "error": error})
        }
    };
    // The response to a POST is the answer to its request, whether or not it repeats the id.
    if let Some(id) = id {
        answer["id"] = id;
    }
    Some(line(answer.to_string().as_bytes()))
}
