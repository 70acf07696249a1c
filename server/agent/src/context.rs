//! The conversation as the model knows it, read from the log of its session.
//!
//! The log is the only copy: what a turn has sent is there for the next request, and so it is after a
//! cancelled turn, a restart, a fork, or the death of the process in the middle of a tool.

use std::collections::VecDeque;

use acp_sdk::conversation::is_final;
use acp_sdk::v1::{
    CompactionStatus, ContentBlock, ContentChunk, Cost, MessageId, SessionUpdate, TextContent,
    ToolCall, ToolCallContent, ToolCallId, ToolCallUpdate,
};
use acp_server::event::{Event, EventBody};
use acp_server::{Received, Session, text_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{Message, Thought, ToolResult, ToolUse};
use crate::tool::Output;

/// What the model is told about a call whose tool has not returned.
const INTERRUPTED: &str =
    "Interrupted: the call ended before the tool did. Whether it had an effect is not known.";

/// The conversation of a session as the model knows it.
#[derive(Debug, Default)]
pub struct Context {
    /// The last event that was read.
    after: u64,
    entries: Vec<Entry>,
    /// Tokens of the conversation, as of the last answer.
    used: u64,
    /// Cost of the session so far.
    cost: Option<Cost>,
    kept: Kept,
}

/// What is kept in the session's data, because no event has it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// What the model is told in place of messages of the user, by their ids, the oldest first.
    told: VecDeque<(MessageId, String)>,
}

/// Bytes of the texts in a session's data. A message whose text is left out is told as the user wrote it.
const MOST_TOLD: usize = 512 << 10;

#[derive(Debug)]
enum Entry {
    User {
        message: Option<MessageId>,
        content: Vec<ContentBlock>,
    },
    Agent(Answered),
}

/// An answer of the model, up to the results of its calls.
#[derive(Debug, Default)]
struct Answered {
    thought: Thought,
    text: String,
    calls: Vec<Called>,
}

/// A tool that the model has called.
#[derive(Debug)]
struct Called {
    id: ToolCallId,
    name: String,
    arguments: Value,
    output: Option<Output>,
}

impl Context {
    /// Reads what the session's log has since the last time.
    ///
    /// # Errors
    ///
    /// As [`Events::next`](acp_server::Events::next).
    pub async fn catch_up(&mut self, session: &Session) -> acp_server::Result<()> {
        if self.after == 0 {
            // Data of another kind is another handler's.
            self.kept = session.data_as().ok().flatten().unwrap_or_default();
        }
        let mut history = session.history_after(self.after);
        while let Some(received) = history.next().await? {
            match received {
                Received::Event(Event { number, body, .. }) => {
                    self.after = number;
                    if let EventBody::Update(update) = body {
                        self.apply(update);
                    }
                }
                Received::Gap(last) => {
                    self.after = last;
                    let note = "[The beginning of this conversation is no longer kept.]";
                    self.entries = vec![Entry::note(note)];
                }
            }
        }
        Ok(())
    }

    /// Tells the model a text in place of the newest message of the user, also after a restart.
    ///
    /// # Errors
    ///
    /// As [`Session::set_data_from`].
    pub fn tell_instead(&mut self, session: &Session, text: String) -> acp_server::Result<()> {
        let mut newest = self.entries.iter().rev();
        let newest = newest.find_map(|entry| match entry {
            Entry::User { message, .. } => message.clone(),
            Entry::Agent(_) => None,
        });
        let Some(message) = newest else { return Ok(()) };
        let told = &mut self.kept.told;
        told.push_back((message, text));
        let mut bytes: usize = told.iter().map(|(_, text)| text.len()).sum();
        while bytes > MOST_TOLD
            && let Some((_, oldest)) = told.pop_front()
        {
            bytes -= oldest.len();
        }
        session.set_data_from(&self.kept)
    }

    /// Returns what the model is told of a message of the user.
    fn told(&self, message: Option<&MessageId>, content: &[ContentBlock]) -> Vec<ContentBlock> {
        let mut told = self.kept.told.iter();
        let text = told
            .find(|(id, _)| Some(id) == message)
            .map(|(_, text)| text);
        let Some(text) = text else {
            return content.to_vec();
        };
        let others = content.iter();
        let others = others.filter(|block| !matches!(block, ContentBlock::Text(_)));
        let text = ContentBlock::Text(TextContent::new(text.as_str()));
        std::iter::once(text).chain(others.cloned()).collect()
    }

    /// Returns the messages for a model. A call without a result has one that says so.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            match entry {
                Entry::User { message, content } => messages.push(Message::User {
                    content: self.told(message.as_ref(), content),
                }),
                Entry::Agent(Answered {
                    thought,
                    text,
                    calls,
                }) => {
                    let is_empty = text.is_empty() && calls.is_empty();
                    if is_empty {
                        continue;
                    }
                    let has_thought = !thought.text.is_empty() || thought.signature.is_some();
                    messages.push(Message::Agent {
                        thought: has_thought.then(|| thought.clone()),
                        text: text.clone(),
                        tool_uses: calls.iter().map(Called::used).collect(),
                    });
                    if !calls.is_empty() {
                        let results = calls.iter().map(Called::result).collect();
                        messages.push(Message::Tools { results });
                    }
                }
            }
        }
        messages
    }

    /// Returns the tokens of the conversation, as of the last answer.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the cost of the session so far, if it has one.
    #[must_use]
    pub fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    fn apply(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => self.said(chunk),
            SessionUpdate::AgentMessageChunk(chunk) => {
                if let ContentBlock::Text(added) = chunk.content {
                    self.answer().text.push_str(&added.text);
                }
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                let signature = chunk.meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
                let signature = signature
                    .as_ref()
                    .and_then(|ours: &Value| ours["signature"].as_str());
                let thought = &mut self.answer().thought;
                if let Some(signature) = signature {
                    thought.signature = Some(signature.to_owned());
                }
                if let ContentBlock::Text(added) = chunk.content {
                    thought.text.push_str(&added.text);
                }
            }
            SessionUpdate::ToolCall(call) => self.called(call),
            SessionUpdate::ToolCallUpdate(change) => self.returned(change),
            SessionUpdate::UsageUpdate(usage) => {
                self.used = usage.used;
                self.cost = usage.cost.or(self.cost.take());
            }
            SessionUpdate::CompactionUpdate(update) => {
                if update.status == CompactionStatus::Completed
                    && let Some(summary) = update.summary.value()
                {
                    self.compact(&text_of(summary));
                }
            }
            _ => {}
        }
    }

    fn said(&mut self, chunk: ContentChunk) {
        let ContentChunk {
            content: block,
            message_id,
            ..
        } = chunk;
        if let Some(Entry::User { message, content }) = self.entries.last_mut()
            && *message == message_id
        {
            content.push(block);
            return;
        }
        self.entries.push(Entry::User {
            message: message_id,
            content: vec![block],
        });
    }

    /// Returns the answer that goes on: after the result of a tool, another one begins.
    fn answer(&mut self) -> &mut Answered {
        let goes_on = match self.entries.last() {
            Some(Entry::Agent(answer)) => answer.calls.iter().all(|call| call.output.is_none()),
            _ => false,
        };
        if !goes_on {
            self.entries.push(Entry::Agent(Answered::default()));
        }
        match self.entries.last_mut() {
            Some(Entry::Agent(answer)) => answer,
            _ => unreachable!("an answer was pushed"),
        }
    }

    fn called(&mut self, call: ToolCall) {
        let arguments = call.raw_input.and_then(|input| input.parse().ok());
        let called = Called {
            id: call.tool_call_id,
            name: call.name.unwrap_or(call.title),
            arguments: arguments.unwrap_or_else(|| json!({})),
            output: None,
        };
        self.answer().calls.push(called);
    }

    fn returned(&mut self, change: ToolCallUpdate) {
        let is_end = change
            .status
            .as_ref()
            .is_some_and(|status| is_final(Some(status)));
        if !is_end {
            return;
        }
        let answers = self
            .entries
            .iter_mut()
            .rev()
            .filter_map(|entry| match entry {
                Entry::Agent(answer) => Some(&mut answer.calls),
                Entry::User { .. } => None,
            });
        let mut calls = answers.flatten();
        let called = calls.find(|call| call.id == change.tool_call_id);
        if let Some(called) = called {
            let output = change.raw_output.and_then(|output| output.parse().ok());
            called.output = Some(output.unwrap_or_else(|| shown(change.content.as_deref())));
        }
    }

    /// Puts a summary in place of all but the newest message of the user, which is still to be answered.
    fn compact(&mut self, summary: &str) {
        let newest = self
            .entries
            .iter()
            .rposition(|entry| matches!(entry, Entry::User { .. }));
        let newest = newest.map(|at| self.entries.swap_remove(at));
        let summary = format!("[The conversation so far, in a summary:]\n\n{summary}");
        self.entries = vec![Entry::note(&summary)];
        self.entries.extend(newest);
        self.used = 0;
    }
}

impl Entry {
    fn note(text: &str) -> Self {
        Self::User {
            // Of no message of the log.
            message: Some(MessageId::from("note")),
            content: vec![ContentBlock::Text(TextContent::new(text))],
        }
    }
}

impl Called {
    fn used(&self) -> ToolUse {
        ToolUse {
            id: self.id.to_string(),
            name: self.name.clone(),
            arguments: self.arguments.clone(),
        }
    }

    fn result(&self) -> ToolResult {
        let output = self.output.clone();
        ToolResult {
            id: self.id.to_string(),
            name: self.name.clone(),
            output: output.unwrap_or_else(|| Output::error(INTERRUPTED)),
        }
    }
}

/// The output of a call that ended without one for the model: it was interrupted, or is another agent's.
fn shown(content: Option<&[ToolCallContent]>) -> Output {
    let blocks = content.unwrap_or_default().iter();
    let blocks = blocks.filter_map(|content| match content {
        ToolCallContent::Content(content) => Some(content.content.clone()),
        _ => None,
    });
    let blocks: Vec<_> = blocks.collect();
    match text_of(&blocks) {
        text if text.is_empty() => Output::error(INTERRUPTED),
        text => Output::error(format!("{INTERRUPTED}\n\n{text}")),
    }
}
