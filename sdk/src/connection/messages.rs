//! What happens to a message: starts handlers, delivers responses, answers noise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::lanes::{Delivery, LaneId};
use super::pending::Reply;
use super::{Batch, Shared, lock};
use crate::json::Json;
use crate::json::codegen::read_raw;
use crate::jsonrpc::{
    self, BadBatch, CANCEL_REQUEST, Incoming, MOST_IN_BATCH, Outcome, Response, clip, read_batch,
};
use crate::jsonrpc::{ErrorCode, RpcError};
use crate::runtime::{
    self, BoxFuture, HandlerFuture, IncomingNotification, IncomingRequest, Service,
};
use crate::transport::Frame;

/// Error answers to lines that are no message: this many at once, and one more for each
/// message, so that a flood of garbage is not answered by a flood of errors.
const COMPLAINTS: u32 = 32;

/// The handlers of a connection, and what becomes of each message.
pub(super) struct Core {
    pub(super) shared: Arc<Shared>,
    service: Arc<dyn Service>,
    pub(super) tasks: JoinSet<()>,
    complaints: u32,
}

impl Core {
    pub(super) fn new(shared: Arc<Shared>, service: Arc<dyn Service>) -> Self {
        Self {
            shared,
            service,
            tasks: JoinSet::new(),
            complaints: COMPLAINTS,
        }
    }

    /// Whether another chunk can be taken in without holding more memory than agreed.
    pub(super) fn may_read(&self) -> bool {
        let options = &self.shared.options;
        // Answers that could not wait, such as errors, may go above the high-water mark;
        // a peer that provokes them without reading them is not read either.
        if self.shared.outbox.excess() > 4 * options.high_water.max(64 << 10) {
            return false;
        }
        let lanes = lock(&self.shared.lanes);
        if lanes.queued_bytes() <= options.max_queued_bytes {
            return true;
        }
        if !lanes.has_calls() {
            return false;
        }
        // A notification handler waits for the peer, whose answer stands behind what is
        // already too much: read on for a while, then end the handler's wait.
        let desperate = lanes.queued_bytes() > 4 * options.max_queued_bytes;
        drop(lanes);
        if desperate {
            let given_up = lock(&self.shared.pending).give_up_handlers();
            given_up.into_iter().for_each(|id| self.shared.cancel(id));
        }
        !desperate
    }

    /// Forgets the tasks that have ended.
    pub(super) fn reap(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(_)) = self.tasks.poll_join_next(cx) {}
    }

    pub(super) fn frame(&mut self, frame: Frame<'_>, cx: &mut Context<'_>) {
        match frame {
            Frame::Text(text) => self.message(text, cx),
            Frame::TooLong(bytes) => {
                let max = self.shared.options.max_message_bytes;
                tracing::debug!(bytes, max, "skipped a line above the limit");
                self.shared.options.observer.line_too_long(bytes);
                let reason = format!("a message of {bytes} bytes is above the limit of {max}");
                self.complain(
                    None,
                    None,
                    RpcError::new(ErrorCode::INVALID_REQUEST, reason),
                );
            }
            Frame::Bad(reason) => {
                tracing::debug!(reason, "skipped input that is no message");
                self.skip(&[], ErrorCode::PARSE_ERROR, reason);
            }
        }
    }

    fn message(&mut self, text: &[u8], cx: &mut Context<'_>) {
        let array = text.trim_ascii_start().first() == Some(&b'[');
        if array && self.service.takes_batches() {
            self.batch(text, cx);
        } else {
            self.single(text, None, cx);
        }
    }

    /// Handles the messages of an array one after the other; their answers make an array too.
    fn batch(&mut self, text: &[u8], cx: &mut Context<'_>) {
        let (code, reason) = match read_batch(text) {
            Ok(entries) => {
                let batch = Batch::open();
                for entry in entries {
                    self.single(entry.get().as_bytes(), Some(&batch), cx);
                }
                // A closed connection needs no answers.
                let _ = self.shared.complete(batch.answer(None));
                return;
            }
            Err(BadBatch::NotJson(reason)) => (ErrorCode::PARSE_ERROR, reason),
            Err(BadBatch::Empty) => (ErrorCode::INVALID_REQUEST, "the batch is empty".to_owned()),
            Err(BadBatch::TooMany) => {
                let reason = format!("a batch of more than {MOST_IN_BATCH} messages");
                (ErrorCode::INVALID_REQUEST, reason)
            }
        };
        tracing::debug!(reason, "skipped a batch");
        self.shared.options.observer.bad_line(text, &reason);
        // Whoever takes arrays answers bad ones, a client too: version 2 says so of all receivers.
        self.complain(None, None, RpcError::new(code, reason));
    }

    /// Passes over input that holds no message, and says so if bad lines are answered.
    fn skip(&mut self, text: &[u8], code: ErrorCode, reason: String) {
        self.shared.options.observer.bad_line(text, &reason);
        if self.shared.options.answers_bad_lines {
            self.complain(None, None, RpcError::new(code, reason));
        }
    }

    fn single(&mut self, text: &[u8], batch: Option<&Arc<Batch>>, cx: &mut Context<'_>) {
        let incoming = jsonrpc::read(text);
        if !matches!(incoming, Incoming::Invalid { .. }) {
            self.complaints = (self.complaints + 1).min(COMPLAINTS);
        }
        match incoming {
            Incoming::Request { id, method, params } => {
                self.request(id, &method, params, batch, cx);
            }
            Incoming::Notification { method, params } if method == CANCEL_REQUEST => {
                self.cancel_request(params);
            }
            Incoming::Notification { method, params } => {
                self.notification(&method, params, text.len(), cx);
            }
            Incoming::Response { id, outcome } => self.response(id, outcome),
            Incoming::Complaint { error } => {
                tracing::warn!(
                    error = error.get(),
                    "the peer reports an error without a request"
                );
                self.shared.options.observer.complaint(error.get());
            }
            Incoming::Invalid {
                code,
                id,
                reason,
                answerable,
            } => {
                tracing::debug!(reason, "skipped a line that is no message");
                self.shared.options.observer.bad_line(text, &reason);
                let asked = id.is_some() || batch.is_some();
                if answerable && (asked || self.shared.options.answers_bad_lines) {
                    self.complain(id, batch, RpcError::new(code, reason));
                }
            }
        }
    }

    fn request(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        batch: Option<&Arc<Batch>>,
        cx: &mut Context<'_>,
    ) {
        let (in_use, running) = {
            let inbound = lock(&self.shared.inbound);
            (inbound.contains(id), inbound.len())
        };
        if in_use {
            // An error under this id would be taken for the first request's answer.
            let (id, method) = (clip(id.get()), clip(method));
            let reason = format!("the id {id} of {method} belongs to a request in progress");
            let error = RpcError::new(ErrorCode::INVALID_REQUEST, reason);
            return self.complain(None, batch, error);
        }
        if running >= self.shared.options.max_requests {
            let method = clip(method);
            let reason = format!("{method} is refused: {running} requests are in progress");
            let error = RpcError::new(ErrorCode::INTERNAL_ERROR, reason);
            return self.complain(Some(id), batch, error);
        }
        let request = IncomingRequest::new(&self.shared, id, method, params, batch);
        let service = &self.service;
        // Code of the application runs in here, if only to make the future.
        let Ok(HandlerFuture {
            future: Some(mut future),
            request: Some(state),
        }) = catch_unwind(AssertUnwindSafe(|| service.request(request)))
        else {
            return;
        };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {
                lock(&self.shared.inbound).enter(&state);
                self.tasks.spawn(future);
            }
            // After a panic the future's responder has answered as it was dropped.
            Ok(Poll::Ready(())) | Err(_) => {}
        }
    }

    fn notification(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        bytes: usize,
        cx: &mut Context<'_>,
    ) {
        let note = IncomingNotification::new(&self.shared, method, params);
        let service = &self.service;
        let Ok(HandlerFuture {
            future: Some(mut future),
            ..
        }) = catch_unwind(AssertUnwindSafe(|| service.notification(note)))
        else {
            return;
        };
        let lane = {
            let mut lanes = lock(&self.shared.lanes);
            let lane = lanes.arrive();
            if !lanes.is_idle() {
                match lanes.queue(session_of(params).as_deref(), future, bytes) {
                    Some(unqueued) => future = unqueued,
                    None => return,
                }
            }
            lane
        };
        if poll_handler(&mut future, lane, cx).is_pending() {
            let key = lock(&self.shared.lanes).open(session_of(params).as_deref(), lane);
            self.tasks
                .spawn(run_lane(self.shared.clone(), key, lane, future));
        }
    }

    fn response(&mut self, id: &RawValue, outcome: Outcome<'_>) {
        let number = id.get().parse::<u64>().ok();
        let waiting = number.and_then(|id| lock(&self.shared.pending).remove(id));
        let Some(waiting) = waiting else {
            let late = number.is_some_and(|id| lock(&self.shared.pending).was_sent(id));
            tracing::debug!(
                id = id.get(),
                late,
                "skipped an answer that nobody waits for"
            );
            return;
        };
        let reply = match outcome {
            Outcome::Result(result) => {
                if let Some(preview) = waiting.preview {
                    preview(result);
                }
                Reply::Result(result.to_owned())
            }
            Outcome::Error(error) => Reply::Error(Box::new(read_error(error))),
            Outcome::Malformed => Reply::Error(Box::new(RpcError::new(
                ErrorCode::INVALID_REQUEST,
                "the peer's answer has both `result` and `error`",
            ))),
        };
        let delivery = Delivery {
            caller: waiting.caller,
            reply,
        };
        let mut lanes = lock(&self.shared.lanes);
        let free = if lanes.is_idle() {
            Some(delivery)
        } else {
            lanes.hold(waiting.session, delivery)
        };
        drop(lanes);
        if let Some(delivery) = free {
            delivery.send();
        }
    }

    /// Spec: <https://agentclientprotocol.com/protocol/v1/cancellation>
    fn cancel_request(&mut self, params: Option<&RawValue>) {
        struct Params {
            request_id: Json,
        }
        runtime::members!(Params { request_id "requestId": Json = required });
        let Some(params) = params.and_then(read_raw::<Params>) else {
            tracing::debug!("skipped a $/cancel_request without a requestId");
            return;
        };
        if !lock(&self.shared.inbound).cancel(params.request_id.as_raw()) {
            tracing::debug!(
                id = params.request_id.get(),
                "skipped a cancellation of no running request"
            );
        }
    }

    /// Answers what is no proper request, within limits.
    fn complain(&mut self, id: Option<&RawValue>, batch: Option<&Arc<Batch>>, error: RpcError) {
        if id.is_none() {
            if self.complaints == 0 {
                return;
            }
            self.complaints -= 1;
        }
        // A closed connection needs no answer.
        let _ = match batch {
            None => self.shared.push_error(id, &error),
            Some(batch) => {
                batch.expect();
                let answer = Response::error(id, &error);
                self.shared.respond_in(batch, "an answer", &answer)
            }
        };
    }
}

/// Handles the notifications of a session that could not be handled at once, in order.
async fn run_lane(shared: Arc<Shared>, key: Arc<str>, lane: LaneId, mut future: BoxFuture) {
    loop {
        std::future::poll_fn(|cx| poll_handler(&mut future, lane, cx)).await;
        let (next, free, short_enough) = {
            let limit = shared.options.max_queued_bytes;
            let mut lanes = lock(&shared.lanes);
            let paused = lanes.queued_bytes() > limit;
            let (next, free) = lanes.finished(&key);
            (next, free, paused && lanes.queued_bytes() <= limit)
        };
        free.into_iter().for_each(Delivery::send);
        if short_enough {
            // Reading was paused, perhaps for the sake of this queue.
            shared.outbox.nudge();
        }
        match next {
            Some(next) => future = next,
            None => return,
        }
    }
}

/// Polls a notification's handler; one that panics is done.
fn poll_handler(future: &mut BoxFuture, lane: LaneId, cx: &mut Context<'_>) -> Poll<()> {
    catch_unwind(AssertUnwindSafe(|| lane.enter(|| future.as_mut().poll(cx)))).unwrap_or_else(
        |_| {
            tracing::error!("a notification handler panicked");
            Poll::Ready(())
        },
    )
}

/// The session that params name, read again because the handler owns the typed ones.
fn session_of(params: Option<&RawValue>) -> Option<String> {
    struct Params {
        session_id: String,
    }
    runtime::members!(Params { session_id "sessionId": String = required });
    read_raw::<Params>(params?).map(|params| params.session_id)
}

/// An error object, or what was sent in place of one.
fn read_error(raw: &RawValue) -> RpcError {
    crate::runtime::decode_quietly(raw).unwrap_or_else(|| {
        let message = format!(
            "the peer answered with an error of unknown form: {}",
            raw.get()
        );
        RpcError::new(ErrorCode::INTERNAL_ERROR, message)
    })
}
