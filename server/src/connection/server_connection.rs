//! One client's agent, in terms of sessions, whatever the version of its messages.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{
    AgentContext, McpServer, PromptRequest, SessionConfigOption, SessionId, SessionModeState,
    StopReason,
};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};

use super::errors::{closed, refused, store_failed};
use super::{Barrier, Client, Replay, Subscription, check};
use crate::limits::OnDisconnect;
use crate::server::{Joined, Joining, OpeningClient, ServerCore, Unanswered};
use crate::session::{Environment, Prompt, Prompter, Refusal, Ticket, TurnResult};
use crate::{Capability, Server, Session};

/// Time for a handler to end its turn after the connection's input has ended.
const CLOSING_DEADLINE: Duration = Duration::from_secs(1);

/// One client of a [`Server`](crate::Server): hand it to
/// [`ConnectionBuilder::agent`](acp_sdk::ConnectionBuilder::agent) or
/// [`serve`](acp_sdk::serve). The client is detached when the connection ends.
#[derive(Debug)]
pub struct ServerConnection {
    pub(super) client: Arc<Client>,
    end: Arc<End>,
}

/// Detaches the client with the last agent of its connection, of whichever version.
#[derive(Debug)]
struct End {
    client: Arc<Client>,
    /// Sessions live as long as a connection or the server does.
    _server: Server,
}

impl Drop for End {
    fn drop(&mut self) {
        self.client.gone();
    }
}

impl ServerConnection {
    pub(crate) fn new(client: Arc<Client>, server: Server) -> Self {
        let end = End {
            client: client.clone(),
            _server: server,
        };
        Self {
            client,
            end: Arc::new(end),
        }
    }

    /// Returns another agent of the same connection.
    pub(super) fn share(&self) -> Self {
        Self {
            client: self.client.clone(),
            end: self.end.clone(),
        }
    }

    pub(super) fn core(&self) -> &Arc<ServerCore> {
        self.client.core()
    }

    /// Returns a session that this client is attached to.
    ///
    /// # Errors
    ///
    /// Resource not found, with the reason.
    pub(super) async fn attached(
        &self,
        id: &SessionId,
    ) -> HandlerResult<(Session, Arc<Subscription>)> {
        if let Some(subscription) = self.client.subscription(id) {
            let session = subscription.session().clone();
            if !session.state().queue.is_closed() {
                return Ok((session, subscription));
            }
        }
        // Boxed, because it is rare, and every prompt has room for it otherwise.
        Box::pin(self.attached_again(id)).await
    }

    /// Opens a session that has left memory although the client is attached.
    async fn attached_again(&self, id: &SessionId) -> HandlerResult<(Session, Arc<Subscription>)> {
        if self.client.is_suspended(id) && self.client.access().may_write() {
            self.core().open(id).await?;
            if let Some(subscription) = self.client.subscription(id) {
                return Ok((subscription.session().clone(), subscription));
            }
        }
        Err(self.not_attached(id).await)
    }

    async fn not_attached(&self, id: &SessionId) -> HandlerError {
        match self.core().find(id).await {
            Ok(Some(_)) => closed(id),
            Ok(None) => HandlerError::resource_not_found(format!("session {id}")),
            Err(error) => error,
        }
    }

    /// Checks the directories of a request, and returns what it says of its session.
    pub(super) fn environment(
        &self,
        (method, session): (&str, Option<&SessionId>),
        cwd: &str,
        additional_directories: Vec<String>,
        mcp_servers: Vec<McpServer>,
    ) -> HandlerResult<Environment> {
        self.client.admit(method, session.map(SessionId::as_str))?;
        check::directories(cwd, &additional_directories)?;
        Ok(Environment {
            additional_directories,
            mcp_servers,
            #[cfg(feature = "unstable")]
            client: Arc::downgrade(&self.client),
        })
    }

    pub(super) fn opening(&self, meta: Option<Meta>) -> OpeningClient {
        OpeningClient {
            meta,
            ..self.client.opening()
        }
    }

    /// Opens a session if need be, attaches the client, and replays.
    pub(super) async fn join(
        &self,
        ctx: &AgentContext,
        joining: Joining,
        replay: Replay,
    ) -> HandlerResult<Arc<Subscription>> {
        let Joined {
            session,
            subscription,
            barrier,
            attachment,
        } = self.core().join(&self.client, joining, replay).await?;
        let answers_last = self.client.encoding().answers_last();
        if let Some(gate) = self.client.gate().filter(|_| answers_last) {
            gate.precedes_answer(&subscription);
        }
        // In version 1 a session that nobody reads yet is answered first and replayed later.
        let replayed = async {
            match subscription.is_held() && !answers_last {
                true => Ok(()),
                false => barrier.reached().await,
            }
        };
        let replayed = tokio::select! {
            biased;
            reached = replayed => reached.map_err(|error| store_failed(session.id(), &error)),
            () = ctx.request_cancelled() => Err(HandlerError::cancelled()),
        };
        if let Err(error) = replayed {
            let _held = subscription.skip_replay();
            subscription.settled().await;
            attachment.undo().await;
            return Err(error);
        }
        if subscription.has_ended() {
            // Closed meanwhile: the replay may be incomplete, and nothing follows it.
            return Err(closed(session.id()));
        }
        let unanswered = attachment.keep();
        let replayed = barrier.number().min(subscription.replayed_until());
        self.after_answer(ctx, &session, replayed, (unanswered, barrier));
        Ok(subscription)
    }

    /// Attaches the client to a session that there is, opening it if need be.
    pub(super) async fn join_existing(
        &self,
        ctx: &AgentContext,
        id: SessionId,
        place: (String, Environment),
        meta: Option<Meta>,
        replay: Replay,
    ) -> HandlerResult<Arc<Subscription>> {
        let joining = Joining::Existing {
            id,
            place: Some(place),
            opening: self.opening(meta),
        };
        self.join(ctx, joining, replay).await
    }

    /// Queues a prompt of this client.
    ///
    /// Nothing is awaited before, if the client is attached: prompts are queued in the order of
    /// their arrival, and a cancellation that follows one finds it.
    pub(super) async fn submit(
        &self,
        req: PromptRequest,
        submit: fn(&Session, Prompt) -> Result<Ticket, Refusal>,
    ) -> HandlerResult<(Session, Arc<Subscription>, Ticket)> {
        let (session, subscription) = self.attached(&req.session_id).await?;
        let key = check::idempotency_key(req.meta.as_ref())?;
        let in_order = session.in_order(key.is_some()).await?;
        let ticket = self.queue(&session, &subscription, (req, key), submit)?;
        drop(in_order);
        Ok((session, subscription, ticket))
    }

    /// Returns what this client is to what it says in a session.
    pub(super) fn prompter(&self, subscription: &Arc<Subscription>) -> Prompter {
        Prompter {
            client: self.client.id(),
            name: self.client.name(),
            subscription: subscription.clone(),
        }
    }

    fn queue(
        &self,
        session: &Session,
        subscription: &Arc<Subscription>,
        (req, key): (PromptRequest, Option<String>),
        submit: fn(&Session, Prompt) -> Result<Ticket, Refusal>,
    ) -> HandlerResult<Ticket> {
        check::prompt(&req.prompt, &self.core().info.prompt)?;
        let prompt = Prompt::new(req.prompt, req.meta, Some(self.prompter(subscription)));
        let prompt = match key {
            Some(key) => prompt.once_as(&key),
            None => Ok(prompt),
        };
        let ticket = prompt.and_then(|prompt| submit(session, prompt));
        ticket.map_err(|refusal| refused(session.id(), refusal))
    }

    /// Answers a prompt with its stop reason and the other members of the answer.
    pub(super) async fn answer_prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<(StopReason, Option<Json>)> {
        self.client
            .admit("session/prompt", Some(req.session_id.as_str()))?;
        let (session, subscription, mut ticket) =
            self.submit(req, Session::submit_in_place).await?;
        let result = tokio::select! {
            biased;
            result = ticket.result() => result,
            // Boxed, because it is rare, and every prompt has room for it otherwise.
            () = ctx.request_cancelled() => Box::pin(self.ended_early(ctx, &session, &mut ticket)).await?,
        };
        // When older events cannot be read the client knows it by the gap, not by this answer.
        let _ = subscription.sent_through(result.last_event).await;
        ctx.keep_until_answered(result.barrier);
        Ok((result.stop?, result.members))
    }

    /// Once the request is answered, the client is sent what follows, and open questions.
    fn after_answer(
        &self,
        ctx: &AgentContext,
        session: &Session,
        last: u64,
        held: (Option<Unanswered>, Barrier),
    ) {
        ctx.keep_until_answered(held);
        let questions = session.open_questions();
        if questions.is_empty() {
            return;
        }
        let (session, client, answered) = (session.clone(), self.client.clone(), ctx.answered());
        tokio::spawn(async move {
            answered.await;
            for question in questions.iter().filter(|question| question.id.0 <= last) {
                session.offer(question, &client);
            }
        });
    }

    /// The client has cancelled its request, or the connection is closing.
    async fn ended_early(
        &self,
        ctx: &AgentContext,
        session: &Session,
        ticket: &mut Ticket,
    ) -> HandlerResult<TurnResult> {
        if !ctx.peer().is_closing() {
            ticket.cancel();
            return Ok(ticket.result().await);
        }
        let policy = session.policies().on_disconnect;
        let policy = policy.unwrap_or(self.client.on_disconnect);
        let OnDisconnect::Cancel { after } = policy else {
            return Err(HandlerError::cancelled());
        };
        if let Ok(result) = tokio::time::timeout(after, ticket.result()).await {
            return Ok(result);
        }
        let has_other = session.state().attached(true) > 1;
        if has_other {
            return Err(HandlerError::cancelled());
        }
        ticket.cancel();
        if let Ok(result) = tokio::time::timeout(CLOSING_DEADLINE, ticket.result()).await {
            return Ok(result);
        }
        // Whoever set it before wanted the same.
        let _ = ticket.progress.abort.set(());
        Ok(ticket.result().await)
    }

    /// Returns modes and config options as this client may see them.
    pub(super) fn settings(
        &self,
        session: &Session,
    ) -> (Option<SessionModeState>, Option<Vec<SessionConfigOption>>) {
        let booleans = self.client.offers(Capability::BooleanOptions);
        let state = session.state();
        (state.settings.mode_state(), state.settings.shown(booleans))
    }
}
