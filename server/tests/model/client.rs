//! A client of raw messages: it checks what it is sent when it arrives, and can stop reading.

mod receive;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use acp_sdk::v1::SessionId;
use acp_sdk::{ConnectionBuilder, RunningConnection};
use acp_server::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, SimplexStream, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::view::{Join, View};
use crate::world::{Prompt, Steer, World};

/// The protocol version that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// A request of the client that is not answered.
enum Sent {
    Initialize,
    Join(SessionId),
    Prompt(usize),
    Steer(usize),
    Close(SessionId),
    Mode(SessionId, &'static str),
    State(SessionId),
    Other,
}

/// A question that the client was asked.
pub struct Asked {
    pub id: Value,
    pub session: SessionId,
    pub question: u64,
    pub answered: bool,
    pub cancelled: bool,
}

pub struct State {
    pub views: BTreeMap<SessionId, View>,
    sent: BTreeMap<u64, Sent>,
    last_request: u64,
    pub asked: Vec<Asked>,
    dice: Dice,
    /// The last events of the sessions that the client is attached to, as the server says.
    pub states: BTreeMap<SessionId, Option<u64>>,
    pub closed: bool,
}

struct Inner {
    name: String,
    version: Version,
    world: Arc<World>,
    state: Mutex<State>,
    /// Held while a message is handled.
    handling: Mutex<()>,
    out: mpsc::UnboundedSender<String>,
}

pub struct Client {
    inner: Arc<Inner>,
    pub reading: watch::Sender<bool>,
    prompts: u64,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    connection: RunningConnection,
}

/// How a client goes.
#[derive(Clone, Copy, Debug)]
pub enum Leaving {
    /// Its process ends: nothing that is on its way arrives.
    Dropped,
    /// It closes its side, and reads on.
    EndsInput,
    /// The server closes the connection.
    Closed,
}

impl Client {
    pub fn new(
        world: &Arc<World>,
        server: &Server,
        (name, version): (String, Version),
        mut dice: Dice,
    ) -> Self {
        // Little room, so that a client that does not read is noticed.
        let (mut arriving, server_writes) = tokio::io::simplex(256 << dice.roll(6));
        let (server_reads, writing) = tokio::io::simplex(64 << 10);
        let builder = ConnectionBuilder::new().high_water_bytes(256 << dice.roll(6));
        let connection = server.attach_with(builder, (server_reads, server_writes));
        let (out, lines) = mpsc::unbounded_channel();
        let (reading, may_read) = watch::channel(true);
        let inner = Arc::new(Inner {
            name,
            version,
            world: world.clone(),
            state: Mutex::new(State {
                views: BTreeMap::new(),
                sent: BTreeMap::new(),
                last_request: 0,
                asked: Vec::new(),
                dice,
                states: BTreeMap::new(),
                closed: false,
            }),
            handling: Mutex::new(()),
            out,
        });
        let reader = inner.clone();
        let reader = tokio::spawn(async move {
            let mut may_read = may_read;
            let (mut bytes, mut unread) = ([0; 1024], Vec::new());
            loop {
                // The sender may be gone with the client.
                let _ = may_read.wait_for(|may_read| *may_read).await;
                match arriving.read(&mut bytes).await {
                    Ok(count @ 1..) => unread.extend_from_slice(&bytes[..count]),
                    Ok(0) | Err(_) => break,
                }
                while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = unread.drain(..=end).collect();
                    reader.received(std::str::from_utf8(&line).unwrap().trim_end());
                }
            }
            reader.lost();
        });
        let writer = tokio::spawn(write(lines, writing));
        let client = Self {
            inner,
            reading,
            prompts: 0,
            reader,
            writer,
            connection,
        };
        let params = match version {
            Version::V1 => json!({ "protocolVersion": 1, "clientCapabilities": {} }),
            Version::V2 => json!({
                "protocolVersion": 2,
                "info": { "name": "model", "version": "1" },
                "capabilities": {},
            }),
        };
        client.inner.request(Sent::Initialize, "initialize", params);
        client
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state()
    }

    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Asks to join a session, unless a request to join or to leave is under way. `required`: the last
    /// event of the log, if the server surely knows it; `may_have_closed`: as for [`View::joins`].
    pub fn join(
        &self,
        session: &SessionId,
        join: Join,
        required: u64,
        may_have_closed: bool,
    ) -> bool {
        if self.is_busy(session) {
            return false;
        }
        self.view(session, |view| view.joins(join, required, may_have_closed));
        let (method, params) = match join {
            Join::Load => ("session/load", json!({ "cwd": "/", "mcpServers": [] })),
            Join::Nothing => ("session/resume", json!({ "cwd": "/", "mcpServers": [] })),
            Join::After(after) => ("_acp-sdk/session/resume", json!({ "sinceEventId": after })),
        };
        self.of_session(Sent::Join(session.clone()), method, session, params);
        true
    }

    pub fn speaks_v1(&self) -> bool {
        self.inner.version == Version::V1
    }

    pub fn is_busy(&self, session: &SessionId) -> bool {
        let state = self.state();
        let mut sent = state.sent.values();
        sent.any(|sent| match sent {
            Sent::Join(busy) | Sent::Close(busy) => busy == session,
            _ => false,
        })
    }

    fn view<T>(&self, session: &SessionId, see: impl FnOnce(&mut View) -> T) -> T {
        let mut state = self.state();
        let new = || View::new(self.name(), self.inner.version);
        see(state.views.entry(session.clone()).or_insert_with(new))
    }

    fn of_session(&self, sent: Sent, method: &str, session: &SessionId, mut params: Value) -> u64 {
        params["sessionId"] = session.as_str().into();
        self.inner.request(sent, method, params)
    }

    /// Sends a prompt, which may fail or be cancelled for a reason of the schedule.
    pub fn prompt(
        &mut self,
        session: &SessionId,
        seed: u64,
        (may_fail, may_be_cancelled): (bool, bool),
    ) -> String {
        self.prompts += 1;
        let number = self.prompts;
        let text = crate::agent::text(self.name(), number, seed);
        let (is_certain, generation) = self.view(session, |view| {
            if view.is_certain() {
                view.own.push(text.clone());
            }
            (view.is_certain(), view.generation)
        });
        let may_fail = may_fail || !is_certain || self.is_busy(session);
        let at = {
            let mut state = self.inner.world.state();
            state.prompts.push(Prompt {
                session: session.clone(),
                text: text.clone(),
                version: self.inner.version,
                may_be_cancelled,
                may_fail,
                generation,
                answer: None,
                is_lost: false,
            });
            state.prompts.len() - 1
        };
        let params = json!({
            "prompt": [{ "type": "text", "text": text }],
            "_meta": { "acp-sdk": { "promptId": format!("{}:{number}", self.name()) } },
        });
        self.of_session(Sent::Prompt(at), "session/prompt", session, params);
        text
    }

    /// Gives the running turn input, which becomes a prompt if it is not taken and `queues`. With `again`,
    /// sends earlier input again.
    pub fn steer(
        &mut self,
        session: &SessionId,
        seed: u64,
        (queues, again): (bool, bool),
    ) -> String {
        let earlier = self
            .inner
            .world
            .state()
            .steers
            .iter()
            .rev()
            .find_map(|steer| {
                let name = steer.text.split_once(':')?.0;
                let is_own = steer.session == *session && name == self.name();
                is_own.then(|| steer.text.clone())
            });
        let text = earlier.filter(|_| again).unwrap_or_else(|| {
            self.prompts += 1;
            crate::agent::text(self.name(), self.prompts, seed)
        });
        self.view(session, |view| {
            if view.is_certain() {
                view.own.push(text.clone());
            }
        });
        let at = {
            let mut state = self.inner.world.state();
            state.steers.push(Steer {
                session: session.clone(),
                text: text.clone(),
                answer: None,
                is_lost: false,
            });
            state.steers.len() - 1
        };
        let name = text.rsplit_once(' ').map_or("", |(name, _)| name);
        let params = json!({
            "prompt": [{ "type": "text", "text": text }],
            "promptId": name,
            "otherwise": if queues { "queue" } else { "refuse" },
        });
        let method = "_acp-sdk/session/steer";
        self.of_session(Sent::Steer(at), method, session, params);
        text
    }

    pub fn cancel(&self, session: &SessionId) {
        self.inner.world.cancels(session);
        let params = json!({ "sessionId": session });
        self.inner.notify("session/cancel", &params);
    }

    /// Cancels one of its requests.
    pub fn cancel_request(&self, dice: &mut Dice) -> bool {
        let id = {
            let mut state = self.state();
            let open = state.sent.iter();
            let open = open.filter(|(_, sent)| !matches!(sent, Sent::Initialize | Sent::Close(_)));
            let open: Vec<u64> = open.map(|(id, _)| *id).collect();
            if open.is_empty() {
                return false;
            }
            let id = open[dice.pick(open.len())];
            match &state.sent[&id] {
                Sent::Prompt(at) => self.inner.world.state().prompts[*at].may_be_cancelled = true,
                Sent::Join(session) => {
                    let session = session.clone();
                    let view = state.views.get_mut(&session);
                    view.unwrap().cancels_join();
                }
                _ => {}
            }
            id
        };
        let params = json!({ "requestId": id });
        self.inner.notify("$/cancel_request", &params);
        true
    }

    pub fn close_session(&self, session: &SessionId) {
        self.view(session, View::doubt);
        let close = Sent::Close(session.clone());
        self.of_session(close, "session/close", session, json!({}));
    }

    pub fn delete_session(&self, session: &SessionId) {
        self.of_session(Sent::Other, "session/delete", session, json!({}));
    }

    pub fn set_mode(&self, session: &SessionId, mode: &'static str) {
        let (method, params) = match self.inner.version {
            Version::V1 => ("session/set_mode", json!({ "modeId": mode })),
            Version::V2 => (
                "session/set_config_option",
                json!({ "configId": "mode", "type": "id", "value": mode }),
            ),
        };
        self.of_session(Sent::Mode(session.clone(), mode), method, session, params);
    }

    /// Asks whether it is attached.
    pub fn ask_state(&self, session: &SessionId) {
        let sent = Sent::State(session.clone());
        self.of_session(sent, "_acp-sdk/session/state", session, json!({}));
    }

    /// Answers one of the questions that it has left open.
    pub fn answer(&self, dice: &mut Dice) -> bool {
        let mut state = self.state();
        let open = |asked: &&mut Asked| !asked.answered && !asked.cancelled;
        let mut open: Vec<&mut Asked> = state.asked.iter_mut().filter(open).collect();
        if open.is_empty() {
            return false;
        }
        let at = dice.pick(open.len());
        self.inner.answer(open[at], dice.roll(8));
        true
    }

    /// Returns the number of requests without an answer.
    pub fn unanswered(&self) -> usize {
        self.state().sent.len()
    }

    pub fn leave(self, leaving: Leaving) {
        self.inner.lost();
        match leaving {
            Leaving::Dropped => {
                self.reader.abort();
                self.writer.abort();
            }
            Leaving::EndsInput => self.writer.abort(),
            Leaving::Closed => self.connection.close(),
        }
    }
}

async fn write(mut lines: mpsc::UnboundedReceiver<String>, mut writing: WriteHalf<SimplexStream>) {
    while let Some(line) = lines.recv().await {
        if writing.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Nothing arrives any more.
    fn lost(&self) {
        let _handled = self.handling.lock().unwrap();
        let mut state = self.state();
        let mut world = self.world.state();
        for sent in std::mem::take(&mut state.sent).into_values() {
            match sent {
                Sent::Prompt(at) => world.prompts[at].is_lost = true,
                Sent::Steer(at) => world.steers[at].is_lost = true,
                _ => {}
            }
        }
        state.closed = true;
    }

    fn send(&self, message: &Value) {
        // The writer may be gone with the connection.
        let _ = self.out.send(format!("{message}\n"));
    }

    fn request(&self, sent: Sent, method: &str, params: Value) -> u64 {
        let id = {
            let mut state = self.state();
            state.last_request += 1;
            let id = state.last_request;
            state.sent.insert(id, sent);
            id
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }
}
