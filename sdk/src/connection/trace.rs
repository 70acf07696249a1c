//! The spans of requests, in both directions.
//!
//! Each request is a span `request` at level debug, target `acp_sdk::request`, with the fields
//! `direction` (`in` or `out`), `method`, `id`, `session` where it names one, and at its end
//! `duration_us` (microseconds) and `outcome`: `ok`, `error`, `closed` or `dropped`, and for
//! errors `code`. Events of a handler are inside of the span of its request.
//!
//! Without a subscriber a request costs one read of a global.

use std::time::Instant;

use serde_json::value::RawValue;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span};

use crate::error::Error;
use crate::jsonrpc::ErrorCode;

/// The span of a request. Dropping it records the duration and the outcome.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Span,
    since: Instant,
    outcome: &'static str,
}

macro_rules! request_span {
    ($direction:literal, $method:expr, $id:expr, $session:expr) => {
        tracing::debug_span!(
            target: "acp_sdk::request",
            "request",
            direction = $direction,
            method = $method,
            id = $id,
            session = $session,
            duration_us = Empty,
            outcome = Empty,
            code = Empty,
        )
    };
}

impl Trace {
    /// Opens the span of an incoming request, if a subscriber is interested.
    pub(crate) fn incoming(method: &str, id: &RawValue) -> Option<Box<Self>> {
        is_watched()
            .then(|| Self::of(request_span!("in", method, id.get(), Empty)))
            .flatten()
    }

    /// Opens the span of an outgoing request, if a subscriber is interested.
    pub(crate) fn outgoing(method: &str, session: Option<&str>) -> Option<Box<Self>> {
        is_watched()
            .then(|| Self::of(request_span!("out", method, Empty, session)))
            .flatten()
    }

    fn of(span: Span) -> Option<Box<Self>> {
        (!span.is_disabled()).then(|| {
            Box::new(Self {
                span,
                since: Instant::now(),
                outcome: "dropped",
            })
        })
    }

    pub(crate) fn id(&self, id: u64) {
        self.span.record("id", id);
    }

    pub(crate) fn session(&self, session: &str) {
        self.span.record("session", session);
    }

    /// Returns the span for the handler.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records the result of a request to the peer.
    pub(crate) fn call_ended(&mut self, error: Option<&Error>) {
        match error {
            None => self.outcome = "ok",
            Some(Error::Closed(_)) => self.outcome = "closed",
            Some(error) => self.failed(error.code()),
        }
    }

    /// Records the answer to an incoming request.
    pub(crate) fn handler_ended(&mut self, error: Option<ErrorCode>) {
        match error {
            None => self.outcome = "ok",
            Some(code) => self.failed(Some(code)),
        }
    }

    fn failed(&mut self, code: Option<ErrorCode>) {
        self.outcome = "error";
        if let Some(code) = code {
            self.span.record("code", code.get());
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let duration = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.span.record("duration_us", duration);
        self.span.record("outcome", self.outcome);
    }
}

#[inline]
fn is_watched() -> bool {
    Level::DEBUG <= LevelFilter::current()
}
