//! A connection as rules know it: who declared what, which requests are open, and the
//! sessions with their turns, tool calls and settings.
//!
//! Everything is bounded. What does not fit makes the state partial, and so does a
//! connection whose beginning was not seen or of which messages were lost; a rule that
//! something was never said must ask [`State::is_whole`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use acp_schema::Attachment;
use serde_json::{Map, Value};

use super::session::{bit, ids};
use super::{Said, Session, at};
use crate::wire::extensions::{self, Extension};
use crate::wire::{Kind, Party, Version, attachment};

/// How many things of a kind are remembered; more make the state partial.
const CAPACITY: usize = 65_536;

/// Members of params that are large and that no rule needs later.
const LARGE: [&str; 4] = ["prompt", "content", "mcpServers", "_meta"];

/// The state of a connection.
#[derive(Debug, Default)]
pub struct State {
    partial: bool,
    /// The version of the rules.
    pub version: Version,
    /// The client's params of `initialize`: the first, or in v2 the latest that has a result.
    pub client: Option<Value>,
    /// The agent's answer to it.
    pub agent: Option<Value>,
    /// Whether the client has sent another request.
    pub has_requested: bool,
    /// Sessions that either side has named as theirs, by id.
    pub sessions: HashMap<String, Session>,
    /// Ids of sessions that the agent has listed.
    listed: HashSet<String>,
    /// Terminals that the agent was given, by id.
    pub terminals: BTreeMap<String, Terminal>,
    /// Interactions by URL, by id.
    pub elicitations: HashMap<String, Elicitation>,
    /// Whether a turn had a result.
    pub had_turn: bool,
    /// Terminals that the agent runs itself, by id, with the extension that shows them.
    displayed: HashMap<String, &'static Extension>,
    open: HashMap<(Party, String), Asked>,
    /// How many tool calls, modes and options the sessions hold.
    parts: usize,
}

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Where it stands.
    pub place: u64,
    /// The method.
    pub method: String,
    /// The session that it names.
    pub session: Option<String>,
    /// Its params without what is large.
    pub params: Value,
    /// Whether its turn was cancelled since.
    pub cancelled: bool,
}

/// A terminal.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// Where its id was reported.
    pub place: u64,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// Whether the agent knows that its command has ended.
    pub exited: bool,
    /// Whether the agent has all of its output: it got some when it knew that.
    pub read: bool,
    /// Whether a turn ended by itself when the agent had all of its output.
    pub overdue: bool,
    /// Where its command was killed.
    pub killed: Option<u64>,
    /// Whether it was released.
    pub released: bool,
}

/// An interaction by URL.
#[derive(Clone, Debug)]
pub struct Elicitation {
    /// Whether it goes on: it was neither refused nor completed, and the turn or the request that it
    /// belongs to is not over. The agent need not say that an accepted one is completed.
    pub outstanding: bool,
    accepted: bool,
    session: Option<String>,
    /// The id of the client's request that it belongs to.
    request: Option<String>,
}

impl State {
    /// A connection of which everything is seen from its beginning.
    #[must_use]
    pub fn whole() -> Self {
        Self::default()
    }

    /// The version of the protocol that is spoken from now on; version 1 unless it is said.
    pub(crate) fn speak(&mut self, version: Version) {
        self.version = version;
    }

    /// A connection that had begun before.
    #[must_use]
    pub fn partial() -> Self {
        Self {
            partial: true,
            ..Self::default()
        }
    }

    /// Messages were lost: what was not seen may still have been said.
    pub fn lose(&mut self) {
        *self = Self {
            client: self.client.take(),
            agent: self.agent.take(),
            version: self.version,
            ..Self::partial()
        };
    }

    /// Whether everything was seen and is remembered.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.partial
    }

    /// Whether the client declares a capability; `None` while that is not known.
    #[must_use]
    pub fn client_declares(&self, pointer: &str) -> Option<bool> {
        let member = match self.version {
            Version::V1 => "clientCapabilities",
            Version::V2 => "capabilities",
        };
        declares(self.client.as_ref()?, member, pointer)
    }

    /// Whether the agent declares a capability; `None` while that is not known.
    #[must_use]
    pub fn agent_declares(&self, pointer: &str) -> Option<bool> {
        let member = match self.version {
            Version::V1 => "agentCapabilities",
            Version::V2 => "capabilities",
        };
        declares(self.agent.as_ref()?, member, pointer)
    }

    /// The capability that a method needs of the party that handles it, in the spoken version.
    #[must_use]
    pub(crate) fn needed(&self, handler: Party, method: &str) -> Option<&'static str> {
        crate::wire::capability(self.version, handler, method)
    }

    /// The open request of a side that has the id of this message.
    #[must_use]
    pub fn open(&self, of: Party, message: &Value) -> Option<&Asked> {
        self.open.get(&(of, message.get("id")?.to_string()))
    }

    /// Whether the agent has listed a session.
    pub(crate) fn lists(&self, session: &str) -> bool {
        self.listed.contains(session)
    }

    /// The extension by which the agent has shown a terminal of its own with this id.
    pub(crate) fn displays(&self, id: &str) -> Option<&'static Extension> {
        self.displayed.get(id).copied()
    }

    /// The open requests of a side.
    pub fn all_open(&self, of: Party) -> impl Iterator<Item = &Asked> {
        let open = self.open.iter().filter(move |((from, _), _)| *from == of);
        open.map(|(_, asked)| asked)
    }

    /// Takes a message in.
    pub fn take(&mut self, said: Said<'_>) {
        match said.kind {
            Kind::Request | Kind::Notification => self.call(said),
            Kind::Result | Kind::Error => self.answer(said),
            Kind::Malformed => {}
        }
        let full = [
            self.open.len(),
            self.sessions.len(),
            self.listed.len(),
            self.terminals.len(),
            self.elicitations.len(),
            self.displayed.len(),
            self.parts,
        ];
        if full.iter().any(|length| *length > CAPACITY) {
            self.lose();
        }
    }

    fn call(&mut self, said: Said<'_>) {
        let method = said.value.get("method").and_then(Value::as_str);
        let method = method.unwrap_or_default();
        let params = said.value.get("params").unwrap_or(&Value::Null);
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        let session = text("sessionId");
        if said.from == Party::Client {
            self.has_requested |= said.kind == Kind::Request && method != "initialize";
            self.called_by_client(method, params, session);
        } else {
            match method {
                "session/update" => self.update(said, session, params.get("update")),
                // A client takes it for an update of the call.
                "session/request_permission" if self.version == Version::V2 => {
                    let subject = params.get("subject");
                    let call = subject.filter(|it| it["type"] == "tool_call");
                    if let Some((name, call)) = session.zip(call.and_then(|it| it.get("toolCall")))
                    {
                        self.tool_call(said, name, call, self.is_new_call(name, call));
                    }
                }
                "terminal/kill" | "terminal/release" => {
                    let terminal = text("terminalId").and_then(|id| self.terminals.get_mut(id));
                    if let Some(terminal) = terminal {
                        match method {
                            "terminal/kill" => terminal.killed = Some(said.place),
                            _ => terminal.released = true,
                        }
                    }
                }
                "elicitation/create" if text("mode") == Some("url") => {
                    if let Some(id) = text("elicitationId") {
                        let asked = Elicitation {
                            outstanding: true,
                            accepted: false,
                            session: session.map(str::to_owned),
                            request: params.get("requestId").map(Value::to_string),
                        };
                        self.elicitations.insert(id.to_owned(), asked);
                    }
                }
                "elicitation/complete" => {
                    let known = text("elicitationId").and_then(|id| self.elicitations.get_mut(id));
                    if let Some(known) = known {
                        known.outstanding = false;
                    }
                }
                _ => {}
            }
        }
        if let (Kind::Request, Some(id)) = (said.kind, said.value.get("id")) {
            let asked = Asked {
                place: said.place,
                method: method.to_owned(),
                session: session.map(str::to_owned),
                params: small(params),
                cancelled: false,
            };
            self.open.insert((said.from, id.to_string()), asked);
        }
    }

    fn called_by_client(&mut self, method: &str, params: &Value, session: Option<&str>) {
        if method == "initialize" && self.client.is_none() {
            self.client = Some(params.clone());
        }
        let Some(name) = session else { return };
        let session = self.sessions.entry(name.to_owned()).or_default();
        match method {
            method if attachment(method) == Attachment::Joins => {
                session.continued = true;
                session.has_state = false;
                session.closed = false;
                session.replays += 1;
                session.resumes += usize::from(method == "session/resume");
                session.history.replayed = 0;
                self.parts -= session.history.replayed_tools.len();
                session.history.replayed_tools.clear();
                self.parts += session.open_in(params);
            }
            "session/prompt" => session.turns += 1,
            "session/cancel" if session.turns > 0 => {
                let open = self.open.iter_mut();
                for (_, asked) in open.filter(|((from, _), asked)| {
                    *from == Party::Agent && asked.session.as_deref() == Some(name)
                }) {
                    asked.cancelled = true;
                }
            }
            _ => {}
        }
    }

    fn update(&mut self, said: Said<'_>, session: Option<&str>, body: Option<&Value>) {
        let (Some(name), Some(body)) = (session, body) else {
            return;
        };
        let kind = body.get("sessionUpdate").and_then(Value::as_str);
        if self.version == Version::V1 {
            self.hear(name, kind.unwrap_or_default(), body);
        }
        let created = match (self.version, kind) {
            (_, Some("subagent_update")) => return self.announced(name, body),
            (_, Some("config_option_update")) => {
                let options = ids(body, "/configOptions").collect();
                return self.options_updated(name, Some(options));
            }
            (Version::V1, Some("tool_call")) => true,
            (Version::V1, Some("tool_call_update")) => false,
            (Version::V2, Some("state_update")) => return self.reported(name, body),
            (Version::V2, Some("terminal_update")) => return self.terminal(name, body),
            (Version::V2, Some("tool_call_update")) => self.is_new_call(name, body),
            _ => return,
        };
        self.tool_call(said, name, body, created);
    }

    /// Remembers which options an update has; `None` when another list follows it.
    fn options_updated(&mut self, session: &str, options: Option<BTreeSet<String>>) {
        if let Some(session) = self.sessions.get_mut(session) {
            let count = |all: &Option<BTreeSet<String>>| all.as_ref().map_or(0, BTreeSet::len);
            self.parts += count(&options);
            let known = std::mem::replace(&mut session.updated_options, options);
            self.parts -= count(&known);
        }
    }

    /// In v2, the first report of an id announces the call.
    fn is_new_call(&self, session: &str, call: &Value) -> bool {
        let id = call.get("toolCallId").and_then(Value::as_str);
        let known = self.sessions.get(session).zip(id);
        !known.is_some_and(|(session, id)| session.tools.contains_key(id))
    }

    /// Takes in what the agent reports of a tool call.
    fn tool_call(&mut self, said: Said<'_>, name: &str, body: &Value, created: bool) {
        let Some(id) = body.get("toolCallId").and_then(Value::as_str) else {
            return;
        };
        for (id, extension) in extensions::terminals(body) {
            self.displayed.insert(id.to_owned(), extension);
        }
        let session = self.sessions.entry(name.to_owned()).or_default();
        if session.replays > 0 {
            return;
        }
        let known = session.tools.len();
        let tool = session.tools.entry(id.to_owned()).or_default();
        if created {
            tool.announced = Some(said.place);
            tool.ended = false;
        }
        match body.get("status").and_then(Value::as_str) {
            Some("in_progress") => tool.ran = true,
            Some(status) if is_final(status) => tool.ended = true,
            _ => {}
        }
        self.parts += session.tools.len() - known;
    }

    /// Remembers that the conversation has something of this kind.
    fn hear(&mut self, session: &str, kind: &str, body: &Value) {
        let Some(session) = self.sessions.get_mut(session).filter(|_| bit(kind) != 0) else {
            return;
        };
        let history = &mut session.history;
        if session.replays == 0 {
            history.live |= bit(kind);
            return;
        }
        history.replayed |= bit(kind);
        let id = body.get("toolCallId").and_then(Value::as_str);
        if let Some(id) = id.filter(|_| kind == "tool_call") {
            self.parts += usize::from(history.replayed_tools.insert(id.to_owned()));
        }
    }

    /// The agent of version 2 tells of a terminal of its own.
    fn terminal(&mut self, session: &str, body: &Value) {
        let Some(id) = body.get("terminalId").and_then(Value::as_str) else {
            return;
        };
        let session = self.sessions.entry(session.to_owned()).or_default();
        let known = session.terminals.len();
        let exited = session.terminals.entry(id.to_owned()).or_default();
        match body.get("exitStatus") {
            Some(Value::Object(_)) => *exited = true,
            // It clears the status.
            Some(Value::Null) => *exited = false,
            _ => {}
        }
        self.parts += session.terminals.len() - known;
    }

    /// The agent announces or describes a child session, whose updates need no request. During a replay of its parent, what
    /// comes of it is a replay too.
    fn announced(&mut self, parent: &str, body: &Value) {
        let Some(id) = body.get("sessionId").and_then(Value::as_str) else {
            return;
        };
        let replays = self.sessions.get(parent).map_or(0, |it| it.replays);
        let child = self.sessions.entry(id.to_owned()).or_default();
        child.parent = Some(parent.to_owned());
        child.continued |= replays > 0;
        child.replays = replays;
    }

    /// The agent of version 2 reports what it does.
    fn reported(&mut self, session: &str, body: &Value) {
        if let Some(session) = self.sessions.get_mut(session) {
            let open = session.turns;
            self.parts += session.report(body);
            self.had_turn |= session.turns < open;
        }
        if body.get("state").and_then(Value::as_str) == Some("idle") {
            self.went_on(|known| known.session.as_deref() == Some(session));
        }
    }

    fn answer(&mut self, said: Said<'_>) {
        let of = said.from.peer();
        let Some(id) = said.value.get("id") else {
            return;
        };
        let Some(asked) = self.open.remove(&(of, id.to_string())) else {
            // Sessions may be created by methods that are not the protocol's.
            return self.created(said);
        };
        if of == Party::Client {
            let id = id.to_string();
            self.went_on(|known| known.request.as_ref() == Some(&id));
        }
        let result = said.value.get("result");
        let text = |name: &str| result.and_then(|result| result.get(name)?.as_str());
        match (of, asked.method.as_str()) {
            (Party::Client, "initialize") => {
                // Version 2 lets the client repeat it; the latest result counts.
                let is_latest = self.version == Version::V2 && !self.has_requested;
                if self.agent.is_none() || is_latest && result.is_some() {
                    self.agent = result.cloned();
                    self.client = Some(asked.params);
                }
            }
            (Party::Client, "session/prompt") => {
                // In version 2 it was only accepted, and a state update is the end.
                if self.version == Version::V1 || result.is_none() {
                    self.had_turn |= result.is_some();
                    self.turn_ended(&asked, text("stopReason"));
                }
            }
            (Party::Client, method) if attachment(method) == Attachment::Joins => {
                let name = asked.session.as_deref().unwrap_or_default();
                if let Some(session) = self.sessions.get_mut(name) {
                    session.replays = session.replays.saturating_sub(1);
                    let resumed = usize::from(asked.method == "session/resume");
                    session.resumes = session.resumes.saturating_sub(resumed);
                    self.parts += session.learn(result);
                }
                self.options_updated(name, None);
                let children = self.sessions.values_mut();
                for child in children.filter(|it| it.parent.as_deref() == Some(name)) {
                    child.replays = child.replays.saturating_sub(1);
                }
            }
            (Party::Client, "session/set_config_option") if result.is_some() => {
                let name = asked.session.as_deref().unwrap_or_default();
                self.options_updated(name, None);
            }
            (Party::Client, "session/list") => {
                let sessions = result.and_then(|result| result.get("sessions")?.as_array());
                let ids = sessions.into_iter().flatten();
                let ids = ids.filter_map(|it| it.get("sessionId")?.as_str());
                self.listed.extend(ids.map(str::to_owned));
            }
            (Party::Client, "session/close") => {
                let name = asked.session.as_deref().unwrap_or_default();
                if let Some(session) = self.sessions.get_mut(name) {
                    session.closed = result.is_some();
                }
            }
            (Party::Client, method) if attachment(method) == Attachment::Creates => {
                self.created(said);
                let session = text("sessionId").and_then(|id| self.sessions.get_mut(id));
                self.parts += session.map_or(0, |session| session.open_in(&asked.params));
            }
            (Party::Client, _) => self.created(said),
            (Party::Agent, "terminal/create") => {
                if let Some(id) = text("terminalId") {
                    let terminal = Terminal {
                        place: said.place,
                        session: asked.session,
                        exited: false,
                        read: false,
                        overdue: false,
                        killed: None,
                        released: false,
                    };
                    self.terminals.insert(id.to_owned(), terminal);
                }
            }
            (Party::Agent, method @ ("terminal/wait_for_exit" | "terminal/output")) => {
                let status = match method {
                    "terminal/output" => result.and_then(|result| result.get("exitStatus")),
                    _ => result,
                };
                let id = asked.params.get("terminalId").and_then(Value::as_str);
                if let Some(terminal) = id.and_then(|id| self.terminals.get_mut(id)) {
                    terminal.exited |= status.is_some_and(|status| !status.is_null());
                    terminal.read |= terminal.exited && method == "terminal/output";
                }
            }
            (Party::Agent, "elicitation/create") => {
                let id = asked.params.get("elicitationId").and_then(Value::as_str);
                if let Some(known) = id.and_then(|id| self.elicitations.get_mut(id)) {
                    known.accepted = text("action") == Some("accept");
                    known.outstanding &= known.accepted;
                }
            }
            (Party::Agent, _) => {}
        }
    }

    /// The agent may have named a session that is new.
    fn created(&mut self, said: Said<'_>) {
        let result = said
            .value
            .get("result")
            .filter(|_| said.from == Party::Agent);
        if let Some(id) = result.and_then(|result| result.get("sessionId")?.as_str()) {
            let session = self.sessions.entry(id.to_owned()).or_default();
            self.parts += session.learn(result);
            self.options_updated(id, None);
        }
    }

    /// What the agent has asked by URL for something that is over now is not outstanding.
    fn went_on(&mut self, is_for_it: impl Fn(&Elicitation) -> bool) {
        let all = self.elicitations.values_mut();
        for known in all.filter(|known| known.accepted && is_for_it(known)) {
            known.outstanding = false;
        }
    }

    fn turn_ended(&mut self, asked: &Asked, stop: Option<&str>) {
        let name = asked.session.as_deref().unwrap_or_default();
        self.went_on(|known| known.session.as_deref() == Some(name));
        if let Some(session) = self.sessions.get_mut(name) {
            session.turns = session.turns.saturating_sub(1);
            session.turn_ended(asked.place, stop == Some("end_turn"));
        }
        if stop != Some("end_turn") {
            return;
        }
        for terminal in self.terminals.values_mut() {
            if terminal.session == asked.session {
                terminal.overdue |= terminal.read;
            }
        }
    }
}

/// Whether a tool call with this status has ended; `cancelled` is one of version 2.
pub(crate) fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

fn declares(handshake: &Value, member: &str, pointer: &str) -> Option<bool> {
    let value = handshake.get(member).and_then(|all| at(all, pointer));
    Some(value.is_some_and(|value| !value.is_null() && value != &Value::Bool(false)))
}

fn small(params: &Value) -> Value {
    let Some(members) = params.as_object() else {
        return Value::Null;
    };
    let kept = members
        .iter()
        .filter(|(name, _)| !LARGE.contains(&name.as_str()));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    Value::Object(kept.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn update(session: usize, call: usize) -> Value {
        json!({"method": "session/update", "params": {
            "sessionId": format!("s{session}"),
            "update": {"sessionUpdate": "tool_call", "toolCallId": call.to_string()},
        }})
    }

    #[test]
    fn what_does_not_fit_makes_the_state_partial_and_is_forgotten() {
        let mut state = State::whole();
        for number in 0..=CAPACITY {
            assert!(state.is_whole(), "{number}");
            let value = update(number % 100, number);
            state.take(Said {
                place: number as u64,
                from: Party::Agent,
                kind: Kind::Notification,
                value: &value,
            });
        }
        assert!(!state.is_whole());
        assert!(state.sessions.is_empty());
    }
}
