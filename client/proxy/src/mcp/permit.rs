//! Who decides about calls of tools.

use std::fmt;
use std::sync::Arc;

use acp_client::Permissions;
use acp_client::internal::tool_question;
use acp_sdk::HandlerResult;
use acp_sdk::v1::{PermissionOptionKind, RequestPermissionOutcome};
use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::to_raw_value;

use super::operation::ToolSession;
use super::wire::{Outcome, ToolCallOf};

/// Decides about each call.
#[derive(Clone)]
pub(super) struct Permit(Arc<Decide>);

/// Returns why the call is refused, if it is.
type Decide = dyn Fn(Question) -> BoxFuture<'static, Option<String>> + Send + Sync;

type Question = acp_client::PermissionRequest;

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
                let options = &question.request.options;
                let RequestPermissionOutcome::Selected(selected) = decision.among(options) else {
                    return Some("nobody has allowed it".to_owned());
                };
                let chosen = options
                    .iter()
                    .find(|option| option.option_id == selected.option_id);
                let allows = chosen.is_some_and(|option| {
                    use PermissionOptionKind::{AllowAlways, AllowOnce};
                    matches!(option.kind, AllowOnce | AllowAlways)
                });
                let why =
                    || reason.map_or_else(|| "it was rejected".to_owned(), |why| why.to_string());
                (!allows).then(why)
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
