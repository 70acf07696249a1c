//! What hooks and the relay of one connection share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use acp_sdk::HandlerError;
use acp_sdk::HandlerResult;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::message;
use crate::outbox::Outbox;
use crate::side::Side;

/// The result of a request, as the peer wrote it.
pub(crate) type RawResult = HandlerResult<Box<RawValue>>;

#[derive(Debug)]
struct Call {
    to: Side,
    /// The session of the message that the hook handles.
    session: Arc<str>,
    answer: oneshot::Sender<RawResult>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    outboxes: [Outbox; 2],
    /// Requests of hooks that are not answered.
    calls: Mutex<HashMap<u64, Call>>,
    last_call: AtomicU64,
    /// The start of their ids, as JSON.
    prefix: String,
    /// Hooks that hold nothing back any more.
    released: Mutex<Vec<u64>>,
    pub(crate) waker: AtomicWaker,
    /// Why a side takes nothing any more.
    ends: [OnceLock<String>; 2],
    /// Cancelled when either side has ended.
    pub(crate) has_end: CancellationToken,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            outboxes: Default::default(),
            calls: Mutex::default(),
            last_call: AtomicU64::new(0),
            prefix: message::prefix("proxy"),
            released: Mutex::default(),
            waker: AtomicWaker::new(),
            ends: Default::default(),
            has_end: CancellationToken::new(),
        })
    }

    pub(crate) fn outbox(&self, to: Side) -> &Outbox {
        &self.outboxes[to.index()]
    }

    /// Sends a message of a hook.
    pub(crate) async fn send(
        &self,
        to: Side,
        gate: &Gate,
        message: impl FnOnce() -> Bytes,
    ) -> HandlerResult<()> {
        if !self.outbox(to).wait_for_room().await {
            return Err(self.ended(to));
        }
        self.outbox(to).push(&message());
        self.release(gate);
        Ok(())
    }

    /// Sends a request of a hook, and waits for the answer. Dropped, it cancels the request.
    pub(crate) async fn call(
        &self,
        to: Side,
        gate: &Gate,
        method: &str,
        params: Option<&RawValue>,
    ) -> RawResult {
        if gate.cancelled.is_cancelled() {
            return Err(HandlerError::cancelled());
        }
        let has_room = self.outbox(to).wait_for_room().await;
        if !has_room || self.ends[to.index()].get().is_some() {
            return Err(self.ended(to));
        }
        let number = self.last_call.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        let call = Call {
            to,
            session: gate.session.clone(),
            answer: sender,
        };
        lock(&self.calls).insert(number, call);
        let pending = PendingCall {
            shared: self,
            gate,
            to,
            number,
        };
        lock(&gate.calls).push((to, number));
        if self.ends[to.index()].get().is_some() {
            return Err(self.ended(to));
        }
        let id = self.id(number);
        self.outbox(to)
            .push(&message::call(Some(&id), method, params));
        self.release(gate);
        let answer = receiver.await;
        drop(pending);
        answer.unwrap_or_else(|_| Err(self.ended(to)))
    }

    /// Returns the number of the hook's request that has this id, as JSON.
    pub(crate) fn number(&self, id: &str) -> Option<u64> {
        let number = id.strip_prefix(&self.prefix)?.strip_suffix('"')?;
        number.parse().ok()
    }

    /// Returns the session of the message whose hook has sent a request.
    pub(crate) fn session(&self, number: u64) -> Option<Arc<str>> {
        Some(lock(&self.calls).get(&number)?.session.clone())
    }

    /// Gives a hook the answer to its request.
    pub(crate) fn answered(&self, number: u64, result: RawResult) {
        let call = lock(&self.calls).remove(&number);
        match call {
            // The hook may have been dropped.
            Some(call) => drop(call.answer.send(result)),
            None => tracing::warn!("dropped an answer to a request that is answered"),
        }
    }

    /// Cancels what a hook has called.
    pub(crate) fn cancel(&self, gate: &Gate) {
        gate.cancelled.cancel();
        for (to, number) in lock(&gate.calls).iter() {
            self.outbox(*to)
                .push(&message::cancel_request(&self.id(*number)));
        }
        self.waker.wake();
    }

    /// Ends what the hook holds back: what it has sent so far stands in front of it.
    pub(crate) fn release(&self, gate: &Gate) {
        if !gate.is_released.swap(true, Ordering::Relaxed) {
            lock(&self.released).push(gate.hook);
        }
        self.waker.wake();
    }

    pub(crate) fn take_released(&self) -> Vec<u64> {
        std::mem::take(&mut *lock(&self.released))
    }

    /// Fails all calls to a side, now and later, and discards what it has not been sent.
    pub(crate) fn close(&self, to: Side, reason: &str) {
        self.fail_calls(to, reason);
        self.outbox(to).close();
    }

    /// Fails all calls to a side, now and later: it answers nothing any more.
    pub(crate) fn fail_calls(&self, to: Side, reason: &str) {
        // The first reason counts.
        let _ = self.ends[to.index()].set(reason.to_owned());
        self.has_end.cancel();
        let ended: Vec<_> = {
            let mut calls = lock(&self.calls);
            calls.extract_if(|_, call| call.to == to).collect()
        };
        // Without the lock, for it wakes hooks.
        drop(ended);
    }

    fn ended(&self, to: Side) -> HandlerError {
        let reason = self.ends[to.index()].get();
        HandlerError::internal(reason.map_or("the connection has ended", |reason| reason))
    }

    fn id(&self, number: u64) -> String {
        format!("{}{number}\"", self.prefix)
    }
}

/// What the relay and a running hook know of each other.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) hook: u64,
    /// The session of the message; empty without one.
    session: Arc<str>,
    is_released: AtomicBool,
    /// The request that the hook answers was cancelled.
    pub(crate) cancelled: CancellationToken,
    calls: Mutex<Vec<(Side, u64)>>,
}

impl Gate {
    pub(crate) fn new(hook: u64, session: &str) -> Arc<Self> {
        Arc::new(Self {
            hook,
            session: session.into(),
            is_released: AtomicBool::new(false),
            cancelled: CancellationToken::new(),
            calls: Mutex::default(),
        })
    }

    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Relaxed)
    }
}

struct PendingCall<'a> {
    shared: &'a Shared,
    gate: &'a Gate,
    to: Side,
    number: u64,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        lock(&self.gate.calls).retain(|(_, number)| *number != self.number);
        if lock(&self.shared.calls).remove(&self.number).is_some() {
            let id = self.shared.id(self.number);
            let cancellation = message::cancel_request(&id);
            self.shared.outbox(self.to).push(&cancellation);
            self.shared.waker.wake();
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while a lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
