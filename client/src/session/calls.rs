//! What an agent said of its tool calls, for the questions about them.

use std::collections::VecDeque;

use acp_sdk::v1::{RequestPermissionRequest, SessionUpdate, ToolCallId, ToolKind};

use crate::permission::Question;

/// Tool calls of which title and kind are remembered.
pub(super) const REMEMBERED_CALLS: usize = 256;

/// The latest tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Calls(VecDeque<Announced>);

/// What an agent said of a tool call when it announced it.
#[derive(Debug)]
struct Announced {
    id: ToolCallId,
    title: Option<String>,
    kind: Option<ToolKind>,
}

impl Calls {
    pub(super) fn remember(&mut self, update: &SessionUpdate) {
        let (id, title, kind) = match update {
            SessionUpdate::ToolCall(call) => {
                (&call.tool_call_id, Some(call.title.clone()), &call.kind)
            }
            SessionUpdate::ToolCallUpdate(call) => {
                (&call.tool_call_id, call.title.clone(), &call.kind)
            }
            _ => return,
        };
        let kind = kind.clone();
        if let Some(known) = self.0.iter_mut().find(|call| call.id == *id) {
            known.title = title.or_else(|| known.title.take());
            known.kind = kind.or_else(|| known.kind.take());
            return;
        }
        if self.0.len() == REMEMBERED_CALLS {
            self.0.pop_front();
        }
        let id = id.clone();
        self.0.push_back(Announced { id, title, kind });
    }

    /// Returns a question with what the agent said of the tool call before.
    pub(super) fn question(&self, request: RequestPermissionRequest) -> Question {
        let id = &request.tool_call.tool_call_id;
        let known = self.0.iter().find(|call| call.id == *id);
        let (title, kind) = known.map_or((None, None), |known| {
            (known.title.clone(), known.kind.clone())
        });
        let mut question = Question::new(request);
        question.title = question.title.or(title);
        question.kind = question.kind.or(kind);
        question
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{ToolCall, ToolCallUpdate};

    use super::*;

    #[test]
    fn questions_know_what_was_announced() {
        let mut calls = Calls::default();
        let call = ToolCall::new("a", "Read it").with_kind(ToolKind::Read);
        calls.remember(&SessionUpdate::ToolCall(call));
        let renamed = ToolCallUpdate::new("a").with_title("Read that");
        calls.remember(&SessionUpdate::ToolCallUpdate(renamed));
        let ask =
            |calls: &Calls, call| calls.question(RequestPermissionRequest::new("s", call, vec![]));
        let question = ask(&calls, ToolCallUpdate::new("a"));
        assert_eq!(question.title.as_deref(), Some("Read that"));
        assert_eq!(question.kind, Some(ToolKind::Read));
        let question = ask(&calls, ToolCallUpdate::new("a").with_kind(ToolKind::Edit));
        assert_eq!(question.kind, Some(ToolKind::Edit), "the question is newer");
        assert_eq!(ask(&calls, ToolCallUpdate::new("b")).kind, None);

        for number in 0..REMEMBERED_CALLS {
            let call = ToolCall::new(format!("{number}"), "");
            calls.remember(&SessionUpdate::ToolCall(call));
        }
        assert_eq!(ask(&calls, ToolCallUpdate::new("a")).kind, None);
        assert_eq!(calls.0.len(), REMEMBERED_CALLS);
    }
}
