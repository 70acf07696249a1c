//! Folds recorded traffic into conversations, and checks them:
//!
//! ```sh
//! cargo run --example fold -- FILE-OR-FOLDER...
//! ```
//!
//! A recording has a JSON-RPC message in each line, alone or as the member `msg`. Fails when a text
//! or tool call of the recording is missing in its conversation, or when the changes of the updates
//! do not lead to the same view as all items.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use acp_sdk::conversation::{Change, Changes, Conversation, Item, ItemId, Role};
use acp_sdk::v1::{ContentBlock, SessionUpdate, StopReason};
use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A session of a recording.
#[derive(Default)]
struct Session {
    conversation: Conversation,
    /// The view of a user interface that redraws what changed.
    rows: BTreeMap<ItemId, Item>,
    /// The agent's text, in the order in which it was sent.
    text: String,
    updates: usize,
}

impl Session {
    fn redraw(&mut self, changes: Changes) -> anyhow::Result<()> {
        for change in changes {
            if let Change::Removed(last) = change {
                self.rows.retain(|id, _| *id > last);
            } else if let Some(id) = change.item() {
                let item = self
                    .conversation
                    .item(id)
                    .context("a changed item is gone")?;
                self.rows.insert(id, item.clone());
            }
        }
        Ok(())
    }

    fn update(&mut self, update: &SessionUpdate) -> anyhow::Result<()> {
        self.updates += 1;
        if let SessionUpdate::AgentMessageChunk(chunk) = update
            && let ContentBlock::Text(text) = &chunk.content
        {
            self.text.push_str(&text.text);
        }
        let changes = self.conversation.apply(update);
        self.redraw(changes)?;
        let (SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_)) = update else {
            return Ok(());
        };
        let id = serde_json::to_value(update)?["toolCallId"].clone();
        let id = serde_json::from_value(id)?;
        let (_, call) = self.conversation.tool_call(&id).context("no tool call")?;
        ensure!(call.tool_call_id == id, "another tool call than {id}");
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.rows.values().eq(self.conversation.items()),
            "a change was not notified"
        );
        let messages = self.conversation.items().filter_map(Item::as_message);
        let of_agent = messages.filter(|message| message.role == Role::Agent);
        let text: String = of_agent.map(|message| message.text()).collect();
        // Messages with ids may alternate, so the order of their texts may be another one.
        let sorted = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.sort_unstable();
            bytes
        };
        ensure!(sorted(&text) == sorted(&self.text), "text is missing");
        Ok(())
    }
}

fn fold(text: &str) -> anyhow::Result<HashMap<String, Session>> {
    let mut sessions: HashMap<String, Session> = HashMap::new();
    let mut prompts: HashMap<String, String> = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let Ok(mut line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let message = match line.get_mut("msg") {
            Some(message) => message.take(),
            None => line,
        };
        let session = message["params"]["sessionId"].as_str().map(str::to_owned);
        let at = || format!("line {}", number + 1);
        match (message["method"].as_str(), session) {
            (Some("session/update"), Some(session)) => {
                let update = message["params"]["update"].to_string();
                let update = acp_sdk::json::from_str(&update).with_context(at)?;
                sessions
                    .entry(session)
                    .or_default()
                    .update(&update)
                    .with_context(at)?;
            }
            (Some("session/prompt"), Some(session)) => {
                let prompt = message["params"]["prompt"].clone();
                let Ok(prompt) = serde_json::from_value::<Vec<ContentBlock>>(prompt) else {
                    continue;
                };
                prompts.insert(message["id"].to_string(), session.clone());
                let session = sessions.entry(session).or_default();
                let changes = session.conversation.prompt(&prompt);
                session.redraw(changes).with_context(at)?;
            }
            (None, _) => {
                let session = prompts.remove(&message["id"].to_string());
                let session = session.and_then(|session| sessions.get_mut(&session));
                if let Some(session) = session {
                    let reason: Option<StopReason> =
                        serde_json::from_value(message["result"]["stopReason"].clone())?;
                    let changes = session.conversation.end_turn(reason);
                    session.redraw(changes).with_context(at)?;
                }
            }
            _ => {}
        }
    }
    Ok(sessions)
}

fn files(path: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            files(&entry?.path(), found)?;
        }
    } else if path.extension().is_some_and(|end| end == "jsonl") {
        found.push(path.to_owned());
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for path in std::env::args_os().skip(1) {
        files(Path::new(&path), &mut found).with_context(|| format!("{}", path.display()))?;
    }
    ensure!(!found.is_empty(), "no recordings (*.jsonl)");
    found.sort();
    for path in found {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
        let sessions = fold(&text).with_context(|| shown.clone())?;
        for session in sessions.values() {
            session.check().with_context(|| shown.clone())?;
            let (items, updates) = (session.conversation.items().len(), session.updates);
            eprintln!("{shown}: {updates} updates, {items} items");
        }
    }
    Ok(())
}
