//! What happens in a scenario, whatever carries it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp_sdk::ErrorCode;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::events;
use super::log::{Asked, Log};
use crate::clients::scripted_agent::SESSION;
use crate::wire::Party;

/// The id of the only connection.
pub(super) const CONNECTION: &str = "scenario-connection";

/// The cookie that a client has to send back.
pub(super) const COOKIE: &str = "scenario=acp-conformance";

/// The id of the only request of the agent.
pub(super) const ASKED: &str = "agent-1";

/// The most requests and messages that are written down.
const KEPT: usize = 10_000;

/// Pieces that wait for the reader of a stream.
const WAITING: usize = 4096;

/// How long the end of a client may travel.
const SETTLING: Duration = Duration::from_secs(2);

/// What a scenario is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) is_websocket: bool,
    /// Events come with much of what the format permits, byte by byte.
    pub(super) is_rough: bool,
    /// The stream of the session ends in the middle of the turn.
    pub(super) cuts: bool,
    /// The status of every request, from this method on.
    pub(super) refuses: Option<(&'static str, u16)>,
}

/// The stage of one scenario.
pub(super) struct ScriptedAgent {
    pub(super) scenario: Scenario,
    started: Instant,
    state: Mutex<State>,
    changed: Notify,
}

/// What is sent on a stream.
pub(super) enum Piece {
    Bytes(Bytes),
    /// The stream ends.
    End,
}

#[derive(Default)]
struct State {
    record: String,
    log: Log,
    /// The stream of the connection, and that of the session.
    streams: [Option<mpsc::Sender<Piece>>; 2],
    /// The events of both, with their numbers.
    events: [Vec<(u64, Value)>; 2],
    /// How many of them were written.
    written: [usize; 2],
    /// The request for the turn.
    prompt: Option<Value>,
    /// The turn waits for its stream to be opened again.
    is_cut: bool,
    refusing: Option<u16>,
    ended: bool,
}

/// Which stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Connection = 0,
    Session = 1,
}

impl ScriptedAgent {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            started: Instant::now(),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was written down.
    pub(super) fn finish(&self) -> (String, Log) {
        let mut state = self.state();
        (
            std::mem::take(&mut state.record),
            std::mem::take(&mut state.log),
        )
    }

    /// Waits a little for the end of the connection, unless it was refused.
    pub(super) async fn settle(&self) {
        if self.scenario.refuses.is_some() {
            return;
        }
        let ended = async {
            loop {
                let changed = self.changed.notified();
                if self.state().ended {
                    return;
                }
                changed.await;
            }
        };
        // A client that does not end its connection is judged by that.
        let _ = tokio::time::timeout(SETTLING, ended).await;
    }

    /// Notes the end of the connection.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.streams = [None, None];
        drop(state);
        self.changed.notify_waiters();
    }

    /// Writes a request down.
    pub(super) fn note(&self, asked: Asked) {
        let mut state = self.state();
        if state.log.requests.len() < KEPT {
            state.log.requests.push(asked);
        }
    }

    /// Changes the notes on WebSocket frames.
    pub(super) fn note_frames(&self, change: impl FnOnce(&mut Log)) {
        let mut state = self.state();
        if state.log.messages.len() + state.log.faults.len() + state.log.pongs.len() < KEPT {
            change(&mut state.log);
        }
    }

    /// The status that a request is refused with, by the scenario.
    pub(super) fn refusal(&self, message: &Value) -> Option<u16> {
        let mut state = self.state();
        if let Some((method, status)) = self.scenario.refuses
            && message["method"] == method
        {
            state.refusing = Some(status);
            // A connection that is gone has no streams.
            state.streams = [None, None];
        }
        state.refusing
    }

    /// Opens a stream, and writes what it has after this event.
    pub(super) fn open(&self, which: Which, after: Option<u64>) -> mpsc::Receiver<Piece> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut state = self.state();
        if let Some(place) = state.written.get_mut(which as usize)
            && let Some(after) = after
        {
            *place = usize::try_from(after).unwrap_or(usize::MAX);
        }
        if let Some(stream) = state.streams.get_mut(which as usize) {
            *stream = Some(sender);
        }
        let goes_on = which == Which::Session && std::mem::take(&mut state.is_cut);
        drop(state);
        self.flush(which);
        if goes_on {
            self.ask();
        }
        receiver
    }

    /// Receives a message of the client.
    pub(super) fn receive(&self, message: &Value) {
        self.record(Party::Client, message);
        let answer = |result: Value| {
            let id = id_of(message).cloned().unwrap_or_default();
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        };
        match (message["method"].as_str(), id_of(message)) {
            (Some("session/new"), Some(_)) => {
                self.send(Which::Connection, answer(json!({"sessionId": SESSION})));
            }
            (Some("session/prompt"), Some(_)) => {
                self.state().prompt = Some(message.clone());
                self.update("Grüße, \u{1f600}");
                match self.scenario.cuts {
                    true => self.cut(),
                    false => self.ask(),
                }
            }
            (Some(_), Some(id)) => {
                let error = json!({"code": ErrorCode::METHOD_NOT_FOUND, "message": "the scenario has no such method"});
                let is_of_session = message["params"]["sessionId"].is_string();
                let which = if is_of_session {
                    Which::Session
                } else {
                    Which::Connection
                };
                self.send(which, json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            (None, Some(id)) if *id == ASKED => self.finish_turn(),
            _ => {}
        }
    }

    /// The answer to `initialize`.
    pub(super) fn initialize(&self, message: &Value) -> Value {
        self.record(Party::Client, message);
        let id = id_of(message).cloned().unwrap_or_default();
        let result = json!({
            "protocolVersion": 1,
            "agentCapabilities": {},
            "agentInfo": {"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.record(Party::Agent, &answer);
        answer
    }

    fn update(&self, text: &str) {
        let update = json!({
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text},
        });
        let params = json!({"sessionId": SESSION, "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.send(Which::Session, message);
    }

    /// Asks for a permission, whose answer shows that all has arrived so far.
    fn ask(&self) {
        let call = json!({"toolCallId": "call-1", "title": "Try something", "kind": "read"});
        let options = json!([
            {"optionId": "o-1", "name": "No", "kind": "reject_once"},
            {"optionId": "o-2", "name": "Yes", "kind": "allow_once"},
        ]);
        let params = json!({"sessionId": SESSION, "toolCall": call, "options": options});
        let method = "session/request_permission";
        let message = json!({"jsonrpc": "2.0", "id": ASKED, "method": method, "params": params});
        self.send(Which::Session, message);
    }

    fn finish_turn(&self) {
        let Some(prompt) = self.state().prompt.take() else {
            return;
        };
        self.update("the scenario is over");
        let id = prompt.get("id").cloned().unwrap_or_default();
        let result = json!({"stopReason": "end_turn"});
        self.send(
            Which::Session,
            json!({"jsonrpc": "2.0", "id": id, "result": result}),
        );
    }

    fn cut(&self) {
        let mut state = self.state();
        state.is_cut = true;
        if let Some(stream) = state.streams.get_mut(Which::Session as usize)
            && let Some(stream) = stream.take()
        {
            // The stream has room: a scenario is short.
            let _ = stream.try_send(Piece::End);
        }
    }

    fn send(&self, which: Which, message: Value) {
        self.record(Party::Agent, &message);
        let mut state = self.state();
        if let Some(events) = state.events.get_mut(which as usize) {
            let number = events.len() as u64 + 1;
            events.push((number, message));
        }
        drop(state);
        self.flush(which);
    }

    /// Writes what the stream has not carried yet, if it is open.
    fn flush(&self, which: Which) {
        let mut state = self.state();
        let State {
            streams,
            events,
            written,
            ..
        } = &mut *state;
        let at = which as usize;
        let (Some(Some(stream)), Some(events), Some(written)) =
            (streams.get(at), events.get(at), written.get_mut(at))
        else {
            return;
        };
        for (number, message) in events.iter().skip(*written) {
            let bytes = match self.scenario.is_websocket {
                true => message.to_string().into_bytes(),
                false => events::encode(*number, message, self.scenario.is_rough),
            };
            // A client that does not read has no use for more.
            let _ = stream.try_send(Piece::Bytes(bytes.into()));
        }
        *written = events.len();
    }

    fn record(&self, from: Party, message: &Value) {
        let at = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let line = json!({"from": from, "at": at, "value": message}).to_string();
        let mut state = self.state();
        state.record.push_str(&line);
        state.record.push('\n');
    }
}

/// The id of a message as it is compared.
fn id_of(message: &Value) -> Option<&Value> {
    message.get("id").filter(|id| !id.is_null())
}
