//! The peer's requests that are being handled, so that it can cancel them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::{Batch, lock};

/// One request of the peer.
#[derive(Debug)]
pub(crate) struct RequestState {
    /// As the peer wrote it; the answer repeats it to the letter.
    pub(crate) id: Box<RawValue>,
    pub(crate) method: Box<str>,
    cancelled: AtomicBool,
    told: Notify,
    /// Whether the table below knows of it: only what does not finish at once is entered.
    entered: AtomicBool,
    kept: Kept,
    /// Where the answer belongs when the request came with others.
    pub(crate) batch: Option<Arc<Batch>>,
}

impl RequestState {
    pub(crate) fn new(id: &RawValue, method: &str) -> Self {
        Self {
            id: id.to_owned(),
            method: method.into(),
            cancelled: AtomicBool::new(false),
            told: Notify::new(),
            entered: AtomicBool::new(false),
            kept: Kept::default(),
            batch: None,
        }
    }

    /// Keeps `value` until the request is over; drops it at once if it is.
    pub(crate) fn keep(&self, value: Box<dyn Any + Send>) {
        self.kept.add(value);
    }

    /// The answer has been handed over, or never will be.
    pub(crate) fn over(&self) {
        self.kept.end();
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(crate) async fn cancelled(&self) {
        // Made before the look: it is told of what happens from now on.
        let told = self.told.notified();
        if !self.is_cancelled() {
            told.await;
        }
    }
}

/// Values that are dropped when their request is over, after which there is no list.
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

    fn end(&self) {
        let values = lock(&self.0).take();
        // Dropped without the lock: a destructor is code of the application.
        drop(values);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Inbound {
    running: HashMap<Box<str>, Arc<RequestState>>,
}

impl Inbound {
    pub(crate) fn enter(&mut self, request: &Arc<RequestState>) {
        request.entered.store(true, Ordering::Relaxed);
        self.running.insert(key(&request.id), request.clone());
    }

    pub(crate) fn contains(&self, id: &RawValue) -> bool {
        // Most requests arrive while none is running; those cost no key.
        !self.running.is_empty() && self.running.contains_key(&key(id))
    }

    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    /// Cancels one request; `false` if it is not running (any more).
    pub(crate) fn cancel(&self, id: &RawValue) -> bool {
        let request = self.running.get(&key(id));
        request.inspect(|request| request.cancel()).is_some()
    }

    pub(crate) fn cancel_all(&self) {
        self.running.values().for_each(|request| request.cancel());
    }

    pub(crate) fn leave(&mut self, request: &RequestState) {
        if request.entered.load(Ordering::Relaxed) {
            self.running.remove(&key(&request.id));
        }
    }
}

/// The same key for the same id, however its characters are escaped.
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
        let request = Arc::new(RequestState::new(&raw(r#""a/b""#), "x"));
        inbound.enter(&request);
        assert!(inbound.contains(&raw(r#""a\/b""#)));
        assert!(inbound.cancel(&raw(r#""\u0061\/b""#)));
        assert!(request.is_cancelled());
        inbound.leave(&request);
        assert!(!inbound.cancel(&raw(r#""a/b""#)));
    }

    #[test]
    fn a_number_and_a_string_are_different_ids() {
        let mut inbound = Inbound::default();
        let request = Arc::new(RequestState::new(&raw("1"), "x"));
        inbound.enter(&request);
        assert!(!inbound.cancel(&raw("\"1\"")));
        assert!(!request.is_cancelled());
    }

    #[tokio::test]
    async fn cancellation_is_seen_before_and_after() {
        let request = RequestState::new(&raw("1"), "x");
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
