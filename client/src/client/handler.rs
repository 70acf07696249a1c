//! Answers what the agent asks.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{self, *};
use acp_sdk::{HandlerError, HandlerResult};

use crate::permission::{AnnouncedCalls, AnyPermissions, Decision, Question, Reason};
use crate::session::{self, Answered, Inbox, Patience, Sessions};
use crate::workspace::Workspace;

/// The client's side of the connection.
pub(super) struct Handler {
    pub(super) sessions: Arc<Sessions>,
    pub(super) workspace: Option<Workspace>,
    pub(super) permissions: Arc<dyn AnyPermissions>,
    pub(super) calls: Arc<AnnouncedCalls>,
    pub(super) reader_timeout: Duration,
}

impl Handler {
    fn workspace<M: acp_sdk::runtime::Method>(&self) -> HandlerResult<&Workspace> {
        self.workspace
            .as_ref()
            .ok_or_else(|| HandlerError::method_not_found(M::NAME))
    }

    async fn decide(&self, inbox: &Inbox, question: &Question) -> (Decision, Option<Reason>) {
        if self.permissions.is_in_order() {
            inbox.caught_up().await;
        }
        self.permissions.decide_boxed(question).await
    }

    /// How long the readers of events are waited for.
    fn patience<'a>(&self, others_wait: &'a (dyn Fn() -> bool + Sync)) -> Patience<'a> {
        Patience {
            limit: self.reader_timeout,
            others_wait,
        }
    }

    async fn put_in(&self, inbox: &Inbox, waiting: session::Waiting) {
        let others_wait = || self.sessions.is_shared();
        inbox.put_in(waiting, &self.patience(&others_wait)).await;
    }
}

impl v1::Client for Handler {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        self.calls.update(&note);
        let inbox = self.sessions.inbox(&note.session_id);
        let number = session::number(note.meta.as_ref());
        if let Some(waiting) = inbox.take_in(note.update, number) {
            Box::pin(self.put_in(&inbox, waiting)).await;
        }
        Ok(())
    }

    async fn request_permission(
        &self,
        cx: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        let inbox = self.sessions.inbox(&req.session_id);
        let question = self.calls.complete(inbox.question(req));
        let turn = inbox.turn();
        let withdrawn = async {
            match &turn {
                Some(turn) => turn.cancel_sent.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let (decision, reason) = tokio::select! {
            biased;
            () = withdrawn => (Decision::Cancelled, None),
            () = cx.cancelled() => (Decision::Cancelled, None),
            decision = self.decide(&inbox, &question) => decision,
        };
        let outcome = decision.among(&question.request.options);
        let answered = Answered {
            question,
            outcome: outcome.clone(),
            reason: reason.map(Box::new),
        };
        let others_wait = || self.sessions.is_shared();
        let patience = self.patience(&others_wait);
        inbox.answered(answered, &patience).await;
        Ok(RequestPermissionResponse::new(outcome))
    }

    async fn read_text_file(
        &self,
        _: &ClientContext,
        req: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        let workspace = self.workspace::<methods::ReadTextFile>()?;
        workspace.read_text_file(req).await
    }

    async fn write_text_file(
        &self,
        _: &ClientContext,
        req: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        let workspace = self.workspace::<methods::WriteTextFile>()?;
        workspace.write_text_file(req).await
    }

    async fn create_terminal(
        &self,
        _: &ClientContext,
        req: CreateTerminalRequest,
    ) -> HandlerResult<CreateTerminalResponse> {
        let workspace = self.workspace::<methods::CreateTerminal>()?;
        workspace.create_terminal(req).await
    }

    async fn terminal_output(
        &self,
        _: &ClientContext,
        req: TerminalOutputRequest,
    ) -> HandlerResult<TerminalOutputResponse> {
        let workspace = self.workspace::<methods::TerminalOutput>()?;
        workspace.terminal_output(req).await
    }

    async fn wait_for_terminal_exit(
        &self,
        cx: &ClientContext,
        req: WaitForTerminalExitRequest,
    ) -> HandlerResult<WaitForTerminalExitResponse> {
        let workspace = self.workspace::<methods::WaitForTerminalExit>()?;
        tokio::select! {
            exit = workspace.wait_for_terminal_exit(req) => exit,
            () = cx.cancelled() => Err(HandlerError::cancelled()),
        }
    }

    async fn kill_terminal(
        &self,
        _: &ClientContext,
        req: KillTerminalRequest,
    ) -> HandlerResult<KillTerminalResponse> {
        let workspace = self.workspace::<methods::KillTerminal>()?;
        workspace.kill_terminal(req).await
    }

    async fn release_terminal(
        &self,
        _: &ClientContext,
        req: ReleaseTerminalRequest,
    ) -> HandlerResult<ReleaseTerminalResponse> {
        let workspace = self.workspace::<methods::ReleaseTerminal>()?;
        workspace.release_terminal(req).await
    }

    #[cfg(feature = "remote")]
    async fn ext_notification(
        &self,
        _: &ClientContext,
        method: &str,
        params: Option<acp_sdk::Json>,
    ) -> HandlerResult<()> {
        use crate::session::Gap;
        if method == crate::remote::GAP
            && let Some(params) = params
            && let Ok(params) = serde_json::from_str::<serde_json::Value>(params.get())
        {
            let session = SessionId::from(params["sessionId"].as_str().unwrap_or_default());
            let gap = match params["kind"].as_str() {
                Some("loaded") => Gap::Loaded,
                Some("truncated") => Gap::Truncated,
                _ => Gap::Lost,
            };
            let others_wait = || self.sessions.is_shared();
            let patience = self.patience(&others_wait);
            let inbox = self.sessions.inbox(&session);
            inbox.missing(gap, &patience).await;
        }
        Ok(())
    }
}
