//! The turn of one prompt, for transports that answer each prompt with a stream of its own.

use acp_server::Session;
use acp_server::event::Event;

use super::encode::{Update, encode};
use crate::fold::{Fold, Step};
use crate::permission::{self, Reply};
use acp_dialects::openoxide::{PromptResponse, SessionEvent};

/// The bytes of a turn that are kept until it ends.
const KEPT: usize = 8 << 20;

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndedTurn {
    /// The turn has a stop reason.
    Response(PromptResponse),
    /// The turn has failed, for this reason.
    Failed(String),
}

/// The events of one turn in OpenOxide's form.
///
/// Nobody can be asked for a permission. One that the turn asks for is rejected when its event is taken.
pub struct TurnEvents {
    fold: Fold,
    ended: Option<EndedTurn>,
}

impl TurnEvents {
    /// Creates the value before the first event of the turn.
    #[must_use]
    pub fn new() -> Self {
        Self {
            fold: Fold::with_limit(KEPT),
            ended: None,
        }
    }

    /// Takes the next event of the turn, and returns what the client is sent of it.
    pub fn take(&mut self, session: &Session, event: Event) -> Vec<SessionEvent> {
        let (number, time) = (event.number, event.time);
        let mut events = Vec::new();
        for step in self.fold.event(event) {
            if let Step::TurnEnded(stop, error) = &step {
                self.ended = Some(match stop {
                    Some(stop) => {
                        let id = session.id().clone();
                        let text = self.fold.text();
                        let mut response = PromptResponse::new(id, text, stop.as_str(), number);
                        let omitted = self.fold.omitted();
                        response.omitted_bytes = (omitted > 0).then_some(omitted);
                        EndedTurn::Response(response)
                    }
                    None => EndedTurn::Failed(error.clone().unwrap_or_default()),
                });
            }
            match encode(step, time) {
                Some(Update::Sent(sent)) => events.extend(sent),
                Some(Update::Refused(question, options)) => {
                    // Another answer may have been first.
                    let reply = Reply::Deny;
                    let _ = permission::answer(session, question, reply, &options, "openoxide");
                }
                None => {}
            }
        }
        events
    }

    /// Returns the end of the turn; `None` before it.
    #[must_use]
    pub fn ended(&self) -> Option<&EndedTurn> {
        self.ended.as_ref()
    }
}

impl Default for TurnEvents {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for TurnEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnEvents").finish_non_exhaustive()
    }
}

/// Returns the value of the member `type`.
#[must_use]
pub fn event_name(event: &SessionEvent) -> &str {
    match event {
        SessionEvent::TextDelta(_) => "text_delta",
        SessionEvent::ToolCall(_) => "tool_call",
        SessionEvent::ToolResult(_) => "tool_result",
        SessionEvent::Plan(_) => "plan",
        SessionEvent::Diff(_) => "diff",
        SessionEvent::SlashCommands(_) => "slash_commands",
        SessionEvent::Unknown(other) => other.tag(),
        // The document has no other.
        _ => "unknown",
    }
}
