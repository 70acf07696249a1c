//! Reports the agent's activity by progress notifications of a request.

use std::time::Duration;

use acp_sdk::v1::{PermissionOptionKind, RequestPermissionOutcome, SessionUpdate, ToolCallId};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::session::{Answered, Event};
use crate::text::one_line;

/// Capacity of the queue of reports. When it is full, reports are dropped; the agent is never
/// delayed.
const WAITING: usize = 64;

/// Minimum interval between two reports of text. Hosts extend their timeout with each report.
const TEXT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of characters of a title in a report.
const LONGEST_TITLE: usize = 200;

/// Maximum number of tool calls whose titles are remembered.
const MOST_CALLS: usize = 256;

/// Turns events into reports.
#[derive(Debug)]
pub(super) struct Progress {
    reports: Option<mpsc::Sender<String>>,
    titles: Vec<(ToolCallId, String)>,
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
            titles: Vec::new(),
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
            Event::Update(SessionUpdate::ToolCall(call)) => {
                self.titles.retain(|(id, _)| *id != call.tool_call_id);
                self.titles.truncate(MOST_CALLS - 1);
                let title = one_line(&call.title, LONGEST_TITLE);
                self.titles
                    .insert(0, (call.tool_call_id.clone(), title.clone()));
                Some(title)
            }
            Event::Update(SessionUpdate::ToolCallUpdate(call)) => {
                let status = call.status.as_ref()?;
                let mut titles = self.titles.iter();
                let known = titles.find(|(id, _)| *id == call.tool_call_id);
                let title = match (&call.title, known) {
                    (Some(title), _) => one_line(title, LONGEST_TITLE),
                    (None, Some((_, title))) => title.clone(),
                    (None, None) => one_line(call.tool_call_id.as_str(), LONGEST_TITLE),
                };
                Some(format!("{title}: {status}"))
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
                let allowed = is_allowed(answered);
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

fn is_allowed(answered: &Answered) -> bool {
    let RequestPermissionOutcome::Selected(chosen) = &answered.outcome else {
        return false;
    };
    let mut options = answered.question.request.options.iter();
    let option = options.find(|option| option.option_id == chosen.option_id);
    option.is_some_and(|option| {
        let kind = &option.kind;
        *kind == PermissionOptionKind::AllowOnce || *kind == PermissionOptionKind::AllowAlways
    })
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
