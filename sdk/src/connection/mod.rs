//! The connection: one loop that both sides share, and what it promises.
//!
//! 1. **Order.** What the peer wrote before a response has been handled when that
//!    response reaches its caller. Notifications of one session are handled one
//!    after the other. What we send leaves in the order of the calls.
//! 2. **The reader never waits for a handler.** A handler may call the peer and be
//!    called back, to any depth.
//! 3. **Bounded.** A message has a largest size; senders wait while the peer does
//!    not read; reading pauses while notification handlers lag behind.
//! 4. **One answer for every request**: a result, an error, or, when the
//!    connection ends, an error that says why. A panic in a handler answers that
//!    request with `-32603` and touches nothing else. Notifications are not answered.
//! 5. **Bad input never ends a connection that can go on.**
//!
//! A handler is polled where its message was read, and becomes a task of its own
//! only if it has to wait. So most requests cost no task, and a handler that
//! computes for long before its first await holds up the connection: hand such
//! work to [`tokio::task::spawn_blocking`].

mod batch;
mod coalesce;
mod driver;
mod inbound;
mod lanes;
mod messages;
mod options;
mod outbox;
mod output;
mod pending;
mod trace;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

pub(crate) use batch::Batch;
pub(crate) use coalesce::Typed;
pub use driver::Driver;
use inbound::Inbound;
pub(crate) use inbound::RequestState;
use lanes::{LaneId, Lanes};
use options::Options;
pub(crate) use options::stdio_failed;
pub use options::{ConnectionBuilder, Observer};
use outbox::{Outbox, unwritable};
pub(crate) use pending::Preview;
use pending::{Pending, Reply};
pub(crate) use trace::Trace;

use crate::error::{CloseReason, Error, HandlerError, HandlerResult, Result};
use crate::json::{Encode, encode_raw};
use crate::jsonrpc::RpcError;
use crate::jsonrpc::{CANCEL_REQUEST, CancelRequest, Notification, Request, Response};
use crate::transcript::Recorder;

/// What the loop, the handlers and the callers of one connection have in common.
pub(crate) struct Shared {
    outbox: Outbox,
    pending: Mutex<Pending>,
    inbound: Mutex<Inbound>,
    lanes: Mutex<Lanes>,
    pub(crate) transcript: Option<Recorder>,
    pub(crate) options: Options,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Std mutexes suffice: they are held for a few instructions and never across an await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new(options: Options, transcript: Option<Recorder>) -> Self {
        Self {
            transcript,
            outbox: Outbox::new(options.high_water),
            pending: Mutex::default(),
            inbound: Mutex::default(),
            lanes: Mutex::default(),
            options,
        }
    }

    /// Sends a request and waits for the answer; dropping the future cancels the request.
    /// `preview` sees a result before anything that the peer wrote after it is handled.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: Option<&(dyn Encode + Sync)>,
        session: Option<&str>,
        preview: Option<Preview>,
    ) -> Result<Box<RawValue>> {
        // Asked before the first wait: later polls may come from another place.
        let lane = LaneId::current();
        let mut trace = Trace::outgoing(method, session);
        self.outbox.room().await?;
        let (mut call, reply) = Call::open(self, session, lane)?;
        if let Some(trace) = &trace {
            trace.id(call.id);
        }
        if let Some(preview) = preview {
            lock(&self.pending).preview(call.id, preview);
        }
        let params = params.map(|params| params as &dyn Encode);
        self.outbox
            .push(method, &Request::new(call.id, method, params))?;
        call.sent = true;
        let result = match reply.await {
            Ok(Reply::Result(result)) => Ok(result),
            Ok(Reply::Error(error)) => Err(Error::Response {
                method: method.to_owned(),
                error,
            }),
            Ok(Reply::Closed(reason)) => Err(Error::Closed(reason)),
            Ok(Reply::Overloaded) => Err(Error::Overloaded {
                method: method.to_owned(),
            }),
            Err(_) => Err(Error::Closed(CloseReason::Dropped)),
        };
        if let Some(trace) = &mut trace {
            trace.call_ended(result.as_ref().err());
        }
        result
    }

    /// Sends a notification; the caller has waited for room.
    pub(crate) fn notify(&self, method: &str, params: Option<&dyn Encode>) -> Result<()> {
        self.outbox.push(method, &Notification::new(method, params))
    }

    /// The same; text chunks join the one before if that is allowed.
    pub(crate) fn notify_typed(&self, method: &str, params: &dyn Typed) -> Result<()> {
        if self.options.coalesce
            && let Some(chunk) = coalesce::text_chunk(params)
        {
            return self.outbox.push_chunk(chunk, params.encoder());
        }
        self.notify(method, Some(params))
    }

    pub(crate) async fn room(&self) -> Result<()> {
        self.outbox.room().await
    }

    /// Answers a request, without waiting for room.
    pub(crate) fn answer(&self, request: &RequestState, result: HandlerResult<&dyn Encode>) {
        let pushed = match result {
            Ok(result) => self.respond(request, &Response::result(&request.id, result)),
            Err(error) => self.refuse(request, error),
        };
        match pushed {
            Ok(()) | Err(Error::Closed(_)) => {}
            Err(error) => {
                let error = HandlerError::internal(error);
                // A message made of two strings always has a JSON form.
                let _ = self.refuse(request, error);
            }
        }
    }

    fn refuse(&self, request: &RequestState, error: HandlerError) -> Result<()> {
        let error = error.into_response();
        self.respond(request, &Response::error(Some(&request.id), &error))
    }

    /// Writes the answer to a request, at once or as one of its batch.
    fn respond(&self, request: &RequestState, response: &Response<'_>) -> Result<()> {
        match &request.batch {
            None => self.outbox.push(&request.method, response),
            Some(batch) => self.respond_in(batch, &request.method, response),
        }
    }

    fn respond_in(&self, batch: &Batch, method: &str, response: &Response<'_>) -> Result<()> {
        let response = encode_raw(response).map_err(|error| unwritable(method, &error))?;
        self.complete(batch.answer(Some(response)))
    }

    /// Writes the answers of a batch if these are all.
    fn complete(&self, answers: Option<Vec<Box<RawValue>>>) -> Result<()> {
        match answers {
            Some(answers) => self.outbox.push("a batch", &answers),
            None => Ok(()),
        }
    }

    fn push_error(&self, id: Option<&RawValue>, error: &RpcError) -> Result<()> {
        self.outbox.push("an answer", &Response::error(id, error))
    }

    /// Tells the peer that nobody waits for the answer to a request of ours any more.
    fn cancel(&self, request_id: u64) {
        let params = CancelRequest { request_id };
        let cancel = Notification::new(CANCEL_REQUEST, Some(&params));
        // On a closed connection there is nothing left to cancel.
        let _ = self.outbox.push(CANCEL_REQUEST, &cancel);
    }

    /// The request has its answer or never will.
    pub(crate) fn leave(&self, request: &RequestState) {
        lock(&self.inbound).leave(request);
    }

    /// Writes everything out and closes our side of the stream.
    pub(crate) fn finish(&self) {
        self.outbox.finish();
    }

    /// No answer can come any more: every caller is told, every handler cancelled.
    fn close_reading(&self, reason: &CloseReason) {
        lock(&self.pending).close(reason);
        lock(&self.inbound).cancel_all();
    }

    fn close(&self, reason: &CloseReason) {
        self.close_reading(reason);
        self.outbox.close(reason);
        let held = lock(&self.lanes).release_all();
        held.into_iter().for_each(lanes::Delivery::send);
    }
}

/// One request of ours; dropped without an answer, it cancels itself.
struct Call<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    lane: Option<LaneId>,
    sent: bool,
}

impl<'a> Call<'a> {
    fn open(
        shared: &'a Arc<Shared>,
        session: Option<&str>,
        lane: Option<LaneId>,
    ) -> Result<(Self, oneshot::Receiver<Reply>)> {
        let (id, reply) = lock(&shared.pending).open(session.map(Arc::from), lane)?;
        if let Some(lane) = lane {
            let free = lock(&shared.lanes).call_opened(lane);
            free.into_iter().for_each(lanes::Delivery::send);
        }
        Ok((
            Self {
                shared,
                id,
                lane,
                sent: false,
            },
            reply,
        ))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.lane {
            lock(&self.shared.lanes).call_ended(lane);
        }
        let unanswered = lock(&self.shared.pending).remove(self.id).is_some();
        if unanswered && self.sent {
            self.shared.cancel(self.id);
        }
    }
}
