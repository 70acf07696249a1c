//! Whose turn it is: the prompts of one session, one after the other in the order of arrival.
//!
//! A session is idle, running or cancelling. The first prompt in line has the turn; a
//! bounded number may wait behind it. A cancellation is for all prompts that have arrived:
//! it never touches one that comes later, and in an idle session it does nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// Prompts that may wait while another one has the turn.
const MAX_WAITING: usize = 16;

/// Bytes of the prompts in line, above which no further one may wait.
const MAX_BYTES: usize = 64 << 20;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// No prompt has the turn.
    Idle,
    /// A prompt has the turn.
    Running,
    /// The prompt that has the turn has been cancelled and is not answered yet.
    Cancelling,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    line: Mutex<Line>,
    /// Told when the line becomes empty.
    idle: Notify,
}

#[derive(Debug, Default)]
struct Line {
    entered: u64,
    /// The first has the turn.
    prompts: VecDeque<Prompt>,
    closed: bool,
}

#[derive(Debug)]
struct Prompt {
    number: u64,
    cancel: CancellationToken,
    bytes: usize,
    /// Told that it has the turn.
    begin: Option<oneshot::Sender<()>>,
}

/// Why a prompt may not stand in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Closed,
}

impl Queue {
    /// Stands in line with a prompt of about this size; the place is given up when it is
    /// dropped.
    pub(crate) fn enter(self: &Arc<Self>, bytes: usize) -> Result<Place, Refusal> {
        let mut line = self.line();
        if line.closed {
            return Err(Refusal::Closed);
        }
        let total = line
            .prompts
            .iter()
            .map(|prompt| prompt.bytes)
            .sum::<usize>()
            + bytes;
        let waits = !line.prompts.is_empty();
        if waits && (line.prompts.len() > MAX_WAITING || total > MAX_BYTES) {
            return Err(Refusal::Full);
        }
        line.entered += 1;
        let cancel = CancellationToken::new();
        let (begin, began) = oneshot::channel();
        let mut prompt = Prompt {
            number: line.entered,
            cancel: cancel.clone(),
            bytes,
            begin: Some(begin),
        };
        if line.prompts.is_empty() {
            prompt.begin();
        }
        let number = prompt.number;
        line.prompts.push_back(prompt);
        Ok(Place {
            queue: self.clone(),
            number,
            cancel,
            began,
        })
    }

    /// Cancels every prompt in line.
    pub(crate) fn cancel(&self) {
        // Collected first: whoever wakes up may want the lock.
        let tokens: Vec<_> = self
            .line()
            .prompts
            .iter()
            .map(|p| p.cancel.clone())
            .collect();
        tokens.iter().for_each(CancellationToken::cancel);
    }

    /// Cancels every prompt in line, refuses further ones and waits until the line is empty.
    pub(crate) async fn close(&self) {
        self.line().closed = true;
        self.cancel();
        self.idle().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.line().closed
    }

    /// Waits until no prompt is in line.
    pub(crate) async fn idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            // Registered before the look, or the last prompt's end in between would be missed.
            idle.as_mut().enable();
            if self.line().prompts.is_empty() {
                return;
            }
            idle.await;
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.line().prompts.front() {
            None => Phase::Idle,
            Some(prompt) if prompt.cancel.is_cancelled() => Phase::Cancelling,
            Some(_) => Phase::Running,
        }
    }

    fn leave(&self, number: u64) {
        let mut line = self.line();
        line.prompts.retain(|prompt| prompt.number != number);
        match line.prompts.front_mut() {
            Some(first) => first.begin(),
            None => {
                drop(line);
                self.idle.notify_waiters();
            }
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Prompt {
    fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            // A prompt that has gone leaves the line by itself.
            let _ = begin.send(());
        }
    }
}

/// A prompt's place in line.
#[derive(Debug)]
pub(crate) struct Place {
    queue: Arc<Queue>,
    number: u64,
    /// Cancelled with the prompt.
    pub(crate) cancel: CancellationToken,
    began: oneshot::Receiver<()>,
}

impl Place {
    /// Waits until this prompt has the turn.
    pub(crate) async fn turn(&mut self) {
        // The sender is kept in the line as long as this place is.
        let _ = (&mut self.began).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn has_turn(place: &mut Place) -> bool {
        tokio::select! {
            biased;
            () = place.turn() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_first_in_line_has_the_turn() {
        let queue = Arc::new(Queue::default());
        let mut first = queue.enter(1).unwrap();
        let (mut second, mut third) = (queue.enter(1).unwrap(), queue.enter(1).unwrap());
        assert!(has_turn(&mut first).await);
        assert!(!has_turn(&mut second).await);
        drop(first);
        assert!(has_turn(&mut second).await);
        assert!(!has_turn(&mut third).await);
        // One that gives up while it waits is skipped.
        let mut fourth = queue.enter(1).unwrap();
        drop(third);
        drop(second);
        assert!(has_turn(&mut fourth).await);
    }

    #[tokio::test]
    async fn a_cancellation_is_for_those_that_have_come() {
        let queue = Arc::new(Queue::default());
        queue.cancel();
        assert_eq!(queue.phase(), Phase::Idle);
        let (first, second) = (queue.enter(1).unwrap(), queue.enter(1).unwrap());
        assert_eq!(queue.phase(), Phase::Running);
        queue.cancel();
        assert_eq!(queue.phase(), Phase::Cancelling);
        let third = queue.enter(1).unwrap();
        assert!(first.cancel.is_cancelled() && second.cancel.is_cancelled());
        assert!(!third.cancel.is_cancelled());
        drop((first, second));
        assert_eq!(queue.phase(), Phase::Running);
    }

    #[tokio::test]
    async fn the_line_is_bounded() {
        let queue = Arc::new(Queue::default());
        let mut places: Vec<_> = (0..=MAX_WAITING).map(|_| queue.enter(1).unwrap()).collect();
        assert_eq!(queue.enter(1).unwrap_err(), Refusal::Full);
        places.pop();
        assert_eq!(queue.enter(MAX_BYTES).unwrap_err(), Refusal::Full);
        queue.enter(1).unwrap();
        // Whoever has nothing before it may be as large as a message can be.
        drop(places);
        queue.enter(MAX_BYTES + 1).unwrap();
    }

    #[tokio::test]
    async fn closing_waits_for_the_last_prompt() {
        let queue = Arc::new(Queue::default());
        let place = queue.enter(1).unwrap();
        let closing = tokio::spawn({
            let queue = queue.clone();
            async move { queue.close().await }
        });
        place.cancel.cancelled().await;
        assert!(!closing.is_finished());
        assert_eq!(queue.enter(1).unwrap_err(), Refusal::Closed);
        drop(place);
        closing.await.unwrap();
    }
}
