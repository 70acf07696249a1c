//! Where a client is in the events of a session, and what holds it there. Without I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::wire::SendPhase;
use crate::event::{Batch, EventKind};
use crate::log::Pauses;
use crate::store::StoreError;

/// The prompts of a client that it is not sent although it asks for older events again.
const KEPT_KNOWN: usize = 256;

/// Names a barrier: the event that it follows changes when a commit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierId(u64);

/// Receives the result of waiting for an event.
pub(super) type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// What a replay sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// All events after this one, as they were sent.
    After(u64),
    /// The conversation from the beginning, as `session/load` requires.
    Load,
    /// The same, after the answer.
    AfterAnswer,
    /// What has happened in a session since this event, after which it was created or forked: after the
    /// answer, as it happened.
    Created(u64),
    /// Nothing.
    Nothing,
}

#[derive(Default)]
pub(super) struct Cursor {
    /// The last event that was sent, or skipped.
    delivered: u64,
    /// Events up to this one are a replay.
    replay_until: u64,
    /// The last event that was sent before the cursor was set back.
    live_from: u64,
    /// Whether the replay leaves out what the response to `session/load` contains.
    is_load: bool,
    /// The client knows these events, for it sent what is in them.
    known: VecDeque<(u64, u64)>,
    /// Events up to this one are sent although the client knows them: it has asked for a replay.
    repeat_until: u64,
    /// Nothing after these events is sent until a response has been sent. The first is the lowest.
    barriers: VecDeque<(u64, BarrierId)>,
    last_barrier: u64,
    /// The client must be sent the commands.
    greet: bool,
    waiting: Vec<(u64, Waiter)>,
    /// What was read ahead from the store.
    older: VecDeque<Arc<Batch>>,
    /// Counts [`seek`](Self::seek)s.
    generation: u64,
    /// The latest one that the client's gate knows.
    announced: u64,
    /// Nothing is sent for now.
    pub(super) held: bool,
    ended: bool,
    /// Somebody has the right to send. Others leave to them what is new.
    stepping: Option<Stepping>,
    /// Something is new since then.
    again: bool,
    /// The pauses before what could not be read is read again.
    pauses: Pauses,
    /// Whether there is a pause.
    pausing: bool,
    /// Requests to join the session that have not ended.
    pub(super) joining: usize,
    /// Whether one has succeeded.
    pub(super) joined: bool,
}

/// How far the step is that somebody makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stepping {
    /// Events are read from the store.
    Reads,
    /// Events are sent that follow the cursor as it was at this [`seek`](Cursor::seek). One more may be sent
    /// although the cursor has moved.
    Sends(u64),
}

/// The right to send what follows the cursor. One exists at a time.
#[derive(Default)]
pub(super) struct Step {
    /// The last event that was sent.
    pub(super) after: u64,
    /// The last event that may be sent.
    pub(super) limit: u64,
    pub(super) older: VecDeque<Arc<Batch>>,
    generation: u64,
}

/// What a client must be sent before the events.
pub(super) struct Announcements {
    /// The generation that its gate does not know.
    pub(super) restarted: Option<u64>,
    /// The commands of the session.
    pub(super) greet: bool,
}

impl Cursor {
    /// A cursor at the last event that is committed: later ones are new to the client.
    pub(super) fn new(last: u64, held: bool) -> Self {
        Self {
            delivered: last,
            replay_until: last,
            live_from: last,
            held,
            ..Self::default()
        }
    }

    /// Moves the cursor: what is being sent counts no more. The only way besides sending and a
    /// failed commit.
    fn seek(&mut self, to: u64) {
        self.generation += 1;
        self.live_from = self.live_from.max(self.delivered);
        self.delivered = to;
        self.older.clear();
    }

    /// Sets the cursor back for a replay of a session whose last event is `last`, and
    /// [holds](Self::hold_after) what follows the replay.
    pub(super) fn restart(&mut self, replay: Replay, last: u64, greet: bool) -> BarrierId {
        let after = match replay {
            Replay::After(after) | Replay::Created(after) => Some(after.min(last)),
            Replay::Load | Replay::AfterAnswer => Some(0),
            // A client that is attached must still be sent what it has not been sent yet.
            Replay::Nothing => None,
        };
        if let Some(after) = after {
            self.seek(after);
            self.replay_until = match replay {
                Replay::Created(_) => 0,
                _ => last,
            };
            self.is_load = matches!(replay, Replay::Load | Replay::AfterAnswer);
            self.repeat_until = last;
        }
        self.greet = greet;
        let held = match replay {
            Replay::AfterAnswer | Replay::Created(_) => 0,
            Replay::Nothing => self.delivered,
            _ => last,
        };
        self.hold_after(held)
    }

    /// Sets the cursor to an event, the last that has surely arrived. Returns the generation.
    pub(super) fn send_again(&mut self, after: u64) -> u64 {
        self.is_load &= self.delivered < self.replay_until;
        self.seek(after);
        self.replay_until = self.replay_until.max(self.live_from);
        self.generation
    }

    /// Ends a replay where it is: the cursor moves to where it was before. What follows happens now;
    /// a client that has not joined in another way has not been sent what is before, so it is sent
    /// nothing until the barrier is lifted.
    pub(super) fn skip_replay(&mut self) -> Option<BarrierId> {
        self.seek(self.delivered.max(self.live_from));
        self.replay_until = self.replay_until.min(self.delivered);
        self.repeat_until = self.repeat_until.min(self.delivered);
        (!self.joined).then(|| self.hold_after(self.delivered))
    }

    /// Events after `last` could not be committed.
    pub(super) fn rolled_back(&mut self, last: u64) {
        if self.delivered > last {
            // A client has named a later event than it can have been sent.
            self.seek(last);
        }
        self.live_from = self.live_from.min(last);
        // Only a replay can end behind what is committed.
        self.replay_until = self.replay_until.min(last);
        self.repeat_until = self.repeat_until.min(last);
        // What gets the numbers now follows the response, too.
        for (number, _) in &mut self.barriers {
            *number = (*number).min(last);
        }
        self.known.retain(|(first, _)| *first <= last);
        for (number, _) in &mut self.waiting {
            *number = (*number).min(last);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Nothing more is sent, besides an event that is [being sent](Self::is_overtaken). Returns who waits and
    /// need not wait for that.
    pub(super) fn end(&mut self) -> Vec<(u64, Waiter)> {
        self.ended = true;
        match self.is_overtaken() {
            true => Vec::new(),
            false => self.take_waiting(),
        }
    }

    /// Returns whether an event may be on its way to the client although the cursor has ended or is elsewhere
    /// meanwhile: whatever the client is answered because of that must follow the event.
    fn is_overtaken(&self) -> bool {
        matches!(self.stepping, Some(Stepping::Sends(generation)) if self.ended || generation != self.generation)
    }

    pub(super) fn take_waiting(&mut self) -> Vec<(u64, Waiter)> {
        std::mem::take(&mut self.waiting)
    }

    /// The store was unavailable. Returns the time before the next attempt, unless another failure has
    /// it already.
    pub(super) fn begin_pause(&mut self) -> Option<Duration> {
        let pausing = std::mem::replace(&mut self.pausing, true);
        (!pausing).then(|| self.pauses.next())
    }

    pub(super) fn end_pause(&mut self) {
        self.pausing = false;
    }

    /// The store was available.
    pub(super) fn has_read(&mut self) {
        self.pauses = Pauses::default();
    }

    pub(super) fn knows(&mut self, first: u64, last: u64) {
        self.known.push_back((first, last));
    }

    /// Nothing after the event is sent until the barrier is [lifted](Self::lift).
    pub(super) fn hold_after(&mut self, number: u64) -> BarrierId {
        self.last_barrier += 1;
        let id = BarrierId(self.last_barrier);
        let at = self.barriers.partition_point(|(held, _)| *held <= number);
        self.barriers.insert(at, (number, id));
        id
    }

    /// Returns the event after which a barrier holds; 0 once it is lifted.
    pub(super) fn held_after(&self, barrier: BarrierId) -> u64 {
        let mut barriers = self.barriers.iter();
        let found = barriers.find(|(_, id)| *id == barrier);
        found.map_or(0, |(number, _)| *number)
    }

    pub(super) fn lift(&mut self, barrier: BarrierId) {
        self.barriers.retain(|(_, id)| *id != barrier);
    }

    /// Returns the last event that may be sent.
    fn limit(&self) -> u64 {
        self.barriers
            .front()
            .map_or(u64::MAX, |(number, _)| *number)
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn replay_until(&self) -> u64 {
        self.replay_until
    }

    /// Returns whether the client was sent an event, or never will be, and what follows is not
    /// [overtaken](Self::is_overtaken).
    pub(super) fn has_reached(&self, number: u64) -> bool {
        (self.ended || self.delivered >= number) && !self.is_overtaken()
    }

    /// Returns whether everything up to an event was sent, and nobody waits for anything.
    pub(super) fn is_settled(&self, last: u64) -> bool {
        let is_busy = self.stepping.is_some() || self.joining > 0 || !self.barriers.is_empty();
        self.joined && !is_busy && self.delivered >= last && self.waiting.is_empty()
    }

    /// Waits until the client was sent an event.
    pub(super) fn wait(&mut self, number: u64, waiter: Waiter) {
        self.waiting.push((number, waiter));
    }

    /// Begins to send; `None` if nothing may be sent, or somebody sends already: what is new is
    /// then left to them.
    pub(super) fn begin(&mut self) -> Option<Step> {
        if self.ended || self.held {
            return None;
        }
        if self.stepping.is_some() {
            self.again = true;
            return None;
        }
        (self.stepping, self.again) = (Some(Stepping::Sends(self.generation)), false);
        Some(Step {
            after: self.delivered,
            limit: self.limit(),
            older: std::mem::take(&mut self.older),
            generation: self.generation,
        })
    }

    /// A step reads from the store, which takes a while, and [goes on](Self::goes_on) afterwards.
    pub(super) fn reads(&mut self) {
        self.stepping = Some(Stepping::Reads);
    }

    /// A step may send after it has read; `false` if the cursor was moved or has ended meanwhile.
    pub(super) fn goes_on(&mut self, step: &Step) -> bool {
        let is_current = self.is_current(step);
        if is_current {
            self.stepping = Some(Stepping::Sends(self.generation));
        }
        is_current
    }

    /// Returns whether the cursor has neither been moved nor ended since a step began.
    fn is_current(&self, step: &Step) -> bool {
        !self.ended && self.generation == step.generation
    }

    /// Returns what must be sent before the events of a step. It counts as sent.
    pub(super) fn announce(&mut self, step: &Step) -> Announcements {
        let unknown = self.announced < step.generation;
        self.announced = step.generation;
        let replayed = step.after >= self.replay_until;
        let greet = self.greet && replayed && step.limit > step.after;
        self.greet &= !greet;
        Announcements {
            restarted: unknown.then_some(step.generation),
            greet,
        }
    }

    /// What a step had to send is sent: the cursor moves to its `after`, unless it is elsewhere meanwhile.
    pub(super) fn arrive(&mut self, step: Step) {
        if self.generation != step.generation {
            self.again = true;
            return;
        }
        self.older = step.older;
        self.delivered = self.delivered.max(step.after);
    }

    /// Ends a step that has [arrived](Self::arrive). Returns whether something is new since it began, or the
    /// cursor is elsewhere, and who waited for what was sent. `may_lose`: what was sent may be sent again.
    pub(super) fn finish(&mut self, may_lose: bool) -> (bool, Vec<Waiter>) {
        self.stepping = None;
        let delivered = self.delivered;
        let keep = if may_lose { KEPT_KNOWN } else { 0 };
        while self.known.len() > keep
            && self
                .known
                .front()
                .is_some_and(|(_, last)| *last <= delivered)
        {
            self.known.pop_front();
        }
        let mut reached = Vec::new();
        let mut at = 0;
        while at < self.waiting.len() {
            if self.has_reached(self.waiting[at].0) {
                reached.push(self.waiting.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
        (self.again, reached)
    }

    /// Returns how an event of a step is sent; `None` if the cursor was moved or has ended meanwhile, or
    /// a barrier is before the event. Only events of the user can be known.
    pub(super) fn phase(&self, step: &Step, number: u64, kind: EventKind) -> Option<SendPhase> {
        if !self.is_current(step) || number > self.limit() {
            return None;
        }
        if kind.is_plain_update() {
            return Some(SendPhase::Live);
        }
        let mut known = self.known.iter();
        if number > self.repeat_until
            && known.any(|(first, last)| (*first..=*last).contains(&number))
        {
            return Some(SendPhase::Known);
        }
        Some(match number <= self.replay_until {
            true if self.is_load => SendPhase::Loaded,
            true => SendPhase::Replayed,
            false => SendPhase::Live,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(cursor: &Cursor, step: &Step, number: u64) -> Option<SendPhase> {
        cursor.phase(step, number, EventKind::AgentMessage)
    }

    /// The client may be answered that it has left while others are sending.
    #[test]
    fn nothing_more_of_a_step_is_sent_after_the_end() {
        let mut cursor = Cursor::new(0, false);
        let step = cursor.begin().unwrap();
        assert_eq!(phase(&cursor, &step, 1), Some(SendPhase::Live));
        let _ = cursor.end();
        assert_eq!(phase(&cursor, &step, 2), None);
    }

    /// Whoever leaves or joins again is answered after an event that others are sending meanwhile.
    #[test]
    fn a_step_that_is_overtaken_is_waited_for() {
        let ends: [fn(&mut Cursor); 2] = [
            |cursor| {
                cursor.end();
            },
            |cursor| {
                cursor.restart(Replay::After(0), 9, false);
            },
        ];
        for end in ends {
            let mut cursor = Cursor::new(0, false);
            let step = cursor.begin().unwrap();
            assert!(cursor.has_reached(0));
            end(&mut cursor);
            assert!(!cursor.has_reached(0));
            let (waiter, mut waiting) = oneshot::channel();
            cursor.wait(0, waiter);
            cursor.arrive(step);
            assert!(waiting.try_recv().is_err());
            let (_, reached) = cursor.finish(false);
            assert_eq!(reached.len(), 1);
            assert!(cursor.has_reached(0));
        }
    }

    /// Reading takes a while, and sends nothing.
    #[test]
    fn a_step_that_reads_is_not_waited_for_and_sends_nothing_after_the_end() {
        let mut cursor = Cursor::new(0, false);
        let step = cursor.begin().unwrap();
        cursor.reads();
        let _ = cursor.end();
        assert!(cursor.has_reached(0));
        assert!(!cursor.goes_on(&step));
        assert!(cursor.has_reached(0));
    }

    /// The step has begun with the barrier where it was before the failure.
    #[test]
    fn a_step_stops_at_a_barrier_that_a_failure_has_moved() {
        let mut cursor = Cursor::new(0, false);
        let barrier = cursor.restart(Replay::After(0), 9, false);
        let step = cursor.begin().unwrap();
        assert_eq!(step.limit, 9);
        cursor.rolled_back(3);
        assert_eq!(cursor.held_after(barrier), 3);
        assert_eq!(phase(&cursor, &step, 3), Some(SendPhase::Live));
        assert_eq!(phase(&cursor, &step, 4), None);
        cursor.lift(barrier);
        assert_eq!(phase(&cursor, &step, 4), Some(SendPhase::Live));
    }

    /// A client may claim to have later events than there are.
    #[test]
    fn a_cursor_behind_the_last_event_moves_with_a_failure() {
        let mut cursor = Cursor::new(2, false);
        let barrier = cursor.restart(Replay::After(100), 9, false);
        assert_eq!(cursor.delivered(), 9);
        cursor.rolled_back(5);
        assert_eq!((cursor.delivered(), cursor.replay_until()), (5, 5));
        cursor.lift(barrier);
    }
}
