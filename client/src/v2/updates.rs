//! Updates of a session.

use acp_sdk::{Patch, v1, v2};

use super::messages::{Messages, Writer};
use super::tool_calls::ToolCalls;
use super::{content, options, raw_variant, reread};

/// The converted update: usually one update.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    first: Option<v1::SessionUpdate>,
    rest: Vec<v1::SessionUpdate>,
}

impl Converted {
    fn one(update: impl Into<v1::SessionUpdate>) -> Self {
        Self {
            first: Some(update.into()),
            rest: Vec::new(),
        }
    }

    fn many(rest: Vec<v1::SessionUpdate>) -> Self {
        Self { first: None, rest }
    }
}

impl IntoIterator for Converted {
    type Item = v1::SessionUpdate;
    type IntoIter = std::iter::Chain<
        std::option::IntoIter<v1::SessionUpdate>,
        std::vec::IntoIter<v1::SessionUpdate>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

/// Converts the updates of one session, with the state that later updates refer to.
#[derive(Debug, Default)]
pub(crate) struct Converter {
    messages: Messages,
    calls: ToolCalls,
}

impl Converter {
    /// Clears the state before a replay of the conversation.
    pub(crate) fn restart(&mut self) {
        self.messages.clear();
        self.calls.clear();
    }

    /// Converts an update.
    pub(crate) fn update(&mut self, update: v2::SessionUpdate) -> Converted {
        use v2::SessionUpdate as V2;
        match update {
            V2::UserMessageChunk(chunk) => {
                let chunk = self.chunk(Writer::User, chunk);
                Converted::one(v1::SessionUpdate::UserMessageChunk(chunk))
            }
            V2::AgentMessageChunk(chunk) => {
                let chunk = self.chunk(Writer::Agent, chunk);
                Converted::one(v1::SessionUpdate::AgentMessageChunk(chunk))
            }
            V2::AgentThoughtChunk(chunk) => {
                let chunk = self.chunk(Writer::Thought, chunk);
                Converted::one(v1::SessionUpdate::AgentThoughtChunk(chunk))
            }
            V2::UserMessage(message) => {
                let (id, content) = (&message.message_id, &message.content);
                let whole = self.whole(Writer::User, id, content, &message.meta);
                whole.unwrap_or_else(|| raw("user_message", &V2::UserMessage(message)))
            }
            V2::AgentMessage(message) => {
                let (id, content) = (&message.message_id, &message.content);
                let whole = self.whole(Writer::Agent, id, content, &message.meta);
                whole.unwrap_or_else(|| raw("agent_message", &V2::AgentMessage(message)))
            }
            V2::AgentThought(message) => {
                let (id, content) = (&message.message_id, &message.content);
                let whole = self.whole(Writer::Thought, id, content, &message.meta);
                whole.unwrap_or_else(|| raw("agent_thought", &V2::AgentThought(message)))
            }
            V2::ToolCallUpdate(update) => Converted::many(self.calls.update(update)),
            V2::ToolCallContentChunk(chunk) => Converted::many(self.calls.chunk(chunk)),
            V2::StateUpdate(state) => {
                // This update may end the turn, so pending updates of the turn precede it.
                let mut said = self.calls.flush();
                let update = V2::StateUpdate(state);
                said.extend(raw("state_update", &update));
                Converted::many(said)
            }
            V2::TerminalUpdate(_) => raw("terminal_update", &update),
            V2::TerminalOutputChunk(_) => raw("terminal_output_chunk", &update),
            other => stateless(other),
        }
    }

    fn chunk(&mut self, writer: Writer, chunk: v2::ContentChunk) -> v1::ContentChunk {
        self.messages
            .chunk(writer, &chunk.message_id, &chunk.content);
        let mut next = v1::ContentChunk::new(content::from_v2(chunk.content))
            .with_message_id(chunk.message_id.as_str());
        next.meta = chunk.meta;
        next
    }

    /// Converts a whole message to its missing chunks; `None` if chunks cannot express it.
    fn whole(
        &mut self,
        writer: Writer,
        id: &v2::MessageId,
        blocks: &Patch<Vec<v2::ContentBlock>>,
        meta: &Patch<acp_sdk::Meta>,
    ) -> Option<Converted> {
        let blocks = match blocks {
            Patch::Absent => return None,
            Patch::Null => &[],
            Patch::Value(blocks) => blocks.as_slice(),
        };
        let missing = self.messages.whole(writer, id, blocks)?;
        if missing.is_empty() && (blocks.is_empty() || !meta.is_absent()) {
            return None;
        }
        let mut meta = meta.value().cloned();
        let chunk = |block| {
            let mut next =
                v1::ContentChunk::new(content::from_v2(block)).with_message_id(id.as_str());
            next.meta = meta.take();
            match writer {
                Writer::User => v1::SessionUpdate::UserMessageChunk(next),
                Writer::Agent => v1::SessionUpdate::AgentMessageChunk(next),
                Writer::Thought => v1::SessionUpdate::AgentThoughtChunk(next),
            }
        };
        Some(Converted::many(missing.into_iter().map(chunk).collect()))
    }
}

/// Returns an update as one of unknown kind.
fn raw(kind: &str, update: &v2::SessionUpdate) -> Converted {
    Converted::one(v1::SessionUpdate::Unknown(raw_variant(kind, update)))
}

/// Converts an update that does not depend on earlier ones.
fn stateless(update: v2::SessionUpdate) -> Converted {
    use v2::SessionUpdate as V2;
    match update {
        V2::PlanUpdate(update) => match update.plan {
            v2::PlanUpdateContent::Items(items) => {
                let mut next = v1::Plan::new(items.entries.into_iter().map(entry).collect());
                next.meta = update.meta.or(items.meta);
                Converted::one(next)
            }
            _ => raw("plan_update", &V2::PlanUpdate(update)),
        },
        V2::AvailableCommandsUpdate(update) => {
            let commands = options::commands(update.available_commands);
            let mut next = v1::AvailableCommandsUpdate::new(commands);
            next.meta = update.meta;
            Converted::one(next)
        }
        V2::ConfigOptionUpdate(update) => {
            let mut next = v1::ConfigOptionUpdate::new(options::options(update.config_options));
            next.meta = update.meta;
            Converted::one(next)
        }
        V2::SessionInfoUpdate(update) => {
            let mut next = v1::SessionInfoUpdate::new();
            next.title = update.title;
            next.updated_at = update.updated_at;
            next.meta = update.meta.value().cloned();
            Converted::one(next)
        }
        V2::UsageUpdate(update) => {
            let mut next = v1::UsageUpdate::new(update.used, update.size);
            next.cost = update.cost.value().and_then(reread);
            next.meta = update.meta;
            Converted::one(next)
        }
        V2::Notice(update) => {
            let severity = v1::NoticeSeverity::from(update.severity.as_str());
            let mut next = v1::Notice::new(severity, update.title);
            next.description = update.description;
            next.meta = update.meta;
            Converted::one(next)
        }
        V2::CompactionUpdate(update) => {
            let status = v1::CompactionStatus::from(update.status.as_str());
            let mut next = v1::CompactionUpdate::new(update.compaction_id.as_str(), status);
            next.summary = match update.summary {
                Patch::Absent => Patch::Absent,
                Patch::Null => Patch::Null,
                Patch::Value(blocks) => Patch::Value(content::all_from_v2(blocks)),
            };
            next.error = update.error;
            next.meta = update.meta;
            Converted::one(next)
        }
        V2::CompactionSummaryChunk(update) => {
            let block = content::from_v2(update.content);
            let mut next = v1::CompactionSummaryChunk::new(update.compaction_id.as_str(), block);
            next.meta = update.meta;
            Converted::one(next)
        }
        V2::Unknown(unknown) => Converted::one(v1::SessionUpdate::Unknown(unknown)),
        // A kind that a later version of the types adds.
        other => raw("", &other),
    }
}

fn entry(entry: v2::PlanEntry) -> v1::PlanEntry {
    let mut next = v1::PlanEntry::new(
        entry.content,
        v1::PlanEntryPriority::from(entry.priority.as_str()),
        v1::PlanEntryStatus::from(entry.status.as_str()),
    );
    next.meta = entry.meta;
    next
}
