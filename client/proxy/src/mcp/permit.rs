//! Who decides about calls of tools.

use std::fmt;
use std::sync::Arc;

use acp_client::internal::tool_question;
use acp_client::{Answered, PermissionRequest, Permissions};
use acp_sdk::HandlerResult;
use acp_sdk::v1::RequestPermissionOutcome;
use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::operation::ToolSession;
use super::wire::{Outcome, ToolCallOf};

/// Decides about each call.
#[derive(Clone)]
pub(super) struct Permit(Arc<Decide>);

/// Returns why the call is refused, if it is.
type Decide = dyn Fn(PermissionRequest) -> BoxFuture<'static, Option<String>> + Send + Sync;

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl Permit {
    pub(super) fn new(permissions: impl Permissions) -> Self {
        let permissions = Arc::new(permissions);
        Self(Arc::new(move |question| {
            let permissions = permissions.clone();
            Box::pin(async move {
                let (decision, reason) = permissions.decide_with_reason(&question).await;
                let outcome = decision.among(&question.request.options);
                if outcome == RequestPermissionOutcome::Cancelled {
                    return Some("nobody has allowed it".to_owned());
                }
                let is_allowed = Answered::new(question, outcome).is_allowed();
                let why =
                    || reason.map_or_else(|| "it was rejected".to_owned(), |why| why.to_string());
                (!is_allowed).then(why)
            })
        }))
    }

    /// Returns the result of a call that is refused.
    pub(super) async fn refuses(
        &self,
        server: &str,
        session: &ToolSession,
        call: ToolCallOf,
    ) -> Option<HandlerResult<Outcome>> {
        let session = session.id().unwrap_or_default();
        let question = tool_question(session, server, &call.tool, call.arguments);
        let why = (self.0)(question).await?;
        let text = format!("the call of {} was refused: {why}", call.tool);
        let result = json!({
            "resultType": "complete",
            "content": [{"type": "text", "text": text}],
            "isError": true,
        });
        Some(
            to_raw_value(&result)
                .map_err(Into::into)
                .map(|result| Outcome {
                    result: Some(result),
                    error: None,
                }),
        )
    }
}
