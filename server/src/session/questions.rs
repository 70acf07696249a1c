//! Questions to the user: offered to clients, answered once.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use acp_sdk::CloseReason;
use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAction, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::audit::{self, Answerer, Ending};
use crate::connection::{Client, ClientId, Subscription};
use crate::event::{QuestionId, TurnEvent};
use crate::log::Appender;
use crate::store::StoreError;
use crate::turn::push;
use crate::{Error, Result};

/// What is asked.
#[derive(Clone, Debug)]
pub enum Ask {
    /// For permission.
    Permission(RequestPermissionRequest),
    /// For information.
    Elicitation(CreateElicitationRequest),
}

/// What came back.
#[derive(Debug)]
pub enum Reply {
    /// The chosen option, or that the turn is cancelled.
    Permission(RequestPermissionOutcome),
    /// What the user entered, or did instead.
    Elicitation(ElicitationAction),
}

/// The end of a question: the reply, or why nobody could give one.
type End = oneshot::Sender<Result<Reply>>;

pub(crate) struct Question {
    pub(crate) id: QuestionId,
    pub(crate) ask: Ask,
    /// The child session that asks.
    pub(crate) child: Option<SessionId>,
    /// The client that prompted, which is asked first.
    origin: Option<ClientId>,
    state: Mutex<QuestionState>,
    /// Cancelled when the question is answered or withdrawn.
    closed: CancellationToken,
}

struct QuestionState {
    /// Taken by whoever has [closed](Session::close_question) the question.
    end: Option<End>,
    /// The subscriptions of clients that were asked: one that has left and comes back has another.
    offered: Vec<Weak<Subscription>>,
    /// Offers without an answer.
    open: usize,
}

impl Ask {
    /// Returns the child session that asks, and makes it a question of the session itself: only
    /// version 2 knows child sessions.
    pub(super) fn take_child(&mut self, session: &SessionId) -> Option<SessionId> {
        match self {
            Self::Permission(request) if request.session_id != *session => {
                let child = std::mem::replace(&mut request.session_id, session.clone());
                Some(child)
            }
            Self::Permission(_) | Self::Elicitation(_) => None,
        }
    }

    /// Returns the event of a question.
    pub(super) fn event(self, question: QuestionId, child: Option<SessionId>) -> TurnEvent {
        match self {
            Self::Permission(request) => TurnEvent::PermissionAsked {
                question,
                request,
                child,
            },
            Self::Elicitation(request) => TurnEvent::ElicitationAsked { question, request },
        }
    }

    /// Checks a reply, whichever way it came.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownOption`] for an option that was not offered. What a form was filled in with is
    /// the asker's to check.
    pub(super) fn check(&self, reply: &Reply) -> Result<()> {
        let (Self::Permission(request), Reply::Permission(outcome)) = (self, reply) else {
            return Ok(());
        };
        match outcome {
            RequestPermissionOutcome::Cancelled => Ok(()),
            RequestPermissionOutcome::Selected(chosen) => {
                let mut offered = request.options.iter();
                match offered.any(|option| option.option_id == chosen.option_id) {
                    true => Ok(()),
                    false => Err(Error::UnknownOption(chosen.option_id.to_string())),
                }
            }
            other => Err(Error::UnknownOption(format!("{other:?}"))),
        }
    }
}

impl Question {
    pub(crate) fn new(
        id: QuestionId,
        ask: Ask,
        child: Option<SessionId>,
        origin: Option<ClientId>,
    ) -> (Arc<Self>, oneshot::Receiver<Result<Reply>>) {
        let (end, receiver) = oneshot::channel();
        let question = Self {
            id,
            ask,
            child,
            origin,
            state: Mutex::new(QuestionState {
                end: Some(end),
                offered: Vec::new(),
                open: 0,
            }),
            closed: CancellationToken::new(),
        };
        (Arc::new(question), receiver)
    }

    /// Ends a question that could not be asked: its event does not exist, and no answer of it may.
    pub(super) fn fail(&self, error: Error) {
        if let Some(end) = self.take_end() {
            // Whoever asked may have gone.
            let _ = end.send(Err(error));
        }
        self.closed.cancel();
    }

    fn take_end(&self) -> Option<End> {
        self.state().end.take()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, QuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Withdraws a question that nobody waits for any more.
pub(crate) struct Withdrawn {
    session: Session,
    pub(super) question: Arc<Question>,
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.session.withdraw(&self.question);
    }
}

/// Returns the reply to a question.
///
/// # Errors
///
/// The client's, that of the store, or [`Error::Cancelled`] when the question was withdrawn.
pub(super) fn answered(end: Result<Result<Reply>, oneshot::error::RecvError>) -> Result<Reply> {
    end.unwrap_or(Err(Error::Cancelled))
}

impl Session {
    /// Asks a question of another agent that belongs to no turn. All clients are asked.
    pub async fn ask(&self, ask: Ask) -> Result<Reply> {
        if let Some(decided) = self.decided(&ask).await {
            let write = |appender: &mut Appender<'_>| self.write_decided(appender, ask, decided);
            return self.append_outside(write).await;
        }
        let undecided = self.undecided(&ask);
        let asked = self.append_outside(|appender| self.write_question(appender, ask, None));
        let (withdrawn, reply) = asked.await?;
        let reply = tokio::select! {
            biased;
            reply = self.reply_in_time(&withdrawn, reply) => reply?.0,
            () = self.closed() => return Err(Error::Cancelled),
        };
        self.tell_rules(undecided, &reply).await;
        Ok(reply)
    }

    /// Appends a question under the log's lock. It is withdrawn when the first part of the result is
    /// dropped.
    pub(crate) fn write_question(
        &self,
        appender: &mut Appender<'_>,
        mut ask: Ask,
        origin: Option<ClientId>,
    ) -> Result<(Withdrawn, oneshot::Receiver<Result<Reply>>)> {
        let id = QuestionId(appender.next_number());
        let child = ask.take_child(self.id());
        push(appender, &ask.clone().event(id, child.clone()))?;
        let (question, reply) = Question::new(id, ask, child, origin);
        // Entered before it is committed, so that the delivery finds it.
        self.state().questions.insert(id.0, question.clone());
        let session = self.clone();
        Ok((Withdrawn { session, question }, reply))
    }

    /// Returns the questions without an answer, the oldest first.
    pub(crate) fn open_questions(&self) -> Vec<Arc<Question>> {
        self.state().questions.values().cloned().collect()
    }

    /// A client has been sent the events up to a question: it is asked, if the question is for it.
    pub(crate) fn offer_question_at(&self, number: u64, client: &Arc<Client>) {
        let question = {
            let state = self.state();
            let Some(question) = state.questions.get(&number) else {
                return;
            };
            let is_attached = |id| state.clients.iter().any(|old| old.client.id() == id);
            let elsewhere = question
                .origin
                .is_some_and(|id| id != client.id() && is_attached(id));
            if elsewhere {
                return;
            }
            question.clone()
        };
        self.offer(&question, client);
    }

    /// Asks a client, unless it is not attached, cannot answer or was asked before.
    pub(crate) fn offer(&self, question: &Arc<Question>, client: &Arc<Client>) {
        let Some(subscription) = client.subscription(self.id()) else {
            return;
        };
        if !client.can_answer(&question.ask) {
            return;
        }
        {
            let mut state = question.state();
            let this = Arc::downgrade(&subscription);
            if state.end.is_none() || state.offered.iter().any(|old| old.ptr_eq(&this)) {
                return;
            }
            state.offered.push(this);
            state.open += 1;
        }
        let (session, question, client) = (self.clone(), question.clone(), client.clone());
        // In place, so that the request leaves with the updates before it.
        crate::in_place::begin(async move {
            let answer = tokio::select! {
                biased;
                // Dropping the call cancels the request.
                () = question.closed.cancelled() => return,
                // What still waits for room must not follow the answer to `session/close`.
                () = subscription.left() => Err(acp_sdk::Error::Closed(CloseReason::Dropped)),
                answer = client.ask(&question.ask, question.child.as_ref()) => answer,
            };
            session.answered(&question, &client, answer);
        });
    }

    fn answered(&self, question: &Question, client: &Client, answer: acp_sdk::Result<Reply>) {
        let is_gone = matches!(answer, Err(acp_sdk::Error::Closed(_)));
        // A client that answers wrongly has failed.
        let answer = answer.map_err(Error::from);
        let answer = answer.and_then(|reply| question.ask.check(&reply).map(|()| reply));
        {
            let mut state = question.state();
            state.open -= 1;
            // A client that has gone or left may come back, and others may attach.
            if is_gone || (answer.is_err() && state.open > 0) {
                return;
            }
        }
        let answerer = client.answerer();
        let ending = match &answer {
            Ok(reply) => Ending::Answered(&answerer, reply),
            Err(error) => Ending::Failed(&answerer, error),
        };
        if let Some(end) = self.close_question(question, &ending) {
            // The turn may have ended meanwhile.
            let _ = end.send(answer);
        }
    }

    /// Answers a question in place of a client.
    ///
    /// # Errors
    ///
    /// [`Error::NotPending`] if it is answered or withdrawn already, and [`Error::UnknownOption`],
    /// which leaves it open.
    pub(super) fn reply(
        &self,
        question: &Question,
        answerer: &Answerer,
        reply: Reply,
    ) -> Result<()> {
        question.ask.check(&reply)?;
        let end = self.close_question(question, &Ending::Answered(answerer, &reply));
        let end = end.ok_or_else(|| Error::NotPending(self.id().clone(), question.id))?;
        // The turn may have ended meanwhile.
        let _ = end.send(Ok(reply));
        Ok(())
    }

    /// Withdraws a question, if it is still open.
    pub(crate) fn withdraw(&self, question: &Question) {
        if question.closed.is_cancelled() {
            return;
        }
        drop(self.close_question(question, &Ending::Withdrawn));
    }

    /// Ends a question, unless somebody else has. Its end is in the log then, whoever has ended it: what its
    /// turn appends next follows it.
    fn close_question(&self, question: &Question, ending: &Ending<'_>) -> Option<End> {
        let id = question.id;
        let (reply, by) = match ending {
            Ending::Answered(answerer, reply) => (Some(*reply), answerer.in_place_of_person()),
            Ending::Failed(..) | Ending::Withdrawn => (None, None),
        };
        let event = match (&question.ask, reply) {
            (_, Some(Reply::Permission(outcome))) => TurnEvent::PermissionAnswered {
                question: id,
                outcome: Some(outcome.clone()),
                by,
                child: question.child.clone(),
            },
            (_, Some(Reply::Elicitation(action))) => TurnEvent::ElicitationAnswered {
                question: id,
                action: Some(action.clone()),
            },
            (Ask::Permission(_), _) => TurnEvent::PermissionAnswered {
                question: id,
                outcome: None,
                by: None,
                child: question.child.clone(),
            },
            (Ask::Elicitation(_), _) => TurnEvent::ElicitationAnswered {
                question: id,
                action: None,
            },
        };
        // The log's lock decides who ends it.
        let mut ends = false;
        let _ = self.log().append_now(None, |appender| {
            ends = self.remove_question(question);
            let pushed = ends && appender.push(&event).is_ok();
            Ok::<_, StoreError>(pushed)
        });
        // The answer counts for the turn even if the store does not take it: the turn fails then.
        if !ends && !self.remove_question(question) {
            return None;
        }
        audit::ended(self.id(), id, &question.ask, ending);
        let end = question.take_end();
        question.closed.cancel();
        end
    }

    /// Removes a question from those that are open; `false` if it is not among them.
    fn remove_question(&self, question: &Question) -> bool {
        let questions = &mut self.state().questions;
        let entered = questions.get(&question.id.0);
        // A failed commit has removed it, and another question may have its number.
        let is_open = entered.is_some_and(|entered| std::ptr::eq(&**entered, question));
        if is_open {
            questions.remove(&question.id.0);
        }
        is_open
    }

    /// A client has gone: questions that only it was asked are offered to the others.
    pub(crate) fn offer_again(&self, gone: ClientId) {
        let questions = self.open_questions();
        for question in questions.iter().filter(|open| open.origin == Some(gone)) {
            for attached in self.clients() {
                self.offer_if_sent(question, &attached.client, &attached.subscription);
            }
        }
    }

    /// A client that goes on after a failed request to join is offered the questions whose client
    /// has gone meanwhile.
    pub(crate) fn offer_left(&self, client: &Arc<Client>, subscription: &Subscription) {
        let clients = self.clients();
        for question in self.open_questions() {
            let mut attached = clients.iter().map(|attached| attached.client.id());
            let has_gone = |origin| origin == client.id() || !attached.any(|id| id == origin);
            if question.origin.is_none_or(has_gone) {
                self.offer_if_sent(&question, client, subscription);
            }
        }
    }

    /// Offers a question to a client that was sent its event. A client whose request to join is not
    /// answered yet is asked after the answer.
    fn offer_if_sent(&self, question: &Arc<Question>, client: &Arc<Client>, sent: &Subscription) {
        if sent.may_ask(question.id.0) {
            self.offer(question, client);
        }
    }
}
