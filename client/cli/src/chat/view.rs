//! Formats session events as permanent text and live lines.

mod summary;
#[cfg(test)]
mod tests;

use acp_sdk::conversation::{Change, Conversation};
use acp_sdk::v1::{ContentBlock, ContentChunk, SessionUpdate};

use super::markdown::Markdown;
use super::screen::Live;
use super::style::{Colour, Face, Paint, wrap};
use super::tools::{self, Tools, kind};
use crate::text;
use acp_client::internal::is_steered;
use acp_client::{Answered, ChildConversations, Event, Phase, SessionEvent};
use acp_client::{Asker, PermissionRequest};

/// Limit in bytes of the conversation. What was shown is not shown again.
const REMEMBERED: usize = 16 << 20;

/// The kind of the last output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// No output, or an empty line.
    Empty,
    Text,
    Thought,
    User,
    Tool,
    Note,
}

/// Converts events to text whose lines end in `\n`.
#[derive(Debug)]
pub(super) struct View {
    paint: Paint,
    /// The width of the terminal at the last output, in columns.
    width: usize,
    text: Markdown,
    thought: Markdown,
    user: Markdown,
    conversation: Conversation,
    children: ChildConversations,
    last: Last,
    tools: Tools,
    /// Whether the plan has changed since it was shown.
    plan_changed: bool,
    /// While a turn runs: whether the last output belongs to it.
    in_turn: Option<bool>,
    /// The text of the last turn.
    answer: String,
}

impl View {
    pub(super) fn new(paint: Paint) -> Self {
        Self {
            paint,
            width: 80,
            text: Markdown::new(paint, Face::default()),
            thought: Markdown::new(paint, Face::DIM),
            user: Markdown::new(paint, Face::BOLD),
            conversation: Conversation::with_limit(REMEMBERED),
            children: ChildConversations::default(),
            last: Last::Empty,
            tools: Tools::default(),
            plan_changed: false,
            in_turn: None,
            answer: String::new(),
        }
    }

    /// Returns the text for an event.
    pub(super) fn event(&mut self, event: &SessionEvent, width: usize) -> String {
        self.width = width;
        self.in_turn = match &event.event {
            Event::TurnStarted { .. } => Some(true),
            Event::TurnEnded { .. } => None,
            _ => self.in_turn,
        };
        match &event.event {
            // Agents of version 2 repeat the prompt. What was said during the turn is shown at its place.
            Event::Update(SessionUpdate::UserMessageChunk(chunk))
                if event.turn.is_some() && event.phase == Phase::Live && !is_steered(chunk) =>
            {
                String::new()
            }
            Event::Update(update) => self.separate(event, update) + &self.update(update, width),
            Event::ChildSession(child) => {
                let line = text::child_tool_call(&mut self.children, child);
                line.map_or_else(String::new, |line| self.dim(&line))
            }
            Event::Permission(answered) => self.permission(answered),
            Event::Gap(gap) => self.note(Colour::Yellow, text::gap(*gap)),
            Event::Missed(count) => {
                let line = format!("{count} events are missing here");
                self.note(Colour::Yellow, &line)
            }
            Event::HistoryEnd => {
                self.conversation.end_history();
                self.end(width) + &self.dim("end of the history")
            }
            _ => String::new(),
        }
    }

    /// Returns a line before output of something else than the running turn, and before the turn
    /// continues.
    fn separate(&mut self, event: &SessionEvent, update: &SessionUpdate) -> String {
        let is_own = event.turn.is_some();
        if !is_output(update) || self.in_turn.is_none_or(|was_own| was_own == is_own) {
            return String::new();
        }
        self.in_turn = Some(is_own);
        self.dim(match (is_own, &event.prompt_id) {
            (true, _) => "  your prompt:",
            (false, Some(_)) => "  another prompt of this session:",
            (false, None) => "  outside of your prompt:",
        })
    }

    fn update(&mut self, update: &SessionUpdate, width: usize) -> String {
        let changes = self.conversation.apply(update);
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let mut changes = changes.into_iter();
                let new = changes.any(|change| matches!(change, Change::Added(_)));
                self.said(chunk, new, width)
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                let mut shown = self.turn_to(Last::Thought);
                shown += &self.thought.push(&in_words(&chunk.content), width);
                shown
            }
            SessionUpdate::UserMessageChunk(chunk) => {
                let mut shown = self.turn_to(Last::User);
                shown += &self
                    .user
                    .push(&in_words(&chunk.content), width.saturating_sub(2));
                shown
            }
            SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_) => {
                let mut changed = changes.into_iter().filter_map(Change::item);
                let item = changed.next().and_then(|id| self.conversation.item(id));
                let shown = item.and_then(|item| self.tools.changed(item, width, self.paint));
                match shown {
                    Some(shown) => self.turn_to(Last::Tool) + &shown,
                    None => self.end_line(),
                }
            }
            SessionUpdate::Plan(_) => {
                self.plan_changed |= !changes.is_empty();
                String::new()
            }
            update => match text::line(update) {
                Some(line) => self.dim(&line),
                None => String::new(),
            },
        }
    }

    fn said(&mut self, chunk: &ContentChunk, new: bool, width: usize) -> String {
        let mut shown = match new && self.last == Last::Text {
            true => self.text.finish() + "\n",
            false => self.turn_to(Last::Text),
        };
        match &chunk.content {
            ContentBlock::Text(text) => shown += &self.text.push(&text.text, width),
            block => {
                shown += &self.text.finish();
                shown += &format!("{}\n", self.paint.text(Face::DIM, &kind(block)));
            }
        }
        shown
    }

    /// Ends the last output and adds an empty line.
    fn turn_to(&mut self, next: Last) -> String {
        if self.last == next {
            return String::new();
        }
        let mut shown = match self.last {
            Last::Text => self.text.finish(),
            Last::Thought => self.thought.finish(),
            Last::User => self.user.finish(),
            _ => String::new(),
        };
        if self.last != Last::Empty {
            shown.push('\n');
        }
        if next == Last::User {
            shown += &self.paint.text(Face::of(Colour::Green), "› ");
        }
        self.last = next;
        shown
    }

    /// Ends an incomplete line of text, because output of a running turn follows below it.
    fn end_line(&mut self) -> String {
        match self.last {
            Last::Text => self.text.finish(),
            Last::Thought => self.thought.finish(),
            _ => String::new(),
        }
    }

    fn permission(&mut self, answered: &Answered) -> String {
        self.dim(&text::permission(answered))
    }

    /// Returns the changes of a permission request of this session.
    pub(super) fn changes(&mut self, question: &PermissionRequest, width: usize) -> Vec<String> {
        if question.asker != Asker::Agent {
            return tools::requested(question, width, self.paint);
        }
        // The request may say more about the call than the updates before it.
        let call = &question.request.tool_call;
        let _ = self
            .conversation
            .apply(&SessionUpdate::ToolCallUpdate(call.clone()));
        let item = self.conversation.tool_call(&call.tool_call_id);
        let item = item.and_then(|(id, _)| self.conversation.item(id));
        item.map_or_else(Vec::new, |item| self.tools.diffs(item, width, self.paint))
    }

    /// Returns a line of acp.
    pub(super) fn note(&mut self, colour: Colour, line: &str) -> String {
        self.painted(Face::of(colour), line)
    }

    /// Returns a line for standard error. It does not end a text that is not complete, such as code.
    pub(super) fn aside(&mut self, line: &str) -> String {
        let face = match line.starts_with("acp: ") {
            true => Face::of(Colour::Yellow),
            false => Face::DIM,
        };
        let last = self.last;
        if !matches!(last, Last::Text | Last::Thought) {
            return self.painted(face, line);
        }
        self.last = Last::Note;
        let shown = self.painted(face, line);
        self.last = last;
        shown
    }

    /// Returns a dimmed line.
    pub(super) fn dim(&mut self, line: &str) -> String {
        self.painted(Face::DIM, line)
    }

    fn painted(&mut self, face: Face, line: &str) -> String {
        let mut shown = self.turn_to(Last::Note);
        for line in wrap(line, self.width) {
            shown += &self.paint.text(face, &line);
            shown.push('\n');
        }
        shown
    }

    /// Returns a complete block of text.
    pub(super) fn block(&mut self, text: &str) -> String {
        self.turn_to(Last::Note) + text
    }

    /// Resets the state for a turn.
    pub(super) fn begin(&mut self) {
        self.last = Last::Empty;
        self.conversation.end_history();
    }

    /// Returns the last `rows` lines of the text that is not complete.
    pub(super) fn preview(&self, width: usize, rows: usize) -> Vec<Live> {
        let mut lines = match self.last {
            Last::Text => self.text.preview(),
            Last::Thought => self.thought.preview(),
            _ => Vec::new(),
        };
        let mut left = rows;
        let last = lines.iter().rev().take_while(|line| {
            let fits = line.rows(width) <= left;
            left = left.saturating_sub(line.rows(width));
            fits
        });
        lines.split_off(lines.len() - last.count())
    }

    /// Ends the running turn or tool call.
    pub(super) fn end(&mut self, width: usize) -> String {
        let calls = self.tools.end(&self.conversation, width, self.paint);
        let mut shown = match calls.is_empty() {
            true => String::new(),
            false => self.turn_to(Last::Tool) + &calls,
        };
        if self.plan_changed {
            shown += &self.turn_to(Last::Note);
            shown += &self.plan(width);
            self.plan_changed = false;
        }
        shown += &self.turn_to(Last::Empty);
        shown
    }
}

/// Returns whether an update is text or a tool call.
pub(super) fn is_output(update: &SessionUpdate) -> bool {
    use SessionUpdate::{
        AgentMessageChunk, AgentThoughtChunk, ToolCall, ToolCallUpdate, UserMessageChunk,
    };
    matches!(
        update,
        AgentMessageChunk(_)
            | AgentThoughtChunk(_)
            | ToolCall(_)
            | ToolCallUpdate(_)
            | UserMessageChunk(_)
    )
}

fn in_words(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        block => kind(block),
    }
}
