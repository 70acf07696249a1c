//! Dispatch: starts handlers, delivers responses, answers invalid input.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::notification_order::{Next, Released};
use super::reply::Reply;
use super::{Shared, lock};
use crate::json::codegen::read_raw;
use crate::jsonrpc::{
    self, Answer, Cancellation, Incoming, Outcome as ResponseOutcome, clip, is_null, null_id,
    read_ends,
};
use crate::jsonrpc::{ErrorCode, RpcError};
use crate::runtime::{self, BoxFuture};
use crate::service::{IncomingNotification, IncomingRequest, Outcome, Service};
use crate::sync::JoinSet;
use crate::transport::{Frame, Oversized};

/// Error responses to input that is no message: this many at once, and one more for each valid
/// message, so that a flood of garbage is not answered by a flood of errors.
const UNCORRELATED_ERRORS: u32 = 32;

/// The handlers of a connection, and the rules for each incoming message.
pub(super) struct Dispatcher {
    pub(super) shared: Arc<Shared>,
    /// The service without its layers.
    protocol: Arc<dyn Service>,
    service: Arc<dyn Service>,
    pub(super) tasks: JoinSet<Outcome>,
    uncorrelated_errors: u32,
    /// Whether something may be held, so that its time has to be watched.
    holding: bool,
}

impl Dispatcher {
    pub(super) fn new(
        shared: Arc<Shared>,
        protocol: Arc<dyn Service>,
        service: Arc<dyn Service>,
    ) -> Self {
        Self {
            shared,
            protocol,
            service,
            tasks: JoinSet::new(),
            uncorrelated_errors: UNCORRELATED_ERRORS,
            holding: false,
        }
    }

    /// Returns whether more input may be read within the memory budgets.
    pub(super) fn may_read(&self) -> bool {
        let options = &self.shared.options;
        // Responses that could not wait, such as errors, may exceed the high-water mark; a peer
        // that provokes them without reading them is not read either.
        if self.shared.outbox.excess() > 4 * options.high_water.max(64 << 10) {
            return false;
        }
        let order = lock(&self.shared.order);
        if order.buffered_bytes() <= options.max_queued_bytes {
            return true;
        }
        if !order.has_calls() {
            return false;
        }
        // A notification handler waits for the peer, whose response follows what exceeds the
        // budget already: read on up to a limit, then abort the handler's call.
        let exhausted = order.buffered_bytes() > 4 * options.max_queued_bytes;
        drop(order);
        if exhausted {
            let aborted = lock(&self.shared.pending).abort_handlers();
            for (id, delivery) in aborted {
                delivery.send();
                self.shared.cancel(id);
            }
        }
        !exhausted
    }

    /// Removes the tasks that have ended.
    pub(super) fn reap(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(_)) = self.tasks.poll_join_next(cx) {}
    }

    /// Returns when what has been held longest is to be released all the same.
    pub(super) fn hold_deadline(&mut self) -> Option<Instant> {
        if !self.holding {
            return None;
        }
        let since = lock(&self.shared.order).held_since();
        self.holding = since.is_some();
        // A limit beyond what a clock can show never expires.
        since?.checked_add(self.shared.options.hold_timeout)
    }

    /// Releases what was held for too long: a notification handler waits for it in a way that
    /// cannot be recognised, or is just slow.
    pub(super) fn expire_held(&mut self) {
        let limit = self.shared.options.hold_timeout;
        let now = Instant::now();
        let Some(since) = now.checked_sub(limit) else {
            return;
        };
        let expired = lock(&self.shared.order).expire(since);
        for released in expired {
            let is_request = released.is_request();
            tracing::warn!(
                ?limit,
                is_request,
                "handled a message before earlier notifications were handled"
            );
            self.shared.observe(|observer| match is_request {
                true => observer.request_overtook(limit),
                false => observer.response_overtook(limit),
            });
            released.go();
        }
    }

    pub(super) fn frame(&mut self, frame: Frame<'_>, cx: &mut Context<'_>) {
        if let Some(transcript) = &self.shared.transcript {
            match &frame {
                Frame::Text(text) => transcript.received(text),
                Frame::TooLong(message) => {
                    transcript.skipped(format!("{} bytes exceed the limit", message.bytes));
                }
                Frame::Bad(_) => transcript.skipped("not a header".to_owned()),
            }
        }
        match frame {
            Frame::Text(text) => self.message(text, cx),
            Frame::TooLong(message) => self.oversized(&message),
            Frame::Bad(reason) => {
                tracing::debug!(reason, "skipped invalid input");
                self.skip(&[], ErrorCode::PARSE_ERROR, reason);
            }
        }
    }

    /// Fails the call that a message above the limit responds to, or answers the request that it is.
    fn oversized(&mut self, message: &Oversized) {
        let (bytes, max) = (message.bytes, self.shared.options.max_message_bytes);
        tracing::debug!(bytes, max, "skipped a message above the limit");
        self.shared
            .observe(|observer| observer.message_too_long(bytes));
        let reason = format!("a message of {bytes} bytes exceeds the limit of {max}");
        let error = |reason| RpcError::new(ErrorCode::INVALID_REQUEST, reason);
        match read_ends(&message.head, &message.tail) {
            jsonrpc::OversizedKind::Response(id) => {
                self.response(&id, ResponseOutcome::Malformed(reason.into()), 0);
            }
            jsonrpc::OversizedKind::Request(id) => {
                let in_use = lock(&self.shared.inbound).contains(&id);
                self.answer_invalid((!in_use).then_some(&*id), error(reason));
            }
            jsonrpc::OversizedKind::Unknown => self.answer_invalid(None, error(reason)),
        }
    }

    /// Skips invalid input, and answers it if invalid input is answered.
    fn skip(&mut self, text: &[u8], code: ErrorCode, reason: String) {
        self.shared
            .observe(|observer| observer.invalid_message(text, &reason));
        if self.answers_invalid() {
            self.answer_invalid(None, RpcError::new(code, reason));
        }
    }

    fn answers_invalid(&self) -> bool {
        self.shared.options.answers_invalid.unwrap_or(true)
    }

    fn message(&mut self, text: &[u8], cx: &mut Context<'_>) {
        let incoming = jsonrpc::read(text);
        if !matches!(incoming, Incoming::Invalid { .. }) {
            self.uncorrelated_errors = (self.uncorrelated_errors + 1).min(UNCORRELATED_ERRORS);
        }
        match incoming {
            Incoming::Request { id, method, params } => {
                self.request(id, &method, params, text.len(), cx);
            }
            Incoming::Notification { method, params } => {
                let cancellation = self.protocol.cancellation();
                if method == cancellation.method {
                    return self.cancel_request(cancellation, params);
                }
                if let Some(requests) = cancellation.of_session(&method) {
                    self.cancel_session(requests, params);
                }
                self.notification(&method, params, text.len(), cx);
            }
            Incoming::Response { id, outcome } => self.response(id, outcome, text.len()),
            Incoming::UncorrelatedError { error } => {
                tracing::warn!(
                    error = error.get(),
                    "the peer reported an error that belongs to no request"
                );
                self.shared
                    .observe(|observer| observer.uncorrelated_error(error.get()));
            }
            Incoming::Invalid {
                code,
                id,
                reason,
                answer,
            } => {
                tracing::debug!(reason, "skipped an invalid message");
                self.shared
                    .observe(|observer| observer.invalid_message(text, &reason));
                let is_answered = match answer {
                    Answer::Never => false,
                    Answer::OnDemand => self.answers_invalid(),
                    Answer::Always => true,
                };
                if is_answered {
                    self.answer_invalid(id, RpcError::new(code, reason));
                }
            }
        }
    }

    fn request(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        bytes: usize,
        cx: &mut Context<'_>,
    ) {
        if let Some((answered, error)) = self.refusal(id, method, bytes) {
            return self.answer_invalid(answered, error);
        }
        let request = IncomingRequest::new(&self.shared, id, method, params, bytes);
        let service = &self.service;
        // Application code runs in here, if only to create the future.
        let Ok(Some((mut future, state))) =
            catch_unwind(AssertUnwindSafe(|| service.request(request).into_parts()))
        else {
            return;
        };
        // Only this loop opens queues, so what is idle stays so.
        let is_held = !lock(&self.shared.order).is_idle();
        let held = if is_held { session_of(params) } else { None };
        // What the request waits for: earlier notifications of its session, and requests behind these.
        let start = held
            .as_deref()
            .and_then(|session| lock(&self.shared.order).queue_request(session, bytes));
        if start.is_none() {
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
                Ok(Poll::Pending) => {}
                // After a panic the future's responder has answered when it was dropped.
                Ok(Poll::Ready(_)) | Err(_) => return,
            }
        }
        if let Some(state) = &state {
            if self.protocol.cancellation().is_of_session(method) {
                let session = if is_held { held } else { session_of(params) };
                if let Some(session) = session {
                    state.set_session(&session);
                }
            }
            lock(&self.shared.inbound).enter(state);
        }
        match start {
            Some(start) => {
                self.holding = true;
                self.tasks.spawn(start.run(future))
            }
            None => self.tasks.spawn(future),
        };
    }

    /// Returns why a request is not dispatched, and the id to answer with.
    fn refusal<'a>(
        &self,
        id: &'a RawValue,
        method: &str,
        bytes: usize,
    ) -> Option<(Option<&'a RawValue>, RpcError)> {
        if is_null(id) && !self.protocol.has_null_ids() {
            return Some((None, null_id(method)));
        }
        let options = &self.shared.options;
        let inbound = lock(&self.shared.inbound);
        let (running, in_progress) = (inbound.len(), inbound.bytes());
        let method = || clip(method);
        if inbound.contains(id) {
            let id = clip(id.get());
            let reason = format!(
                "the id {id} of {} belongs to a request in progress",
                method()
            );
            // An error with this id would be taken for the first request's response.
            return Some((None, RpcError::new(ErrorCode::INVALID_REQUEST, reason)));
        }
        let reason = if running >= options.max_requests {
            format!("{} refused: {running} requests are in progress", method())
        } else if running > 0 && in_progress + bytes > options.max_request_bytes {
            let method = method();
            format!("{method} refused: requests of {in_progress} bytes are in progress")
        } else {
            return None;
        };
        Some((Some(id), RpcError::new(ErrorCode::INTERNAL_ERROR, reason)))
    }

    fn notification(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        bytes: usize,
        cx: &mut Context<'_>,
    ) {
        let (id, idle) = lock(&self.shared.order).arrive();
        let notification = IncomingNotification::new(&self.shared, method, params, id);
        let service = &self.service;
        let Ok(Some((mut handler, _))) = catch_unwind(AssertUnwindSafe(|| {
            service.notification(notification).into_parts()
        })) else {
            return;
        };
        // Only this loop opens queues, so what was idle still is.
        if !idle {
            let session = session_of(params);
            let mut order = lock(&self.shared.order);
            match order.enqueue(session.as_deref(), id, handler, bytes) {
                Some(unqueued) => handler = unqueued,
                None => return,
            }
        }
        if poll_handler(&mut handler, cx).is_pending() {
            let key = lock(&self.shared.order).open(session_of(params).as_deref(), id);
            let queue = run_queue(self.shared.clone(), key, handler);
            self.tasks.spawn(queue);
        }
    }

    fn response(&mut self, id: &RawValue, outcome: ResponseOutcome<'_>, bytes: usize) {
        let number = id.get().parse::<u64>().ok();
        let waiting = number.and_then(|id| lock(&self.shared.pending).remove(id));
        let Some(mut waiting) = waiting else {
            let late = number.is_some_and(|id| lock(&self.shared.pending).was_sent(id));
            tracing::debug!(
                id = id.get(),
                late,
                "skipped a response that no call waits for"
            );
            return;
        };
        let reply = match outcome {
            ResponseOutcome::Result(result) => {
                if let Some(preview) = waiting.hooks.preview.take() {
                    preview(result);
                }
                Reply::Result(result.to_owned())
            }
            ResponseOutcome::Error(error) => Reply::Error(Box::new(read_error(error))),
            ResponseOutcome::Malformed(reason) => Reply::Invalid(reason.into_owned()),
        };
        let session = waiting.session.take();
        let delivery = waiting.delivery(reply);
        let mut order = lock(&self.shared.order);
        let free = if order.is_idle() {
            Some(Released::Response(delivery))
        } else {
            order.hold(session, bytes, delivery)
        };
        drop(order);
        match free {
            Some(released) => released.go(),
            None => self.holding = true,
        }
    }

    /// Spec: <https://agentclientprotocol.com/protocol/v1/cancellation>
    fn cancel_request(&mut self, cancellation: &Cancellation, params: Option<&RawValue>) {
        let Some(id) = params.and_then(|params| cancellation.read(params)) else {
            tracing::debug!("skipped a cancellation that names no request");
            return;
        };
        let request = lock(&self.shared.inbound).find(&id);
        match request {
            Some(request) => request.cancel(),
            None => tracing::debug!(
                id = id.get(),
                "skipped a cancellation of no request in progress"
            ),
        }
    }

    /// Cancels the requests of a session that were read before. The handler of the notification runs
    /// as well, and may have to wait.
    fn cancel_session(&self, requests: &[&str], params: Option<&RawValue>) {
        let Some(session) = session_of(params) else {
            return;
        };
        let requests = lock(&self.shared.inbound).of_session(&session, requests);
        requests.iter().for_each(|request| request.cancel_work());
    }

    /// Answers an invalid message with an error; without an id, within limits.
    fn answer_invalid(&mut self, id: Option<&RawValue>, error: RpcError) {
        if id.is_none() {
            if self.uncorrelated_errors == 0 {
                return;
            }
            self.uncorrelated_errors -= 1;
        }
        // A closed connection needs no answer.
        let _ = self.shared.push_error(id, &error);
    }
}

/// Handles the notifications of a session that could not be handled at once, in order.
async fn run_queue(shared: Arc<Shared>, key: Arc<str>, mut handler: BoxFuture) -> Outcome {
    loop {
        let outcome = std::future::poll_fn(|cx| poll_handler(&mut handler, cx)).await;
        let free = shared.reorder(|order| order.completed(&key));
        free.into_iter().for_each(Released::go);
        handler = loop {
            match shared.reorder(|order| order.next(&key)) {
                Next::Handle(next, predecessor) => {
                    if let Some(request) = predecessor {
                        request.wait().await;
                    }
                    break next;
                }
                Next::Wait(request) => request.wait().await,
                Next::Closed => return outcome,
            }
        };
    }
}

/// Polls a notification's handler; one that panics has completed.
fn poll_handler(handler: &mut BoxFuture, cx: &mut Context<'_>) -> Poll<Outcome> {
    catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx))).unwrap_or_else(|_| {
        tracing::error!("a notification handler panicked");
        Poll::Ready(Outcome::Error(ErrorCode::INTERNAL_ERROR))
    })
}

/// Returns the session that params name. The handler owns the typed params.
fn session_of(params: Option<&RawValue>) -> Option<String> {
    struct Params {
        session_id: String,
    }
    runtime::members!(Params { session_id "sessionId": String = required });
    read_raw::<Params>(params?.get()).map(|params| params.session_id)
}

/// Reads an error object, or wraps what was sent in its place.
fn read_error(raw: &RawValue) -> RpcError {
    crate::runtime::decode_quietly(raw).unwrap_or_else(|| {
        let message = format!(
            "the peer answered with an error of unknown form: {}",
            raw.get()
        );
        RpcError::new(ErrorCode::INTERNAL_ERROR, message)
    })
}
