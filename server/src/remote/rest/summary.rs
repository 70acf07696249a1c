//! What a session has done, from its log.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{
    ContentBlock, Cost, MessageId, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionId, SessionUpdate, StopReason,
};

use super::failure::Failure;
use super::log::Pages;
use super::state::Rest;
use crate::event::{Event, EventBody, TokenUsage, TurnEvent};
use crate::store::SessionRecord;

/// Sessions whose summary is kept.
const KEPT: usize = 4_096;

/// The most bytes of a prompt in a list.
const PROMPT_BYTES: usize = 4 << 10;

/// What a session has done.
///
/// These are sums, of thousands of sessions: a conversation of each would hold its content. The log
/// gives each chunk the id of its message, so that messages can be counted by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// The first text of the user, perhaps not all of it.
    pub(super) prompt: Option<String>,
    /// Whether the last turn that ended did what it was to do.
    pub(super) success: Option<bool>,
    pub(super) is_running: bool,
    pub(super) turns: u64,
    /// Messages of the agent.
    pub(super) steps: u64,
    pub(super) tool_calls: u64,
    /// As the agent reported it last: of the session so far.
    pub(super) cost: Option<Cost>,
    /// As the agent reported it last: in the context.
    pub(super) tokens: Option<u64>,
    /// Of all turns that counted them.
    pub(super) usage: TokenUsage,
    /// The value of the config option of category `model`, if it was changed.
    model: Option<String>,
    message: Option<MessageId>,
}

impl Summary {
    fn observe(&mut self, event: &Event) {
        match &event.body {
            EventBody::Update(update) => self.update(update),
            EventBody::Turn(TurnEvent::TurnStarted { .. }) => {
                self.turns += 1;
                self.is_running = true;
            }
            EventBody::Turn(TurnEvent::TurnEnded {
                stop_reason, usage, ..
            }) => {
                if let Some(usage) = usage {
                    self.usage.add(usage);
                }
                self.is_running = false;
                self.success = Some(*stop_reason == Some(StopReason::EndTurn));
            }
            _ => {}
        }
    }

    fn update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::UserMessageChunk(chunk) if self.prompt.is_none() => {
                if let ContentBlock::Text(text) = &chunk.content {
                    let mut whole = (0..=text.text.len().min(PROMPT_BYTES)).rev();
                    let end = whole.find(|at| text.text.is_char_boundary(*at));
                    self.prompt = Some(text.text[..end.unwrap_or(0)].to_owned());
                }
            }
            SessionUpdate::AgentMessageChunk(chunk)
                if self.message.is_none() || self.message != chunk.message_id =>
            {
                self.steps += 1;
                self.message.clone_from(&chunk.message_id);
            }
            SessionUpdate::ToolCall(_) => {
                self.tool_calls += 1;
                self.message = None;
            }
            SessionUpdate::UsageUpdate(usage) => {
                self.tokens = Some(usage.used);
                if let Some(cost) = &usage.cost {
                    self.cost = Some(cost.clone());
                }
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.model = model_of(&update.config_options).or(self.model.take());
            }
            _ => {}
        }
    }

    /// Returns the cost in dollars, if that is what the agent reports.
    pub(super) fn cost_usd(&self) -> Option<f64> {
        let cost = self.cost.as_ref()?;
        (cost.currency == "USD" && cost.amount.is_finite()).then_some(cost.amount)
    }
}

/// Returns whether an option selects the model.
pub(super) fn is_model(option: &SessionConfigOption) -> bool {
    option.category == Some(SessionConfigOptionCategory::Model)
}

/// Returns the current value of the option that selects the model.
fn model_of(options: &[SessionConfigOption]) -> Option<String> {
    match &options.iter().find(|option| is_model(option))?.kind {
        SessionConfigKind::Select(select) => Some(select.current_value.to_string()),
        _ => None,
    }
}

/// Summaries that were made, each continued where it ended.
#[derive(Default)]
pub(super) struct Summaries(Mutex<HashMap<SessionId, (u64, Summary)>>);

impl Summaries {
    fn kept(&self) -> MutexGuard<'_, HashMap<SessionId, (u64, Summary)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, session: &SessionId) {
        self.kept().remove(session);
    }
}

impl Rest {
    /// Returns what a session has done up to the last event of its record.
    ///
    /// # Errors
    ///
    /// 404 or 500, when its events cannot be read.
    pub(super) async fn summary(&self, record: &SessionRecord) -> Result<Summary, Failure> {
        let before = self.summaries().kept().get(&record.id).cloned();
        let (mut last, mut summary) = before.unwrap_or_default();
        if last < record.last_event {
            let mut pages = Pages::new(self.server(), &record.id, last, record.last_event);
            loop {
                let page = pages.next().await;
                let page = page.map_err(|error| Failure::store("session_read_failed", &error))?;
                let Some(page) = page else { break };
                for stored in page.events() {
                    summary.observe(&stored.parse());
                }
                last = page.last();
            }
            let mut kept = self.summaries().kept();
            if kept.len() >= KEPT && !kept.contains_key(&record.id) {
                // Whichever comes first: it can be made again.
                let some = kept.keys().next().cloned();
                some.map(|some| kept.remove(&some));
            }
            kept.insert(record.id.clone(), (last, summary.clone()));
        }
        Ok(summary)
    }

    /// Returns the model of a session, if it is known.
    pub(super) fn model(&self, record: &SessionRecord, summary: &Summary) -> Option<String> {
        if let Some(session) = self.in_memory(&record.id) {
            return model_of(&session.settings().shown(true).unwrap_or_default());
        }
        summary
            .model
            .clone()
            .or_else(|| match record.settings.get("model") {
                Some(SessionConfigOptionValue::ValueId(value)) => Some(value.value.to_string()),
                _ => None,
            })
    }
}
