//! Delays the response to `session/load` until the replay was received.
//!
//! The response arrives on the connection's stream and the replay on the session's, but a client
//! expects both in the order in which the agent wrote them.
//!
//! If the server supports `_acp-sdk/session/state`, the client sends that request: its response
//! arrives on the session's stream, after the replay. Otherwise the client waits until the stream
//! is idle.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::extensions::methods::SessionState;
use acp_sdk::runtime::Method as _;
use bytes::Bytes;
use tokio::time::timeout;

use super::stream::Stream;
use super::{Connection, PendingRequest};
use crate::remote::link::Received;

/// The method of probe requests, and the prefix of their ids, as JSON.
pub(super) const PROBE: &str = SessionState::NAME;
pub(super) const PROBE_ID: &str = "\"acp-client-probe-";

/// The idle time that ends the wait for a replay, and the limit of that wait.
const IDLE: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(10);

/// The same for a stream that was opened after the response: its replay has not begun yet.
const IDLE_AT_FIRST: Duration = Duration::from_millis(200);

/// The limit for opening a stream that was refused before the session was loaded.
const OPENING: Duration = Duration::from_secs(2);

/// Forwards a response after the pending events of the session's stream.
pub(super) async fn forward_after(connection: Arc<Connection>, stream: Arc<Stream>, answer: Bytes) {
    let was_open = stream.is_open();
    let caught_up = async {
        stream.opened(OPENING).await;
        if !stream.is_open() {
            return;
        }
        match connection.probe(&stream) {
            Some(probe) => {
                let came = stream.next_probe();
                let headers = connection.headers(stream.session());
                let post = super::posts::request(&connection, headers, probe);
                if connection.send(post, PROBE).await.is_ok() {
                    came.await;
                }
            }
            None if was_open => stream.idle_for(IDLE).await,
            None => stream.idle_for(IDLE_AT_FIRST).await,
        }
    };
    tokio::select! {
        // After the limit, an early response is better than none.
        _ = timeout(LIMIT, caught_up) => {}
        () = connection.end.now.cancelled() => return,
    }
    // The receiver may have been dropped.
    let _ = connection.incoming.send(Received::Message(answer)).await;
}

impl Connection {
    /// Returns a probe whose response arrives on the session's stream, if the server supports it.
    fn probe(&self, stream: &Stream) -> Option<Bytes> {
        let session = stream.session()?;
        let mut state = self.state();
        if !state.has_state {
            return None;
        }
        state.probes += 1;
        let id = format!("{PROBE_ID}{}\"", state.probes);
        // Serializing a string cannot fail.
        let name = serde_json::to_string(session).unwrap_or_default();
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{PROBE}","params":{{"sessionId":{name}}}}}"#
        );
        let pending = PendingRequest {
            method: PROBE.to_owned(),
            session: Some(session.to_owned()),
        };
        state.requests.insert(id, pending);
        Some(request.into())
    }
}
