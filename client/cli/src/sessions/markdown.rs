//! Formats a conversation as Markdown, update by update.
//!
//! A tool call is written when another update follows, so that it includes its result. Later
//! updates of the call are separate lines.

use std::fmt::Write as _;

use acp_sdk::conversation::{Change, Conversation, Item, ItemId, Role};
use acp_sdk::v1::{
    ContentBlock, Diff, EmbeddedResourceResource, Plan, PlanEntryStatus, SessionUpdate, ToolCall,
    ToolCallContent,
};

use acp_sdk::text::{git_patch, one_line};

/// Maximum number of characters of a title.
const LONGEST_TITLE: usize = 200;

/// The size in bytes of the conversation above which no tool call waits for its result. Half of
/// the limit, so that each update has room.
const REMEMBERED: usize = Conversation::DEFAULT_LIMIT / 2;

/// Maximum number of tool calls that are not written yet.
const MOST_OPEN: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Markdown {
    conversation: Conversation,
    /// The message of the current paragraph.
    part: Option<ItemId>,
    /// The author of the last heading. Thoughts and tool calls are below the agent's.
    heading: Option<Role>,
    /// Tool calls that are not written yet, in order.
    open: Vec<ItemId>,
}

impl Markdown {
    /// Returns the text that an update adds.
    pub(super) fn update(&mut self, update: &SessionUpdate) -> String {
        let mut text = String::new();
        // An open call must not be removed for the limit before it is written.
        if self.open.len() >= MOST_OPEN || self.conversation.bytes() > REMEMBERED {
            self.end_calls(&mut text);
        }
        for change in self.conversation.apply(update) {
            match (change, update) {
                (
                    Change::Added(id) | Change::Appended(id) | Change::Changed(id),
                    SessionUpdate::UserMessageChunk(chunk)
                    | SessionUpdate::AgentMessageChunk(chunk)
                    | SessionUpdate::AgentThoughtChunk(chunk),
                ) => self.chunk(id, &chunk.content, &mut text),
                (
                    Change::Added(id),
                    SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_),
                ) => {
                    self.end_part(&mut text);
                    self.head(Role::Agent, &mut text);
                    self.open.push(id);
                }
                (Change::Changed(id), SessionUpdate::ToolCallUpdate(call))
                    if !self.open.contains(&id) =>
                {
                    self.end_part(&mut text);
                    if let Some(status) = &call.status {
                        let _ = write!(text, "- **{}**: {status}\n\n", self.title(id));
                    }
                }
                (Change::Plan, SessionUpdate::Plan(entries)) => {
                    self.end_part(&mut text);
                    self.end_calls(&mut text);
                    plan(entries, &mut text);
                }
                _ => {}
            }
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

    /// Writes content of a message.
    fn chunk(&mut self, id: ItemId, content: &ContentBlock, text: &mut String) {
        let message = self.conversation.item(id).and_then(Item::as_message);
        let Some(role) = message.map(|message| message.role) else {
            return;
        };
        self.end_calls(text);
        if self.part != Some(id) {
            self.end_part(text);
            self.head(role, text);
            if role == Role::Thought {
                text.push_str("> ");
            }
            self.part = Some(id);
        }
        let said = words(content);
        match role {
            Role::Thought => text.push_str(&said.replace('\n', "\n> ")),
            _ => text.push_str(&said),
        }
    }

    /// Writes the heading of an author, unless it is the last one.
    fn head(&mut self, role: Role, text: &mut String) {
        let (role, heading) = match role {
            Role::User => (Role::User, "## User\n\n"),
            _ => (Role::Agent, "## Agent\n\n"),
        };
        if self.heading.replace(role) != Some(role) {
            text.push_str(heading);
        }
    }

    fn end_part(&mut self, text: &mut String) {
        if self.part.take().is_some() {
            text.push_str("\n\n");
        }
    }

    fn title(&self, id: ItemId) -> String {
        let call = self.conversation.item(id).and_then(Item::as_tool_call);
        call.map(title).unwrap_or_default()
    }

    fn end_calls(&mut self, text: &mut String) {
        for id in self.open.drain(..) {
            let call = self.conversation.item(id).and_then(Item::as_tool_call);
            let Some(call) = call else { continue };
            let _ = write!(text, "- **{}**", title(call));
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
        }
    }
}

fn title(call: &ToolCall) -> String {
    match call.title.as_str() {
        "" => one_line(call.tool_call_id.as_str(), LONGEST_TITLE),
        title => one_line(title, LONGEST_TITLE),
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
    let patch = git_patch(&diff.path, diff.old_text.as_deref(), &diff.new_text);
    // Equal texts still name the file.
    let text = patch.map_or_else(|| one_line(&diff.path, LONGEST_TITLE), |patch| patch.text);
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
    use acp_sdk::v1::{Content, ContentChunk, ToolCallStatus, ToolCallUpdate, ToolKind};

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
            ```diff\n  diff --git /f /f\n  --- /f\n  +++ /f\n  @@ -1,1 +1,1 @@\n  -old\n  +new\n  ```\n\nDone.\n\n- **Read *it***: failed\n\n";
        assert_eq!(text, expected);
    }
}
