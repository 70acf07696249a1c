//! A client's cursor in the events of one session.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use acp_sdk::extensions::CurrentSessionState;
use tokio::sync::oneshot;

use super::Client;
use super::joining;
use super::wire::{self, Encoding, Phase};
use crate::Session;
use crate::event::{Batch, EventKind};
use crate::limits::LocalTools;
use crate::log::{Listener, Next};
use crate::store::StoreError;

/// The prompts of a client that it is not sent although it asks for older events again.
const KEPT_KNOWN: usize = 256;

pub(crate) struct Subscription {
    session: Session,
    client: Weak<Client>,
    /// Whether it waits in the round of the delivery task.
    scheduled: AtomicBool,
    cursor: Mutex<Cursor>,
    sent: AtomicU64,
    /// Whether the client is sent its own prompts too.
    echoes: bool,
    /// What the client's link implies for files and terminals that no client offers.
    pub(crate) local_tools: LocalTools,
    /// The state that the client was notified of last.
    notified: Mutex<Option<CurrentSessionState>>,
    /// Whether the client may lose what it was sent, and ask for it again.
    may_lose: bool,
    this: Weak<Subscription>,
}

struct Cursor {
    /// The last event that was sent, or skipped.
    delivered: u64,
    /// Events up to this one are a replay.
    replay_until: u64,
    /// The last event that was sent before the replay.
    live_from: u64,
    /// Whether the replay leaves out what the response to `session/load` contains.
    is_load: bool,
    /// The client knows these events, for it sent what is in them.
    known: VecDeque<(u64, u64)>,
    /// Nothing after these events is sent until a response has been sent.
    barriers: VecDeque<u64>,
    /// The client must be sent the commands.
    greet: bool,
    waiting: Vec<(u64, oneshot::Sender<Result<(), StoreError>>)>,
    older: VecDeque<Arc<Batch>>,
    /// Counts restarts.
    generation: u64,
    /// The latest one that the client's gate knows.
    announced: u64,
    /// Nothing is sent for now.
    held: bool,
    ended: bool,
    /// Requests to join the session that have not ended.
    joining: usize,
    /// Whether one has succeeded.
    joined: bool,
    encoding: Option<Encoding>,
}

/// Holds back what follows an event, until it is dropped.
pub(crate) struct Barrier {
    subscription: Arc<Subscription>,
    number: u64,
}

/// Decides when the events of a client's sessions are sent.
pub(crate) trait Gate: Send + Sync {
    /// The client is attached to a session. Its events are [held](Subscription::hold).
    fn attached(&self, subscription: &Arc<Subscription>);
}

/// What a replay sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// All events after this one, as they were sent.
    After(u64),
    /// The conversation from the beginning, as `session/load` requires.
    Load,
    /// The same, after the answer.
    AfterAnswer,
    /// What has happened in a session since its creation, after the answer, as it happened.
    Created,
    /// Nothing.
    Nothing,
}

impl Subscription {
    /// Creates a subscription whose cursor is at the last event.
    pub(crate) fn new(session: &Session, client: &Arc<Client>, encoding: Encoding) -> Arc<Self> {
        let last = session.log().last();
        let echoes = encoding.echoes();
        Arc::new_cyclic(|this| Self {
            session: session.clone(),
            client: Arc::downgrade(client),
            scheduled: AtomicBool::new(false),
            cursor: Mutex::new(Cursor {
                delivered: last,
                replay_until: last,
                live_from: last,
                is_load: false,
                known: VecDeque::new(),
                barriers: VecDeque::new(),
                greet: false,
                waiting: Vec::new(),
                older: VecDeque::new(),
                generation: 0,
                announced: 0,
                held: client.gate().is_some(),
                ended: false,
                joining: 0,
                joined: false,
                encoding: Some(encoding),
            }),
            sent: AtomicU64::new(0),
            echoes,
            local_tools: client.local_tools,
            notified: Mutex::default(),
            may_lose: client.gate().is_some(),
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
        self.cursor().replay_until
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

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Sets the cursor back for a replay, and holds what follows it until the barrier is dropped.
    /// Returns the last event that is sent before the answer.
    pub(crate) fn restart(self: &Arc<Self>, replay: Replay) -> (u64, Barrier) {
        let mirrored = self.session.state().settings.is_mirrored();
        // Under the log's lock, or the last event could be removed before the cursor stands there.
        let held = self.session.log().at_last(|last| {
            let held = match replay {
                Replay::AfterAnswer | Replay::Created => 0,
                _ => last,
            };
            let mut cursor = self.cursor();
            let after = match replay {
                Replay::After(after) => Some(after.min(last)),
                Replay::Load | Replay::AfterAnswer | Replay::Created => Some(0),
                // A client that is attached must still be sent what it has not been sent yet.
                Replay::Nothing => None,
            };
            if let Some(after) = after {
                cursor.generation += 1;
                cursor.live_from = cursor.delivered.max(cursor.live_from);
                cursor.delivered = after;
                cursor.replay_until = match replay {
                    Replay::Created => 0,
                    _ => last,
                };
                cursor.is_load = matches!(replay, Replay::Load | Replay::AfterAnswer);
                cursor.known.clear();
                cursor.older.clear();
            }
            // Commands of another agent are among the events since the creation.
            cursor.greet = replay != Replay::Created || !mirrored;
            cursor.barriers.push_back(held);
            cursor.barriers.make_contiguous().sort_unstable();
            held
        });
        self.schedule();
        let barrier = Barrier {
            subscription: self.clone(),
            number: held,
        };
        (held, barrier)
    }

    /// Sends again what follows an event, to a client that has lost what was on its way. Returns
    /// which restart that is.
    #[cfg(feature = "remote")]
    pub(crate) fn send_again(&self, after: u64) -> u64 {
        let generation = self.session.log().at_last(|last| {
            let mut cursor = self.cursor();
            cursor.generation += 1;
            cursor.is_load &= cursor.delivered < cursor.replay_until;
            cursor.live_from = cursor.delivered.max(cursor.live_from);
            cursor.replay_until = cursor.replay_until.max(cursor.live_from);
            cursor.delivered = after.min(last);
            cursor.older.clear();
            cursor.generation
        });
        self.schedule();
        generation
    }

    /// Holds back what has not been sent, or lets it go on.
    #[cfg(feature = "remote")]
    pub(crate) fn hold(&self, hold: bool) {
        let before = std::mem::replace(&mut self.cursor().held, hold);
        if before && !hold {
            self.schedule();
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.cursor().held
    }

    /// Ends a replay where it is: the cursor moves to where it was before.
    pub(crate) fn skip_replay(&self) {
        let mut cursor = self.cursor();
        cursor.generation += 1;
        cursor.delivered = cursor.delivered.max(cursor.live_from);
        cursor.older.clear();
    }

    /// The client sent what is in these events. Called before they are committed.
    pub(crate) fn knows(&self, first: u64, last: u64) {
        if !self.echoes {
            self.cursor().known.push_back((first, last));
        }
    }

    /// Holds what follows an event until the result is dropped. Called before it is committed.
    pub(crate) fn barrier(self: &Arc<Self>, number: u64) -> Barrier {
        self.cursor().barriers.push_back(number);
        Barrier {
            subscription: self.clone(),
            number,
        }
    }

    /// Returns the event that must be sent before the session may append more, if this client
    /// paces it: otherwise the client would fall out of the in-memory log.
    pub(crate) fn paces(&self, session: &Session) -> Option<u64> {
        let oldest = session.log().oldest_in_memory();
        {
            let cursor = self.cursor();
            if cursor.ended || cursor.delivered + 1 >= oldest {
                return None;
            }
        }
        let client = self.client.upgrade()?;
        let paced = session.state().policies.paced.unwrap_or(client.paced);
        paced.then_some(oldest.saturating_sub(1))
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.cursor().delivered
    }

    /// Waits until the events up to a number were sent, or never will be.
    ///
    /// # Errors
    ///
    /// When older events cannot be read.
    pub(crate) async fn reached(&self, number: u64) -> Result<(), StoreError> {
        let waiting = self.session.log().at_last(|last| {
            let mut cursor = self.cursor();
            // An event that a failure removed is not waited for.
            let number = number.min(last);
            if cursor.ended || cursor.delivered >= number {
                return None;
            }
            let (sender, waiting) = oneshot::channel();
            cursor.waiting.push((number, sender));
            Some(waiting)
        });
        match waiting {
            Some(waiting) => waiting.await.unwrap_or(Ok(())),
            None => Ok(()),
        }
    }

    /// Nothing more is sent.
    pub(super) fn end(&self) {
        let waiting = {
            let mut cursor = self.cursor();
            cursor.ended = true;
            std::mem::take(&mut cursor.waiting)
        };
        drop(waiting);
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

    /// Sends the next batch of events; `true` if there may be more.
    ///
    /// # Errors
    ///
    /// When the connection has ended.
    pub(super) async fn send_batch(&self, client: &Arc<Client>) -> acp_sdk::Result<bool> {
        self.scheduled.store(false, Ordering::Release);
        let (after, limit, generation, restarted, greet, mut older, encoding) = {
            let mut cursor = self.cursor();
            if cursor.ended || cursor.held {
                return Ok(false);
            }
            let restarted = client.gate().is_some() && cursor.announced < cursor.generation;
            cursor.announced = cursor.generation;
            let limit = cursor.barriers.front().copied().unwrap_or(u64::MAX);
            let replayed = cursor.delivered >= cursor.replay_until;
            let greet = cursor.greet && replayed && limit > cursor.delivered;
            cursor.greet &= !greet;
            let older = std::mem::take(&mut cursor.older);
            let encoding = cursor.encoding.take();
            (
                cursor.delivered,
                limit,
                cursor.generation,
                restarted,
                greet,
                older,
                encoding,
            )
        };
        let Some(encoding) = encoding else {
            // Sent by another task; cannot happen, as there is one per connection.
            return Ok(false);
        };
        if restarted {
            wire::send_restarted(client, &self.session, generation).await?;
        }
        if greet {
            wire::send_commands(client, &self.session, encoding).await?;
        }
        let next = if after >= limit {
            Ok(Next::Nothing)
        } else {
            self.session.log().next(after, &mut older).await
        };
        let mut turn_events = Vec::new();
        let result = match next {
            Ok(Next::Batch(batch)) => {
                let last = batch.last().min(limit);
                let sent = self.send(client, &batch, after, last, encoding, &mut turn_events);
                let sent = sent.await;
                sent.map(|()| Some(last))
            }
            Ok(Next::Gap(last)) => {
                let sent = wire::send_gap(client, &self.session, last, encoding).await;
                sent.map(|()| Some(last))
            }
            Ok(Next::Nothing) => Ok(None),
            Err(error) => {
                self.cursor().encoding = Some(encoding);
                self.failed(&error);
                return Ok(false);
            }
        };
        self.advance(
            generation,
            result.as_ref().ok().copied().flatten(),
            older,
            encoding,
        );
        // After the cursor has moved: a question that its client leaves meanwhile is offered either
        // here, or to those whose cursor has passed it.
        for number in turn_events {
            self.session.reached(number, client);
        }
        Ok(result?.is_some())
    }

    async fn send(
        &self,
        client: &Arc<Client>,
        batch: &Batch,
        after: u64,
        last: u64,
        encoding: Encoding,
        turn_events: &mut Vec<u64>,
    ) -> acp_sdk::Result<()> {
        // A gate's stream has a place for each event.
        let joins = matches!(encoding, Encoding::V1)
            && client.core().coalesces_chunks
            && client.gate().is_none();
        let mut next = (after + 1).max(batch.first());
        while next <= last
            && let Some(text) = batch.get(next)
        {
            let kind = EventKind::of(text);
            let phase = self.phase(next, kind);
            let joined = match kind {
                EventKind::Update if joins => joining::join(batch, next, last),
                _ => None,
            };
            let (text, number) = match &joined {
                Some((text, number)) => (text.as_str(), *number),
                None => (text, next),
            };
            if phase != Phase::Known {
                let event = wire::Encoded {
                    number,
                    text,
                    kind,
                    phase,
                };
                let sent = wire::send_event(client, &self.session, event, encoding).await?;
                self.sent.fetch_add(sent, Ordering::AcqRel);
            }
            if kind == EventKind::Turn && phase == Phase::Live {
                turn_events.push(number);
            }
            next = number + 1;
        }
        Ok(())
    }

    /// Returns how an event is sent. Only events of the user can be known.
    fn phase(&self, number: u64, kind: EventKind) -> Phase {
        if kind == EventKind::Update {
            return Phase::Live;
        }
        let cursor = self.cursor();
        let known = cursor.known.iter();
        if known
            .into_iter()
            .any(|(first, last)| (*first..=*last).contains(&number))
        {
            return Phase::Known;
        }
        match number <= cursor.replay_until {
            true if cursor.is_load => Phase::Loaded,
            true => Phase::Replayed,
            false => Phase::Live,
        }
    }

    fn advance(
        &self,
        generation: u64,
        last: Option<u64>,
        older: VecDeque<Arc<Batch>>,
        encoding: Encoding,
    ) {
        let mut reached = Vec::new();
        {
            let mut cursor = self.cursor();
            cursor.encoding = Some(encoding);
            // After a restart the position is another one.
            if cursor.generation == generation {
                cursor.older = older;
                if let Some(last) = last {
                    cursor.delivered = cursor.delivered.max(last);
                }
            }
            let delivered = cursor.delivered;
            // They may be sent again.
            let keep = if self.may_lose { KEPT_KNOWN } else { 0 };
            while cursor.known.len() > keep
                && cursor
                    .known
                    .front()
                    .is_some_and(|(_, last)| *last <= delivered)
            {
                cursor.known.pop_front();
            }
            let mut at = 0;
            while at < cursor.waiting.len() {
                if cursor.waiting[at].0 <= delivered {
                    reached.push(cursor.waiting.swap_remove(at).1);
                } else {
                    at += 1;
                }
            }
        }
        for waiting in reached {
            // The receiver may have been dropped.
            let _ = waiting.send(Ok(()));
        }
    }

    /// Older events cannot be read now. The next commit tries again.
    fn failed(&self, error: &StoreError) {
        let waiting = std::mem::take(&mut self.cursor().waiting);
        for (_, waiting) in waiting {
            let _ = waiting.send(Err(error.clone()));
        }
    }

    fn cursor(&self) -> MutexGuard<'_, Cursor> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Subscription {
    fn committed(&self, _: u64) {
        self.schedule();
    }

    fn rolled_back(&self, last: u64) {
        let mut cursor = self.cursor();
        cursor.delivered = cursor.delivered.min(last);
        cursor.replay_until = cursor.replay_until.min(last);
        cursor.live_from = cursor.live_from.min(last);
        cursor.known.retain(|(first, _)| *first <= last);
        for (number, _) in &mut cursor.waiting {
            *number = (*number).min(last);
        }
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        {
            let mut cursor = self.subscription.cursor();
            let at = cursor.barriers.iter().position(|held| *held == self.number);
            if let Some(at) = at {
                cursor.barriers.remove(at);
            }
        }
        self.subscription.schedule();
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("session", &self.session)
            .field("delivered", &self.delivered())
            .finish_non_exhaustive()
    }
}
