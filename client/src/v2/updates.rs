//! Updates of a session.

use acp_sdk::convert::convert_logged;
use acp_sdk::{Patch, v1, v2};

use super::messages::{Messages, Writer};
use super::tool_calls::ToolCalls;

/// The converted update: usually one update.
#[derive(Debug, Default)]
pub struct Converted {
    first: Option<v1::SessionUpdate>,
    rest: Vec<v1::SessionUpdate>,
}

impl Converted {
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
pub struct Converter {
    messages: Messages,
    calls: ToolCalls,
}

impl Converter {
    /// Clears the state before a replay of the conversation.
    pub fn restart(&mut self) {
        self.messages.clear();
        self.calls.clear();
    }

    /// Converts an update.
    pub fn update(&mut self, update: v2::SessionUpdate) -> Converted {
        use v2::SessionUpdate as V2;
        match update {
            V2::UserMessageChunk(chunk) => self.chunk(Writer::User, chunk),
            V2::AgentMessageChunk(chunk) => self.chunk(Writer::Agent, chunk),
            V2::AgentThoughtChunk(chunk) => self.chunk(Writer::Thought, chunk),
            V2::UserMessage(message) => {
                let (id, content) = (&message.message_id, &message.content);
                let whole = self.whole(Writer::User, id, content, &message.meta);
                whole.unwrap_or_else(|| stateless(V2::UserMessage(message)))
            }
            V2::AgentMessage(message) => {
                let (id, content) = (&message.message_id, &message.content);
                let whole = self.whole(Writer::Agent, id, content, &message.meta);
                whole.unwrap_or_else(|| stateless(V2::AgentMessage(message)))
            }
            V2::AgentThought(message) => {
                let (id, content) = (&message.message_id, &message.content);
                let whole = self.whole(Writer::Thought, id, content, &message.meta);
                whole.unwrap_or_else(|| stateless(V2::AgentThought(message)))
            }
            V2::ToolCallUpdate(update) => Converted::many(self.calls.update(update)),
            V2::ToolCallContentChunk(chunk) => Converted::many(self.calls.chunk(chunk)),
            V2::StateUpdate(state) => {
                // This update may end the turn, so pending updates of the turn precede it.
                let mut said = self.calls.flush();
                said.extend(stateless(V2::StateUpdate(state)));
                Converted::many(said)
            }
            // What the reader does with it is no update: the history ends here.
            V2::ReplayComplete(_) => Converted::many(self.calls.flush()),
            other => stateless(other),
        }
    }

    fn chunk(&mut self, writer: Writer, chunk: v2::ContentChunk) -> Converted {
        self.messages
            .chunk(writer, &chunk.message_id, &chunk.content);
        stateless(said(writer, chunk))
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
            let mut next = v2::ContentChunk::new(id.clone(), block);
            next.meta = meta.take();
            stateless(said(writer, next))
        };
        Some(Converted::many(
            missing.into_iter().flat_map(chunk).collect(),
        ))
    }
}

/// Returns a chunk as an update.
fn said(writer: Writer, chunk: v2::ContentChunk) -> v2::SessionUpdate {
    match writer {
        Writer::User => v2::SessionUpdate::UserMessageChunk(chunk),
        Writer::Agent => v2::SessionUpdate::AgentMessageChunk(chunk),
        Writer::Thought => v2::SessionUpdate::AgentThoughtChunk(chunk),
    }
}

/// Converts an update that does not depend on earlier ones. One without an equivalent is kept as an
/// update of unknown kind.
fn stateless(update: v2::SessionUpdate) -> Converted {
    Converted {
        first: convert_logged(update),
        rest: Vec::new(),
    }
}
