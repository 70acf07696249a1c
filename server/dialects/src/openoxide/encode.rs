//! Steps of a session as events of OpenOxide.

use std::time::SystemTime;

use acp_sdk::v1::{PermissionOption, SessionId};
use acp_server::Session;
use acp_server::event::{Event, QuestionId};
use acp_server::internal::clock;

use super::content::{command, diffs, ended, plan, started};
use crate::feed::Encode;
use crate::fold::{Fold, Step};
use crate::permission::{self, Reply};
use acp_dialects::openoxide::{
    ClientHandle, EventNotification, SessionEvent, SlashCommands, TextDelta,
};

/// Sends `session/event`.
pub(super) struct Events(pub(super) ClientHandle);

pub(super) enum Update {
    Sent(Vec<SessionEvent>),
    /// A permission that nobody can be asked for.
    Refused(QuestionId, Vec<PermissionOption>),
}

/// Returns a step as events. `time` is that of its event in the log.
pub(super) fn encode(step: Step, time: Option<SystemTime>) -> Option<Update> {
    Some(Update::Sent(match step {
        Step::Text(text) => vec![TextDelta::new(text).into()],
        Step::CallStarted(call) => vec![started(call).into()],
        Step::CallEnded(call) => {
            let mut events: Vec<_> = diffs(&call).map(SessionEvent::from).collect();
            events.push(ended(&call, time.map(clock::text_of)).into());
            events
        }
        Step::Plan(steps) => vec![plan(&steps).into()],
        Step::Commands(commands) => {
            let commands = commands.iter().map(command).collect();
            vec![SlashCommands::new(commands).into()]
        }
        Step::PermissionAsked(question, request) => {
            return Some(Update::Refused(question, request.options));
        }
        // The response to the prompt has its end.
        Step::TurnStarted | Step::Cancelled(_) | Step::TurnEnded(..) => return None,
        Step::Thought(_) | Step::Usage(_) | Step::Tokens(_) => return None,
    }))
}

impl Encode for Events {
    type Update = Update;
    type Source = Option<SystemTime>;

    fn source(&self, event: &Event) -> Option<SystemTime> {
        event.time
    }

    fn encode(&self, _: &SessionId, time: &Option<SystemTime>, step: Step) -> Option<Update> {
        encode(step, *time)
    }

    fn output(&self, fold: &Fold) -> String {
        fold.text()
    }

    async fn send(&self, session: &Session, _: u64, update: Update) -> acp_sdk::Result<()> {
        match update {
            Update::Sent(events) => {
                for event in events {
                    let id = session.id().clone();
                    self.0.event(EventNotification::new(id, event)).await?;
                }
            }
            Update::Refused(question, options) => {
                // Another answer may have been first.
                let _ = permission::answer(session, question, Reply::Deny, &options, "openoxide");
            }
        }
        Ok(())
    }
}
