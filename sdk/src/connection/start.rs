//! The start of a request that arrived behind notifications of its session.
//!
//! Requests of a session start in the order of arrival, and each before the notifications that the
//! peer wrote after it: a request has started when its handler was polled once. What follows waits
//! for that, and not for the request's answer.

use std::task::Poll;

use tokio::sync::{oneshot, watch};

use crate::runtime::BoxFuture;
use crate::service::Outcome;

/// Whether a request has started. A request that is dropped counts as started.
#[derive(Debug, Clone)]
pub(crate) struct Started(watch::Receiver<()>);

impl Started {
    pub(crate) async fn wait(mut self) {
        // Nothing is ever sent: the sender is dropped.
        while self.0.changed().await.is_ok() {}
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }
}

/// Permits a held request to start.
#[derive(Debug)]
pub(crate) struct StartPermit(oneshot::Sender<()>);

impl StartPermit {
    /// Wakes the task of the request: never called while a lock is held.
    pub(crate) fn grant(self) {
        // The task may have been dropped.
        let _ = self.0.send(());
    }
}

/// What the task of a request waits for before it polls the handler.
#[derive(Debug)]
pub(crate) struct Start {
    permit: oneshot::Receiver<()>,
    /// The request of the session before this one.
    predecessor: Option<Started>,
    signal: watch::Sender<()>,
}

impl Start {
    pub(crate) fn new(predecessor: Option<Started>) -> (Self, StartPermit, Started) {
        let (grant, permit) = oneshot::channel();
        let (signal, started) = watch::channel(());
        let start = Self {
            permit,
            predecessor,
            signal,
        };
        (start, StartPermit(grant), Started(started))
    }

    /// Runs a handler when its time has come.
    pub(crate) async fn run(self, mut handler: BoxFuture) -> Outcome {
        // An error is the end of the connection, at which handlers learn that they are cancelled.
        let _ = self.permit.await;
        if let Some(predecessor) = self.predecessor {
            predecessor.wait().await;
        }
        let mut signal = Some(self.signal);
        std::future::poll_fn(|cx| {
            let poll: Poll<Outcome> = handler.as_mut().poll(cx);
            drop(signal.take());
            poll
        })
        .await
    }
}
