//! Sending a client what is new in its sessions.
//!
//! Whoever commits an event, or lets a client go on, sends it what takes no wait. What is left (the
//! client is full, events must be read from the store, or there is more than a batch) is for a task
//! of the client. It serves the sessions that have something new in turn, a batch at a time, so that
//! a long replay does not keep the other sessions of the client waiting.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::Peer;
use tokio::sync::Notify;

use super::cursor::Step;
use super::{Client, Subscription, joining, wire};
use crate::event::{Batch, EventKind};
use crate::log::{InMemory, Next};
use crate::session::TurnEvents;
use crate::store::StoreErrorKind;

#[derive(Default)]
pub(crate) struct Delivery {
    round: Mutex<Round>,
    /// Notified when there is work. One task waits.
    work: Notify,
}

#[derive(Default)]
struct Round {
    ready: VecDeque<Arc<Subscription>>,
    closed: bool,
}

/// How far sending has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivered {
    /// Everything that may be sent now, or somebody else sends the rest.
    All,
    /// A batch. There is more.
    More,
    /// The client takes nothing at the moment.
    Full,
    /// What follows must be read from the store.
    Stored,
}

impl Delivery {
    /// Adds a subscription to the round.
    pub(super) fn add(&self, subscription: Arc<Subscription>) {
        {
            let mut round = self.round();
            if round.closed {
                return;
            }
            round.ready.push_back(subscription);
        }
        self.work.notify_one();
    }

    pub(super) fn close(&self) {
        let ready = {
            let mut round = self.round();
            round.closed = true;
            std::mem::take(&mut round.ready)
        };
        drop(ready);
        self.work.notify_one();
    }

    /// Returns the next subscription with work; `None` at the end.
    async fn next(&self) -> Option<Arc<Subscription>> {
        loop {
            {
                let mut round = self.round();
                if round.closed {
                    return None;
                }
                if let Some(subscription) = round.ready.pop_front() {
                    return Some(subscription);
                }
            }
            self.work.notified().await;
        }
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the task. It ends with the connection.
pub(super) fn start(client: Arc<Client>) {
    tokio::spawn(async move {
        while let Some(subscription) = client.delivery.next().await {
            match subscription.take_turn(&client).await {
                Ok(true) => subscription.schedule(),
                Ok(false) => {}
                // The connection has ended.
                Err(_) => return,
            }
            tokio::task::consume_budget().await;
        }
    });
}

/// A step that is being made. It ends when this is dropped.
struct Sending<'a> {
    subscription: &'a Subscription,
    client: &'a Arc<Client>,
    step: Step,
    /// Events of turns that were sent.
    turn_events: Vec<u64>,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        // What a gate's client was sent may be lost on its way.
        let may_lose = self.client.gate().is_some();
        let step = std::mem::take(&mut self.step);
        let mut cursor = self.subscription.cursor();
        cursor.arrive(step);
        if !self.turn_events.is_empty() {
            drop(cursor);
            // After the cursor has moved: a question that its client leaves meanwhile is offered either
            // here, or to those whose cursor has passed it. Before the step ends: no question follows what
            // others wait to answer.
            for number in std::mem::take(&mut self.turn_events) {
                self.subscription
                    .session
                    .offer_question_at(number, self.client);
            }
            cursor = self.subscription.cursor();
        }
        let (again, reached) = cursor.finish(may_lose);
        drop(cursor);
        for waiter in reached {
            // The receiver may have been dropped.
            let _ = waiter.send(Ok(()));
        }
        if again {
            self.subscription.schedule();
        }
    }
}

impl Subscription {
    /// Sends a batch at most, without a wait, and leaves the rest to the delivery task.
    pub(super) fn deliver_or_schedule(&self, client: &Arc<Client>) {
        // The task learns of the end of the connection, too.
        if !matches!(self.deliver(client), Ok(Delivered::All)) {
            self.schedule();
        }
    }

    /// Sends a batch, or prepares to; `true` if there may be more.
    ///
    /// # Errors
    ///
    /// When the connection has ended.
    async fn take_turn(&self, client: &Arc<Client>) -> acp_sdk::Result<bool> {
        self.begin_turn();
        match self.deliver(client)? {
            Delivered::All => return Ok(false),
            Delivered::More => {}
            Delivered::Full => {
                if let Some(peer) = client.peer() {
                    peer.room().await?;
                }
            }
            Delivered::Stored => return self.read_ahead(client).await,
        }
        Ok(true)
    }

    fn begin<'a>(&'a self, client: &'a Arc<Client>) -> Option<Sending<'a>> {
        let step = self.cursor().begin()?;
        Some(Sending {
            subscription: self,
            client,
            step,
            turn_events: Vec::new(),
        })
    }

    /// Sends the next batch of events, if it is in memory.
    fn deliver(&self, client: &Arc<Client>) -> acp_sdk::Result<Delivered> {
        let (Some(peer), Some(mut sending)) = (client.peer(), self.begin(client)) else {
            return Ok(Delivered::All);
        };
        if !peer.has_room()? {
            return Ok(Delivered::Full);
        }
        let step = &mut sending.step;
        let announcements = self.cursor().announce(step);
        if let Some(generation) = announcements.restarted
            && client.gate().is_some()
        {
            wire::send_restarted(peer, &self.session, generation)?;
        }
        if announcements.greet {
            wire::send_commands(peer, &self.session, self.encoding)?;
        }
        if step.after >= step.limit {
            return Ok(Delivered::All);
        }
        let log = self.session.log();
        let (batch, last) = match log.in_memory(step.after, &mut step.older) {
            InMemory::Batch(batch, last) => (batch, last),
            InMemory::Nothing => return Ok(Delivered::All),
            InMemory::NotKept => return Ok(Delivered::Stored),
        };
        let last = last.min(step.limit);
        if !self.send(client, peer, &batch, last, step, &mut sending.turn_events)? {
            return Ok(Delivered::Full);
        }
        Ok(match last < step.limit && log.has_committed(last + 1) {
            true => Delivered::More,
            false => Delivered::All,
        })
    }

    /// Sends the events up to `last` and moves `step`; `false` if the client takes no more.
    fn send(
        &self,
        client: &Arc<Client>,
        peer: &Peer,
        batch: &Batch,
        last: u64,
        step: &mut Step,
        turn_events: &mut Vec<u64>,
    ) -> acp_sdk::Result<bool> {
        // A gate's stream has a place for each event.
        let joins = matches!(self.encoding, wire::Encoding::V1)
            && client.core().coalesces_chunks
            && client.gate().is_none();
        let mut turn: Option<TurnEvents> = None;
        let mut next = (step.after + 1).max(batch.first());
        while next <= last
            && let Some(text) = batch.get(next)
        {
            let kind = EventKind::of(text);
            let Some(phase) = self.cursor().phase(step, next, kind) else {
                // What is sent next is elsewhere.
                return Ok(true);
            };
            let joined = match joins && kind.is_plain_update() {
                true => joining::join(batch, next, last),
                false => None,
            };
            let (text, number) = match &joined {
                Some((text, number)) => (text.as_str(), *number),
                None => (text, next),
            };
            if phase != wire::SendPhase::Known {
                if !turn.as_ref().is_some_and(|turn| turn.contains(number)) {
                    turn = self.session.state().queue.turn_at(number);
                }
                let place = wire::Place {
                    number,
                    prompt: turn.as_ref().map(TurnEvents::prompt),
                };
                let event = wire::Encoded {
                    place,
                    text,
                    kind,
                    phase,
                };
                if !peer.has_room()? {
                    return Ok(false);
                }
                let sent = wire::send_event(client, peer, self, event)?;
                self.sent.fetch_add(sent, Ordering::AcqRel);
            }
            if kind == EventKind::Turn && phase == wire::SendPhase::Live {
                turn_events.push(number);
            }
            step.after = number;
            next = number + 1;
        }
        step.after = last;
        Ok(true)
    }

    /// Reads what follows from the store; `true` if there may be something to send.
    ///
    /// # Errors
    ///
    /// When the connection has ended.
    async fn read_ahead(&self, client: &Arc<Client>) -> acp_sdk::Result<bool> {
        let (Some(mut sending), Some(peer)) = (self.begin(client), client.peer()) else {
            return Ok(false);
        };
        let step = &mut sending.step;
        self.cursor().reads();
        let next = self.session.log().next(step.after, &mut step.older).await;
        if next.is_ok() {
            self.cursor().has_read();
        }
        match next {
            Ok(Next::Batch(..)) => Ok(true),
            Ok(Next::Nothing) => Ok(false),
            Ok(Next::Gap(last)) => {
                peer.room().await?;
                if !self.cursor().goes_on(step) {
                    return Ok(true);
                }
                wire::send_gap(client, peer, &self.session, last, self.encoding)?;
                // A question outlives its event.
                let open = self.session.open_questions().into_iter();
                let lost = open.map(|question| question.id.0).filter(|id| *id <= last);
                sending.turn_events.extend(lost);
                step.after = last;
                Ok(true)
            }
            Err(error) => {
                if error.kind() == StoreErrorKind::Unavailable {
                    self.schedule_later();
                }
                for (_, waiter) in self.cursor().take_waiting() {
                    let _ = waiter.send(Err(error.clone()));
                }
                Ok(false)
            }
        }
    }
}
