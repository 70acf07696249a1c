//! Chimera's methods in terms of sessions.

use acp_dialects::chimera::*;
use acp_sdk::HandlerResult;
use acp_server::{Server, usage};
use std::path::PathBuf;

use super::encode::Notifications;
use crate::feeds::Feeds;
use crate::message;

/// The currency of costs.
const DOLLARS: &str = "USD";

/// The agent's side of one connection with Chimera's ACP client: hand it to
/// [`ConnectionBuilder::agent`](acp_sdk::ConnectionBuilder::agent). It serves the sessions of a
/// [`Server`].
///
/// The client cannot be asked for permissions. Those that the server's rules do not decide are rejected.
pub struct Chimera(Feeds);

impl Chimera {
    /// Creates the agent for one connection.
    #[must_use]
    pub fn new(server: Server) -> Self {
        // The client has no method that replays.
        Self(Feeds::new(server, 0))
    }

    /// Sets the working directory of sessions whose client names none, and from which relative ones start
    /// (that of the process).
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.0.set_cwd(cwd.into());
        self
    }

    /// Sends what a turn has used, if that is known.
    async fn report_usage(
        &self,
        client: &ClientHandle,
        session: &acp_server::Session,
        last_event: u64,
    ) -> HandlerResult<()> {
        let turn = usage::of_turn_with_end(session, last_event).await?;
        let Some(turn) = turn else {
            return Ok(());
        };
        let mut update = UsageUpdateNotification::new().with_session_id(session.id().clone());
        update.total_cost = turn.costs.get(DOLLARS);
        update.input_tokens = turn.tokens.input_tokens;
        update.output_tokens = turn.tokens.output_tokens;
        let is_known = update.total_cost.is_some()
            || update.input_tokens.is_some()
            || update.output_tokens.is_some();
        if is_known {
            client.usage_update(update).await?;
        }
        Ok(())
    }
}

impl Agent for Chimera {
    async fn create_session(
        &self,
        ctx: &AgentContext,
        req: CreateSessionRequest,
    ) -> HandlerResult<CreateSessionResponse> {
        let cwd = self.0.working_directory(req.working_dir.as_deref())?;
        let session = self.0.server().create_session(cwd).await?;
        let id = session.id().clone();
        let encoder = Notifications(ctx.client().clone());
        self.0.created(session, encoder, ctx.answered());
        Ok(CreateSessionResponse::new(id))
    }

    async fn send_message(
        &self,
        ctx: &AgentContext,
        req: SendMessageRequest,
    ) -> HandlerResult<SendMessageResponse> {
        let encoder = Notifications(ctx.client().clone());
        let feed = self.0.open(&req.session_id, encoder).await?;
        let ended = message::run(&feed, ctx, vec![req.message.into()]).await?;
        self.report_usage(ctx.client(), feed.session(), ended.last_event)
            .await?;
        Ok(SendMessageResponse::new()
            .with_session_id(req.session_id)
            .with_text(ended.output)
            .with_stop_reason(ended.stop.as_str()))
    }

    async fn fork_session(
        &self,
        ctx: &AgentContext,
        req: ForkSessionRequest,
    ) -> HandlerResult<ForkSessionResponse> {
        let session = self.0.server().fork_session(&req.session_id).await?;
        let id = session.id().clone();
        self.0.feed(session, Notifications(ctx.client().clone()));
        Ok(ForkSessionResponse::new(id))
    }
}

agent!(Chimera);
