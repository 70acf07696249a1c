//! Updates in the format `text`.

use std::io;

use acp_client::internal::separator;
use acp_sdk::conversation::Change;
use acp_sdk::v1::{ContentBlock, SessionUpdate};

use super::{LONGEST_THOUGHT, Output};
use crate::text;

impl Output {
    pub(super) async fn text_update(&mut self, update: &SessionUpdate) -> io::Result<()> {
        let is_call = matches!(
            update,
            SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_)
        );
        let (line, is_new) = if is_call {
            (text::tool_call(&mut self.conversation, update), false)
        } else {
            let mut changes = self.conversation.apply(update).into_iter();
            let is_new = changes.any(|change| matches!(change, Change::Added(_)));
            (text::line(update), is_new)
        };
        match update {
            SessionUpdate::AgentThoughtChunk(chunk) => {
                if let ContentBlock::Text(content) = &chunk.content {
                    self.think(&content.text).await;
                }
                return Ok(());
            }
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.end_thought().await;
                let ContentBlock::Text(content) = &chunk.content else {
                    self.write_note("content: the agent sent something that is no text")
                        .await;
                    return Ok(());
                };
                if is_new {
                    self.print(separator(&self.tail.clone())).await?;
                }
                return self.print(&content.text).await;
            }
            SessionUpdate::UsageUpdate(usage) => {
                self.usage = Some(usage.clone());
                return Ok(());
            }
            _ => {}
        }
        if let Some(line) = line {
            self.end_thought().await;
            self.write_note(&line).await;
        }
        Ok(())
    }

    /// Prints thoughts, which are received in chunks, line by line.
    async fn think(&mut self, text: &str) {
        self.thought.push_str(text);
        while let Some(end) = self.thought.find('\n') {
            let line: String = self.thought.drain(..=end).collect();
            self.tell_thought(&line).await;
        }
        if self.thought.len() > LONGEST_THOUGHT {
            self.end_thought().await;
        }
    }

    pub(super) async fn end_thought(&mut self) {
        let line = std::mem::take(&mut self.thought);
        self.tell_thought(&line).await;
    }

    async fn tell_thought(&mut self, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            self.write_note(&format!("thinking: {line}")).await;
        }
    }
}
