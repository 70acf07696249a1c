//! What a transcript has of each event, whatever its form.

use acp_sdk::conversation::{Change, Conversation, ItemId};
use acp_sdk::text::git_patch;
use acp_sdk::v1::{Content, ContentBlock, SessionUpdate, ToolCallContent, ToolCallStatus};

use acp_server::event::{EventBody, StoredEvent, TurnEvent};
use acp_server::store::SessionRecord;
use acp_server::usage::{TurnUsage, UsageFold};

/// Limit in bytes of the conversation. What was written is not written again.
const REMEMBERED: usize = 1 << 20;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

impl Speaker {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Agent => "Agent",
            Self::Thought => "Thought",
        }
    }
}

/// A part of a transcript.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    /// Something said: the speaker, the text.
    Said(Speaker, String),
    /// Something that happened, in one line.
    Note(String),
    /// A text of a tool, or a file, after a line that says what it is.
    Block(String, String),
}

/// Writes events in one form. Consecutive chunks of a message become one text.
#[derive(Debug)]
pub(super) struct Writer {
    /// Writes a part, below a heading if it begins a message.
    write: fn(Part, Option<&str>, &mut String),
    /// The latest part of the session.
    conversation: Conversation,
    /// The message that was written last, unless something else was since.
    last: Option<ItemId>,
    usage: UsageFold,
}

impl Writer {
    pub(super) fn new(write: fn(Part, Option<&str>, &mut String)) -> Self {
        Self {
            write,
            conversation: Conversation::with_limit(REMEMBERED),
            last: None,
            usage: UsageFold::default(),
        }
    }

    /// Returns the content of a call that an update replaces.
    fn written(&self, body: &EventBody) -> Vec<ToolCallContent> {
        match body {
            EventBody::Update(SessionUpdate::ToolCallUpdate(call)) if call.content.is_some() => {
                let known = self.conversation.tool_call(&call.tool_call_id);
                known
                    .map(|(_, call)| call.content.clone())
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Writes that events were removed, if they were.
    pub(super) fn begin(&self, record: &SessionRecord, output: &mut String) {
        if record.is_truncated() {
            let last = record.oldest_event - 1;
            let note = format!("The events up to number {last} were removed.");
            (self.write)(Part::Note(note), None, output);
        }
    }

    pub(super) fn event(&mut self, event: StoredEvent<'_>, output: &mut String) {
        let _ = self.usage.observe(event);
        let mut body = event.parse().body;
        let written = self.written(&body);
        let mut used = None;
        let mut item = None;
        if let EventBody::Update(update) = &body {
            let changes = self.conversation.apply(update).into_iter();
            item = changes.filter_map(Change::item).next_back();
        } else if let EventBody::Turn(TurnEvent::TurnEnded { stop_reason, .. }) = &body {
            let _ = self.conversation.end_turn(stop_reason.clone());
            used = self.usage.latest().and_then(TurnUsage::text);
        }
        if let EventBody::Update(SessionUpdate::ToolCallUpdate(call)) = &mut body {
            let content = call.content.take();
            call.content = content.map(|content| new_in(content, &written));
        }
        for part in parts(body) {
            let this = item.filter(|_| matches!(part, Part::Said(..)));
            let begins = this.is_none() || this != self.last;
            self.last = this;
            let heading = match &part {
                Part::Said(speaker, _) if begins => Some(event.timed(speaker.name())),
                _ => None,
            };
            let part = match part {
                Part::Note(note) => {
                    let used = used.take().map(|used| format!(" ({used})"));
                    Part::Note(event.timed(&(note + used.as_deref().unwrap_or_default())))
                }
                part => part,
            };
            (self.write)(part, heading.as_deref(), output);
        }
    }
}

/// Returns what a list of contents has that was not written. Texts of tools often grow.
fn new_in(content: Vec<ToolCallContent>, written: &[ToolCallContent]) -> Vec<ToolCallContent> {
    let mut written = written.iter();
    let new = content.into_iter().filter_map(|mut part| {
        let before = written.next();
        if before == Some(&part) {
            return None;
        }
        if let (Some(old), Some(text)) = (before.and_then(text_of), text_of(&part))
            && let Some(rest) = text.strip_prefix(old)
        {
            part = ToolCallContent::Content(Content::new(rest));
        }
        Some(part)
    });
    new.collect()
}

fn text_of(part: &ToolCallContent) -> Option<&str> {
    match part {
        ToolCallContent::Content(Content {
            content: ContentBlock::Text(text),
            ..
        }) => Some(&text.text),
        _ => None,
    }
}

/// Returns the parts of an event. Settings, usage and the like are not part of a conversation.
fn parts(body: EventBody) -> Vec<Part> {
    match body {
        EventBody::Update(update) => of_update(update),
        EventBody::Turn(event) => of_turn(&event).map(Part::Note).into_iter().collect(),
        EventBody::Unknown(_) => Vec::new(),
    }
}

fn of_update(update: SessionUpdate) -> Vec<Part> {
    let (speaker, chunk) = match update {
        SessionUpdate::UserMessageChunk(chunk) => (Speaker::User, chunk),
        SessionUpdate::AgentMessageChunk(chunk) => (Speaker::Agent, chunk),
        SessionUpdate::AgentThoughtChunk(chunk) => (Speaker::Thought, chunk),
        SessionUpdate::ToolCall(call) => {
            let mut parts = vec![Part::Note(format!("Tool call: {}", call.title))];
            parts.extend(call.content.iter().filter_map(of_content));
            return parts;
        }
        SessionUpdate::ToolCallUpdate(call) => {
            let contents = call.content.iter().flatten();
            let mut parts: Vec<_> = contents.filter_map(of_content).collect();
            match call.status {
                Some(ToolCallStatus::Completed) => {
                    parts.push(Part::Note("Tool call completed".to_owned()));
                }
                Some(ToolCallStatus::Failed) => {
                    parts.push(Part::Note("Tool call failed".to_owned()));
                }
                _ => {}
            }
            return parts;
        }
        SessionUpdate::Plan(plan) => {
            let steps = plan.entries.iter();
            let steps = steps.map(|entry| format!("[{}] {}", entry.status.as_str(), entry.content));
            let steps: Vec<_> = steps.collect();
            return vec![Part::Block("Plan".to_owned(), steps.join("\n"))];
        }
        _ => return Vec::new(),
    };
    vec![Part::Said(speaker, content(&chunk.content))]
}

fn of_content(part: &ToolCallContent) -> Option<Part> {
    match part {
        ToolCallContent::Content(block) => {
            Some(Part::Block("Output".to_owned(), content(&block.content)))
        }
        ToolCallContent::Diff(diff) => {
            let title = format!("File {}", diff.path);
            let patch = git_patch(&diff.path, diff.old_text.as_deref(), &diff.new_text);
            Some(Part::Block(title, patch?.text))
        }
        _ => None,
    }
}

fn content(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio, {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        _ => "[resource]".to_owned(),
    }
}

fn of_turn(event: &TurnEvent) -> Option<String> {
    // The message of the user says it.
    if let TurnEvent::TurnStarted { .. } = event {
        return None;
    }
    let mut note = event.facts().note?.to_string();
    if let Some(first) = note.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Some(note)
}

/// Returns an event of which the time is not known.
#[cfg(test)]
pub(super) fn untimed(text: &str) -> StoredEvent<'_> {
    StoredEvent {
        number: 1,
        time: None,
        text,
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::SESSION_UPDATE_CONTENT;

    use super::*;

    const TEXT: &str = r#""content":{"type":"text","text":"t"}"#;

    /// The kinds that a transcript shows, with their other members.
    const SHOWN: [(&str, &str); 6] = [
        ("agent_message_chunk", TEXT),
        ("agent_thought_chunk", TEXT),
        ("plan", r#""entries":[]"#),
        ("tool_call", r#""toolCallId":"1","title":"t""#),
        ("tool_call_update", r#""toolCallId":"1","status":"failed""#),
        ("user_message_chunk", TEXT),
    ];

    const HIDDEN: [&str; 13] = [
        "available_commands_update",
        "compaction_summary_chunk",
        "compaction_update",
        "config_option_update",
        "current_mode_update",
        "notice",
        "plan_removed",
        "plan_update",
        "session_info_update",
        "session_message",
        "session_message_chunk",
        "subagent_update",
        "usage_update",
    ];

    #[test]
    fn messages_notes_and_turns_have_their_times() {
        let write = |part: Part, heading: Option<&str>, output: &mut String| {
            let text = match part {
                Part::Said(_, text) | Part::Note(text) | Part::Block(text, _) => text,
            };
            output.push_str(&format!("{}|{text}\n", heading.unwrap_or_default()));
        };
        let said = format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m",{TEXT}}}"#);
        let call = r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"Read"}"#;
        let started = r#"{"event":"turn_started","turn":1}"#;
        let cost = r#"{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.1,"currency":"USD"}}"#;
        let ended =
            r#"{"event":"turn_ended","turn":1,"stopReason":"end_turn","usage":{"totalTokens":15}}"#;
        let (mut writer, mut output) = (Writer::new(write), String::new());
        for (number, text) in (1..).zip([started, &said, &said, call, cost, ended]) {
            let event = StoredEvent {
                number,
                time: Some(1_735_689_599_000 + number * 250),
                text,
            };
            writer.event(event, &mut output);
        }
        let expected = "\
            Agent, 2024-12-31T23:59:59.500Z|t\n\
            |t\n\
            |Tool call: Read, 2025-01-01T00:00:00.000Z\n\
            |Turn ended: end_turn (1.250 s, 15 tokens, 0.1 USD), 2025-01-01T00:00:00.500Z\n";
        assert_eq!(output, expected);
    }

    /// An update replaces the content of its call.
    #[test]
    fn what_a_tool_has_said_before_is_not_written_again() {
        let write = |part: Part, _: Option<&str>, output: &mut String| {
            if let Part::Block(_, text) = part {
                output.push_str(&format!("{text}|"));
            }
        };
        let (mut writer, mut output) = (Writer::new(write), String::new());
        let text = |text: &str| {
            format!(r#"{{"type":"content","content":{{"type":"text","text":"{text}"}}}}"#)
        };
        for content in [
            vec![text("one")],
            vec![text("one"), text("two")],
            vec![text("one"), text("two, three")],
            vec![text("other"), text("two, three")],
        ] {
            let content = content.join(",");
            let update = format!(
                r#"{{"sessionUpdate":"tool_call_update","toolCallId":"1","content":[{content}]}}"#
            );
            writer.event(untimed(&update), &mut output);
        }
        assert_eq!(output, "one|two|, three|other|");
    }

    #[test]
    fn a_changed_file_is_a_patch() {
        let diff = r#"{"type":"diff","path":"/f","oldText":"old\n","newText":"new\n"}"#;
        let text = format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","content":[{diff}]}}"#
        );
        let parts = parts(untimed(&text).parse().body);
        let Some(Part::Block(title, text)) = parts.last() else {
            panic!("expected a block, got {parts:?}");
        };
        assert_eq!(title, "File /f");
        assert!(text.ends_with("@@ -1,1 +1,1 @@\n-old\n+new\n"), "{text}");
    }

    /// A kind that is added to the documents must be added to one of the lists.
    #[test]
    fn every_kind_of_update_is_shown_or_listed_as_hidden() {
        let mut known: Vec<&str> = SHOWN.iter().map(|(kind, _)| *kind).collect();
        known.extend(HIDDEN);
        known.sort_unstable();
        let documented: Vec<&str> = SESSION_UPDATE_CONTENT
            .iter()
            .map(|(kind, _)| kind)
            .collect();
        assert_eq!(known, documented);
        for (kind, members) in SHOWN {
            let text = format!(r#"{{"sessionUpdate":"{kind}",{members}}}"#);
            assert!(!parts(untimed(&text).parse().body).is_empty(), "{kind}");
        }
    }
}
