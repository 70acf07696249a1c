//! Tool calls that nobody was asked about.

use std::sync::Arc;

use acp_sdk::HandlerResult;
use serde_json::json;
use serde_json::value::RawValue;

use super::PolicyState;
use crate::message::raw;
use crate::{Proxy, RawForward};

/// Adds a hook that judges the calls that updates report.
pub(super) fn follow(policy: &Arc<PolicyState>, proxy: Proxy) -> Proxy {
    let policy = policy.clone();
    proxy.on_raw_notification(Some("session/update"), move |forward, params| {
        let policy = policy.clone();
        async move { policy.update(forward, params).await }
    })
}

impl PolicyState {
    /// Passes an update on. Cancels the turn if it reports a call that nobody was asked about and that a rule
    /// denies.
    async fn update(
        &self,
        forward: RawForward,
        params: Option<Box<RawValue>>,
    ) -> HandlerResult<()> {
        let mut denied = None;
        let ended = self.sessions.update(forward.version(), params.as_deref());
        for ended in ended.into_iter().flatten() {
            let question = ended.into_question();
            if let Some(why) = self.denies(&question).await {
                denied = Some((question, why));
            }
        }
        let (client, agent, version) = (forward.client(), forward.agent(), forward.version());
        forward.send(params).await?;
        let Some((question, why)) = denied else {
            return Ok(());
        };
        let (child, session) = self.sessions.cancelled_with(&question.request.session_id);
        let title = question.title.as_deref().unwrap_or_default();
        let text = format!("The proxy `policy` ends the turn. {title}, and it is denied{why}");
        for session in child.iter().chain([&session]) {
            let session = raw(&json!({"sessionId": session}))?;
            agent.notify_raw("session/cancel", Some(&session)).await?;
        }
        tracing::warn!(%session, "{text}");
        let mut update = json!({
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text},
        });
        if version == Some(2) {
            update["messageId"] =
                format!("policy-{}", question.request.tool_call.tool_call_id).into();
        }
        let update = raw(&json!({"sessionId": session, "update": update}))?;
        client.notify_raw("session/update", Some(&update)).await
    }
}
