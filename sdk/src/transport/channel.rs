//! A transport of messages in memory, bounded in bytes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::message::{MessageTransport, Transport};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Creates the two ends of a transport in memory. Messages are passed without being copied.
///
/// Each direction holds `max_bytes` bytes, and one message more: a sender waits while that much
/// has not been received.
#[must_use]
pub fn channel(max_bytes: usize) -> (ChannelTransport, ChannelTransport) {
    let (there, back) = (Direction::new(max_bytes), Direction::new(max_bytes));
    let end = |incoming: &Arc<Direction>, outgoing: &Arc<Direction>| ChannelTransport {
        incoming: incoming.clone(),
        outgoing: outgoing.clone(),
    };
    (end(&back, &there), end(&there, &back))
}

/// One end of a [`channel`]. Dropping it closes both directions.
#[derive(Debug)]
pub struct ChannelTransport {
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
}

#[derive(Debug)]
struct Direction {
    queue: Mutex<Queue>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// Nothing more is sent.
    closed: bool,
    /// Nothing more is received.
    abandoned: bool,
    receiver: Option<Waker>,
    sender: Option<Waker>,
}

impl Direction {
    fn new(max_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::default(),
            max_bytes: max_bytes.max(1),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the direction from one side or both, and wakes the other without the lock.
    fn end(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        change(&mut queue);
        let wakers = [queue.receiver.take(), queue.sender.take()];
        drop(queue);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl MessageTransport for ChannelTransport {
    fn poll_receive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut queue = self.incoming.lock();
        let Some(message) = queue.messages.pop_front() else {
            if queue.closed {
                return Poll::Ready(Ok(None));
            }
            queue.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        queue.bytes -= message.len();
        let sender = queue.sender.take();
        drop(queue);
        if let Some(sender) = sender {
            sender.wake();
        }
        Poll::Ready(Ok(Some(message)))
    }

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = self.outgoing.lock();
        if queue.abandoned {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if queue.bytes < self.outgoing.max_bytes {
            return Poll::Ready(Ok(()));
        }
        queue.sender = Some(cx.waker().clone());
        Poll::Pending
    }

    fn start_send(self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        let mut queue = self.outgoing.lock();
        if queue.abandoned {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        queue.bytes += message.len();
        queue.messages.push_back(message);
        let receiver = queue.receiver.take();
        drop(queue);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A message is the peer's as soon as it is in the queue.
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.end(|queue| queue.closed = true);
        Poll::Ready(Ok(()))
    }
}

impl Drop for ChannelTransport {
    fn drop(&mut self) {
        self.outgoing.end(|queue| queue.closed = true);
        self.incoming.end(|queue| {
            queue.abandoned = true;
            (queue.messages, queue.bytes) = (VecDeque::new(), 0);
        });
    }
}

impl From<ChannelTransport> for Transport {
    fn from(transport: ChannelTransport) -> Self {
        Self::messages(transport)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn send(end: &mut ChannelTransport, text: &'static str) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *end).poll_ready(cx)).await?;
        Pin::new(end).start_send(Bytes::from_static(text.as_bytes()))
    }

    async fn receive(end: &mut ChannelTransport) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| Pin::new(&mut *end).poll_receive(cx)).await
    }

    fn is_full(end: &mut ChannelTransport) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(end).poll_ready(&mut cx).is_pending()
    }

    #[tokio::test]
    async fn a_direction_holds_its_bytes_and_one_message_more() {
        let (mut near, mut far) = channel(4);
        send(&mut near, "abc").await.unwrap();
        assert!(!is_full(&mut near));
        send(&mut near, "defgh").await.unwrap();
        assert!(is_full(&mut near));
        assert!(!is_full(&mut far), "the other direction is its own");
        assert_eq!(receive(&mut far).await.unwrap().unwrap(), "abc");
        assert!(is_full(&mut near), "five bytes are left");
        assert_eq!(receive(&mut far).await.unwrap().unwrap(), "defgh");
        assert!(!is_full(&mut near));
    }

    #[tokio::test]
    async fn what_was_sent_before_the_end_is_received() {
        let (mut near, mut far) = channel(100);
        send(&mut near, "last").await.unwrap();
        drop(near);
        assert_eq!(receive(&mut far).await.unwrap().unwrap(), "last");
        assert!(receive(&mut far).await.unwrap().is_none());
        let error = send(&mut far, "x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn a_waiting_sender_is_woken_by_the_receiver_and_by_its_end() {
        let (mut near, mut far) = channel(1);
        send(&mut near, "a").await.unwrap();
        let (sent, received) = tokio::join!(send(&mut near, "b"), receive(&mut far));
        assert!(sent.is_ok() && received.unwrap().is_some());
        let gone = async { drop(far) };
        let (sent, ()) = tokio::join!(send(&mut near, "c"), gone);
        assert!(sent.is_err());
    }
}
