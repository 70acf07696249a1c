//! What a session's updates tell: the texts of both sides and the tool calls, however they are cut.

use serde_json::Value;

use super::passive::{items, text};
use crate::harness::{Recording, Update};
use crate::wire::is_conversation;

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

    /// Returns which updates tell a part of this conversation again, in their order: a user's message, a tool
    /// call, or a message of the agent whose text, however it is cut, the agent has said. A greeting is none,
    /// also if a piece of it alone was said. Messages keep their ids, and tool calls may have new ones.
    pub(super) fn retold<'a>(&self, updates: impl Iterator<Item = Update<'a>>) -> Vec<Update<'a>> {
        let mut retold = Vec::new();
        let mut messages: Vec<Vec<Update<'a>>> = Vec::new();
        // Pieces without an id are of one message until something else comes.
        let mut other = None;
        for update in updates.filter(|update| is_conversation(update.kind)) {
            if !update.kind.starts_with("agent_message") {
                other = Some(update.index);
                retold.extend(self.has(update.kind, update.body).then_some(update));
                continue;
            }
            let id = text(update.body, "/messageId");
            let is_of = |last: &Update<'_>| {
                let is_open = id.is_some() || Some(last.index) > other;
                is_open && text(last.body, "/messageId") == id
            };
            let mut known = messages.iter_mut();
            match known.find(|all| all.last().is_some_and(is_of)) {
                Some(pieces) => pieces.push(update),
                None => messages.push(vec![update]),
            }
        }
        let said = squeezed(&self.agent);
        for pieces in messages {
            // A whole message replaces its pieces.
            let is_whole =
                |it: &Update<'_>| it.kind == "agent_message" && it.body.get("content").is_some();
            let start = pieces.iter().rposition(is_whole).unwrap_or_default();
            let texts = pieces.iter().skip(start).flat_map(|it| texts(it.body));
            let text = squeezed(&texts.collect::<String>());
            if !text.is_empty() && said.contains(&text) {
                retold.extend(pieces);
            }
        }
        retold.sort_by_key(|update| update.index);
        retold
    }

    /// Returns whether an update that is no message of the agent tells a part of this conversation again.
    fn has(&self, kind: &str, update: &Value) -> bool {
        match kind {
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
        let of = |live: &Conversation, updates: &[(&str, Value)]| {
            let updates = updates.iter().enumerate();
            let updates = updates.map(|(index, (kind, body))| Update {
                index,
                session: "s",
                kind,
                body,
            });
            let retold = live.retold(updates).into_iter();
            retold.map(|update| update.index).collect::<Vec<_>>()
        };
        let nothing: [usize; 0] = [];
        let piece = |text: &str| {
            let content = json!({"type": "text", "text": text});
            ("agent_message_chunk", json!({"content": content}))
        };
        let with_id = |id: &str, text: &str| {
            let (kind, mut body) = piece(text);
            body["messageId"] = json!(id);
            (kind, body)
        };
        assert_eq!(of(&live, &[piece(" answer")]), [0]);
        assert_eq!(of(&live, &[piece("Welcome back.")]), nothing);
        let whole = json!({"content": [{"type": "text", "text": "an answer"}]});
        assert_eq!(of(&live, &[("agent_message", whole)]), [0]);
        // Pieces of a greeting may have been said.
        let greeting = [piece("Welcome, "), piece("an"), piece("other time.")];
        assert_eq!(of(&live, &greeting), nothing);
        let both = [
            with_id("g", "Hello "),
            with_id("m", "an answer"),
            with_id("g", "an"),
        ];
        assert_eq!(of(&live, &both), [1]);
        let mut replaced = with_id("m", "").1;
        replaced["content"] = json!([{"type": "text", "text": "an answer"}]);
        let replaced = [with_id("m", "an answer"), ("agent_message", replaced)];
        assert_eq!(of(&live, &replaced), [0, 1]);
        let user = |body: Value| ("user_message_chunk", body);
        let call = ("tool_call", json!({"toolCallId": "b"}));
        let told = [call.clone(), piece("Welcome."), user(json!({}))];
        assert_eq!(of(&live, &told), [0, 2]);
        let own = user(json!({"messageId": "id of the prompt"}));
        let other = user(json!({"messageId": "of another client"}));
        assert_eq!(of(&live, &[other, own]), [1]);
        let silent = said("the prompt", "", &[]);
        assert_eq!(of(&silent, &[call, piece("Welcome.")]), nothing);
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
