//! A queue of messages that is bounded in bytes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// An entry of a queue that counts against its limit in bytes.
pub(crate) trait Weight {
    fn weight(&self) -> usize;
}

impl Weight for bytes::Bytes {
    fn weight(&self) -> usize {
        self.len()
    }
}

/// Creates a queue of `max_bytes`. A larger message fits when the queue is empty.
pub(crate) fn queue<T: Weight>(max_bytes: usize) -> (Sender<T>, Receiver<T>) {
    let max = u32::try_from(max_bytes).unwrap_or(u32::MAX);
    let room = Arc::new(Semaphore::new(max as usize));
    // Bounded by the semaphore: each entry holds its permits.
    let (entries, received) = mpsc::unbounded_channel();
    let sender = Sender { room, max, entries };
    (sender, Receiver(received))
}

#[derive(Debug)]
pub(crate) struct Sender<T> {
    room: Arc<Semaphore>,
    max: u32,
    entries: mpsc::UnboundedSender<(T, OwnedSemaphorePermit)>,
}

#[derive(Debug)]
pub(crate) struct Receiver<T>(mpsc::UnboundedReceiver<(T, OwnedSemaphorePermit)>);

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            room: self.room.clone(),
            max: self.max,
            entries: self.entries.clone(),
        }
    }
}

impl<T: Weight> Sender<T> {
    /// Waits for capacity and adds a message; `false` when the receiver was dropped. Adds nothing
    /// if the future is dropped.
    pub(crate) async fn send(&self, message: T) -> bool {
        let weight = u32::try_from(message.weight().max(1)).unwrap_or(u32::MAX);
        let room = self.room.clone();
        let waiting = room.acquire_many_owned(weight.min(self.max));
        let permit = tokio::select! {
            permit = waiting => permit,
            () = self.entries.closed() => return false,
        };
        let Ok(permit) = permit else { return false };
        self.entries.send((message, permit)).is_ok()
    }
}

impl<T> Receiver<T> {
    /// Returns the next message; `None` when there are no senders left. Loses nothing if the
    /// future is dropped.
    pub(crate) async fn receive(&mut self) -> Option<T> {
        self.0.recv().await.map(|(message, _)| message)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn a_sender_waits_for_bytes_and_not_for_messages() {
        let (sender, mut receiver) = queue::<Bytes>(4);
        assert!(sender.send(Bytes::from_static(b"abc")).await);
        let mut second = Box::pin(sender.send(Bytes::from_static(b"de")));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(receiver.receive().await.unwrap(), "abc");
        assert!(second.await);
        assert_eq!(receiver.receive().await.unwrap(), "de");
        assert!(
            sender
                .send(Bytes::from_static(b"larger than the queue"))
                .await
        );
        let waiting = sender.send(Bytes::from_static(b"x"));
        let (sent, ()) = tokio::join!(waiting, async { drop(receiver) });
        assert!(!sent);
    }
}
