//! A tool call, from its announcement to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_sdk::Json;
use acp_sdk::v1::{
    Content, ContentBlock, SessionId, SessionUpdate, Terminal as TerminalContent, TextContent,
    ToolCall as Announcement, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
};

use super::announcement::diff;
use super::{Terminal, TurnCore};
use crate::Result;
use crate::local::Command;

/// A tool call in progress. Dropped without an end, it fails.
///
/// The protocol replaces the content of a call as a whole, so each piece is sent together with
/// those before it. Use a [`Terminal`] for a call with much output.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/tool-calls>
#[derive(Debug)]
#[must_use = "a tool call that is dropped has failed"]
pub struct ToolCall {
    core: Arc<TurnCore>,
    /// The child session that makes the call.
    child: Option<SessionId>,
    /// As it was announced, with the content of now.
    call: Announcement,
    /// Commands of this machine, by their place in the content.
    commands: Vec<(usize, Arc<Command>)>,
    started: AtomicBool,
}

/// Bytes of a local command's output that are displayed; escapes make them longer.
const DISPLAYED_OUTPUT: usize = 16 << 10;

impl ToolCall {
    pub(super) async fn announce(
        core: Arc<TurnCore>,
        call: Announcement,
        child: Option<SessionId>,
    ) -> Result<Self> {
        let announcement = call.clone();
        // Before it is sent: dropped meanwhile, the call has failed.
        let call = Self {
            core,
            child,
            call,
            commands: Vec::new(),
            started: AtomicBool::new(false),
        };
        let update = SessionUpdate::ToolCall(announcement);
        call.send(update).await?;
        Ok(call)
    }

    /// Returns the id, unique in the session.
    #[must_use]
    pub fn id(&self) -> &ToolCallId {
        &self.call.tool_call_id
    }

    async fn send(&self, update: SessionUpdate) -> Result<()> {
        self.core.send_of(self.child.as_ref(), update).await
    }

    /// Returns the session that makes the call.
    pub(super) fn session(&self) -> &SessionId {
        self.child.as_ref().unwrap_or(self.core.session.id())
    }

    /// Returns what the answer "always" to a permission is remembered by.
    pub(super) fn remembered_as(&self) -> String {
        format!("{:?} {}", self.call.kind, self.call.title)
    }

    /// Returns the call as a request for permission shows it.
    pub(super) fn summary(&self) -> ToolCallUpdate {
        let call = &self.call;
        let mut summary = self.change().with_title(call.title.as_str());
        summary.kind = call.kind.clone();
        summary.raw_input = call.raw_input.clone();
        summary.content = Some(call.content.clone()).filter(|content| !content.is_empty());
        summary.locations = Some(call.locations.clone()).filter(|places| !places.is_empty());
        summary
    }

    /// Sets the status to `in_progress`. Further calls do nothing.
    ///
    /// # Errors
    ///
    /// As [`Turn::send_text`](super::Turn::send_text). The same holds for all methods here.
    pub async fn start(&self) -> Result<()> {
        if self.started.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.update(self.change().with_status(ToolCallStatus::InProgress))
            .await
    }

    /// Adds text to the content of the call.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn add_text(&mut self, text: impl Into<String>) -> Result<()> {
        self.add_content(ContentBlock::Text(TextContent::new(text)))
            .await
    }

    /// Adds content of any kind.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn add_content(&mut self, block: ContentBlock) -> Result<()> {
        self.add(ToolCallContent::Content(Content::new(block)))
            .await
    }

    /// Adds a change of a file; `old` is its former text, `None` for a new file.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn add_diff(&mut self, path: &str, old: Option<&str>, new: &str) -> Result<()> {
        self.add(diff(&self.core, path, old, new)).await
    }

    /// Adds a terminal, whose output the client displays, also after its release.
    ///
    /// Clients do not know a terminal of the agent's own machine. They are sent the command and the
    /// last 16 KiB of its output as text, with each later change of the content and at the end.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn add_terminal(&mut self, terminal: &Terminal) -> Result<()> {
        if let Some(command) = terminal.local() {
            let place = self.call.content.len();
            self.commands.push((place, command.clone()));
            return self.add(displayed(command)).await;
        }
        let content = TerminalContent::new(terminal.id());
        self.add(ToolCallContent::Terminal(content)).await
    }

    /// Sets the output of the tool as the model receives it. It is sent with the end of the call.
    pub fn set_raw_output(&mut self, output: impl Into<Json>) {
        self.call.raw_output = Some(output.into());
    }

    /// Changes other members: title, locations, raw input and output. The id is set to this
    /// call's.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn update(&self, mut change: ToolCallUpdate) -> Result<()> {
        change.tool_call_id = self.id().clone();
        self.send(SessionUpdate::ToolCallUpdate(change)).await
    }

    /// Ends the call with success. Adds `text` to its content, if it is not empty.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn complete(self, text: impl Into<String>) -> Result<()> {
        self.end(ToolCallStatus::Completed, text.into()).await
    }

    /// Ends the call with a failure, and adds the reason to its content.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn fail(self, reason: impl Into<String>) -> Result<()> {
        self.end(ToolCallStatus::Failed, reason.into()).await
    }

    /// Ends the call with a failure, because the user did not allow it.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn reject(self) -> Result<()> {
        self.fail("Rejected by the user.").await
    }

    fn change(&self) -> ToolCallUpdate {
        ToolCallUpdate::new(self.id())
    }

    async fn add(&mut self, content: ToolCallContent) -> Result<()> {
        self.call.content.push(content);
        self.refresh();
        self.update(self.change().with_content(self.call.content.clone()))
            .await
    }

    /// Displays the current output of local commands.
    fn refresh(&mut self) {
        for (at, command) in &self.commands {
            if let Some(content) = self.call.content.get_mut(*at) {
                *content = displayed(command);
            }
        }
    }

    async fn end(mut self, status: ToolCallStatus, text: String) -> Result<()> {
        let mut change = self.change().with_status(status);
        change.raw_output = self.call.raw_output.take();
        let has_text = !text.is_empty();
        if has_text {
            self.call.content.push(text_content(text));
        }
        if has_text || !self.commands.is_empty() {
            self.refresh();
            change = change.with_content(std::mem::take(&mut self.call.content));
        }
        self.update(change).await
    }
}

fn text_content(text: String) -> ToolCallContent {
    let block = ContentBlock::Text(TextContent::new(text));
    ToolCallContent::Content(Content::new(block))
}

/// A local command as text: a block of code, with a fence that is not part of the output.
fn displayed(command: &Command) -> ToolCallContent {
    let response = command.output(DISPLAYED_OUTPUT);
    let output = response.output.trim_end_matches('\n');
    let longest = output.split(|other| other != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let cut = if response.truncated { "…\n" } else { "" };
    let line = command.line();
    text_content(format!("{fence}\n$ {line}\n{cut}{output}\n{fence}"))
}

impl Drop for ToolCall {
    fn drop(&mut self) {
        match &self.child {
            Some(child) => self.core.child_call_dropped(child, self.id()),
            None => self.core.call_dropped(self.id()),
        }
    }
}
