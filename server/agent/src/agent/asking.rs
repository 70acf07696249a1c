//! Asking a model, until the turn is cancelled.

use std::time::Duration;

use acp_server::{HandlerError, Turn};
use futures_util::StreamExt;

use super::Agent;
use crate::model::{Answer, Delta, Model, ModelError, Request};

/// Why a request was not answered.
pub(super) enum Unanswered {
    Model(ModelError),
    Server(acp_server::Error),
}

impl From<acp_server::Error> for Unanswered {
    fn from(error: acp_server::Error) -> Self {
        Self::Server(error)
    }
}

impl From<Unanswered> for HandlerError {
    fn from(error: Unanswered) -> Self {
        match error {
            Unanswered::Model(error) => Self::internal(error.to_string()),
            Unanswered::Server(error) => error.into(),
        }
    }
}

/// The answer to a request of a turn.
pub(super) struct Answering<'a> {
    turn: &'a Turn,
    answer: Answer,
}

impl<'a> Answering<'a> {
    /// Asks, and again after a temporary failure.
    pub(super) async fn begin(
        agent: &Agent,
        turn: &'a Turn,
        model: &dyn Model,
        request: &Request,
    ) -> Result<Self, Unanswered> {
        let waits = async |error: &ModelError, wait: Duration| {
            let seconds = wait.as_secs();
            tracing::warn!(%error, seconds, "a request to a model is made again");
        };
        let asked = agent.retry.answer(model, request, waits);
        let answer = unless_cancelled(turn, asked).await?;
        let answer = answer.map_err(Unanswered::Model)?;
        Ok(Self { turn, answer })
    }

    /// Returns the next piece; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Delta>, Unanswered> {
        let delta = unless_cancelled(self.turn, self.answer.next()).await?;
        delta.transpose().map_err(Unanswered::Model)
    }
}

async fn unless_cancelled<T>(
    turn: &Turn,
    waiting: impl Future<Output = T>,
) -> acp_server::Result<T> {
    tokio::select! {
        biased;
        () = turn.cancelled() => Err(acp_server::Error::Cancelled),
        done = waiting => Ok(done),
    }
}
