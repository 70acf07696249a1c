//! An agent in memory whose sessions outlive its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::calls::Call;
use super::random::Random;

/// How sessions are continued on another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContinuedBy {
    /// After the last event. Turns go on meanwhile.
    Events,
    /// By `session/load`. Turns end with their connection.
    Load,
    /// The same, and each connection is to another process.
    LoadInNewProcess,
}

pub(super) struct Agent {
    pub(super) continued_by: ContinuedBy,
    random: Random,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) line: Option<Line>,
    lines: u64,
    pub(super) sessions: HashMap<String, Session>,
}

/// The current connection.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) sender: UnboundedSender<Bytes>,
    /// The number of the last request, from 0 on each connection.
    pub(super) requests: u64,
    /// The calls in flight, by their id.
    pub(super) calls: HashMap<u64, (String, usize)>,
}

#[derive(Default)]
pub(super) struct Session {
    /// The connection that receives its events.
    pub(super) attached: u64,
    updates: Vec<Value>,
    /// The `promptId` of the turn of each update.
    names: Vec<Value>,
    turn: Option<Turn>,
    /// Calls without an answer.
    pub(super) open: Vec<Option<Call>>,
    /// Prompts that have arrived, by their text.
    prompts: HashMap<String, Record>,
    /// Stop reasons by the `promptId`.
    results: HashMap<String, &'static str>,
}

struct Turn {
    prompt: String,
    /// Its `promptId`.
    name: Value,
    is_cancelled: bool,
}

/// A prompt that has arrived.
#[derive(Clone, Default)]
pub(super) struct Record {
    pub(super) text: String,
    /// `None` while it is running, and of a turn that was ended by the loss of its connection.
    pub(super) stop_reason: Option<&'static str>,
}

impl Agent {
    pub(super) fn new(continued_by: ContinuedBy, random: Random) -> Arc<Self> {
        Arc::new(Self {
            continued_by,
            random,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns what is known of a prompt, if it has arrived.
    pub(super) fn record(&self, session: &str, prompt: &str) -> Option<Record> {
        self.state().sessions[session].prompts.get(prompt).cloned()
    }

    /// Returns the text of all turns.
    pub(super) fn text(&self, session: &str) -> String {
        let state = self.state();
        let updates = state.sessions[session].updates.iter();
        let said = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        said.map(|update| update["content"]["text"].as_str().unwrap())
            .collect()
    }

    /// Serves one connection until it is lost.
    pub(super) async fn serve(
        self: Arc<Self>,
        mut messages: UnboundedReceiver<Bytes>,
        sender: UnboundedSender<Bytes>,
        cut: CancellationToken,
    ) {
        let number = {
            let mut state = self.state();
            state.lines += 1;
            let line = Line {
                number: state.lines,
                sender,
                requests: 0,
                calls: HashMap::new(),
            };
            state.line = Some(line);
            state.lines
        };
        while let Some(Some(message)) = cut.run_until_cancelled(messages.recv()).await {
            let message: Value = serde_json::from_slice(&message).unwrap();
            self.clone().handle(number, message, &cut);
        }
        let mut state = self.state();
        if state
            .line
            .as_ref()
            .is_some_and(|line| line.number == number)
        {
            state.line = None;
        }
        if self.continued_by != ContinuedBy::Events {
            for session in state.sessions.values_mut() {
                (session.turn, session.open) = (None, Vec::new());
            }
        }
    }

    fn handle(self: Arc<Self>, line: u64, message: Value, cut: &CancellationToken) {
        let (id, params) = (message["id"].clone(), &message["params"]);
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match message["method"].as_str() {
            None => self.answered(line, message),
            Some("initialize") => {
                let ours = json!({"eventId": true, "promptId": true,
                    "session": {"resume": true, "promptResult": true}});
                let meta = match self.continued_by {
                    ContinuedBy::Events => json!({"acp-sdk": ours}),
                    _ => json!({}),
                };
                let capabilities = json!({"loadSession": true, "_meta": meta});
                let result = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
                self.answer(line, &id, result);
            }
            Some("session/new") => {
                let mut state = self.state();
                let name = format!("s{}", state.sessions.len());
                let session = Session {
                    attached: line,
                    ..Session::default()
                };
                state.sessions.insert(name.clone(), session);
                drop(state);
                self.answer(line, &id, json!({"sessionId": name}));
            }
            Some("_acp-sdk/session/resume") => {
                let since = params["sinceEventId"].as_u64().unwrap_or(0);
                self.replay(line, &session, usize::try_from(since).unwrap());
                let result = json!({"sessionId": session, "replayed": 0, "lastEventId": 0,
                    "truncated": false});
                self.answer(line, &id, result);
                self.repeat_calls(&session);
            }
            Some("session/load") => {
                self.replay(line, &session, 0);
                self.answer(line, &id, json!({}));
            }
            Some("session/prompt") => {
                let ends = match self.continued_by {
                    ContinuedBy::Events => CancellationToken::new(),
                    _ => cut.clone(),
                };
                let prompt = self.begin(&session, params);
                let turn = self.turn(line, id, session, prompt, params.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = ends.cancelled() => {}
                        () = turn => {}
                    }
                });
            }
            Some("_acp-sdk/session/prompt_result") => {
                let name = params["promptId"].as_str().unwrap().to_owned();
                tokio::spawn(self.result(line, id, session, name));
            }
            Some("session/cancel") => {
                let mut state = self.state();
                let session = state.sessions.get_mut(&session).unwrap();
                if let Some(turn) = &mut session.turn {
                    turn.is_cancelled = true;
                }
                drop(state);
                self.changed.notify_waiters();
            }
            Some("$/cancel_request") => {}
            Some(other) => panic!("unexpected {other}"),
        }
    }

    fn send(state: &State, line: u64, message: &Value) {
        if let Some(current) = state.line.as_ref().filter(|current| current.number == line) {
            let _ = current.sender.send(message.to_string().into());
        }
    }

    fn answer(&self, line: u64, id: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        Self::send(&self.state(), line, &message);
    }

    /// Sends an update of a session, and records it.
    fn update(&self, session: &str, update: Value) {
        let mut state = self.state();
        let of = state.sessions.get_mut(session).unwrap();
        let name = of.turn.as_ref().map(|turn| turn.name.clone());
        of.names.push(name.unwrap_or_default());
        of.updates.push(update);
        let (line, number) = (of.attached, of.updates.len());
        let is_own = of.updates[number - 1]["sessionUpdate"] == "user_message_chunk";
        if !is_own {
            Self::send(&state, line, &self.note(&state, session, number));
        }
    }

    /// Returns the notification of an update, with its number from 1.
    fn note(&self, state: &State, session: &str, number: usize) -> Value {
        let update = &state.sessions[session].updates[number - 1];
        let mut params = json!({"sessionId": session, "update": update});
        if self.continued_by == ContinuedBy::Events {
            let name = &state.sessions[session].names[number - 1];
            params["_meta"] = json!({"acp-sdk": {"eventId": number, "promptId": name}});
        }
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    }

    /// Sends the updates after a number, and attaches the connection.
    fn replay(&self, line: u64, session: &str, since: usize) {
        let mut state = self.state();
        for number in since..state.sessions[session].updates.len() {
            Self::send(&state, line, &self.note(&state, session, number + 1));
        }
        state.sessions.get_mut(session).unwrap().attached = line;
    }

    /// Begins the turn of a prompt, which may be cancelled from now on.
    fn begin(&self, session: &str, params: &Value) -> String {
        let prompt = params["prompt"][0]["text"].as_str().unwrap().to_owned();
        let mut state = self.state();
        let of = state.sessions.get_mut(session).unwrap();
        assert!(of.turn.is_none(), "two turns at once");
        let known = of.prompts.insert(prompt.clone(), Record::default());
        assert!(known.is_none(), "the prompt {prompt} came twice");
        of.turn = Some(Turn {
            prompt: prompt.clone(),
            name: params["_meta"]["acp-sdk"]["promptId"].clone(),
            is_cancelled: false,
        });
        prompt
    }

    async fn turn(
        self: Arc<Self>,
        line: u64,
        id: Value,
        session: String,
        prompt: String,
        params: Value,
    ) {
        let block = json!({"type": "text", "text": prompt});
        self.update(
            &session,
            json!({"sessionUpdate": "user_message_chunk", "content": block}),
        );
        for step in 0..2 + self.random.below(6) {
            sleep(Duration::from_millis(self.random.below(4))).await;
            if self.is_cancelled(&session) {
                break;
            }
            let name = format!("{prompt}.{step}");
            match self.random.below(4) {
                0 => self.ask(&session, &name).await,
                1 => self.read(&session, &name).await,
                _ => self.say(&session, &format!("{name};")),
            }
        }
        while prompt.ends_with("hang") && !self.is_cancelled(&session) {
            self.changed.notified().await;
        }
        let stop_reason = match self.is_cancelled(&session) {
            true => "cancelled",
            false => "end_turn",
        };
        let mut state = self.state();
        let of = state.sessions.get_mut(&session).unwrap();
        of.turn = None;
        of.prompts.get_mut(&prompt).unwrap().stop_reason = Some(stop_reason);
        if let Some(name) = params["_meta"]["acp-sdk"]["promptId"].as_str() {
            of.results.insert(name.to_owned(), stop_reason);
        }
        drop(state);
        self.answer(line, &id, json!({"stopReason": stop_reason}));
        self.changed.notify_waiters();
    }

    pub(super) fn is_cancelled(&self, session: &str) -> bool {
        let state = self.state();
        let turn = state.sessions[session].turn.as_ref();
        turn.is_some_and(|turn| turn.is_cancelled)
    }

    fn say(&self, session: &str, text: &str) {
        let mut state = self.state();
        let of = state.sessions.get_mut(session).unwrap();
        let prompt = of.turn.as_ref().unwrap().prompt.clone();
        of.prompts.get_mut(&prompt).unwrap().text.push_str(text);
        drop(state);
        let block = json!({"type": "text", "text": text});
        self.update(
            session,
            json!({"sessionUpdate": "agent_message_chunk", "content": block}),
        );
    }

    /// Answers with the result of a prompt, once its turn has ended.
    async fn result(self: Arc<Self>, line: u64, id: Value, session: String, name: String) {
        loop {
            let ended = self.changed.notified();
            let (result, is_running) = {
                let state = self.state();
                let of = &state.sessions[&session];
                (of.results.get(&name).copied(), of.turn.is_some())
            };
            if let Some(stop_reason) = result {
                return self.answer(line, &id, json!({"stopReason": stop_reason}));
            }
            if !is_running {
                let error = json!({"code": -32002, "message": "no such prompt"});
                let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
                return Self::send(&self.state(), line, &message);
            }
            ended.await;
        }
    }
}
