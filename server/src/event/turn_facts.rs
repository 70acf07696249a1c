//! What others must know of each event of our own: one function, which decides for every event.

use acp_sdk::v1::{RequestPermissionOutcome, SessionId, StopReason};

use super::{QuestionId, TurnEvent};

/// Facts of a [`TurnEvent`], for all that follow or show a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnFacts<'a> {
    /// The name of the event in the streams of REST.
    pub name: &'static str,
    /// The state of the session after the event; `None` if it does not change the state.
    pub state: Option<StateAfter<'a>>,
    /// The question that it asks or answers.
    pub question: Option<QuestionId>,
    /// The child session that it is about, or that asks.
    pub child: Option<&'a SessionId>,
    /// What it says to people; `None` if it is part of a conversation.
    pub note: Option<Note<'a>>,
}

/// The state of a session after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateAfter<'a> {
    /// A turn runs.
    Running,
    /// A question is open.
    RequiresAction,
    /// The turn has ended.
    Idle {
        /// `None` if it failed.
        stop_reason: Option<&'a StopReason>,
        /// Why it failed.
        error: Option<&'a str>,
    },
}

/// A line of text: `turn ended: end_turn`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note<'a> {
    text: &'static str,
    /// After the text and a colon.
    detail: Option<&'a str>,
    /// What has answered in place of a person, in brackets.
    by: Option<&'a str>,
}

impl TurnEvent {
    /// Returns the facts of the event.
    pub fn facts(&self) -> TurnFacts<'_> {
        use StateAfter::{Idle, RequiresAction, Running};
        let (name, state, question, text, detail) = match self {
            Self::TurnStarted { .. } => ("turn_start", Some(Running), None, "turn started", None),
            Self::TurnEnded {
                stop_reason, error, ..
            } => {
                let (stop_reason, error) = (stop_reason.as_ref(), error.as_deref());
                let (name, text, detail) = match (error, stop_reason) {
                    (Some(_), _) => ("error", "turn failed", error),
                    (None, Some(StopReason::Cancelled)) => {
                        ("cancelled", "turn ended", Some("cancelled"))
                    }
                    (None, reason) => {
                        let detail = reason.map(StopReason::as_str);
                        ("agent_result", "turn ended", detail)
                    }
                };
                (name, Some(Idle { stop_reason, error }), None, text, detail)
            }
            Self::PermissionAsked {
                question,
                request,
                child,
            } => {
                let call = &request.tool_call;
                let title = call.title.as_deref().unwrap_or(call.tool_call_id.as_str());
                let (name, text) = ("permission_request", "permission asked");
                let state = child.is_none().then_some(RequiresAction);
                (name, state, Some(*question), text, Some(title))
            }
            Self::PermissionAnswered {
                question,
                outcome,
                child,
                ..
            } => {
                let (text, detail) = match outcome {
                    Some(RequestPermissionOutcome::Selected(chosen)) => {
                        ("permission answered", Some(chosen.option_id.as_str()))
                    }
                    Some(_) => ("permission answered", Some("cancelled")),
                    None => ("permission request withdrawn", None),
                };
                let name = "permission_result";
                let state = child.is_none().then_some(Running);
                (name, state, Some(*question), text, detail)
            }
            Self::ElicitationAsked { question, .. } => {
                let (name, text) = ("elicitation_request", "question asked");
                (name, Some(RequiresAction), Some(*question), text, None)
            }
            Self::ElicitationAnswered { question, .. } => {
                let (name, text) = ("elicitation_result", "question answered");
                (name, Some(Running), Some(*question), text, None)
            }
            Self::ChildStarted { title, .. } => {
                let text = "child session started";
                ("child_start", None, None, text, Some(title.as_str()))
            }
            Self::ChildUpdate { .. } => ("child_update", None, None, "", None),
            Self::ChildEnded { stop_reason, .. } => {
                let (text, detail) = ("child session ended", stop_reason.as_str());
                ("child_result", None, None, text, Some(detail))
            }
        };
        let child = match self {
            Self::PermissionAsked { child, .. } | Self::PermissionAnswered { child, .. } => {
                child.as_ref()
            }
            Self::ChildStarted { child, .. }
            | Self::ChildUpdate { child, .. }
            | Self::ChildEnded { child, .. } => Some(child),
            Self::TurnStarted { .. }
            | Self::TurnEnded { .. }
            | Self::ElicitationAsked { .. }
            | Self::ElicitationAnswered { .. } => None,
        };
        let by = match self {
            Self::PermissionAnswered { by, .. } => by.as_deref(),
            _ => None,
        };
        TurnFacts {
            name,
            state,
            question,
            child,
            note: (!text.is_empty()).then_some(Note { text, detail, by }),
        }
    }
}

impl std::fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)?;
        if let Some(detail) = self.detail {
            write!(f, ": {detail}")?;
        }
        match self.by {
            Some(by) => write!(f, " ({by})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> String {
        let event: TurnEvent = serde_json::from_str(text).unwrap();
        event.facts().note.unwrap().to_string()
    }

    #[test]
    fn a_note_is_a_line_for_people() {
        for (event, expected) in [
            (r#"{"event":"turn_started","turn":1}"#, "turn started"),
            (
                r#"{"event":"turn_ended","turn":1,"stopReason":"refusal"}"#,
                "turn ended: refusal",
            ),
            (
                r#"{"event":"turn_ended","turn":1,"error":"no model"}"#,
                "turn failed: no model",
            ),
            (
                r#"{"event":"permission_asked","question":2,"request":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}}"#,
                "permission asked: c",
            ),
            (
                r#"{"event":"permission_asked","question":2,"request":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"Run"},"options":[]}}"#,
                "permission asked: Run",
            ),
            (
                r#"{"event":"permission_answered","question":2,"outcome":{"outcome":"selected","optionId":"yes"}}"#,
                "permission answered: yes",
            ),
            (
                r#"{"event":"permission_answered","question":2,"outcome":{"outcome":"selected","optionId":"no"},"by":"rule 1"}"#,
                "permission answered: no (rule 1)",
            ),
            (
                r#"{"event":"permission_answered","question":2,"outcome":{"outcome":"cancelled"}}"#,
                "permission answered: cancelled",
            ),
            (
                r#"{"event":"permission_answered","question":2}"#,
                "permission request withdrawn",
            ),
            (
                r#"{"event":"child_started","child":"c","title":"Find it"}"#,
                "child session started: Find it",
            ),
            (
                r#"{"event":"child_ended","child":"c","stopReason":"end_turn"}"#,
                "child session ended: end_turn",
            ),
            (
                r#"{"event":"elicitation_answered","question":2}"#,
                "question answered",
            ),
        ] {
            assert_eq!(note(event), expected);
        }
    }
}
