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
            // A whole message replaces what was reported of it, unless it leaves the content out.
            if is_whole && update.body.get("content").is_some_and(Value::is_array) {
                message.text.clear();
            }
            let blocks = items(update.body, "/content").chain(update.body.get("content"));
            for said in blocks.filter_map(|block| text(block, "/text")) {
                message.text += said;
            }
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

    /// Adds what followed.
    pub(super) fn append(&mut self, next: Self) {
        self.user += &next.user;
        self.agent += &next.agent;
        self.calls.extend(next.calls);
        self.messages.extend(next.messages);
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
        let mut ids = self.messages.iter();
        if let Some(lost) = ids.find(|id| prompts.is_empty() && !replay.messages.contains(id)) {
            return Some(format!(
                "expected the user's message {lost} in the replay, got {:?}",
                replay.messages
            ));
        }
        let (user, agent) = (squeezed(&replay.user), squeezed(&replay.agent));
        if let Some(lost) = prompts.iter().find(|text| !user.contains(&squeezed(text))) {
            return Some(format!(
                "expected the prompt {:?} in the user's messages of the replay, got {:?}",
                excerpt(lost),
                excerpt(&replay.user)
            ));
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
}
