//! A session as rules know it: its turns, its tool calls, and what of the conversation was seen.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

/// A session.
#[derive(Debug, Default)]
pub struct Session {
    /// Whether it was set up again, so that part of it happened elsewhere.
    pub continued: bool,
    /// How many requests that set it up again are open: what comes is a replay.
    pub replays: usize,
    /// In v2: the session that has announced it as its child.
    pub(super) parent: Option<String>,
    /// How many of them are `session/resume`.
    pub(super) resumes: usize,
    /// What was seen of the conversation, live and in the last replay.
    pub(super) history: History,
    /// How many prompts are open; in version 2, how many came since the agent was idle.
    pub turns: usize,
    /// In v2: whether the agent was at work when it last reported its state.
    works: bool,
    /// Whether its state was reported.
    pub reported: bool,
    /// In v2: whether a `state_update` came since it was set up last.
    pub has_state: bool,
    /// In v2: the work in the background as the latest state lists it; `None` if none did.
    pub background: Option<Vec<Value>>,
    /// In v2: the agent's terminals by id, and whether they have exited.
    pub terminals: HashMap<String, bool>,
    /// Whether `session/close` has succeeded.
    pub closed: bool,
    /// Modes that it was said to have.
    pub modes: HashSet<String>,
    /// The ids of its options, as the last `config_option_update` had them, until a list follows it.
    pub updated_options: Option<BTreeSet<String>>,
    /// Tool calls, by id.
    pub tools: HashMap<String, Tool>,
    /// Its working directory and its additional ones, 16 at most; empty if they are not known.
    pub roots: Vec<String>,
}

/// How much work in the background of a session is remembered.
const BACKGROUND: usize = 64;

/// How many directories of a session are remembered.
const ROOTS: usize = 16;

/// What of a conversation was seen, as bits of [`CONVERSATION`].
#[derive(Debug, Default)]
pub(super) struct History {
    /// In turns that came to their end.
    kept: u8,
    /// Since the last turn ended.
    pub(super) live: u8,
    /// In the last replay.
    pub(super) replayed: u8,
    pub(super) replayed_tools: HashSet<String>,
}

/// The kinds of update that a replay must have if the conversation had them.
const CONVERSATION: [&str; 3] = ["user_message_chunk", "agent_message_chunk", "tool_call"];

/// The bit of a kind; none for other kinds.
pub(super) fn bit(kind: &str) -> u8 {
    let place = CONVERSATION.iter().position(|known| *known == kind);
    place.map_or(0, |place| 1 << place)
}

/// A tool call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tool {
    /// Where it was announced last; `None` if it never was.
    pub announced: Option<u64>,
    /// Whether it was ever in progress.
    pub ran: bool,
    /// Whether it has reached a final status since it was announced.
    pub ended: bool,
    /// Whether its turn came to its end.
    kept: bool,
}

impl Session {
    /// Whether nothing but a resumption goes on in it.
    pub(crate) fn is_resuming(&self) -> bool {
        self.resumes > 0 && self.resumes == self.replays && self.turns == 0
    }

    /// In v2: takes in the state that the agent reports; yields how much more that is.
    pub(super) fn report(&mut self, state: &Value) -> usize {
        self.has_state = true;
        let known = self.background.as_ref().map_or(0, Vec::len);
        if let Some(listed) = state.get("background").and_then(Value::as_array) {
            self.background = Some(listed.iter().take(BACKGROUND).cloned().collect());
        }
        let is_idle = state.get("state").and_then(Value::as_str) == Some("idle");
        let has_worked = std::mem::replace(&mut self.works, !is_idle);
        // An idle state that ends no work may be on its way when a prompt is sent.
        if is_idle && (has_worked || state.get("stopReason").is_some_and(Value::is_string)) {
            self.turns = 0;
        }
        let listed = self.background.as_ref().map_or(0, Vec::len);
        listed.saturating_sub(known)
    }

    /// In v2: whether a piece of work in the background was announced, and whether it has ended; `None`
    /// if it is of an unknown type.
    pub(crate) fn progress(&self, work: &Value) -> Option<(bool, bool)> {
        let id = |name: &str| work.get(name)?.as_str();
        match work.get("type")?.as_str()? {
            "terminal" => {
                let exited = self.terminals.get(id("terminalId")?);
                Some((exited.is_some(), exited == Some(&true)))
            }
            "tool_call" => {
                let tool = self.tools.get(id("toolCallId")?);
                Some((tool.is_some(), tool.is_some_and(|tool| tool.ended)))
            }
            _ => None,
        }
    }

    /// Whether a turn came to its end that was seen.
    pub(crate) fn had_turns(&self) -> bool {
        self.history.kept != 0
    }

    /// Whether this kind of update says something new of the conversation.
    pub(super) fn is_news(&self, kind: &str) -> bool {
        let known = match self.replays {
            0 => self.history.live,
            _ => self.history.replayed,
        };
        bit(kind) & !known != 0
    }

    /// A kind of update that was seen live and is not in the replay.
    pub(crate) fn lost_in_replay(&self) -> Option<&'static str> {
        let lost = self.history.kept & !self.history.replayed;
        CONVERSATION.into_iter().find(|kind| bit(kind) & lost != 0)
    }

    /// The tool calls that were seen live and are not in the replay, and how many there were. None
    /// if the replay has as many: their ids may have changed.
    pub(crate) fn tools_lost_in_replay(&self) -> (Vec<&str>, usize) {
        let replayed = &self.history.replayed_tools;
        let kept = self.tools.iter().filter(|(_, tool)| tool.kept);
        let all = kept.clone().count();
        let mut lost: Vec<_> = kept
            .map(|(id, _)| id.as_str())
            .filter(|id| all > replayed.len() && !replayed.contains(*id))
            .collect();
        lost.sort_unstable();
        (lost, all)
    }

    /// A turn that began at this place has ended, by itself if it is `whole`.
    pub(super) fn turn_ended(&mut self, began: u64, whole: bool) {
        let history = &mut self.history;
        let live = std::mem::take(&mut history.live);
        if !whole {
            return;
        }
        history.kept |= live | bit("user_message_chunk");
        for tool in self.tools.values_mut() {
            tool.kept |= tool.announced.is_some_and(|place| place > began);
        }
    }

    /// Takes in the params of the request that sets it up; yields how much that is.
    pub(super) fn open_in(&mut self, params: &Value) -> usize {
        let known = self.roots.len();
        let more = params
            .get("additionalDirectories")
            .and_then(Value::as_array);
        let all = params
            .get("cwd")
            .into_iter()
            .chain(more.into_iter().flatten());
        let all = all.filter_map(Value::as_str).map(str::to_owned);
        self.roots = all.take(ROOTS).collect();
        self.roots.len().saturating_sub(known)
    }

    /// Takes in what the agent tells of the session's state; yields how much that is.
    pub(super) fn learn(&mut self, state: Option<&Value>) -> usize {
        let Some(state) = state else { return 0 };
        let known = self.modes.len();
        self.reported = true;
        self.modes.extend(ids(state, "/modes/availableModes"));
        self.modes.len() - known
    }
}

/// The ids of what is listed at a place: version 1 calls them `id`, version 2 those of options `configId`.
pub(super) fn ids(state: &Value, pointer: &str) -> impl Iterator<Item = String> {
    let all = state.pointer(pointer).and_then(Value::as_array);
    let all = all.into_iter().flatten();
    all.filter_map(|one| Some(one.get("id").or(one.get("configId"))?.as_str()?.to_owned()))
}
