//! Handles the agent's requests and notifications.

mod effects;
mod v2;

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::runtime::Method;
use acp_sdk::v1::{self, *};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};

pub(super) use self::v2::HandlerV2;
use crate::guard::{Effect, Guard, cancelled};
use crate::hooks::{AnyElicitation, AnyExtensions, AnyFiles, AnyTerminals, SessionContext, elicit};
use crate::permission::Reason;
use crate::reconnect::{SessionGap, is_restart};
use crate::session::{self, Answered, Gap, Inbox, ReaderTimeout, Sessions, TurnState};

/// The client's handler for a connection.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) sessions: Arc<Sessions>,
    pub(super) hooks: Hooks,
    pub(super) reader_timeout: Duration,
    /// For permission requests that belong to no session of the client.
    pub(super) answer_limit: Duration,
}

/// The hooks for the agent's requests.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) files: Option<Arc<AnyFiles>>,
    pub(super) terminals: Option<Arc<AnyTerminals>>,
    pub(super) guard: Guard,
    pub(super) elicitation: Option<Arc<AnyElicitation>>,
    pub(super) extensions: Option<Arc<AnyExtensions>>,
}

impl Hooks {
    /// Returns whether an effect happens without a decision.
    fn is_unguarded(&self, effect: Effect<'_>) -> bool {
        match effect {
            Effect::Read(_) | Effect::Write(_) => {
                self.files.as_ref().is_some_and(|hook| !hook.is_guarded())
            }
            Effect::Run(_) => self
                .terminals
                .as_ref()
                .is_some_and(|hook| !hook.is_guarded()),
        }
    }
}

impl Handler {
    /// Returns the context of the session in which a request of session `id` is served.
    fn session(&self, id: &SessionId, meta: Option<&Meta>) -> HandlerResult<SessionContext> {
        self.sessions.serving(id, meta).ok_or_else(|| {
            let reason = format!("no session {id} is open in this client");
            HandlerError::invalid_params("/sessionId", reason)
        })
    }

    /// Records a gap after the connection of a session was lost.
    async fn record_gap(&self, SessionGap { session, gap }: SessionGap) {
        let inbox = self.sessions.inbox(&session);
        let Some(gap) = gap else {
            return inbox.end_history();
        };
        if gap != Gap::Truncated {
            inbox.lose_work();
        }
        if gap != Gap::Truncated {
            inbox.abort_history();
        }
        inbox.missing(gap, &self.reader_timeout()).await;
        if gap == Gap::Loaded {
            self.sessions.restart_children(&session);
            inbox.begin_history();
        }
    }

    /// Kills the terminals of an agent that was restarted, because the new process does not know them.
    fn end_terminals(&self) {
        if let Some(terminals) = &self.hooks.terminals {
            terminals.end_connection(self.sessions.connection());
        }
    }

    /// Returns the timeout for readers of events.
    fn reader_timeout(&self) -> ReaderTimeout<'_> {
        ReaderTimeout {
            limit: self.reader_timeout,
            sessions: Some(&self.sessions),
        }
    }

    /// Decides a permission request. `is_of_turn` returns whether a question about a tool
    /// call of a session is cancelled with the running turn.
    async fn permission(
        &self,
        cx: &ClientContext,
        req: RequestPermissionRequest,
        is_of_turn: impl Fn(&Inbox, Option<&ToolCallId>) -> bool,
    ) -> HandlerResult<RequestPermissionResponse> {
        let owner = self.sessions.owner(&req.session_id, req.meta.as_ref());
        let announced = self.sessions.inbox(&req.session_id);
        let inbox = owner.as_ref().map(|id| self.sessions.inbox(id));
        let inbox = inbox.unwrap_or_else(|| announced.clone());
        let child = self.sessions.child(&req.session_id);
        let (mut question, turn) = inbox.question(req, &announced);
        question.child = child;
        let turn = turn.as_deref();
        let limit = match owner {
            Some(_) => None,
            // No turn ends the request.
            None => Some(self.answer_limit),
        };
        // In version 2 the agent cancels its requests; a person may answer those of background work.
        let call = &question.request.tool_call.tool_call_id;
        let ends_with = turn.filter(|_| is_of_turn(&announced, Some(call)));
        let turns = (turn, ends_with);
        let answered = self.decide(cx, &inbox, question, turns, limit).await;
        let outcome = answered.outcome.clone();
        self.answered(&inbox, answered, turn).await;
        Ok(RequestPermissionResponse::new(outcome))
    }

    /// Asks the user. `is_of_turn` as in [`permission`](Self::permission).
    async fn elicitation(
        &self,
        cx: &ClientContext,
        req: CreateElicitationRequest,
        is_of_turn: impl Fn(&Inbox, Option<&ToolCallId>) -> bool,
    ) -> HandlerResult<CreateElicitationResponse> {
        let hook = hook::<methods::CreateElicitation, _>(self.hooks.elicitation.as_ref())?;
        let scope = match &req.mode {
            ElicitationMode::Form(mode) => Some(&mode.scope),
            ElicitationMode::Url(mode) => Some(&mode.scope),
            _ => None,
        };
        let (id, call) = match scope {
            Some(ElicitationScope::Session(scope)) => {
                (Some(&scope.session_id), scope.tool_call_id.as_ref())
            }
            _ => (None, None),
        };
        let is_of_turn = id.is_none_or(|id| is_of_turn(&self.sessions.inbox(id), call));
        let owner = id.and_then(|id| self.sessions.owner(id, req.meta.as_ref()));
        let id = owner.as_ref().or(id);
        let session = id.map(|id| self.session(id, None)).transpose()?;
        let turn = id.and_then(|id| self.sessions.inbox(id).turn());
        let turn = turn.filter(|_| is_of_turn);
        let action = tokio::select! {
            biased;
            () = cancelled(cx, turn.as_deref()) => ElicitationAction::Cancel,
            action = elicit(hook, session.as_ref(), &req) => action?,
        };
        Ok(CreateElicitationResponse::new(action))
    }

    /// Delivers an answer that the agent waits for.
    async fn answered(&self, inbox: &Inbox, answered: Answered, turn: Option<&TurnState>) {
        let limit = match answered.reason.as_deref() {
            // Its readers had their time.
            Some(Reason::NotRead(_)) => Duration::ZERO,
            _ => self.reader_timeout,
        };
        let reader_timeout = ReaderTimeout {
            limit,
            sessions: None,
        };
        inbox.answered(answered, turn, &reader_timeout).await;
    }
}

impl v1::Client for Handler {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        let receiver = self.sessions.receiver(&note.session_id, note.meta.as_ref());
        let origin = session::Origin::of(note.meta.as_ref());
        if let Some(rest) = self.deliver(&note.session_id, &receiver, note.update, origin) {
            rest.await;
        }
        Ok(())
    }

    async fn request_permission(
        &self,
        cx: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        self.permission(cx, req, |_, _| true).await
    }

    async fn read_text_file(
        &self,
        cx: &ClientContext,
        req: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        let files = hook::<methods::ReadTextFile, _>(self.hooks.files.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        self.allow(cx, &session, Effect::Read(&req)).await?;
        files.read(&session, req).await
    }

    async fn write_text_file(
        &self,
        cx: &ClientContext,
        req: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        let files = hook::<methods::WriteTextFile, _>(self.hooks.files.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        self.allow(cx, &session, Effect::Write(&req)).await?;
        files.write(&session, req).await
    }

    async fn create_terminal(
        &self,
        cx: &ClientContext,
        req: CreateTerminalRequest,
    ) -> HandlerResult<CreateTerminalResponse> {
        let terminals = hook::<methods::CreateTerminal, _>(self.hooks.terminals.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        self.allow(cx, &session, Effect::Run(&req)).await?;
        terminals.create(&session, req).await
    }

    async fn terminal_output(
        &self,
        _: &ClientContext,
        req: TerminalOutputRequest,
    ) -> HandlerResult<TerminalOutputResponse> {
        let terminals = hook::<methods::TerminalOutput, _>(self.hooks.terminals.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        terminals.output(&session, req).await
    }

    async fn wait_for_terminal_exit(
        &self,
        cx: &ClientContext,
        req: WaitForTerminalExitRequest,
    ) -> HandlerResult<WaitForTerminalExitResponse> {
        let terminals = hook::<methods::WaitForTerminalExit, _>(self.hooks.terminals.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        tokio::select! {
            exit = terminals.wait_for_exit(&session, req) => exit,
            () = cx.cancelled() => Err(HandlerError::cancelled()),
        }
    }

    async fn kill_terminal(
        &self,
        _: &ClientContext,
        req: KillTerminalRequest,
    ) -> HandlerResult<KillTerminalResponse> {
        let terminals = hook::<methods::KillTerminal, _>(self.hooks.terminals.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        terminals.kill(&session, req).await
    }

    async fn release_terminal(
        &self,
        _: &ClientContext,
        req: ReleaseTerminalRequest,
    ) -> HandlerResult<ReleaseTerminalResponse> {
        let terminals = hook::<methods::ReleaseTerminal, _>(self.hooks.terminals.as_ref())?;
        let session = self.session(&req.session_id, req.meta.as_ref())?;
        terminals.release(&session, req).await
    }

    async fn create_elicitation(
        &self,
        cx: &ClientContext,
        req: CreateElicitationRequest,
    ) -> HandlerResult<CreateElicitationResponse> {
        self.elicitation(cx, req, |_, _| true).await
    }

    async fn complete_elicitation(
        &self,
        _: &ClientContext,
        note: CompleteElicitationNotification,
    ) -> HandlerResult<()> {
        if let Some(hook) = &self.hooks.elicitation {
            hook.completed(&note.elicitation_id);
        }
        Ok(())
    }

    async fn ext_request(
        &self,
        _: &ClientContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        match &self.hooks.extensions {
            Some(hook) => hook.request(method, params).await,
            None => Err(HandlerError::method_not_found(method)),
        }
    }

    async fn ext_notification(
        &self,
        _: &ClientContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        let text = params.as_ref().map(Json::get);
        if let Some(gap) = SessionGap::read(method, text) {
            self.record_gap(gap).await;
        } else if is_restart(method, text) {
            self.end_terminals();
        } else if let Some(hook) = &self.hooks.extensions {
            hook.notification(method, params).await;
        }
        Ok(())
    }
}

/// Returns the hook, or the error -32601 without one.
fn hook<M: Method, T: ?Sized>(hook: Option<&Arc<T>>) -> HandlerResult<&T> {
    let hook = hook.map(|hook| &**hook);
    hook.ok_or_else(|| HandlerError::method_not_found(M::NAME))
}
