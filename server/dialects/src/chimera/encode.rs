//! Steps of a session as notifications of Chimera.

use acp_dialects::chimera::{
    ClientHandle, MessageChunkNotification, ThoughtChunkNotification, ToolCallCompleteNotification,
    ToolCallStartNotification,
};
use acp_sdk::v1::{PermissionOption, SessionId};
use acp_server::Session;
use acp_server::event::{Event, QuestionId};

use crate::call;
use crate::feed::Encode;
use crate::fold::Step;
use crate::permission::{self, Reply};

/// Sends `agent/…`.
pub(super) struct Notifications(pub(super) ClientHandle);

pub(super) enum Update {
    Text(MessageChunkNotification),
    Thought(ThoughtChunkNotification),
    Started(ToolCallStartNotification),
    Completed(ToolCallCompleteNotification),
    /// A permission that nobody can be asked for.
    Refused(QuestionId, Vec<PermissionOption>),
}

impl Encode for Notifications {
    type Update = Update;
    type Source = ();

    fn source(&self, _: &Event) {}

    fn encode(&self, session: &SessionId, (): &(), step: Step) -> Option<Update> {
        let session = session.clone();
        Some(match step {
            Step::Text(text) => {
                Update::Text(MessageChunkNotification::new(text).with_session_id(session))
            }
            Step::Thought(text) => {
                Update::Thought(ThoughtChunkNotification::new(text).with_session_id(session))
            }
            Step::CallStarted(started) => {
                let update = ToolCallStartNotification::new(started.tool_call_id.as_str())
                    .with_session_id(session)
                    .with_tool_kind(call::kind(started.kind.as_ref()))
                    .with_title(started.title)
                    .with_raw_input(started.raw_input.map(|input| input.get().to_owned()));
                Update::Started(update)
            }
            Step::CallEnded(ended) => {
                let update = ToolCallCompleteNotification::new(ended.tool_call_id.as_str())
                    .with_session_id(session)
                    .with_is_error(!call::has_succeeded(&ended))
                    .with_output(call::output(&ended));
                Update::Completed(update)
            }
            Step::PermissionAsked(question, request) => Update::Refused(question, request.options),
            // The handler of the message sends what the turn has used.
            Step::Usage(_) | Step::Tokens(_) => return None,
            Step::Plan(_) | Step::Commands(_) => return None,
            Step::TurnStarted | Step::Cancelled(_) | Step::TurnEnded(..) => return None,
        })
    }

    async fn send(&self, session: &Session, _: u64, update: Update) -> acp_sdk::Result<()> {
        match update {
            Update::Text(update) => self.0.message_chunk(update).await,
            Update::Thought(update) => self.0.thought_chunk(update).await,
            Update::Started(update) => self.0.tool_call_start(update).await,
            Update::Completed(update) => self.0.tool_call_complete(update).await,
            Update::Refused(question, options) => {
                // Another answer may have been first.
                let _ = permission::answer(session, question, Reply::Deny, &options, "chimera");
                Ok(())
            }
        }
    }
}
