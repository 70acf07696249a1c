//! What the turns of a session did, from its log.

use acp_sdk::v1::{
    ContentBlock, ContentChunk, MessageId, SessionConfigKind, SessionConfigOption, SessionUpdate,
};

use acp_server::event::{EventBody, EventKind, StoredEvent};
use acp_server::usage::{TurnUsage, UsageFold};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most bytes of a prompt in a list.
const PROMPT_BYTES: usize = 1 << 10;

/// What a turn used and did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TurnSummary {
    pub(super) usage: TurnUsage,
    pub(super) details: Details,
}

/// What a turn did.
///
/// These are sums, of thousands of turns: a conversation of each would hold its content. The log
/// gives each chunk the id of its message, so that messages can be counted by their ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Details {
    /// The first text of the user, perhaps not all of it.
    pub(super) prompt: Option<String>,
    /// Messages of the agent.
    pub(super) steps: u64,
    pub(super) tool_calls: u64,
    /// The value of the config option of category `model`, with which the turn began, or to which it was
    /// changed since.
    pub(super) model: Option<String>,
    message: Option<MessageId>,
}

impl Details {
    fn update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::UserMessageChunk(chunk) if self.prompt.is_none() => {
                self.prompt = beginning(chunk);
            }
            SessionUpdate::AgentMessageChunk(chunk)
                if self.message.is_none() || self.message != chunk.message_id =>
            {
                self.steps += 1;
                self.message.clone_from(&chunk.message_id);
            }
            SessionUpdate::ToolCall(_) => {
                self.tool_calls += 1;
                self.message = None;
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.model = model_of(&update.config_options).or(self.model.take());
            }
            _ => {}
        }
    }
}

/// Returns the beginning of a text.
fn beginning(chunk: &ContentChunk) -> Option<String> {
    let ContentBlock::Text(text) = &chunk.content else {
        return None;
    };
    let mut whole = (0..=text.text.len().min(PROMPT_BYTES)).rev();
    let end = whole.find(|at| text.text.is_char_boundary(*at));
    Some(text.text[..end.unwrap_or(0)].to_owned())
}

/// The turns of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct History {
    /// The number of the last event that was observed.
    last: u64,
    usage: UsageFold,
    /// The turns before the latest one.
    earlier: Vec<TurnSummary>,
    /// Of the latest turn.
    details: Details,
    /// About the bytes of the earlier turns.
    bytes: usize,
}

/// The version of [`History::to_text`]. A text of another one is made again.
const VERSION: u32 = 1;

impl History {
    /// Returns the text that is kept with the session; `None` if it has none.
    pub(super) fn to_text(&self) -> Option<String> {
        serde_json::to_string(&(VERSION, self)).ok()
    }

    /// Reads what was kept with a session that has this last event; `None` if it must be made again.
    pub(super) fn of_text(text: &str, last_event: u64) -> Option<Self> {
        let (version, history): (u32, &RawValue) = serde_json::from_str(text).ok()?;
        let history = (version == VERSION).then(|| history.get())?;
        let history: Self = serde_json::from_str(history).ok()?;
        (history.last <= last_event).then_some(history)
    }

    pub(super) fn observe(&mut self, event: StoredEvent<'_>) {
        self.last = event.number;
        let before = self.usage.latest().map(|turn| turn.turn);
        let complete = self.usage.observe(event);
        if self.usage.latest().map(|turn| turn.turn) != before {
            let begun_with = self.usage.latest().and_then(|turn| turn.model.clone());
            let details = Details {
                model: begun_with.or_else(|| self.details.model.clone()),
                ..Details::default()
            };
            let details = std::mem::replace(&mut self.details, details);
            if let Some(usage) = complete {
                let turn = TurnSummary { usage, details };
                self.bytes += turn.bytes();
                self.earlier.push(turn);
            }
        } else if is_relevant(event.kind())
            && let EventBody::Update(update) = event.parse().body
        {
            self.details.update(&update);
        }
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns about how many bytes of memory it has.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the value of the config option of category `model`, if it was ever changed.
    pub(super) fn model(&self) -> Option<&str> {
        self.details.model.as_deref()
    }

    /// Removes and returns the turns before the latest one.
    pub(super) fn take_earlier(&mut self) -> Vec<TurnSummary> {
        self.bytes = 0;
        std::mem::take(&mut self.earlier)
    }

    /// Calls a function with each turn, the first one first.
    pub(super) fn each(&self, mut visit: impl FnMut(&TurnSummary)) {
        self.earlier.iter().for_each(&mut visit);
        if let Some(usage) = self.usage.latest() {
            visit(&TurnSummary {
                usage: usage.clone(),
                details: self.details.clone(),
            });
        }
    }
}

impl TurnSummary {
    fn bytes(&self) -> usize {
        let texts = [&self.details.prompt, &self.details.model];
        let texts = texts.iter().filter_map(|text| text.as_ref());
        let error = self.usage.end.as_ref().and_then(|end| end.error.as_ref());
        let texts = texts.chain(&self.usage.client);
        size_of::<Self>() + texts.chain(error).map(String::len).sum::<usize>()
    }
}

/// Returns whether [`Details`] depend on an event, without reading all of it.
fn is_relevant(kind: EventKind) -> bool {
    match kind {
        EventKind::UserMessage
        | EventKind::AgentMessage
        | EventKind::ToolCall
        | EventKind::ConfigOptions => true,
        EventKind::Turn
        | EventKind::Child
        | EventKind::Usage
        | EventKind::Notice
        | EventKind::Compaction
        | EventKind::Mode
        | EventKind::Update => false,
    }
}

/// Returns the current value of the option that selects the model.
fn model_of(options: &[SessionConfigOption]) -> Option<String> {
    match &options.iter().find(|option| option.selects_model())?.kind {
        SessionConfigKind::Select(select) => Some(select.current_value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(kind: &str, message: &str, text: &str) -> Value {
        let content = json!({ "type": "text", "text": text });
        json!({ "sessionUpdate": kind, "messageId": message, "content": content })
    }

    fn model(value: &str) -> Value {
        let options = [json!({ "value": value, "name": value })];
        json!({ "sessionUpdate": "config_option_update", "configOptions": [{
            "type": "select", "id": "m", "name": "Model", "category": "model",
            "currentValue": value, "options": options,
        }] })
    }

    /// The text of an event begins with its tag.
    fn text(event: &Value) -> String {
        let mut event = event.clone();
        let members = event.as_object_mut().unwrap();
        let tag = if members.contains_key("event") {
            "event"
        } else {
            "sessionUpdate"
        };
        let value = members.remove(tag).unwrap();
        let rest = event.to_string();
        format!("{{\"{tag}\":{value},{}", &rest[1..])
    }

    #[test]
    fn each_turn_has_what_happened_in_it() {
        let long = "\u{fc}".repeat(PROMPT_BYTES);
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "t" });
        let events = [
            json!({ "event": "turn_started", "turn": 1 }),
            said("user_message_chunk", "u", &format!("a{long}")),
            said("user_message_chunk", "u", "more"),
            said("agent_message_chunk", "1", "one"),
            said("agent_message_chunk", "1", "one"),
            call.clone(),
            said("agent_message_chunk", "2", "two"),
            model("small"),
            json!({ "event": "turn_ended", "turn": 1, "stopReason": "end_turn" }),
            json!({ "event": "turn_started", "turn": 10 }),
            said("user_message_chunk", "v", "next"),
            model("large"),
            call,
        ];
        let mut history = History::default();
        for (number, event) in (1..).zip(&events) {
            let text = text(event);
            let time = None;
            history.observe(StoredEvent {
                number,
                time,
                text: &text,
            });
        }
        let mut turns = Vec::new();
        history.each(|turn| {
            let Details {
                prompt,
                steps,
                tool_calls,
                model,
                ..
            } = turn.details.clone();
            turns.push((prompt.unwrap(), steps, tool_calls, model.unwrap()));
        });
        // No character is cut in two.
        let first = format!("a{}", &long[..PROMPT_BYTES - 2]);
        assert_eq!(first.len(), PROMPT_BYTES - 1);
        let expected = [
            (first, 2, 1, "small".to_owned()),
            ("next".to_owned(), 0, 1, "large".to_owned()),
        ];
        assert_eq!(turns, expected);
        assert_eq!((history.last(), history.model()), (13, Some("large")));
        assert!(history.bytes() > PROMPT_BYTES);
    }
}
