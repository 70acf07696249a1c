//! Answers to prompts with members that the protocol's types do not have.

use std::fmt;
use std::sync::Arc;

use acp_sdk::service::{HandlerFuture, IncomingNotification, IncomingRequest, Layer, Service};
use acp_sdk::v1::{AgentContext, PromptRequest, PromptResponse, StopReason};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};
use serde::Deserialize;

use super::ServerConnection;
use crate::raw_object::RawObject;

/// The member of an answer that the protocol's type has besides the stop reason.
#[derive(Default, Deserialize)]
pub(super) struct Known {
    #[serde(default, rename = "_meta")]
    pub(super) meta: Option<Meta>,
}

/// Answers prompts of version 1 with all members that the handler has
/// [set](crate::Turn::set_answer), where the typed agent has `_meta` only.
pub(crate) struct Answers(Arc<ServerConnection>);

impl Answers {
    pub(crate) fn of(connection: &ServerConnection) -> Self {
        Self(Arc::new(connection.share()))
    }
}

impl Layer for Answers {
    fn layer(&self, inner: Arc<dyn Service>) -> Arc<dyn Service> {
        let connection = self.0.clone();
        Arc::new(Answering { inner, connection })
    }
}

struct Answering {
    inner: Arc<dyn Service>,
    connection: Arc<ServerConnection>,
}

impl Service for Answering {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        if request.method() != "session/prompt" || !self.connection.client.speaks_v1() {
            return self.inner.request(request);
        }
        let connection = self.connection.clone();
        request.answer(move |ctx, params: PromptRequest| {
            // Boxed: two small pieces of memory cost less than a large one.
            Box::pin(async move {
                let ctx = AgentContext::new(ctx);
                let (stop, members) = connection.answer_prompt(&ctx, params).await?;
                answer(&stop, members.as_ref())
            })
        })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        self.inner.notification(notification)
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

/// Returns an answer: the stop reason, then the other members.
pub fn answer(stop: &StopReason, members: Option<&Json>) -> HandlerResult<Json> {
    let Some(members) = members else {
        return Json::new(&PromptResponse::new(stop.clone())).map_err(HandlerError::internal);
    };
    let mut answer = RawObject::parse(members.get()).unwrap_or_default();
    let stop = Json::new(stop).map_err(HandlerError::internal)?;
    answer.set_first("stopReason", stop);
    Ok(answer.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_stop_reason_once_and_all_members() {
        let members = r#"{"usage":{"n":1.0},"stopReason":"refusal","_meta":{}}"#;
        let members: Json = serde_json::from_str(members).unwrap();
        let answered = answer(&StopReason::EndTurn, Some(&members)).unwrap();
        let expected = r#"{"stopReason":"end_turn","usage":{"n":1.0},"_meta":{}}"#;
        assert_eq!(answered.get(), expected);
        let answered = answer(&StopReason::Cancelled, None).unwrap();
        assert_eq!(answered.get(), r#"{"stopReason":"cancelled"}"#);
    }
}
