//! A subscriber inside the program.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::Session;
use crate::Result;
use crate::event::{Batch, Event};
use crate::log::{Listener, Next};

/// Receives the events of a session: first those that there are, then each as it is committed.
pub struct Events {
    session: Session,
    after: u64,
    /// A batch, and the last event of it that may be shown.
    batch: Option<(Arc<Batch>, u64)>,
    older: VecDeque<Arc<Batch>>,
    signal: Arc<Signal>,
}

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "received one at a time")]
pub enum Received {
    /// The next event.
    Event(Event),
    /// The events up to this number are no longer kept.
    Gap(u64),
}

/// What a subscriber receives, not read yet.
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub enum ReceivedText {
    /// The number of the next event, and a batch that contains it.
    Event(u64, Arc<Batch>),
    /// As [`Received::Gap`].
    Gap(u64),
}

#[derive(Default)]
struct Signal(Notify);

impl Listener for Signal {
    fn committed(&self) {
        // Stored if nobody waits: there is one subscriber.
        self.0.notify_one();
    }
}

impl Events {
    pub(super) fn new(session: Session, after: u64) -> Self {
        let signal = Arc::new(Signal::default());
        let listener = Arc::downgrade(&signal);
        session.log().subscribe(listener);
        Self {
            session,
            after,
            batch: None,
            older: VecDeque::new(),
            signal,
        }
    }

    /// Waits for the next event. Can be dropped and called again without loss.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store) when older events cannot be read. The next call tries again.
    pub async fn next(&mut self) -> Result<Received> {
        loop {
            if let Some(received) = self.next_now().await? {
                return Ok(received);
            }
            self.changed().await;
        }
    }

    /// Waits until events may have been committed, or could not be.
    pub async fn changed(&self) {
        self.signal.0.notified().await;
    }

    /// Returns the number of the session's last event.
    pub(super) fn last(&self) -> u64 {
        self.session.log().last()
    }

    /// Returns the next event, or `None` if there is none yet.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn next_now(&mut self) -> Result<Option<Received>> {
        let received = self.next_text_now().await?;
        Ok(received.map(|received| match received {
            ReceivedText::Event(number, batch) => {
                let event = batch.event(number);
                Received::Event(event.unwrap_or_else(|| Event::parse(number, "")))
            }
            ReceivedText::Gap(last) => Received::Gap(last),
        }))
    }

    /// As [`next_now`](Self::next_now), for those that want the text.
    pub async fn next_text_now(&mut self) -> Result<Option<ReceivedText>> {
        loop {
            let number = self.after + 1;
            if let Some((batch, last)) = &self.batch
                && number <= *last
                && batch.get(number).is_some()
            {
                self.after = number;
                return Ok(Some(ReceivedText::Event(number, batch.clone())));
            }
            let next = self.session.log().next(self.after, &mut self.older).await;
            match next? {
                Next::Batch(batch, last) => self.batch = Some((batch, last)),
                Next::Nothing => return Ok(None),
                Next::Gap(last) => {
                    self.after = last;
                    return Ok(Some(ReceivedText::Gap(last)));
                }
            }
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("session", &self.session)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
