//! The answer to `session/load` comes on the connection's stream and the replay on the session's:
//! here the answer waits for the replay, because a client expects them in the order in which the
//! agent wrote them.
//!
//! A server that answers `_acp-sdk/session/state` is asked it: the answer comes on the session's
//! stream, behind the replay. Others are given until the stream is silent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::stream::Stream;
use super::{Asked, Connection};
use crate::remote::link::Received;

/// The method that is asked, and how the ids of such requests begin, as JSON.
pub(super) const PROBE: &str = "_acp-sdk/session/state";
pub(super) const PROBE_ID: &str = "\"acp-client-probe-";

/// How long a stream must be silent, and how long that is waited for.
const SILENCE: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(10);

/// Passes an answer on after what the session's stream has so far.
pub(super) async fn pass_on_after(connection: Arc<Connection>, stream: Arc<Stream>, answer: Bytes) {
    let probe = connection.probe(&stream);
    let caught_up = async {
        match probe {
            Some(probe) => {
                let came = stream.next_probe();
                let headers = connection.headers(stream.session());
                let post = super::posts::request(&connection, headers, probe);
                if connection.access.send(post).await.is_ok() {
                    came.await;
                }
            }
            None => stream.silent_for(SILENCE).await,
        }
    };
    tokio::select! {
        // An answer that comes early is better than none.
        _ = timeout(LIMIT, caught_up) => {}
        () = connection.end.now.cancelled() => return,
    }
    // Nobody may be receiving any more.
    let _ = connection.incoming.send(Received::Message(answer)).await;
}

impl Connection {
    /// Returns a request whose answer comes on the session's stream, if the server has one.
    fn probe(&self, stream: &Stream) -> Option<Bytes> {
        let session = stream.session()?;
        let mut state = self.state();
        if !state.has_state {
            return None;
        }
        state.probes += 1;
        let id = format!("{PROBE_ID}{}\"", state.probes);
        // A text always has a JSON form.
        let name = serde_json::to_string(session).unwrap_or_default();
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{PROBE}","params":{{"sessionId":{name}}}}}"#
        );
        let asked = Asked {
            method: PROBE.to_owned(),
            session: Some(session.to_owned()),
        };
        state.requests.insert(id, asked);
        Some(request.into())
    }
}
