//! Reports the agent's activity by progress notifications of a request.

use std::time::Duration;

use acp_sdk::conversation::Conversation;
use acp_sdk::v1::{SessionUpdate, ToolCallId};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::session::Event;
use acp_sdk::text::one_line;

/// Capacity of the queue of reports. When it is full, reports are dropped; the agent is never
/// delayed.
const WAITING: usize = 64;

/// Minimum interval between two reports of text. Hosts extend their timeout with each report.
const TEXT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of characters of a title in a report.
const LONGEST_TITLE: usize = 200;

/// Limit in bytes of the tool calls whose titles are remembered.
const REMEMBERED: usize = 1 << 20;

/// Turns events into reports.
#[derive(Debug)]
pub(super) struct Progress {
    reports: Option<mpsc::Sender<String>>,
    /// The latest tool calls.
    conversation: Conversation,
    bytes: usize,
    last_text: Option<Instant>,
}

/// Sends reports to the host.
#[derive(Debug)]
pub(super) struct Reports {
    waiting: mpsc::Receiver<String>,
    host: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl Progress {
    /// Creates both ends of the queue. Without a token the host has not requested reports.
    pub(super) fn new(host: Peer<RoleServer>, token: Option<ProgressToken>) -> (Self, Reports) {
        let (sender, waiting) = mpsc::channel(WAITING);
        let progress = Self {
            reports: token.is_some().then_some(sender),
            conversation: Conversation::with_limit(REMEMBERED),
            bytes: 0,
            last_text: None,
        };
        let host = token.map(|token| (host, token));
        (progress, Reports { waiting, host })
    }

    pub(super) fn event(&mut self, event: &Event) {
        let Some(reports) = self.reports.clone() else {
            return;
        };
        if let Some(report) = self.report(event) {
            let _ = reports.try_send(report);
        }
    }

    fn report(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Update(update @ SessionUpdate::ToolCall(call)) => {
                let _ = self.conversation.apply(update);
                Some(self.title(&call.tool_call_id))
            }
            Event::Update(update @ SessionUpdate::ToolCallUpdate(call)) => {
                let _ = self.conversation.apply(update);
                let status = call.status.as_ref()?;
                Some(format!("{}: {status}", self.title(&call.tool_call_id)))
            }
            Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                if let acp_sdk::v1::ContentBlock::Text(text) = &chunk.content {
                    self.bytes += text.text.len();
                }
                self.is_due()
                    .then(|| format!("{} bytes written", self.bytes))
            }
            Event::Update(SessionUpdate::AgentThoughtChunk(_)) => {
                self.is_due().then(|| "thinking".to_owned())
            }
            Event::Permission(answered) => {
                let allowed = answered.is_allowed();
                let title = answered.question.title.as_deref().unwrap_or("a tool call");
                let title = one_line(title, LONGEST_TITLE);
                Some(format!(
                    "{title}: {}",
                    if allowed { "allowed" } else { "refused" }
                ))
            }
            _ => None,
        }
    }

    fn title(&self, id: &ToolCallId) -> String {
        let call = self.conversation.tool_call(id);
        let title = call.map(|(_, call)| call.title.as_str());
        let title = title.filter(|title| !title.is_empty());
        one_line(title.unwrap_or(id.as_str()), LONGEST_TITLE)
    }

    /// Returns whether the interval since the last report of text has elapsed.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self
            .last_text
            .is_none_or(|last| now - last >= TEXT_INTERVAL);
        if is_due {
            self.last_text = Some(now);
        }
        is_due
    }
}

impl Reports {
    /// Sends queued reports until the queue is closed.
    pub(super) async fn send_all(mut self) {
        let Some((host, token)) = self.host.take() else {
            return;
        };
        let mut count = 0.0;
        while let Some(message) = self.waiting.recv().await {
            // The progress must increase; there is no other measure than the number of reports.
            count += 1.0;
            let report = ProgressNotificationParam::new(token.clone(), count).with_message(message);
            if host.notify_progress(report).await.is_err() {
                return;
            }
        }
    }
}
