//! Passes messages between the two sides of a proxy, in order.
//!
//! ```text
//! client -> read -> Order -> hooks -> Outbox -> write -> agent
//!        <- write <- Outbox <- hooks <- Order <- read <-
//! ```
//!
//! One task does all of it. It reads a side only while the outbox of the other one has room.

mod end;
mod handle;
mod order;
mod running;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_sdk::MessageTransport;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use memchr::memmem;
use tokio_util::sync::CancellationToken;

pub use self::end::End;
use self::order::Order;
use self::running::Finished;
use crate::hooks::{Hooks, Observer};
use crate::shared::{Gate, Shared};
use crate::side::Side;

/// Messages that are read of one side before the other has its turn.
const BATCH: usize = 64;

/// The buffer of a large message is freed after use.
const KEPT: usize = 1 << 20;

/// Says why a side has ended, which may take a moment.
pub(crate) type Explain = Box<dyn FnOnce(Option<io::Error>) -> BoxFuture<'static, String> + Send>;

pub(crate) struct Relay {
    name: Arc<str>,
    hooks: Hooks,
    observers: Vec<Observer>,
    hook_limit: Duration,
    ends: [Pin<Box<dyn MessageTransport>>; 2],
    /// What was read, and not yet handled.
    incoming: [Incoming; 2],
    shared: Arc<Shared>,
    /// What was taken from the outbox of each side, and not yet by the side.
    outgoing: [Bytes; 2],
    running: FuturesUnordered<BoxFuture<'static, Finished>>,
    last_hook: u64,
    /// Requests in hooks, by sender and id.
    hooked: [HashMap<Box<str>, Arc<Gate>>; 2],
    /// Requests of each side that were passed on, with their sessions, by id.
    passed: [HashMap<Box<str>, Box<str>>; 2],
    order: [Order; 2],
    /// The id of the client's `initialize`, as JSON.
    initialize: Option<Box<str>>,
    version: Option<u16>,
    has_unflushed: [bool; 2],
    is_ended: [bool; 2],
    /// What has happened while the rest of a side was passed on.
    missed: Option<Event>,
    explain: Option<Explain>,
    client_ended: CancellationToken,
    stop: CancellationToken,
    /// Finds messages that may have an id.
    id: memmem::Finder<'static>,
}

/// What happens to a side.
#[derive(Debug)]
enum Event {
    /// It sends nothing more.
    Ended(Side),
    /// It cannot be read or written.
    Failed(Side, io::Error),
}

impl Relay {
    pub(crate) fn new(
        name: Arc<str>,
        (hooks, observers): (Hooks, Vec<Observer>),
        hook_limit: Duration,
        ends: [Pin<Box<dyn MessageTransport>>; 2],
    ) -> Self {
        Self {
            name,
            hooks,
            observers,
            hook_limit,
            ends,
            incoming: Default::default(),
            shared: Shared::new(),
            outgoing: Default::default(),
            running: FuturesUnordered::new(),
            last_hook: 0,
            hooked: Default::default(),
            passed: Default::default(),
            order: Default::default(),
            initialize: None,
            version: None,
            has_unflushed: [false; 2],
            is_ended: [false; 2],
            missed: None,
            explain: None,
            client_ended: CancellationToken::new(),
            stop: CancellationToken::new(),
            id: memmem::Finder::new(b"\"id\""),
        }
    }

    /// Sets what is said when the agent ends.
    pub(crate) fn explain(mut self, explain: Explain) -> Self {
        self.explain = Some(explain);
        self
    }

    /// Sets what is cancelled when the client has ended, while the agent may still send.
    pub(crate) fn client_ended(mut self, client_ended: CancellationToken) -> Self {
        self.client_ended = client_ended;
        self
    }

    /// Sets what ends the client's side when it is cancelled.
    pub(crate) fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Passes messages on in both directions; ready when something happens to a side.
    fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        self.shared.waker.register(cx.waker());
        for _ in 0..BATCH {
            let mut has_passed = self.run_hooks(cx);
            for side in Side::BOTH {
                match self.poll_write(side, cx) {
                    Ok(written) => has_passed |= written,
                    Err(error) => return Poll::Ready(Event::Failed(side, error)),
                }
            }
            for side in Side::BOTH {
                match self.poll_read(side, cx) {
                    Ok(read) => has_passed |= read,
                    Err(event) => {
                        self.is_ended[side.index()] = true;
                        return Poll::Ready(event);
                    }
                }
            }
            if !has_passed {
                for side in Side::BOTH {
                    let end = &mut self.ends[side.index()];
                    if self.has_unflushed[side.index()]
                        && let Poll::Ready(flushed) = end.as_mut().poll_flush(cx)
                    {
                        self.has_unflushed[side.index()] = false;
                        if let Err(error) = flushed {
                            return Poll::Ready(Event::Failed(side, error));
                        }
                    }
                }
                return Poll::Pending;
            }
        }
        // Other tasks have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn run_hooks(&mut self, cx: &mut Context<'_>) -> bool {
        if self.running.is_empty() {
            return false;
        }
        let mut has_passed = false;
        while let Poll::Ready(Some(finished)) = self.running.poll_next_unpin(cx) {
            self.finish(finished);
            has_passed = true;
        }
        for hook in self.shared.take_released() {
            self.release(hook);
            has_passed = true;
        }
        has_passed
    }

    /// Sends what is in the outbox of a side; returns whether the side has taken anything.
    fn poll_write(&mut self, to: Side, cx: &mut Context<'_>) -> io::Result<bool> {
        let outgoing = &mut self.outgoing[to.index()];
        if outgoing.is_empty() {
            *outgoing = self.shared.outbox(to).take();
        }
        let before = outgoing.len();
        if before > 0 {
            let end = self.ends[to.index()].as_mut();
            let _ = end.poll_send_lines(cx, outgoing)?;
        }
        let has_written = outgoing.len() < before;
        self.has_unflushed[to.index()] |= has_written;
        Ok(has_written)
    }

    fn poll_read(&mut self, from: Side, cx: &mut Context<'_>) -> Result<bool, Event> {
        let mut incoming = std::mem::take(&mut self.incoming[from.index()]);
        let read = self.receive(from, &mut incoming, cx);
        self.incoming[from.index()] = incoming;
        read
    }

    fn receive(
        &mut self,
        from: Side,
        incoming: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Result<bool, Event> {
        let mut has_read = false;
        for _ in 0..BATCH {
            let is_full =
                self.shared.outbox(from.other()).is_full() || self.order[from.index()].is_full();
            if self.is_ended[from.index()] || is_full {
                break;
            }
            if incoming.rest().is_empty() {
                let lines = incoming.cleared();
                match self.ends[from.index()]
                    .as_mut()
                    .poll_receive_lines(cx, lines)
                {
                    Poll::Ready(Ok(true)) => {}
                    Poll::Ready(Ok(false)) => return Err(Event::Ended(from)),
                    Poll::Ready(Err(error)) => return Err(Event::Failed(from, error)),
                    Poll::Pending => break,
                }
            }
            incoming.taken += self.take(from, incoming.rest());
            has_read = true;
            // A hook runs before its sender is read again.
            if !self.running.is_empty() {
                break;
            }
        }
        Ok(has_read)
    }
}

/// Messages that were read at once, each with a line feed.
#[derive(Debug, Default)]
struct Incoming {
    lines: Vec<u8>,
    /// The length of those that were handled.
    taken: usize,
}

impl Incoming {
    fn rest(&self) -> &[u8] {
        &self.lines[self.taken..]
    }

    /// Returns the empty buffer for the next messages.
    fn cleared(&mut self) -> &mut Vec<u8> {
        self.taken = 0;
        self.lines.clear();
        if self.lines.capacity() > KEPT {
            self.lines = Vec::new();
        }
        &mut self.lines
    }
}
