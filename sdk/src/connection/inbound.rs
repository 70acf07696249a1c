//! Incoming requests in progress, which the peer can cancel.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::lock;
use crate::error::HandlerError;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Notify};

/// An incoming request.
#[derive(Debug)]
pub(crate) struct RequestState {
    /// As received; the response repeats it byte for byte.
    pub(crate) id: Box<RawValue>,
    pub(crate) method: Box<str>,
    cancelled: AtomicBool,
    /// Whether it is cancelled by its id or by the end, and not with the work of its session.
    revoked: AtomicBool,
    notify: Notify,
    /// The session of a request that is cancelled with it.
    session: OnceLock<Box<str>>,
    /// Whether it is in the table below: only requests that do not complete at once are.
    entered: AtomicBool,
    /// Whether it has its answer, so that it must not be entered any more: a layer may run on
    /// after the handler.
    left: AtomicBool,
    kept: Kept,
    /// Size of the message, counted against the budget while the request is in progress.
    bytes: usize,
    /// Answers the request if its handler is dropped.
    abort_error: OnceLock<HandlerError>,
}

impl RequestState {
    pub(crate) fn new(id: &RawValue, method: &str, bytes: usize) -> Self {
        Self {
            id: id.to_owned(),
            method: method.into(),
            cancelled: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            session: OnceLock::new(),
            notify: Notify::new(),
            entered: AtomicBool::new(false),
            left: AtomicBool::new(false),
            kept: Kept::default(),
            bytes,
            abort_error: OnceLock::new(),
        }
    }

    /// Keeps `value` until the request is answered; drops it at once if it is.
    pub(crate) fn keep(&self, value: Box<dyn Any + Send>) {
        self.kept.add(value);
    }

    /// The response is in the output buffer, or can no longer be sent.
    pub(crate) fn over(&self) {
        let values = self.kept.take();
        // Dropped without a lock: a destructor is code of the application.
        drop(values);
    }

    /// Sets the error that answers the request if its handler is dropped.
    pub(crate) fn abort_with(&self, error: HandlerError) {
        // The first one counts.
        let _ = self.abort_error.set(error);
    }

    pub(crate) fn abort_error(&self) -> Option<HandlerError> {
        self.abort_error.get().cloned()
    }

    /// Marks the request as cancelled and wakes its handler: never called under a lock.
    pub(crate) fn cancel(&self) {
        self.mark_cancelled();
        self.cancel_work();
    }

    /// Marks the request as cancelled; its handler is woken by [`cancel`](Self::cancel).
    pub(crate) fn mark_cancelled(&self) {
        self.revoked.store(true, Ordering::Release);
        self.cancelled.store(true, Ordering::Release);
    }

    /// The same for the work of the session, of which the request is still to be answered.
    pub(crate) fn cancel_work(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Lets the request be cancelled with the work of a session.
    pub(crate) fn set_session(&self, session: &str) {
        // Called once.
        let _ = self.session.set(session.into());
    }

    fn is_of(&self, session: &str, methods: &[&str]) -> bool {
        self.session.get().is_some_and(|own| **own == *session) && methods.contains(&&*self.method)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// Waits until the request is cancelled, alone or with the work of its session.
    pub(crate) async fn cancelled(&self) {
        self.reached(Self::is_cancelled).await;
    }

    /// Waits until the request is cancelled by its id or by the end.
    pub(crate) async fn revoked(&self) {
        self.reached(Self::is_revoked).await;
    }

    async fn reached(&self, is_reached: fn(&Self) -> bool) {
        loop {
            // Created before the check: it is notified of everything from now on.
            let notified = self.notify.notified();
            if is_reached(self) {
                return;
            }
            notified.await;
        }
    }
}

/// Values that are dropped when their request is answered; then there is no list.
#[derive(Debug)]
struct Kept(Mutex<Option<Vec<Box<dyn Any + Send>>>>);

impl Default for Kept {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Kept {
    fn add(&self, value: Box<dyn Any + Send>) {
        if let Some(values) = &mut *lock(&self.0) {
            values.push(value);
        }
    }

    fn take(&self) -> Vec<Box<dyn Any + Send>> {
        lock(&self.0).take().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Inbound {
    running: HashMap<Box<str>, Arc<RequestState>>,
    bytes: usize,
}

impl Inbound {
    pub(crate) fn enter(&mut self, request: &Arc<RequestState>) {
        if request.left.load(Ordering::Relaxed) {
            return;
        }
        request.entered.store(true, Ordering::Relaxed);
        self.bytes += request.bytes;
        self.running.insert(key(&request.id), request.clone());
    }

    pub(crate) fn contains(&self, id: &RawValue) -> bool {
        // Most requests arrive while none is running; those cost no key.
        !self.running.is_empty() && self.running.contains_key(&key(id))
    }

    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    /// Returns the bytes of the requests in progress.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the request in progress with this id, to be cancelled without a lock.
    pub(crate) fn find(&self, id: &RawValue) -> Option<Arc<RequestState>> {
        self.running.get(&key(id)).cloned()
    }

    /// Returns the requests of a session in progress, to be cancelled without a lock.
    pub(crate) fn of_session(&self, session: &str, methods: &[&str]) -> Vec<Arc<RequestState>> {
        let all = self.running.values();
        let of_session = all.filter(|request| request.is_of(session, methods));
        of_session.cloned().collect()
    }

    /// Returns all requests in progress, to be cancelled without a lock.
    pub(crate) fn all(&self) -> Vec<Arc<RequestState>> {
        self.running.values().cloned().collect()
    }

    pub(crate) fn leave(&mut self, request: &RequestState) {
        request.left.store(true, Ordering::Relaxed);
        if request.entered.load(Ordering::Relaxed)
            && self.running.remove(&key(&request.id)).is_some()
        {
            self.bytes -= request.bytes;
        }
    }
}

/// Returns the same key for the same id, however its characters are escaped.
fn key(id: &RawValue) -> Box<str> {
    let text = id.get();
    if text.contains('\\')
        && let Ok(plain) = serde_json::from_str::<String>(text)
        && let Ok(canonical) = serde_json::to_string(&plain)
    {
        return canonical.into();
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_request_is_found_however_its_id_is_escaped() {
        let mut inbound = Inbound::default();
        let request = Arc::new(RequestState::new(&raw(r#""a/b""#), "x", 7));
        inbound.enter(&request);
        assert_eq!(inbound.bytes(), 7);
        assert!(inbound.contains(&raw(r#""a\/b""#)));
        inbound.find(&raw(r#""\u0061\/b""#)).unwrap().cancel();
        assert!(request.is_cancelled());
        inbound.leave(&request);
        assert!(inbound.find(&raw(r#""a/b""#)).is_none());
        assert_eq!(inbound.bytes(), 0);
    }

    #[test]
    fn a_number_and_a_string_are_different_ids() {
        let mut inbound = Inbound::default();
        let request = Arc::new(RequestState::new(&raw("1"), "x", 7));
        inbound.enter(&request);
        assert!(inbound.find(&raw("\"1\"")).is_none());
        assert!(!request.is_cancelled());
    }

    #[tokio::test]
    async fn cancellation_is_seen_before_and_after() {
        let request = RequestState::new(&raw("1"), "x", 7);
        let mut waiting = Box::pin(request.cancelled());
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, &mut waiting)
                .await
                .is_err()
        );
        request.cancel();
        waiting.await;
        request.cancelled().await;
    }
}
