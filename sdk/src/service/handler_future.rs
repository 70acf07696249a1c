//! A handler that is ready to run.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tracing::{Instrument as _, Span};

use crate::connection::RequestState;
use crate::error::HandlerError;
use crate::jsonrpc::ErrorCode;
use crate::runtime::BoxFuture;

/// How a message was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The request was answered with a result, or the notification was handled.
    Success,
    /// The request was answered with an error, or the notification's handler failed.
    Error(ErrorCode),
}

/// A handler that is ready to run. It answers its request itself.
///
/// A layer can await it inside a future of its own ([`wrap`](Self::wrap)), or
/// [`abort`](Self::abort) it. Dropping it answers the request with `-32603`.
#[must_use = "a handler does nothing until it is polled"]
pub struct HandlerFuture {
    state: State,
    /// None for a notification.
    request: Option<Arc<RequestState>>,
}

enum State {
    Running(BoxFuture),
    /// The message is handled already: refused, invalid, or without a handler.
    Done(Outcome),
}

impl HandlerFuture {
    pub(crate) fn answering(
        future: BoxFuture,
        request: Arc<RequestState>,
        span: Option<Span>,
    ) -> Self {
        let future = match span {
            Some(span) => Box::pin(future.instrument(span)),
            None => future,
        };
        Self {
            state: State::Running(future),
            request: Some(request),
        }
    }

    pub(crate) fn notified(future: BoxFuture) -> Self {
        Self {
            state: State::Running(future),
            request: None,
        }
    }

    pub(crate) fn done(outcome: Outcome) -> Self {
        Self {
            state: State::Done(outcome),
            request: None,
        }
    }

    /// Returns how the message was handled if that is settled, without being polled.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Running(_) => None,
            State::Done(outcome) => Some(outcome),
        }
    }

    /// Runs the handler inside another future, which `wrapper` makes of it. What is settled
    /// already is not wrapped.
    pub fn wrap<F, Fut>(self, wrapper: F) -> Self
    where
        F: FnOnce(HandlerFuture) -> Fut,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        if self.outcome().is_some() {
            return self;
        }
        let request = self.request.clone();
        Self {
            state: State::Running(Box::pin(wrapper(self))),
            request,
        }
    }

    /// Drops the handler, and answers the request with `error`. A request that was answered
    /// already is not answered again.
    pub fn abort(self, error: HandlerError) -> Outcome {
        if let State::Done(outcome) = self.state {
            return outcome;
        }
        let code = error.code();
        if let Some(request) = &self.request {
            request.abort_with(error);
        }
        drop(self);
        Outcome::Error(code)
    }

    /// The parts that the connection runs; none if the message is handled.
    pub(crate) fn into_parts(self) -> Option<(BoxFuture, Option<Arc<RequestState>>)> {
        match self.state {
            State::Running(future) => Some((future, self.request)),
            State::Done(_) => None,
        }
    }
}

impl Future for HandlerFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.state {
            State::Running(future) => std::task::ready!(future.as_mut().poll(cx)),
            State::Done(outcome) => *outcome,
        };
        self.state = State::Done(outcome);
        Poll::Ready(outcome)
    }
}

impl std::fmt::Debug for HandlerFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerFuture")
            .field("request", &self.request)
            .field("outcome", &self.outcome())
            .finish_non_exhaustive()
    }
}
