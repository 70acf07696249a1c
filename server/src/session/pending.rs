//! Questions to the user, seen and answered by the program itself.

use acp_sdk::v1::{ElicitationAction, RequestPermissionOutcome, RequestPermissionRequest};

use super::{Answerer, Ask, Reply, Session};
use crate::event::QuestionId;
use crate::{Error, Result};

/// A permission that a turn waits for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingPermission {
    /// The question, unique in the session.
    pub question: QuestionId,
    /// What is asked, with the options to choose from.
    pub request: RequestPermissionRequest,
}

impl Session {
    /// Returns the permissions that the running turn waits for, the oldest first.
    #[must_use]
    pub fn pending_permissions(&self) -> Vec<PendingPermission> {
        let questions = self.open_questions().into_iter();
        let pending = questions.filter_map(|question| match &question.ask {
            Ask::Permission(request) => Some(PendingPermission {
                question: question.id,
                request: request.clone(),
            }),
            Ask::Elicitation(_) => None,
        });
        pending.collect()
    }

    /// Answers a permission request in place of a client.
    ///
    /// The first answer counts: requests to clients are cancelled, and all subscribers receive
    /// [`PermissionAnswered`](crate::event::TurnEvent::PermissionAnswered).
    /// [`RequestPermissionOutcome::Cancelled`] cancels the turn.
    ///
    /// # Errors
    ///
    /// [`Error::NotPending`](crate::Error::NotPending) when another answer was first, or the
    /// question was withdrawn or is no permission; [`Error::UnknownOption`](crate::Error::UnknownOption)
    /// for an option that was not offered, which leaves the question open.
    pub fn answer_permission(
        &self,
        question: QuestionId,
        outcome: RequestPermissionOutcome,
    ) -> Result<()> {
        self.answer_for(&Answerer::program(), question, Reply::Permission(outcome))
    }

    /// Answers an elicitation in place of a client, as
    /// [`answer_permission`](Self::answer_permission) does.
    ///
    /// # Errors
    ///
    /// [`Error::NotPending`](crate::Error::NotPending).
    pub fn answer_elicitation(
        &self,
        question: QuestionId,
        action: ElicitationAction,
    ) -> Result<()> {
        self.answer_for(&Answerer::program(), question, Reply::Elicitation(action))
    }

    /// Answers a question for an endpoint, in the name of its caller.
    ///
    /// # Errors
    ///
    /// As [`answer_permission`](Self::answer_permission).
    #[doc(hidden)]
    pub fn answer_for(
        &self,
        answerer: &Answerer,
        question: QuestionId,
        reply: Reply,
    ) -> Result<()> {
        let pending = self.state().questions.get(&question.0).cloned();
        let pending = pending.filter(|pending| {
            matches!(
                (&pending.ask, &reply),
                (Ask::Permission(_), Reply::Permission(_))
                    | (Ask::Elicitation(_), Reply::Elicitation(_))
            )
        });
        match pending {
            Some(pending) => self.reply(&pending, answerer, reply),
            None => Err(Error::NotPending(self.id().clone(), question)),
        }
    }
}
