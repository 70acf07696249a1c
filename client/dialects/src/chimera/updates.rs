//! The agent's notifications as updates of sessions.

use std::sync::{Arc, OnceLock};

use acp_dialects::chimera::{
    Client, ClientContext, MessageChunkNotification, ThoughtChunkNotification,
    ToolCallCompleteNotification, ToolCallStartNotification, UsageUpdateNotification,
};
use acp_sdk::v1::{
    ClientHandle, Content, ContentChunk, Cost, SessionId, SessionNotification, SessionUpdate,
    ToolCall, ToolCallStatus, ToolCallUpdate, ToolKind, UsageUpdate,
};
use acp_sdk::{HandlerResult, Json};
use serde_json::Value;

use super::turns::Turns;

/// The currency of costs.
const DOLLARS: &str = "USD";

/// Sends `session/update`.
pub(super) struct Updates {
    turns: Arc<Turns>,
    client: Arc<OnceLock<ClientHandle>>,
}

impl Updates {
    pub(super) fn new(turns: Arc<Turns>) -> Self {
        Self {
            turns,
            client: Arc::default(),
        }
    }

    /// Returns the place of the client's caller, which is set before anything is received.
    pub(super) fn client(&self) -> Arc<OnceLock<ClientHandle>> {
        self.client.clone()
    }

    /// Sends an update. Waits while the client does not read.
    async fn send(
        &self,
        session: Option<SessionId>,
        update: impl Into<SessionUpdate>,
    ) -> HandlerResult<()> {
        let Some(session) = self.turns.session(session) else {
            tracing::debug!(
                "the agent sent a notification before the first message, without a session"
            );
            return Ok(());
        };
        if let Some(client) = self.client.get() {
            let update = SessionNotification::new(session, update);
            client.session_update(update).await?;
        }
        Ok(())
    }
}

impl Client for Updates {
    async fn message_chunk(
        &self,
        _: &ClientContext,
        chunk: MessageChunkNotification,
    ) -> HandlerResult<()> {
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(chunk.text));
        self.send(chunk.session_id, update).await
    }

    async fn thought_chunk(
        &self,
        _: &ClientContext,
        chunk: ThoughtChunkNotification,
    ) -> HandlerResult<()> {
        let update = SessionUpdate::AgentThoughtChunk(ContentChunk::new(chunk.text));
        self.send(chunk.session_id, update).await
    }

    async fn tool_call_start(
        &self,
        _: &ClientContext,
        call: ToolCallStartNotification,
    ) -> HandlerResult<()> {
        let kind = call.tool_kind.as_deref().map(ToolKind::from);
        let title = call.title.or(call.tool_kind);
        let title = title.unwrap_or_else(|| call.tool_call_id.clone());
        let update = ToolCall::new(call.tool_call_id, title)
            .with_kind(kind)
            .with_status(ToolCallStatus::InProgress)
            .with_raw_input(call.raw_input.map(raw));
        self.send(call.session_id, update).await
    }

    async fn tool_call_complete(
        &self,
        _: &ClientContext,
        call: ToolCallCompleteNotification,
    ) -> HandlerResult<()> {
        let status = match call.is_error {
            Some(true) => ToolCallStatus::Failed,
            _ => ToolCallStatus::Completed,
        };
        let mut update = ToolCallUpdate::new(call.tool_call_id).with_status(status);
        if let Some(output) = call.output {
            let content = Content::new(output.clone());
            update = update
                .with_content(vec![content.into()])
                .with_raw_output(raw(output));
        }
        self.send(call.session_id, update).await
    }

    async fn usage_update(
        &self,
        _: &ClientContext,
        usage: UsageUpdateNotification,
    ) -> HandlerResult<()> {
        let session = self.turns.session(usage.session_id.clone());
        let used = |session: &SessionId| self.turns.used(session, &usage);
        let Some(cost) = session.as_ref().and_then(used) else {
            return Ok(());
        };
        // The protocol does not say what the context window holds.
        let update = UsageUpdate::new(0, 0).with_cost(Cost::new(cost, DOLLARS));
        self.send(session, update).await
    }
}

/// Returns the value of a text that is JSON, else the text.
fn raw(text: String) -> Json {
    serde_json::from_str(&text).unwrap_or_else(|_| Json::from(Value::String(text)))
}
