//! A client's part in one session: what it is sent, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use acp_sdk::extensions::CurrentSessionState;
use acp_sdk::v1::SessionId;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Client;
use super::cursor::{BarrierId, Cursor, Replay};
use super::wire::Encoding;
use crate::Session;
use crate::event::TurnEvent;
use crate::limits::LocalTools;
use crate::log::Listener;
use crate::store::StoreError;

/// The position of a client in the events of a session.
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub struct Subscription {
    pub(super) session: Session,
    client: Weak<Client>,
    cursor: Mutex<Cursor>,
    /// Whether it waits in the round of the delivery task.
    scheduled: AtomicBool,
    /// Updates that were sent.
    pub(super) sent: AtomicU64,
    pub(super) encoding: Encoding,
    /// The child sessions that the client knows and that have not ended.
    children: Mutex<Vec<SessionId>>,
    /// What the client's link implies for files and terminals that no client offers.
    pub(crate) local_tools: LocalTools,
    /// The state that the client was notified of last.
    notified: Mutex<Option<CurrentSessionState>>,
    /// Cancelled when nothing more is sent.
    left: CancellationToken,
    this: Weak<Subscription>,
}

/// Holds back what follows an event, until it is dropped.
pub(crate) struct Barrier {
    subscription: Arc<Subscription>,
    id: BarrierId,
}

/// Decides when the events of a client's sessions are sent.
pub trait Gate: Send + Sync {
    /// The client is attached to a session. Its events are [held](Subscription::hold).
    fn attached(&self, subscription: &Arc<Subscription>);

    /// What the client is sent of the session up to the answer to a request that joins it precedes
    /// that answer: without a reader of its own it goes where the answer goes.
    fn precedes_answer(&self, subscription: &Arc<Subscription>);
}

impl Subscription {
    /// Creates a subscription whose cursor is at the last event that is committed.
    pub(crate) fn new(session: &Session, client: &Arc<Client>, encoding: Encoding) -> Arc<Self> {
        let held = client.gate().is_some();
        let cursor = Cursor::new(session.log().committed(), held);
        Arc::new_cyclic(|this| Self {
            session: session.clone(),
            client: Arc::downgrade(client),
            cursor: Mutex::new(cursor),
            scheduled: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            encoding,
            children: Mutex::default(),
            local_tools: client.local_tools,
            notified: Mutex::default(),
            left: CancellationToken::new(),
            this: this.clone(),
        })
    }

    /// A request joins the session.
    pub(crate) fn begin_joining(&self) {
        self.cursor().joining += 1;
    }

    /// The request has ended. Returns whether the client still joins the session or has joined it.
    pub(crate) fn end_joining(&self, succeeds: bool) -> bool {
        let mut cursor = self.cursor();
        cursor.joining -= 1;
        cursor.joined |= succeeds;
        cursor.joined || cursor.joining > 0
    }

    /// Follows the log from now on.
    pub(crate) fn follow(self: &Arc<Self>) {
        let listener: Weak<Self> = Arc::downgrade(self);
        self.session.log().subscribe(listener);
        // A failure before that has not reached this subscription.
        let log = self.session.log();
        log.at_last(|last| self.rolled_back(last));
        // What was committed before is found by this.
        self.schedule();
    }

    /// Returns the number of the last event of the latest replay.
    pub(crate) fn replayed_until(&self) -> u64 {
        self.cursor().replay_until()
    }

    /// Returns whether a state differs from the last one, and keeps it.
    pub(super) fn notifies(&self, state: &CurrentSessionState) -> bool {
        let mut last = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        let differs = last.as_ref() != Some(state);
        if differs {
            *last = Some(state.clone());
        }
        differs
    }

    /// Returns the number of updates that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sets the cursor back for a replay, and holds what follows it until the barrier is dropped.
    pub(crate) fn restart(self: &Arc<Self>, replay: Replay) -> Barrier {
        // Commands of another agent are among the events since the creation.
        let greet = replay != Replay::Created(0) || !self.session.state().settings.is_mirrored();
        // Under the log's lock, or the last event could be removed before the cursor stands there.
        self.children().clear();
        let log = self.session.log();
        let id = log.at_last(|last| self.cursor().restart(replay, last, greet));
        self.schedule();
        let subscription = self.clone();
        Barrier { subscription, id }
    }

    /// Sends again what follows an event, to a client that has lost what was on its way. Returns
    /// which restart that is.
    pub fn send_again(&self, after: u64) -> u64 {
        let log = self.session.log();
        let generation = log.at_last(|last| self.cursor().send_again(after.min(last)));
        self.schedule();
        generation
    }

    /// Records that the client is sent an event about a child session. Returns whether it knows the child
    /// session: it may have attached, or its log may begin, after the start.
    pub(super) fn sends_child(&self, child: &SessionId, event: &TurnEvent) -> bool {
        let mut children = self.children();
        let known = children.iter().position(|known| known == child);
        match (known, event) {
            (Some(at), TurnEvent::ChildEnded { .. }) => drop(children.remove(at)),
            (None, TurnEvent::ChildEnded { .. }) | (Some(_), _) => {}
            (None, _) => children.push(child.clone()),
        }
        known.is_some() || matches!(event, TurnEvent::ChildStarted { .. })
    }

    /// Returns the child sessions that the client knows and that have not ended.
    pub(super) fn children(&self) -> MutexGuard<'_, Vec<SessionId>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds back what has not been sent, or lets it go on.
    pub fn hold(&self, hold: bool) {
        let before = std::mem::replace(&mut self.cursor().held, hold);
        if before && !hold {
            self.schedule();
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.cursor().held
    }

    /// Ends a replay where it is: the cursor moves to where it was before. A client that has not joined
    /// in another way is sent nothing until the result is dropped.
    pub(crate) fn skip_replay(self: &Arc<Self>) -> Option<Barrier> {
        let id = self.cursor().skip_replay()?;
        let subscription = self.clone();
        Some(Barrier { subscription, id })
    }

    /// The client sent what is in these events. Called before they are committed.
    pub(crate) fn knows(&self, first: u64, last: u64) {
        if !self.encoding.echoes() {
            self.cursor().knows(first, last);
        }
    }

    /// Holds what follows an event until the result is dropped. Called before it is committed.
    pub(crate) fn barrier(self: &Arc<Self>, number: u64) -> Barrier {
        let id = self.cursor().hold_after(number);
        let subscription = self.clone();
        Barrier { subscription, id }
    }

    /// Returns the event that must be sent before the session may append more, if this client
    /// paces it: otherwise the client would fall out of the in-memory log.
    pub(crate) fn paces(&self, session: &Session) -> Option<u64> {
        let oldest = session.log().oldest_in_memory();
        if self.cursor().has_reached(oldest.saturating_sub(1)) {
            return None;
        }
        let client = self.client.upgrade()?;
        let paced = session.state().policies.paced.unwrap_or(client.paced);
        paced.then_some(oldest.saturating_sub(1))
    }

    /// Returns whether the client can be asked what an event says: it was sent the event, and no
    /// request to join is unanswered.
    pub(crate) fn may_ask(&self, number: u64) -> bool {
        let cursor = self.cursor();
        cursor.joining == 0 && cursor.delivered() >= number
    }

    /// Waits until the events up to a number were sent, or never will be.
    ///
    /// # Errors
    ///
    /// When older events cannot be read.
    pub async fn sent_through(&self, number: u64) -> Result<(), StoreError> {
        self.sent_as_far(|_| number).await
    }

    /// Waits until the events up to that of `number` were sent, or never will be.
    async fn sent_as_far(&self, number: impl FnOnce(&Cursor) -> u64) -> Result<(), StoreError> {
        let waiting = self.session.log().at_last(|last| {
            let mut cursor = self.cursor();
            // An event that a failure removed is not waited for.
            let number = number(&cursor).min(last);
            if cursor.has_reached(number) {
                return None;
            }
            let (sender, waiting) = oneshot::channel();
            cursor.wait(number, sender);
            Some(waiting)
        });
        match waiting {
            Some(waiting) => waiting.await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }

    /// Returns the last event that was sent, or skipped.
    pub(crate) fn delivered(&self) -> u64 {
        self.cursor().delivered()
    }

    /// Returns whether the client was sent everything up to an event, and nobody waits for anything.
    pub(crate) fn is_settled(&self, last: u64) -> bool {
        self.cursor().is_settled(last)
    }

    /// Returns whether nothing more is sent.
    pub(super) fn has_ended(&self) -> bool {
        self.cursor().has_ended()
    }

    /// Waits until the client has left the session, or has gone.
    pub(crate) async fn left(&self) {
        self.left.cancelled().await;
    }

    /// Waits for an event that was being sent when the cursor moved, or when this [ended](Self::end).
    pub(crate) async fn settled(&self) {
        // That of number 0 is reached.
        let _ = self.sent_through(0).await;
    }

    /// Nothing more is sent.
    pub(super) fn end(&self) {
        let waiting = self.cursor().end();
        drop(waiting);
        self.left.cancel();
    }

    /// Adds this to the round of the delivery task.
    pub(super) fn schedule(&self) {
        if self.scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        if let (Some(client), Some(this)) = (self.client.upgrade(), self.this.upgrade()) {
            client.delivery.add(this);
        }
    }

    /// Adds this to the round after a pause, in which the store may become available.
    pub(super) fn schedule_later(&self) {
        let Some(pause) = self.cursor().begin_pause() else {
            return;
        };
        let this = self.this.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            if let Some(this) = this.upgrade() {
                this.cursor().end_pause();
                this.schedule();
            }
        });
    }

    /// It is its turn in the round of the delivery task.
    pub(super) fn begin_turn(&self) {
        self.scheduled.store(false, Ordering::Release);
    }

    /// Sends what is new where that takes no wait; the delivery task does the rest.
    fn deliver_now(&self) {
        if self.scheduled.load(Ordering::Acquire) {
            return;
        }
        if let Some(client) = self.client.upgrade() {
            self.deliver_or_schedule(&client);
        }
    }

    pub(super) fn cursor(&self) -> MutexGuard<'_, Cursor> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Subscription {
    fn committed(&self) {
        self.deliver_now();
    }

    fn rolled_back(&self, last: u64) {
        self.cursor().rolled_back(last);
    }
}

impl Barrier {
    /// Returns the last event that is sent before the barrier is dropped.
    pub(crate) fn number(&self) -> u64 {
        self.subscription.cursor().held_after(self.id)
    }

    /// Waits until the events before it were sent, or never will be.
    ///
    /// # Errors
    ///
    /// When older events cannot be read.
    pub(crate) async fn reached(&self) -> Result<(), StoreError> {
        let number = |cursor: &Cursor| cursor.held_after(self.id);
        self.subscription.sent_as_far(number).await
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        self.subscription.cursor().lift(self.id);
        self.subscription.deliver_now();
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("session", &self.session)
            .field("delivered", &self.cursor().delivered())
            .finish_non_exhaustive()
    }
}
