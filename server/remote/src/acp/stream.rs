//! One stream of server-sent events: what waits for its reader, and what may have been lost.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;

use super::position::Position;

/// A message in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) at: Position,
    pub(super) message: Bytes,
    /// The id of a request of the agent, as JSON.
    pub(super) request: Option<Box<str>>,
}

impl Item {
    fn is_event(&self) -> bool {
        self.at.part == 0
    }
}

/// A stream, whether or not a client reads it.
///
/// Events of the session are in its log, so they need not be kept here once they were written. The
/// requests and answers between them are kept, for a client that comes back with a cursor.
#[derive(Debug, Default)]
pub(super) struct Stream {
    queue: VecDeque<Item>,
    queued_bytes: usize,
    /// Those of requests and answers.
    waiting_bytes: usize,
    /// Requests and answers that were written, the oldest first.
    kept: VecDeque<Item>,
    kept_bytes: usize,
    /// Requests and answers that are sent again once the events before them were.
    again: VecDeque<Item>,
    again_bytes: usize,
    /// Of the last message that entered.
    position: Position,
    /// The last event that was written.
    written: u64,
    /// Counts readers. The latest is the only one.
    reader: u64,
    is_open: bool,
    /// Set while events are sent again.
    replay: Option<Replay>,
    waker: Option<Waker>,
}

impl Stream {
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the bytes of requests and answers that wait for the reader.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes + self.again_bytes
    }

    /// Returns the bytes that wait for the reader.
    pub(super) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Adds an event of the session.
    pub(super) fn push_event(&mut self, number: u64, message: Bytes) {
        if let Some(replay) = &mut self.replay
            && replay.awaited.is_some()
        {
            replay.until = replay.until.max(Position::of_event(number));
            return;
        }
        self.send_again(number.saturating_sub(1));
        self.position = Position::of_event(number);
        self.enqueue(Item {
            at: self.position,
            message,
            request: None,
        });
        self.send_again(number);
    }

    /// Adds a request or an answer.
    pub(super) fn push(&mut self, message: Bytes, request: Option<Box<str>>) {
        if let Some(replay) = &mut self.replay {
            // Its place is after the events that are sent again.
            replay.until.part += 1;
            let at = replay.until;
            self.again_bytes += message.len();
            self.again.push_back(Item {
                at,
                message,
                request,
            });
            return;
        }
        self.position.part += 1;
        self.enqueue(Item {
            at: self.position,
            message,
            request,
        });
    }

    /// The session's replay has begun anew.
    pub(super) fn restarted(&mut self, generation: u64) {
        if let Some(replay) = &mut self.replay
            && replay.awaited.is_some_and(|awaited| awaited <= generation)
        {
            replay.awaited = None;
            self.send_again(self.position.event);
        }
    }

    /// The client has answered a request.
    pub(super) fn answered(&mut self, request: &str) {
        let is_it = |item: &Item| item.request.as_deref() == Some(request);
        self.again.retain(|item| !is_it(item));
        self.again_bytes = bytes_of(&self.again);
        self.kept.retain(|item| !is_it(item));
        self.kept_bytes = bytes_of(&self.kept);
    }

    /// Opens the stream for a new reader, which replaces the one before. Returns the reader.
    ///
    /// With a cursor the messages after it are sent again; `restart` has the session's events sent
    /// again after a number, and returns which restart that is. Without one, the client gets what
    /// has not been written, and the requests that it has not answered.
    pub(super) fn open(
        &mut self,
        cursor: Option<Position>,
        restart: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        self.reader += 1;
        self.is_open = true;
        self.wake();
        let kept = std::mem::take(&mut self.kept);
        self.kept_bytes = 0;
        let again = std::mem::take(&mut self.again);
        let queue = std::mem::take(&mut self.queue);
        (self.queued_bytes, self.waiting_bytes, self.again_bytes) = (0, 0, 0);
        let Some(cursor) = cursor else {
            let requests = kept.into_iter().filter(|item| item.request.is_some());
            for item in requests.chain(again).chain(queue) {
                self.enqueue(item);
            }
            return self.reader;
        };
        let mut missed: Vec<_> = kept.into_iter().chain(again).chain(queue).collect();
        missed.retain(|item| item.at > cursor);
        missed.sort_by_key(|item| item.at);
        missed.dedup();
        let Some(generation) = restart(cursor.event) else {
            // No log to send events from: those that were not written are all there is.
            missed.into_iter().for_each(|item| self.enqueue(item));
            return self.reader;
        };
        let before = self.replay.take();
        let until = before.map_or(self.position, |before| before.until);
        self.position = cursor;
        let missed = missed.into_iter().filter(|item| !item.is_event());
        self.again = missed.collect();
        self.again_bytes = bytes_of(&self.again);
        self.send_again(cursor.event);
        self.replay = Some(Replay {
            awaited: Some(generation),
            until: until.max(self.position),
        });
        self.reader
    }

    /// Returns whether all events after a number are here.
    pub(super) fn has_after(&self, number: u64) -> bool {
        self.written <= number
    }

    /// A reader has gone.
    pub(super) fn close(&mut self, reader: u64) {
        if self.reader == reader {
            self.is_open = false;
            self.waker = None;
        }
    }

    /// Takes the next message for a reader; registers the waker if there is none.
    pub(super) fn take(&mut self, reader: u64, waker: &Waker, keep_bytes: usize) -> Taken {
        if self.reader != reader {
            return Taken::End;
        }
        let Some(item) = self.queue.pop_front() else {
            self.waker = Some(waker.clone());
            return Taken::Nothing;
        };
        self.queued_bytes -= item.message.len();
        if item.is_event() {
            self.written = item.at.event;
        } else {
            self.waiting_bytes -= item.message.len();
            self.kept_bytes += item.message.len();
            self.kept.push_back(item.clone());
            while self.kept_bytes > keep_bytes
                && let Some(oldest) = self.kept.pop_front()
            {
                self.kept_bytes -= oldest.message.len();
            }
        }
        Taken::Item(item)
    }

    /// Takes the answers that no reader was sent.
    pub(super) fn take_answers(&mut self) -> Vec<Bytes> {
        let all = self.queue.drain(..).chain(self.again.drain(..));
        let is_answer = |item: &Item| !item.is_event() && item.request.is_none();
        let answers = all.filter(is_answer).map(|item| item.message).collect();
        (self.queued_bytes, self.waiting_bytes, self.again_bytes) = (0, 0, 0);
        answers
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn enqueue(&mut self, item: Item) {
        self.queued_bytes += item.message.len();
        if !item.is_event() {
            self.waiting_bytes += item.message.len();
        }
        self.queue.push_back(item);
        self.wake();
    }

    /// Sends again what followed the events up to this one; at the end of the replay, the rest.
    fn send_again(&mut self, event: u64) {
        while self
            .again
            .front()
            .is_some_and(|item| item.at.event <= event)
            && let Some(item) = self.again.pop_front()
        {
            self.position = self.position.max(item.at);
            self.again_bytes -= item.message.len();
            self.enqueue(item);
        }
        let replay = self.replay.as_ref();
        if replay.is_some_and(|replay| replay.awaited.is_none() && replay.until.event <= event) {
            self.replay = None;
        }
    }
}

fn bytes_of(items: &VecDeque<Item>) -> usize {
    items.iter().map(|item| item.message.len()).sum()
}

/// Events that are sent again.
#[derive(Debug)]
struct Replay {
    /// The restart with which it begins. Events that come before are dropped.
    awaited: Option<u64>,
    /// Of the last message that came before.
    until: Position,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Item(Item),
    Nothing,
    /// Another reader has taken over, or the stream has ended.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(stream: &mut Stream, reader: u64) -> Vec<String> {
        let mut ids = Vec::new();
        while let Taken::Item(item) = stream.take(reader, Waker::noop(), 1 << 20) {
            ids.push(item.at.to_string());
        }
        ids
    }

    fn at(text: &str) -> Option<Position> {
        text.parse().ok()
    }

    #[test]
    fn events_have_their_number_and_what_follows_them_a_part() {
        let mut stream = Stream::default();
        stream.push_event(3, Bytes::from_static(b"a"));
        stream.push(Bytes::from_static(b"b"), None);
        stream.push(Bytes::from_static(b"c"), None);
        stream.push_event(7, Bytes::from_static(b"d"));
        let reader = stream.open(None, |_| None);
        assert_eq!(drain(&mut stream, reader), ["3", "3.1", "3.2", "7"]);
    }

    #[test]
    fn a_reader_that_comes_back_is_sent_what_it_missed_and_nothing_twice() {
        let mut stream = Stream::default();
        let first = stream.open(None, |_| None);
        for number in [1, 2, 3] {
            stream.push_event(number, Bytes::from_static(b"e"));
            stream.push(Bytes::from_static(b"answer"), None);
        }
        assert_eq!(
            drain(&mut stream, first),
            ["1", "1.1", "2", "2.1", "3", "3.1"]
        );
        // On its way when the client asks for the rest.
        stream.push_event(4, Bytes::from_static(b"e"));
        let second = stream.open(at("2"), |after| {
            assert_eq!(after, 2);
            Some(9)
        });
        stream.push_event(5, Bytes::from_static(b"on its way too"));
        stream.push(Bytes::from_static(b"answer"), None);
        stream.restarted(8);
        stream.push_event(6, Bytes::from_static(b"of an earlier restart"));
        stream.restarted(9);
        for number in [3, 4, 5, 6] {
            stream.push_event(number, Bytes::from_static(b"again"));
        }
        stream.push(Bytes::from_static(b"new"), None);
        assert_eq!(
            drain(&mut stream, second),
            ["2.1", "3", "3.1", "4", "5", "5.1", "6", "6.1"]
        );
        assert_eq!(
            stream.take(first, Waker::noop(), 0),
            Taken::End,
            "the first reader"
        );
    }

    #[test]
    fn an_answer_is_sent_again_although_no_event_follows_it() {
        let mut stream = Stream::default();
        stream.push_event(1, Bytes::from_static(b"e"));
        stream.push_event(2, Bytes::from_static(b"e"));
        stream.push(Bytes::from_static(b"answer"), None);
        let reader = stream.open(at("1"), |_| Some(1));
        stream.restarted(1);
        stream.push_event(2, Bytes::from_static(b"e"));
        assert_eq!(drain(&mut stream, reader), ["2", "2.1"]);
    }

    #[test]
    fn without_a_cursor_open_requests_are_sent_again() {
        let mut stream = Stream::default();
        let first = stream.open(None, |_| None);
        stream.push(Bytes::from_static(b"ask"), Some("1".into()));
        stream.push(Bytes::from_static(b"ask"), Some("2".into()));
        stream.push(Bytes::from_static(b"answer"), None);
        drain(&mut stream, first);
        stream.answered("1");
        stream.push_event(1, Bytes::from_static(b"e"));
        let second = stream.open(None, |_| None);
        assert_eq!(drain(&mut stream, second), ["0.2", "1"]);
    }

    #[test]
    fn what_waits_for_the_end_of_a_replay_counts() {
        let mut stream = Stream::default();
        let first = stream.open(None, |_| None);
        stream.push_event(1, Bytes::from_static(b"e"));
        stream.push(Bytes::from_static(b"0123456789"), Some("1".into()));
        drain(&mut stream, first);
        assert_eq!(stream.waiting_bytes(), 0);
        let second = stream.open(at("0"), |_| Some(1));
        assert_eq!(stream.waiting_bytes(), 10);
        stream.push(Bytes::from_static(b"01234"), Some("2".into()));
        assert_eq!(stream.waiting_bytes(), 15);
        stream.answered("1");
        assert_eq!(stream.waiting_bytes(), 5);
        stream.restarted(1);
        stream.push_event(1, Bytes::from_static(b"e"));
        assert_eq!(stream.waiting_bytes(), 5);
        assert_eq!(drain(&mut stream, second), ["1", "1.2"]);
        assert_eq!(stream.waiting_bytes(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut stream = Stream::default();
        let reader = stream.open(None, |_| None);
        for _ in 0..100 {
            stream.push(Bytes::from_static(b"0123456789"), None);
        }
        while let Taken::Item(_) = stream.take(reader, Waker::noop(), 25) {}
        assert_eq!((stream.kept.len(), stream.kept_bytes), (2, 20));
    }
}
