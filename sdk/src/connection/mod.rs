//! The connection: one loop for both sides, and its guarantees.
//!
//! 1. **Order.** What the peer wrote before a response has been handled when the response
//!    resolves its call. Notifications of one session are handled in order; a request of a session
//!    starts after the notifications before it and before those after it. Messages are written in
//!    the order of the calls. The exceptions are what was held for
//!    [`ConnectionBuilder::hold_timeout`], and what a handler of the session waits for.
//! 2. **The reader never waits for a handler.** Handlers may call the peer and be called back,
//!    to any depth.
//! 3. **Bounded in bytes.** Messages have a largest size; senders wait while the peer does not
//!    read; reading pauses while notifications and held responses exceed their budget; requests
//!    beyond their budget are refused.
//! 4. **One response per request**: a result, an error, or, when the connection ends, an error
//!    with the reason. A panic in a handler answers that request with `-32603` and affects
//!    nothing else. Notifications are not answered.
//! 5. **Nothing accepted is lost.** What a call has accepted is written and flushed before the
//!    driver completes, or the driver fails. After the end nothing stays alive.
//! 6. **Bad input never ends a connection that can go on.**
//!
//! A handler is polled where its message was read, and becomes a task only if it has to wait.
//! So most requests cost no task, and a handler that computes for long before its first await
//! blocks the connection: move such work to [`tokio::task::spawn_blocking`].

mod builder;
mod dispatcher;
mod driver;
mod inbound;
mod link;
mod notification_order;
mod observer;
mod outbox;
mod pending;
mod reply;
mod running;
mod shutdown;
#[cfg(all(feature = "stdio", unix))]
mod sigterm;
mod start;
#[cfg(feature = "stdio")]
mod stdio;
mod trace;

use std::sync::{Arc, Weak};

use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

pub use builder::ConnectionBuilder;
use builder::Options;
pub use driver::Connection;
use inbound::Inbound;
pub(crate) use inbound::RequestState;
pub(crate) use notification_order::NotificationId;
use notification_order::{NotificationOrder, Released};
pub use observer::Observer;
use outbox::Outbox;
use pending::Pending;
use reply::{Delivery, Reply};
pub(crate) use reply::{Hooks, Preview};
pub use running::RunningConnection;
#[cfg(feature = "sockets")]
pub(crate) use running::joined;
#[cfg(feature = "stdio")]
pub use stdio::{peek_stdio, serve_stdio, stdio};
pub(crate) use trace::Trace;

use crate::error::{CloseReason, Error, HandlerError, HandlerResult, Result};
use crate::json::{Encode, EncodeError};
use crate::jsonrpc::RpcError;
use crate::jsonrpc::{Notification, Request, Response};
use crate::service::Service;
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::transcript::Recorder;

/// What the loop, the handlers and the callers of one connection have in common.
pub(crate) struct Shared {
    outbox: Outbox,
    pending: Mutex<Pending>,
    inbound: Mutex<Inbound>,
    order: Mutex<NotificationOrder>,
    /// The reason, once the connection has ended.
    end: watch::Sender<Option<CloseReason>>,
    /// The service without its layers. The dispatcher owns it: a handler may own a handle to this
    /// connection.
    protocol: Weak<dyn Service>,
    pub(crate) transcript: Option<Recorder>,
    pub(crate) options: Options,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Std mutexes suffice: they are held for a few instructions and never across an await.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new(protocol: Weak<dyn Service>, options: Options, transcript: Option<Recorder>) -> Self {
        Self {
            protocol,
            transcript,
            outbox: Outbox::new(options.high_water),
            pending: Mutex::default(),
            inbound: Mutex::default(),
            order: Mutex::default(),
            end: watch::Sender::new(None),
            options,
        }
    }

    /// Sends a request and waits for the answer; dropping the future cancels the request.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: Option<&(dyn Encode + Sync)>,
        session: Option<&str>,
        origin: Option<NotificationId>,
        hooks: Hooks,
    ) -> Result<Box<RawValue>> {
        let mut trace = Trace::outgoing(method, session);
        self.outbox.wait_for_capacity().await?;
        let (mut call, reply) = Call::open(self, session, origin, hooks)?;
        if let Some(trace) = &trace {
            trace.id(call.id);
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
            Ok(Reply::Invalid(reason)) => Err(Error::InvalidResponse {
                method: method.to_owned(),
                reason,
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
        let notification = Notification::new(method, params);
        self.outbox.push(method, &notification)
    }

    /// The same for params that `write` appends as JSON.
    pub(crate) fn notify_written(&self, method: &str, write: &dyn Fn(&mut Vec<u8>)) -> Result<()> {
        self.notify(method, Some(&Written(write)))
    }

    pub(crate) fn has_room(&self) -> Result<bool> {
        self.outbox.has_room()
    }

    pub(crate) async fn wait_for_capacity(&self) -> Result<()> {
        self.outbox.wait_for_capacity().await
    }

    /// Answers a request, without waiting for room.
    pub(crate) fn answer(&self, request: &RequestState, result: HandlerResult<&dyn Encode>) {
        let pushed = match result {
            Ok(result) => {
                let response = Response::result(&request.id, result);
                self.outbox.push(&request.method, &response)
            }
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
        let sources = error.with_sources();
        let mut error = error.into_response();
        tracing::debug!(
            method = request.method,
            id = request.id.get(),
            code = error.code.get(),
            error = error.message,
            "answered a request with an error"
        );
        if let Some(text) = sources {
            tracing::warn!(method = request.method, error = text, "a handler failed");
            if self.options.exposes_sources {
                error.message = text;
            }
        }
        let response = Response::error(Some(&request.id), &error);
        self.outbox.push(&request.method, &response)
    }

    /// Calls the application's observer, if there is one.
    pub(crate) fn observe(&self, callback: impl FnOnce(&dyn Observer)) {
        self.options.observer.call(callback);
    }

    fn push_error(&self, id: Option<&RawValue>, error: &RpcError) -> Result<()> {
        self.outbox.push("an answer", &Response::error(id, error))
    }

    /// Tells the peer that nobody waits for the answer to a request of ours any more.
    fn cancel(&self, request_id: u64) {
        // On a closed connection there is nothing left to cancel.
        let Some(protocol) = self.protocol.upgrade() else {
            return;
        };
        let cancellation = protocol.cancellation();
        let params = cancellation.params(request_id);
        let cancel = Notification::new(cancellation.method, Some(&params));
        let _ = self.outbox.push(cancellation.method, &cancel);
    }

    /// The request has its answer or never will.
    pub(crate) fn leave(&self, request: &RequestState) {
        lock(&self.inbound).leave(request);
    }

    /// Writes everything out and closes the output.
    pub(crate) fn close_output(&self) {
        self.outbox.finish(CloseReason::ClosedLocally);
    }

    pub(crate) fn request_close(&self) {
        self.outbox.request_close();
    }

    /// Returns why the connection has ended, if it has.
    pub(crate) fn end_reason(&self) -> Option<CloseReason> {
        self.end.borrow().clone()
    }

    /// Returns why no message of the peer is handled any more, if so. Handlers may still run.
    pub(crate) fn closing_reason(&self) -> Option<CloseReason> {
        lock(&self.pending).closed().cloned()
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&self) -> CloseReason {
        let mut end = self.end.subscribe();
        let ended = end.wait_for(Option::is_some).await;
        // The sender is in `self`, and the value is what was waited for.
        ended.map_or(CloseReason::Dropped, |reason| {
            reason.clone().unwrap_or(CloseReason::Dropped)
        })
    }

    /// Returns whether no message of the peer is handled any more.
    pub(crate) fn has_stopped_reading(&self) -> bool {
        lock(&self.pending).closed().is_some()
    }

    /// Changes the order of notifications. Wakes the loop when the change makes room for reading:
    /// the loop waits for nothing else then.
    fn reorder<R>(&self, change: impl FnOnce(&mut NotificationOrder) -> R) -> R {
        let limit = self.options.max_queued_bytes;
        let mut order = lock(&self.order);
        let was_full = order.buffered_bytes() > limit;
        let result = change(&mut order);
        let has_room = was_full && order.buffered_bytes() <= limit;
        drop(order);
        if has_room {
            self.outbox.wake_driver();
        }
        result
    }

    /// No response can arrive any more: fails every call and cancels every handler.
    fn stop_reading(&self, reason: &CloseReason) {
        let requests = lock(&self.inbound).all();
        let calls = {
            let mut pending = lock(&self.pending);
            // A handler that sees one of the two sees the other: that reading has stopped is asked under this lock.
            requests.iter().for_each(|request| request.mark_cancelled());
            pending.close(reason)
        };
        calls.into_iter().for_each(Delivery::send);
        requests.iter().for_each(|request| request.cancel());
    }

    /// Ends the connection. Afterwards nothing in here refers to the application.
    fn end(&self, reason: &CloseReason) {
        self.stop_reading(reason);
        self.outbox.close(reason);
        let (handlers, held) = lock(&self.order).clear();
        drop(handlers);
        held.into_iter().for_each(Released::go);
        self.end.send_if_modified(|end| {
            let news = end.is_none();
            end.get_or_insert_with(|| reason.clone());
            news
        });
    }
}

/// Params that a function writes.
struct Written<'a>(&'a dyn Fn(&mut Vec<u8>));

impl Encode for Written<'_> {
    fn encode(&self, bytes: &mut Vec<u8>) -> std::result::Result<(), EncodeError> {
        (self.0)(bytes);
        Ok(())
    }
}

/// An outgoing request. Dropped without a response, it cancels itself.
struct Call<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    origin: Option<NotificationId>,
    sent: bool,
}

impl<'a> Call<'a> {
    fn open(
        shared: &'a Arc<Shared>,
        session: Option<&str>,
        origin: Option<NotificationId>,
        mut hooks: Hooks,
    ) -> Result<(Self, oneshot::Receiver<Reply>)> {
        let session = session.map(Arc::from);
        let (id, reply) = lock(&shared.pending).open(session, origin, &mut hooks)?;
        if let Some(origin) = origin {
            let free = shared.reorder(|order| order.call_opened(origin));
            free.into_iter().for_each(Released::go);
        }
        Ok((
            Self {
                shared,
                id,
                origin,
                sent: false,
            },
            reply,
        ))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(origin) = self.origin {
            lock(&self.shared.order).call_ended(origin);
        }
        // Dropped at the end of the function, without the lock: it has values of the application.
        let unanswered = lock(&self.shared.pending).remove(self.id);
        if unanswered.is_some() && self.sent {
            self.shared.cancel(self.id);
        }
    }
}
