//! What a session's updates tell: the texts of both sides and the tool calls, however they are cut.

use serde_json::Value;

use super::passive::{items, text};
use crate::harness::Recording;

/// The conversation that the updates of a session between two places tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    /// The texts of the user's messages.
    pub(super) user: String,
    /// The texts of the agent's messages.
    pub(super) agent: String,
    /// The ids of the tool calls, in the order of their first updates.
    pub(super) calls: Vec<String>,
    /// The ids of the user's messages that have one.
    pub(super) messages: Vec<String>,
}

/// A message as far as it was reported.
struct Message<'a> {
    is_user: bool,
    id: Option<&'a str>,
    text: String,
}

impl Conversation {
    /// Returns the conversation of a session from one place of a recording up to another.
    pub(super) fn between(recording: &Recording, session: &str, from: usize, to: usize) -> Self {
        let mut messages: Vec<Message<'_>> = Vec::new();
        let mut calls: Vec<String> = Vec::new();
        let ours = recording
            .updates()
            .filter(|update| (from..to).contains(&update.index) && update.session == session);
        for update in ours {
            let (is_user, is_whole) = match update.kind {
                "user_message_chunk" => (true, false),
                "user_message" => (true, true),
                "agent_message_chunk" => (false, false),
                "agent_message" => (false, true),
                "tool_call" | "tool_call_update" => {
                    let id = text(update.body, "/toolCallId").unwrap_or_default();
                    if !calls.iter().any(|known| known == id) {
                        calls.push(id.to_owned());
                    }
                    continue;
                }
                _ => continue,
            };
            let id = text(update.body, "/messageId");
            let known = |message: &&mut Message<'_>| {
                id.is_some() && message.id == id && message.is_user == is_user
            };
            let message = match messages.iter_mut().find(known) {
                Some(message) => message,
                None => {
                    let text = String::new();
                    messages.push(Message { is_user, id, text });
                    match messages.last_mut() {
                        Some(message) => message,
                        None => continue,
                    }
                }
            };
            // A whole message replaces what was reported of it, or clears it by `null`, unless it leaves the
            // content out.
            let replaced = update.body.get("content").filter(|_| is_whole);
            if replaced.is_some_and(|content| content.is_array() || content.is_null()) {
                message.text.clear();
            }
            message.text.extend(texts(update.body));
        }
        let of = |is_user: bool| {
            let messages = messages.iter().filter(|message| message.is_user == is_user);
            messages.map(|message| message.text.as_str()).collect()
        };
        let users = messages.iter().filter(|message| message.is_user);
        let ids = users.filter_map(|message| message.id);
        Self {
            user: of(true),
            agent: of(false),
            calls,
            messages: ids.map(str::to_owned).collect(),
        }
    }

    /// Returns whether an update tells a part of this conversation again: a user's message, a tool call,
    /// or text that the agent has said. Messages keep their ids, and tool calls may have new ones.
    pub(super) fn has(&self, kind: &str, update: &Value) -> bool {
        let said = squeezed(&texts(update).collect::<String>());
        match kind {
            "agent_message" | "agent_message_chunk" => {
                !said.is_empty() && squeezed(&self.agent).contains(&said)
            }
            kind if kind.starts_with("tool_call") => !self.calls.is_empty(),
            kind if kind.starts_with("user_message") => {
                let id = text(update, "/messageId");
                let is_known = |id: &str| self.messages.iter().any(|known| known == id);
                self.messages.is_empty() || id.is_none_or(is_known)
            }
            _ => false,
        }
    }

    /// Adds what followed. It may change what was there before.
    pub(super) fn append(&mut self, next: Self) {
        let add = |known: &mut Vec<String>, next: Vec<String>| {
            for id in next {
                if !known.contains(&id) {
                    known.push(id);
                }
            }
        };
        self.user += &next.user;
        self.agent += &next.agent;
        add(&mut self.calls, next.calls);
        add(&mut self.messages, next.messages);
    }

    /// Returns how a replay differs from what was said: the prompts of the user and this
    /// conversation. Without prompts, the replay must have the user's messages of this conversation by
    /// their ids, whatever their texts are. `foreign` are prompts of other sessions.
    pub(super) fn differs(
        &self,
        prompts: &[String],
        foreign: &[String],
        replay: &Self,
    ) -> Option<String> {
        // Each search goes on after what was found last.
        let mut replayed = replay.messages.iter();
        let is_lost = |id: &&String| !replayed.any(|replayed| replayed == *id);
        if prompts.is_empty()
            && let Some(lost) = self.messages.iter().find(is_lost)
        {
            return Some(format!(
                "expected the user's message {lost} in the replay, after those before it, got {:?}",
                replay.messages
            ));
        }
        let (user, agent) = (squeezed(&replay.user), squeezed(&replay.agent));
        let mut rest = user.as_str();
        for lost in prompts {
            let text = squeezed(lost);
            let Some(at) = rest.find(&text) else {
                return Some(format!(
                    "expected the prompt {:?} in the user's messages of the replay, after those before it, got {:?}",
                    excerpt(lost),
                    excerpt(&replay.user)
                ));
            };
            rest = rest.get(at + text.len()..).unwrap_or_default();
        }
        let is_strange = |text: &&String| {
            let text = squeezed(text);
            let is_own = prompts.iter().any(|own| squeezed(own).contains(&text));
            !is_own && user.contains(&text)
        };
        if let Some(text) = foreign.iter().find(is_strange) {
            return Some(format!(
                "expected the messages of this session in the replay, got {:?} of another session",
                excerpt(text)
            ));
        }
        if !agent.contains(&squeezed(&self.agent)) {
            return Some(format!(
                "expected the agent's text {:?} in the replay, got {:?} (white space may differ)",
                excerpt(&self.agent),
                excerpt(&replay.agent)
            ));
        }
        // An agent may number its tool calls anew.
        if replay.calls.len() < self.calls.len() {
            return Some(format!(
                "expected {} tool calls in the replay ({}), got {}",
                self.calls.len(),
                self.calls.join(", "),
                replay.calls.len()
            ));
        }
        None
    }
}

/// The texts of a message or a piece of one.
fn texts(update: &Value) -> impl Iterator<Item = &str> {
    let blocks = items(update, "/content").chain(update.get("content"));
    blocks.filter_map(|block| text(block, "/text"))
}

/// A text without white space: agents may cut and join the pieces of a message differently.
pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The beginning of a text, for a report.
fn excerpt(text: &str) -> String {
    crate::wire::shorten(text, 120)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(user: &str, agent: &str, calls: &[&str]) -> Conversation {
        Conversation {
            user: user.to_owned(),
            agent: agent.to_owned(),
            calls: calls.iter().map(|&id| id.to_owned()).collect(),
            messages: vec![format!("id of {user}")],
        }
    }

    #[test]
    fn a_replay_has_what_was_said_and_nothing_of_others() {
        let live = said("", "answer", &["a"]);
        let differs = |replay| {
            let own = ["the prompt".to_owned()];
            live.differs(&own, &["another".to_owned()], &replay)
        };
        assert_eq!(differs(said("<theprompt>", "answer", &["b"])), None);
        let by_id = |replay| live.differs(&[], &["another".to_owned()], &replay);
        assert_eq!(by_id(said("", "answer", &["b"])), None);
        let found = by_id(said("theprompt", "answer", &["b"])).unwrap_or_default();
        assert!(found.contains("message id of  in the replay"), "{found}");
        for (replay, word) in [
            (said("", "answer", &["a"]), "\"the prompt\""),
            (said("theprompt", "an s", &["a"]), "got \"an s\""),
            (said("theprompt", "answer", &[]), "1 tool calls"),
            (
                said("theprompt another", "answer", &["a"]),
                "another session",
            ),
        ] {
            let found = differs(replay).unwrap_or_default();
            assert!(found.contains(word), "{found}");
        }
    }

    #[test]
    fn what_comes_after_a_replay_is_of_it_if_it_was_said_before() {
        let live = said("the prompt", "an answer", &["a"]);
        let update = |text: &str| json!({"content": {"type": "text", "text": text}});
        assert!(live.has("agent_message_chunk", &update(" answer")));
        assert!(!live.has("agent_message_chunk", &update("Welcome back.")));
        let whole = json!({"content": [{"type": "text", "text": "an answer"}]});
        assert!(live.has("agent_message", &whole));
        assert!(live.has("user_message_chunk", &update("the")));
        assert!(live.has("tool_call", &json!({"toolCallId": "b"})));
        let own = |id: &str| live.has("user_message", &json!({"messageId": id}));
        assert!(own("id of the prompt") && !own("of another client"));
        let silent = said("the prompt", "an answer", &[]);
        assert!(!silent.has("tool_call", &json!({"toolCallId": "b"})));
    }

    #[test]
    fn a_replay_has_the_order_of_what_was_said_and_each_call_once() {
        let own = ["first".to_owned(), "second".to_owned()];
        let turns = |texts: [&str; 2]| {
            let mut all = Conversation::default();
            for text in texts {
                all.append(said(text, "", &["a"]));
            }
            all
        };
        let (live, turned) = (turns(["first", "second"]), turns(["second", "first"]));
        assert_eq!(live.calls, ["a"]);
        for prompts in [&own[..], &[]] {
            assert_eq!(live.differs(prompts, &[], &live), None);
            let found = live.differs(prompts, &[], &turned).unwrap_or_default();
            assert!(found.contains("second"), "{found}");
        }
    }
}
