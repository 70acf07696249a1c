//! What the client does for an agent is decided by the guard, before it is done; and what the agent
//! did by itself, afterwards.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{
    ClientContext, ReadTextFileRequest, RequestPermissionOutcome, SessionId, SessionUpdate,
    WriteTextFileRequest,
};
use acp_sdk::{HandlerError, HandlerResult};

use super::Handler;
use crate::guard::{Effect, Limits, Unasked, cancelled};
use crate::hooks::SessionContext;
use crate::permission::{Action, PermissionRequest, Reason};
use crate::session::{
    Answered, ChildUpdate, Inbox, Origin, Receiver, Rest, Signal, TurnState, announced_child,
};

impl Handler {
    /// Decides a request, until the agent cancels it or the turn `ends_with` is cancelled, or up to
    /// `limit`.
    pub(super) async fn decide(
        &self,
        cx: &ClientContext,
        inbox: &Inbox,
        question: PermissionRequest,
        (turn, ends_with): (Option<&TurnState>, Option<&TurnState>),
        limit: Option<Duration>,
    ) -> Answered {
        let cancelled = cancelled(cx, ends_with);
        let limits = self.limits(limit);
        let guard = &self.hooks.guard;
        guard.decide(inbox, question, turn, limits, cancelled).await
    }

    fn limits(&self, answer: Option<Duration>) -> Limits {
        Limits {
            unread: self.reader_timeout,
            answer,
        }
    }

    /// Decides whether an effect may happen, unless it belongs to a tool call that was allowed.
    ///
    /// # Errors
    ///
    /// `-32603` if it is rejected, and `-32800` if the turn is cancelled meanwhile.
    pub(super) async fn allow(
        &self,
        cx: &ClientContext,
        session: &SessionContext,
        effect: Effect<'_>,
    ) -> HandlerResult<()> {
        let inbox = self.sessions.inbox(session.id());
        if self.hooks.is_unguarded(effect) {
            let served = effect.question(session.cwd().to_owned(), None);
            inbox.approvals(|approvals| approvals.served(&served));
            return Ok(());
        }
        let old = match effect {
            Effect::Write(request) if self.hooks.guard.is_shown() => {
                Some(self.present_text(session, request).await)
            }
            _ => None,
        };
        let question = effect.question(session.cwd().to_owned(), old);
        if !question.only_reads() && is_covered(&inbox, &question).await {
            return Ok(());
        }
        let turn = inbox.turn();
        let turn = turn.as_deref();
        let answered = self.decide(cx, &inbox, question, (turn, turn), None).await;
        let result = result(effect, &answered, self.hooks.guard.asks_person());
        // A file that is read without a rule or a question is no news.
        if !answered.question.is_read_by_client() || answered.reason.is_some() || result.is_err() {
            self.answered(&inbox, answered, turn).await;
        }
        result
    }

    /// Returns the text that a file has before it is written; `None` if it does not exist or cannot be
    /// read.
    async fn present_text(
        &self,
        session: &SessionContext,
        request: &WriteTextFileRequest,
    ) -> Option<String> {
        let files = self.hooks.files.as_ref()?;
        let read = ReadTextFileRequest::new(request.session_id.clone(), request.path.clone());
        let read = files.read(session, read).await;
        read.ok().map(|response| response.content)
    }

    /// Delivers an update of session `id`: to its readers, or to those of its parent. Returns what is
    /// left to do, which is rare: not every update is to carry its state.
    pub(super) fn deliver<'a>(
        &'a self,
        id: &'a SessionId,
        receiver: &'a Receiver,
        update: SessionUpdate,
        origin: Origin,
    ) -> Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>> {
        if let Some(announced) = announced_child(&update) {
            self.sessions.announce(announced, id);
        }
        let Receiver {
            inbox,
            parent,
            title,
        } = receiver;
        let (inbox, rest) = match parent {
            None => (inbox, inbox.push_update(update, origin)),
            Some(parent) => {
                let (session, title) = (id.clone(), title.clone());
                let update = ChildUpdate {
                    session,
                    title,
                    update,
                };
                (parent, parent.push_child_update(inbox, update, &origin))
            }
        };
        match rest {
            Rest {
                waiting: None,
                unasked: None,
            } => None,
            rest => Some(Box::pin(self.finish(id, inbox, rest))),
        }
    }

    /// Does what is left after an update was delivered.
    async fn finish(&self, id: &SessionId, inbox: &Arc<Inbox>, rest: Rest) {
        if let Some(waiting) = rest.waiting {
            inbox.put_in(waiting, &self.reader_timeout()).await;
        }
        if let Some(unasked) = rest.unasked {
            self.review(id, inbox, *unasked).await;
        }
    }

    /// Decides about a tool call that nobody allowed. Rejecting it cancels the turn.
    ///
    /// In a task, because the connection goes on meanwhile; the outcome of the turn waits for it. Waits
    /// while as many decisions are open as there may be, which slows the agent down.
    async fn review(&self, id: &SessionId, inbox: &Arc<Inbox>, unasked: Unasked) {
        let turn = unasked.turn.clone();
        let permit = tokio::select! {
            biased;
            () = turn.signals.until(Signal::Cancel) => return,
            permit = turn.reviews().permits.clone().acquire_owned() => permit,
        };
        let (handler, id, inbox) = (self.clone(), id.clone(), inbox.clone());
        turn.clone().reviews().tasks.spawn(async move {
            let question = tokio::task::spawn_blocking(move || unasked.question()).await;
            // An error means that the runtime is shutting down.
            if let Ok(Some(mut question)) = question {
                question.child = handler.sessions.child(&id);
                question.request.session_id = id;
                handler.ask_afterwards(&inbox, question, &turn).await;
            }
            drop(permit);
        });
    }

    async fn ask_afterwards(&self, inbox: &Inbox, question: PermissionRequest, turn: &TurnState) {
        let guard = &self.hooks.guard;
        let (limits, cancelled) = (self.limits(None), turn.signals.until(Signal::Cancel));
        let answered = guard
            .decide(inbox, question, Some(turn), limits, cancelled)
            .await;
        let is_allowed = answered.is_allowed();
        if !is_allowed && !turn.signals.has(Signal::Cancel) {
            turn.not_allowed(answered.question.title.clone().unwrap_or_default());
        }
        // That a policy allows everything is no news.
        if !is_allowed || guard.asks_person() || answered.reason.is_some() {
            inbox
                .answered(answered, Some(turn), &self.reader_timeout())
                .await;
        }
    }
}

/// Returns whether an effect belongs to a tool call that was allowed, and uses that.
async fn is_covered(inbox: &Inbox, effect: &PermissionRequest) -> bool {
    let open = inbox.approvals(|approvals| approvals.open());
    if open.is_empty() {
        return false;
    }
    let asked = effect.clone();
    let found = tokio::task::spawn_blocking(move || {
        let effect = Action::new(&asked);
        let mut open = open.into_iter();
        open.find(|call| Action::new(call).includes(&effect))
    });
    // An error means that the runtime is shutting down.
    let Ok(Some(call)) = found.await else {
        return false;
    };
    inbox.approvals(|approvals| approvals.take(&call, effect))
}

/// Returns the answer to the agent, which names who decided.
fn result(effect: Effect<'_>, answered: &Answered, asks_person: bool) -> HandlerResult<()> {
    if answered.outcome == RequestPermissionOutcome::Cancelled {
        return Err(HandlerError::cancelled());
    }
    if answered.is_allowed() {
        return Ok(());
    }
    let what = effect.what();
    let reason = answered.reason.as_deref();
    let who = match (Reason::is_person(reason, asks_person), reason) {
        (true, _) => " by the user",
        (false, None) => " by the client",
        (false, Some(_)) => "",
    };
    let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    Err(HandlerError::internal(format!(
        "{what} is not allowed{who}{why}"
    )))
}
