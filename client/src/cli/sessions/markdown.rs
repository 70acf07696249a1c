//! Formats a conversation as Markdown, update by update.
//!
//! A tool call is written when another update follows, so that it includes its result. Later
//! updates of the call are separate lines.

use std::collections::HashMap;
use std::fmt::Write as _;

use acp_sdk::v1::{
    ContentBlock, Diff, EmbeddedResourceResource, Plan, PlanEntryStatus, SessionUpdate,
    ToolCallContent, ToolCallId, ToolCallStatus, ToolKind,
};

use crate::text::one_line;

/// Maximum number of characters of a title.
const LONGEST_TITLE: usize = 200;

/// Maximum number of tool calls whose titles are remembered.
const REMEMBERED_CALLS: usize = 1000;

/// The author of the current paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Agent,
    Thought,
}

#[derive(Debug, Default)]
pub(super) struct Markdown {
    part: Option<Part>,
    /// The last heading. Thoughts and tool calls are below the agent's.
    heading: Option<Part>,
    /// Tool calls that are not written yet, in order.
    open: Vec<(ToolCallId, Call)>,
    /// Titles of the written tool calls.
    written: HashMap<ToolCallId, String>,
}

#[derive(Debug, Default)]
struct Call {
    title: String,
    kind: Option<ToolKind>,
    status: Option<ToolCallStatus>,
    content: Vec<ToolCallContent>,
}

impl Markdown {
    /// Returns the text that an update adds.
    pub(super) fn update(&mut self, update: &SessionUpdate) -> String {
        let mut text = String::new();
        match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                self.chunk(Part::User, &chunk.content, &mut text);
            }
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.chunk(Part::Agent, &chunk.content, &mut text);
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.chunk(Part::Thought, &chunk.content, &mut text);
            }
            SessionUpdate::ToolCall(call) => {
                let known = self.call(&call.tool_call_id, &mut text);
                known.title.clone_from(&call.title);
                known.kind.clone_from(&call.kind);
                known.status.clone_from(&call.status);
                known.content.clone_from(&call.content);
            }
            SessionUpdate::ToolCallUpdate(call) => {
                if let Some(title) = self.written.get(&call.tool_call_id).cloned() {
                    self.end_part(&mut text);
                    if let Some(status) = &call.status {
                        let _ = write!(text, "- **{title}**: {status}\n\n");
                    }
                    return text;
                }
                let known = self.call(&call.tool_call_id, &mut text);
                if let Some(title) = &call.title {
                    known.title.clone_from(title);
                }
                if call.kind.is_some() {
                    known.kind.clone_from(&call.kind);
                }
                if call.status.is_some() {
                    known.status.clone_from(&call.status);
                }
                if let Some(content) = &call.content {
                    known.content.clone_from(content);
                }
            }
            SessionUpdate::Plan(entries) => {
                self.end_part(&mut text);
                self.end_calls(&mut text);
                plan(entries, &mut text);
            }
            _ => {}
        }
        text
    }

    /// Returns the remaining text.
    pub(super) fn end(&mut self) -> String {
        let mut text = String::new();
        self.end_part(&mut text);
        self.end_calls(&mut text);
        text
    }

    fn chunk(&mut self, part: Part, content: &ContentBlock, text: &mut String) {
        self.end_calls(text);
        if self.part != Some(part) {
            self.end_part(text);
            let heading = if part == Part::User {
                Part::User
            } else {
                Part::Agent
            };
            if self.heading.replace(heading) != Some(heading) {
                text.push_str(if heading == Part::User {
                    "## User\n\n"
                } else {
                    "## Agent\n\n"
                });
            }
            if part == Part::Thought {
                text.push_str("> ");
            }
            self.part = Some(part);
        }
        let said = words(content);
        match part {
            Part::Thought => text.push_str(&said.replace('\n', "\n> ")),
            _ => text.push_str(&said),
        }
    }

    fn end_part(&mut self, text: &mut String) {
        if self.part.take().is_some() {
            text.push_str("\n\n");
        }
    }

    /// Returns a tool call that is not written yet.
    fn call(&mut self, id: &ToolCallId, text: &mut String) -> &mut Call {
        self.end_part(text);
        if self.heading.replace(Part::Agent) != Some(Part::Agent) {
            text.push_str("## Agent\n\n");
        }
        let known = self.open.iter().position(|(open, _)| open == id);
        let index = known.unwrap_or_else(|| {
            if self.open.len() >= REMEMBERED_CALLS {
                self.end_calls(text);
            }
            self.open.push((id.clone(), Call::default()));
            self.open.len() - 1
        });
        &mut self.open[index].1
    }

    fn end_calls(&mut self, text: &mut String) {
        if self.written.len() >= REMEMBERED_CALLS {
            self.written.clear();
        }
        for (id, call) in self.open.drain(..) {
            let title = match call.title.as_str() {
                "" => one_line(id.as_str(), LONGEST_TITLE),
                title => one_line(title, LONGEST_TITLE),
            };
            let _ = write!(text, "- **{title}**");
            if let Some(kind) = &call.kind {
                let _ = write!(text, " ({kind})");
            }
            if let Some(status) = &call.status {
                let _ = write!(text, ": {status}");
            }
            text.push_str("\n\n");
            for content in &call.content {
                match content {
                    ToolCallContent::Content(content) => {
                        indented(&fenced("", &words(&content.content)), text);
                    }
                    ToolCallContent::Diff(diff) => indented(&changes(diff), text),
                    ToolCallContent::Terminal(_) => text.push_str("  [terminal]\n\n"),
                    _ => {}
                }
            }
            self.written.insert(id, title);
        }
    }
}

/// Formats a block as text; content other than text is named.
fn words(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio: {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}](<{}>)", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                format!("\n\n{}", fenced(&text.uri, &text.text))
            }
            _ => "[resource]".to_owned(),
        },
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Encloses text in fences that do not occur in it.
fn fenced(info: &str, text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let info = one_line(info, LONGEST_TITLE).replace('`', "");
    format!(
        "{fence}{info}\n{}\n{fence}\n\n",
        text.trim_end_matches('\n')
    )
}

fn changes(diff: &Diff) -> String {
    let mut text = format!("{}\n", one_line(&diff.path, LONGEST_TITLE));
    for line in diff.old_text.as_deref().unwrap_or_default().lines() {
        let _ = writeln!(text, "-{line}");
    }
    for line in diff.new_text.lines() {
        let _ = writeln!(text, "+{line}");
    }
    fenced("diff", &text)
}

/// Appends a block below an item of a list.
fn indented(block: &str, text: &mut String) {
    for line in block.lines() {
        if !line.is_empty() {
            text.push_str("  ");
            text.push_str(line);
        }
        text.push('\n');
    }
}

fn plan(plan: &Plan, text: &mut String) {
    text.push_str("Plan:\n\n");
    for entry in &plan.entries {
        let mark = match entry.status {
            PlanEntryStatus::Completed => 'x',
            _ => ' ',
        };
        let _ = writeln!(
            text,
            "- [{mark}] {}",
            one_line(&entry.content, LONGEST_TITLE)
        );
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{Content, ContentChunk, ToolCall, ToolCallUpdate};

    use super::*;

    fn chunk(text: &str) -> ContentChunk {
        ContentChunk::new(ContentBlock::from(text))
    }

    fn written(updates: &[SessionUpdate]) -> String {
        let mut markdown = Markdown::default();
        let mut text: String = updates
            .iter()
            .map(|update| markdown.update(update))
            .collect();
        text += &markdown.end();
        text
    }

    #[test]
    fn chunks_are_put_together_below_headings() {
        let text = written(&[
            SessionUpdate::UserMessageChunk(chunk("Hel")),
            SessionUpdate::UserMessageChunk(chunk("lo")),
            SessionUpdate::AgentThoughtChunk(chunk("Hm.\nSo")),
            SessionUpdate::AgentMessageChunk(chunk("Hi.")),
        ]);
        assert_eq!(
            text,
            "## User\n\nHello\n\n## Agent\n\n> Hm.\n> So\n\nHi.\n\n"
        );
    }

    #[test]
    fn a_tool_call_is_written_with_its_result() {
        let done = ToolCallUpdate::new("1")
            .with_status(ToolCallStatus::Completed)
            .with_content(vec![
                ToolCallContent::Content(Content::new(ContentBlock::from("a ``` b\n"))),
                ToolCallContent::Diff(Diff::new("/f", "new\n").with_old_text("old\n")),
            ]);
        let call = ToolCall::new("1", "Read *it*").with_kind(ToolKind::Read);
        let late = ToolCallUpdate::new("1").with_status(ToolCallStatus::Failed);
        let text = written(&[
            SessionUpdate::ToolCall(call),
            SessionUpdate::ToolCallUpdate(done),
            SessionUpdate::AgentMessageChunk(chunk("Done.")),
            SessionUpdate::ToolCallUpdate(late),
        ]);
        let expected = "## Agent\n\n- **Read *it*** (read): completed\n\n  ````\n  a ``` b\n  ````\n\n  \
            ```diff\n  /f\n  -old\n  +new\n  ```\n\nDone.\n\n- **Read *it***: failed\n\n";
        assert_eq!(text, expected);
    }
}
