//! Events of a session as text for people.

use std::io::{self, Write};

use acp_sdk::conversation::{Change, Conversation, ItemId, is_final};
use acp_sdk::text::{printable, single_line};
use acp_sdk::v1::{ContentBlock, SessionUpdate};

use acp_server::event::{EventBody, StoredEvent, TurnEvent};
use acp_server::usage::{TurnUsage, UsageFold};

/// Limit in bytes of the conversation. What was written is not written again.
const REMEMBERED: usize = 1 << 20;

/// Writes events as a conversation. Consecutive chunks of a message become one paragraph.
#[derive(Debug)]
pub(super) struct Text {
    /// The latest part of the session.
    conversation: Conversation,
    /// The message that is being written.
    message: Option<ItemId>,
    /// Whether the output is in the middle of a line.
    in_line: bool,
    usage: UsageFold,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            conversation: Conversation::with_limit(REMEMBERED),
            message: None,
            in_line: false,
            usage: UsageFold::default(),
        }
    }
}

impl Text {
    pub(super) fn event(
        &mut self,
        event: StoredEvent<'_>,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let _ = self.usage.observe(event);
        match &event.parse().body {
            EventBody::Update(update) => self.update(event, update, output),
            EventBody::Turn(turn) => {
                // What a child session says is not exported.
                let Some(note) = turn.facts().note else {
                    return Ok(());
                };
                let mut note = note.to_string();
                if let TurnEvent::TurnEnded { stop_reason, .. } = turn {
                    let _ = self.conversation.end_turn(stop_reason.clone());
                    if let Some(used) = self.usage.latest().and_then(TurnUsage::text) {
                        note += &format!(" ({used})");
                    }
                }
                self.note(event, &note, output)
            }
            EventBody::Unknown(json) => self.note(event, json.get(), output),
        }
    }

    /// Ends the last line.
    pub(super) fn end(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.message = None;
        if std::mem::take(&mut self.in_line) {
            writeln!(output)?;
        }
        Ok(())
    }

    fn update(
        &mut self,
        event: StoredEvent<'_>,
        update: &SessionUpdate,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let changes = self.conversation.apply(update).into_iter();
        let item = changes.filter_map(Change::item).next_back();
        match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                self.say("User", item, event, &chunk.content, output)
            }
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.say("Agent", item, event, &chunk.content, output)
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.say("Thought", item, event, &chunk.content, output)
            }
            SessionUpdate::ToolCall(call) => {
                let note = format!("tool call {}: {}", call.tool_call_id, call.title);
                self.note(event, &note, output)
            }
            SessionUpdate::ToolCallUpdate(call) => {
                // Progress is for those who watch.
                let ended = call.status.as_ref();
                let Some(status) = ended.filter(|status| is_final(Some(status))) else {
                    return Ok(());
                };
                let note = format!("tool call {} {status}", call.tool_call_id);
                self.note(event, &note, output)
            }
            SessionUpdate::Plan(plan) => {
                let steps = plan.entries.iter().map(|entry| entry.content.as_str());
                let steps: Vec<_> = steps.collect();
                self.note(event, &format!("plan: {}", steps.join("; ")), output)
            }
            SessionUpdate::CurrentModeUpdate(mode) => {
                self.note(event, &format!("mode {}", mode.current_mode_id), output)
            }
            // Titles, usage, commands and options are not part of the conversation.
            _ => Ok(()),
        }
    }

    fn say(
        &mut self,
        speaker: &str,
        message: Option<ItemId>,
        event: StoredEvent<'_>,
        content: &ContentBlock,
        output: &mut impl Write,
    ) -> io::Result<()> {
        if message.is_none() || self.message != message {
            self.end(output)?;
            let speaker = event.timed(&format!("{speaker} ({})", event.number));
            writeln!(output, "\n{speaker}:")?;
            self.message = message;
        }
        let text = match content {
            ContentBlock::Text(text) => printable(&text.text),
            ContentBlock::Image(image) => format!("[image, {}]", single_line(&image.mime_type)),
            ContentBlock::Audio(audio) => format!("[audio, {}]", single_line(&audio.mime_type)),
            ContentBlock::ResourceLink(link) => format!("[{}]", single_line(&link.uri)),
            _ => "[resource]".to_owned(),
        };
        if let Some(last) = text.chars().next_back() {
            self.in_line = last != '\n';
        }
        output.write_all(text.as_bytes())
    }

    /// Writes a line about something that nobody said.
    fn note(
        &mut self,
        event: StoredEvent<'_>,
        note: &str,
        output: &mut impl Write,
    ) -> io::Result<()> {
        self.end(output)?;
        let note = event.timed(note);
        writeln!(output, "[{}] {}", event.number, single_line(&note))
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::SESSION_UPDATE_CONTENT;

    use super::*;

    /// The kinds that the text contains, with their other members.
    const SHOWN: [(&str, &str); 7] = [
        ("agent_message_chunk", TEXT),
        ("agent_thought_chunk", TEXT),
        ("current_mode_update", r#""currentModeId":"m""#),
        ("plan", r#""entries":[]"#),
        ("tool_call", r#""toolCallId":"1","title":"t""#),
        ("tool_call_update", r#""toolCallId":"1","status":"failed""#),
        ("user_message_chunk", TEXT),
    ];

    const TEXT: &str = r#""content":{"type":"text","text":"t"}"#;

    const HIDDEN: [&str; 12] = [
        "available_commands_update",
        "compaction_summary_chunk",
        "compaction_update",
        "config_option_update",
        "notice",
        "plan_removed",
        "plan_update",
        "session_info_update",
        "session_message",
        "session_message_chunk",
        "subagent_update",
        "usage_update",
    ];

    /// A kind that is added to the documents must be added to one of the lists.
    #[test]
    fn every_kind_of_update_is_shown_or_listed_as_hidden() {
        let mut known: Vec<&str> = SHOWN.iter().map(|(kind, _)| *kind).collect();
        known.extend(HIDDEN);
        known.sort_unstable();
        let documented = SESSION_UPDATE_CONTENT.iter().map(|(kind, _)| kind);
        assert_eq!(known, documented.collect::<Vec<_>>());
        for (kind, members) in SHOWN {
            let text = format!(r#"{{"sessionUpdate":"{kind}",{members}}}"#);
            let (mut writer, mut output) = (Text::default(), Vec::new());
            let event = StoredEvent {
                number: 1,
                time: None,
                text: &text,
            };
            writer.event(event, &mut output).unwrap();
            assert!(!output.is_empty(), "{kind}");
        }
    }
}
