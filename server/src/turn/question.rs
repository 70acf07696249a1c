//! Asking the user through any attached client.

use std::sync::Arc;

use super::Core;
use crate::event::{QuestionId, TurnEvent};
use crate::session::{Ask, Question, Reply};
use crate::{Error, Result, Session};

/// Withdraws a question that nobody waits for any more.
struct Withdrawn<'a> {
    session: &'a Session,
    question: Arc<Question>,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.session.withdraw(&self.question);
    }
}

/// Asks, and waits for the first answer.
pub(super) async fn ask(core: &Arc<Core>, ask: Ask) -> Result<Reply> {
    let origin = core.origin().map(|origin| origin.client);
    if core.cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let (question, reply) = core
        .append(|appender| {
            let id = QuestionId(appender.next_number());
            let event = match ask.clone() {
                Ask::Permission(request) => TurnEvent::PermissionAsked {
                    question: id,
                    request,
                },
                Ask::Elicitation(request) => TurnEvent::ElicitationAsked {
                    question: id,
                    request,
                },
            };
            super::core::push(appender, &event)?;
            let (question, reply) = Question::new(id, ask, origin);
            // Entered before it is committed, so that the delivery finds it.
            let mut state = core.session.state();
            state.questions.insert(id.0, question.clone());
            Ok((question, reply))
        })
        .await?;
    let _withdrawn = Withdrawn {
        session: &core.session,
        question,
    };
    tokio::select! {
        biased;
        () = core.cancel.cancelled() => Err(Error::Cancelled),
        reply = reply => match reply {
            Ok(Reply::Failed(error)) => Err(error.into()),
            Ok(reply) => Ok(reply),
            // The question was withdrawn.
            Err(_) => Err(Error::Cancelled),
        },
    }
}
