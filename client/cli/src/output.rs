//! Prints the output of a run in each format.

mod pieces;
mod place;
mod updates;

use std::io::{self, IsTerminal as _};

use acp_sdk::conversation::Conversation;
use acp_sdk::text::Sanitizer;
use acp_sdk::v1::{InitializeResponse, SessionId, SessionUpdate, StopReason, UsageUpdate};

pub(super) use self::pieces::{LONGEST_PIECE, Waiting};
use self::place::Streams;
pub(super) use self::place::same_place;
use super::args::Format;
use super::exit::{Code, explained};
use super::json::{Line, escaped};
use super::text;
use acp_client::Error;
use acp_client::{ChildConversations, Event, Events, Outcome, SessionEvent};

/// Maximum number of bytes of a thought in one line.
const LONGEST_THOUGHT: usize = 4 << 10;

/// Limit in bytes of the conversation. What was printed is needed for titles of tool calls only.
const REMEMBERED: usize = 4 << 20;

/// Maximum number of buffered bytes for standard output.
const MOST_GATHERED: usize = 64 << 10;

/// Prints events. Standard output is written by [`Output::flush`].
#[derive(Debug)]
pub(super) struct Output {
    format: Format,
    streams: Streams,
    /// Whether standard output is a terminal, so that the agent's text is sanitized.
    on_terminal: bool,
    /// For the agent's text, whose sequences may begin in one chunk and end in another.
    sanitizer: Sanitizer,
    /// Whether both streams lead to one place, so that lines must not begin inside of each other.
    shared: bool,
    session: Option<SessionId>,
    /// Of the run, the latest part.
    conversation: Conversation,
    children: ChildConversations,
    /// The end of the text written to standard output.
    tail: String,
    thought: String,
    usage: Option<UsageUpdate>,
    /// The outcome so far of a failed run.
    partial: Option<Outcome>,
    /// Buffered bytes for standard output.
    gathered: Vec<u8>,
    /// The error after which standard output is not written any more.
    lost: Option<io::Error>,
}

impl Output {
    pub(super) fn new(format: Format) -> Self {
        Self::to(
            Streams::process(),
            format,
            io::stdout().is_terminal(),
            same_place(),
        )
    }

    /// The output of a prompt for the process that has sent it.
    pub(super) fn of_prompt(format: Format, to: Waiting, on_terminal: bool, shared: bool) -> Self {
        Self::to(Streams::Waiting(to), format, on_terminal, shared)
    }

    fn to(streams: Streams, format: Format, on_terminal: bool, shared: bool) -> Self {
        Self {
            format,
            streams,
            on_terminal,
            sanitizer: Sanitizer::default(),
            shared,
            session: None,
            conversation: Conversation::with_limit(REMEMBERED),
            children: ChildConversations::default(),
            tail: String::new(),
            thought: String::new(),
            usage: None,
            partial: None,
            gathered: Vec::new(),
            lost: None,
        }
    }

    /// Prints the start of the session.
    ///
    /// # Errors
    ///
    /// Fails when standard output is closed, like all methods.
    pub(super) async fn session(
        &mut self,
        id: &SessionId,
        cwd: &str,
        agent: &InitializeResponse,
    ) -> io::Result<()> {
        self.session = Some(id.clone());
        if self.format == Format::Json {
            let line = Line::Session {
                session_id: id,
                cwd,
                agent,
            };
            self.json(&line).await?;
        }
        Ok(())
    }

    pub(super) async fn event(&mut self, event: &SessionEvent) -> io::Result<()> {
        match (self.format, &event.event) {
            (Format::Quiet, _) => Ok(()),
            _ if event.is_of_another_prompt() => Ok(()),
            // Text outside of turns is not an answer.
            (Format::Text, Event::Update(update)) if event.turn.is_none() && is_text(update) => {
                Ok(())
            }
            (Format::Json, Event::Update(update)) => self.json_update(update).await,
            (Format::Json, Event::Permission(answered)) => {
                self.json(&Line::permission(answered)).await
            }
            (Format::Json, Event::Gap(gap)) => self.json(&Line::gap(*gap)).await,
            (Format::Text, Event::Gap(gap)) => {
                self.end_thought().await;
                self.write_note(text::gap(*gap)).await;
                Ok(())
            }
            (Format::Text, Event::Update(update)) => self.text_update(update).await,
            (Format::Json, Event::ChildSession(child)) => {
                let line = Line::ChildUpdate {
                    session_id: &child.session,
                    title: child.title.as_deref(),
                    update: &child.update,
                };
                self.json(&line).await
            }
            (Format::Text, Event::ChildSession(child)) => {
                if let Some(line) = text::child_tool_call(&mut self.children, child) {
                    self.end_thought().await;
                    self.write_note(&line).await;
                }
                Ok(())
            }
            (Format::Text, Event::Permission(answered)) => {
                self.end_thought().await;
                self.write_note(&text::permission(answered)).await;
                Ok(())
            }
            // The result contains them.
            _ => Ok(()),
        }
    }

    /// Prints an event and all queued events.
    pub(super) async fn events(
        &mut self,
        events: &mut Events,
        event: SessionEvent,
    ) -> io::Result<()> {
        self.event(&event).await?;
        // Queued events are written together; a single event is not held back.
        while self.gathered.len() < MOST_GATHERED
            && let Some(event) = events.next_ready()
        {
            self.event(&event).await?;
        }
        self.flush().await
    }

    /// Ends the output of another process.
    pub(super) async fn exit(mut self, code: Code) {
        // A failure means that it is gone.
        let _ = self.flush().await;
        if self.lost.is_none() {
            self.streams.exit(code).await;
        }
    }

    /// Prints the end of the turn.
    pub(super) async fn outcome(&mut self, code: Code, outcome: &Outcome) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let session = self.session.clone();
                let line = Line::outcome(code, session.as_ref(), outcome);
                return self.json(&line).await;
            }
            Format::Quiet => self.print(&outcome.text).await?,
            Format::Text => self.end_thought().await,
        }
        if !self.tail.is_empty() && !self.tail.ends_with('\n') {
            self.print("\n").await?;
        }
        if let Some(usage) = self.usage.take() {
            self.write_note(&text::usage(&usage)).await;
        }
        if let Some(message) = text::not_allowed(outcome) {
            self.complain(&message).await;
            return Ok(());
        }
        match &outcome.stop_reason {
            StopReason::EndTurn => {}
            StopReason::Cancelled => self.complain("the turn was cancelled").await,
            reason => {
                self.complain(&format!("the turn ended with {reason}"))
                    .await
            }
        }
        Ok(())
    }

    /// Keeps the outcome so far, for the result of a failed run.
    pub(super) fn keep(&mut self, so_far: Outcome) {
        self.partial = Some(so_far);
    }

    /// Prints the error of a failed run.
    pub(super) async fn error(&mut self, code: Code, error: &Error) -> io::Result<()> {
        self.interrupt().await;
        for line in explained(error) {
            self.complain(&line).await;
        }
        let (session, partial) = (self.session.clone(), self.partial.take());
        let line = Line::error(code, session.as_ref(), partial.as_ref(), error);
        self.last_json(&line).await
    }

    /// Prints the failure of a run that is not an error of the client.
    pub(super) async fn failure(
        &mut self,
        code: Code,
        kind: &'static str,
        message: &str,
    ) -> io::Result<()> {
        self.interrupt().await;
        self.complain(message).await;
        let (session, partial) = (self.session.clone(), self.partial.take());
        let message = message.to_owned();
        let line = Line::failure(
            code,
            session.as_ref(),
            partial.as_ref(),
            kind,
            message,
            None,
        );
        self.last_json(&line).await
    }

    /// Prints a message to the user, in each format.
    pub(super) async fn complain(&mut self, message: &str) {
        self.write_note(&format!("acp: {message}")).await;
    }

    async fn last_json(&mut self, line: &Line<'_>) -> io::Result<()> {
        match self.format {
            Format::Json => self.json(line).await,
            _ => Ok(()),
        }
    }

    /// Ends an incomplete line.
    async fn interrupt(&mut self) {
        self.end_thought().await;
        if self.format == Format::Text && !self.tail.is_empty() && !self.tail.ends_with('\n') {
            // Errors are ignored, because the following message goes to another stream.
            let _ = self.print("\n").await;
        }
    }

    async fn json_update(&mut self, update: &SessionUpdate) -> io::Result<()> {
        let Some(session) = self.session.clone() else {
            return Ok(());
        };
        let line = Line::Update {
            session_id: &session,
            update,
        };
        self.json(&line).await
    }

    async fn json(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut json = serde_json::to_string(line)?;
        if self.on_terminal {
            json = escaped(&json);
        }
        json.push('\n');
        self.write(json.as_bytes()).await
    }

    /// Buffers bytes for standard output. Writes them at the next [`flush`](Self::flush), or when
    /// the buffer is full.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < MOST_GATHERED {
            return Ok(());
        }
        self.flush().await
    }

    /// Writes the buffer to standard output. After an error, all calls fail.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if let Some(error) = &self.lost {
            self.gathered.clear();
            return Err(error.kind().into());
        }
        if self.gathered.is_empty() {
            return Ok(());
        }
        let written = self.streams.output(&self.gathered).await;
        self.gathered.clear();
        written.map_err(|error| self.lost.insert(error).kind().into())
    }

    /// Returns the first write error, if any.
    pub(super) fn lost(&self) -> Option<&io::Error> {
        self.lost.as_ref()
    }

    /// Writes text to standard output.
    async fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let printable;
        let mut text = text;
        if self.on_terminal {
            printable = self.sanitizer.push(text);
            text = &printable;
        }
        self.write(text.as_bytes()).await?;
        self.tail.push_str(text);
        let keep = self.tail.len().saturating_sub(2);
        let keep = (0..=keep).rev().find(|at| self.tail.is_char_boundary(*at));
        self.tail.drain(..keep.unwrap_or(0));
        Ok(())
    }

    /// Writes a line to standard error. Ignores errors.
    async fn write_note(&mut self, line: &str) {
        let mut line = acp_sdk::text::printable(line);
        if self.shared && !self.tail.is_empty() && !self.tail.ends_with('\n') {
            line.insert(0, '\n');
        }
        if self.shared && !self.tail.is_empty() {
            // The cursor is now at the beginning of a line.
            "\n".clone_into(&mut self.tail);
        }
        line.push('\n');
        // Earlier output precedes the line. A failure is reported by the next write.
        let _ = self.flush().await;
        let _ = self.streams.error(line.as_bytes()).await;
    }
}

fn is_text(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::UserMessageChunk(_)
    )
}
