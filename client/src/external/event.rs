//! Events of external agents' calls.

use std::time::Duration;

use acp_sdk::v1::{Cost, SessionUpdate, StopReason, ToolCallId, ToolCallStatus, ToolKind};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::TaskResult;
use crate::error::Error;

/// The maximum length of a task or a text in an event, in bytes.
const LONGEST_TEXT: usize = 64 << 10;

/// The maximum length of a title in an event, in bytes.
const LONGEST_TITLE: usize = 1 << 10;

/// An event of a call of an [`ExternalAgent`](super::ExternalAgent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExternalAgentEvent {
    /// The agent's name.
    pub agent: String,
    /// The number of the call, from 1.
    pub call: u64,
    /// The kind of event and its data.
    #[serde(flatten)]
    pub kind: ExternalAgentEventKind,
}

/// The kind of an [`ExternalAgentEvent`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ExternalAgentEventKind {
    /// The call has started.
    Started {
        /// The first 64 KiB of the task.
        task: String,
    },
    /// A tool call was announced or updated. Omitted fields are `None`.
    ToolCall {
        /// Its id.
        tool_call_id: ToolCallId,
        /// The first 1 KiB of its title.
        title: Option<String>,
        /// Its kind.
        kind: Option<ToolKind>,
        /// Its status.
        status: Option<ToolCallStatus>,
    },
    /// The call has ended, with or without success.
    Completed {
        /// The stop reason of the turn; `None` if the call failed or was dropped.
        stop_reason: Option<StopReason>,
        /// The first 64 KiB of the agent's text.
        text: String,
        /// The error of a failed call.
        error: Option<String>,
        /// The cost of the session.
        cost: Option<Cost>,
        /// The number of tool calls.
        tool_calls: usize,
        /// The time since the start of the call.
        elapsed: Duration,
    },
}

/// Sends the events of one call. Dropping it sends the end of the call.
#[derive(Debug)]
pub(super) struct Announcer {
    events: broadcast::Sender<ExternalAgentEvent>,
    agent: String,
    call: u64,
    begun: Instant,
    is_complete: bool,
}

impl Announcer {
    pub(super) fn start(
        events: broadcast::Sender<ExternalAgentEvent>,
        agent: String,
        call: u64,
        task: &str,
    ) -> Self {
        let announcer = Self {
            events,
            agent,
            call,
            begun: Instant::now(),
            is_complete: false,
        };
        announcer.send(|| ExternalAgentEventKind::Started {
            task: beginning(task, LONGEST_TEXT),
        });
        announcer
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Sends an update of a tool call unmerged, because no tool calls are stored here.
    pub(super) fn update(&self, update: &SessionUpdate) {
        let title = |title: &String| beginning(title, LONGEST_TITLE);
        match update {
            SessionUpdate::ToolCall(call) => self.send(|| ExternalAgentEventKind::ToolCall {
                tool_call_id: call.tool_call_id.clone(),
                title: Some(title(&call.title)),
                kind: call.kind.clone(),
                status: call.status.clone(),
            }),
            SessionUpdate::ToolCallUpdate(call) => self.send(|| ExternalAgentEventKind::ToolCall {
                tool_call_id: call.tool_call_id.clone(),
                title: call.title.as_ref().map(title),
                kind: call.kind.clone(),
                status: call.status.clone(),
            }),
            _ => {}
        }
    }

    pub(super) fn complete(mut self, result: Result<&TaskResult, &Error>) {
        self.is_complete = true;
        self.send(|| match result {
            Ok(result) => ExternalAgentEventKind::Completed {
                stop_reason: Some(result.metadata.stop_reason.clone()),
                text: beginning(&result.text, LONGEST_TEXT),
                error: None,
                cost: result.metadata.cost.clone(),
                tool_calls: result.metadata.tool_calls.len(),
                elapsed: self.elapsed(),
            },
            Err(error) => self.without_result(error.to_string()),
        });
    }

    fn without_result(&self, error: String) -> ExternalAgentEventKind {
        ExternalAgentEventKind::Completed {
            stop_reason: None,
            text: String::new(),
            error: Some(error),
            cost: None,
            tool_calls: 0,
            elapsed: self.elapsed(),
        }
    }

    /// Sends an event without waiting: a receiver that lags loses the oldest events.
    fn send(&self, kind: impl FnOnce() -> ExternalAgentEventKind) {
        if self.events.receiver_count() > 0 {
            let event = ExternalAgentEvent {
                agent: self.agent.clone(),
                call: self.call,
                kind: kind(),
            };
            let _ = self.events.send(event);
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        if !self.is_complete {
            self.send(|| self.without_result("the call was dropped".to_owned()));
        }
    }
}

/// Returns the first `most` bytes of a text, up to a character boundary.
fn beginning(text: &str, most: usize) -> String {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
