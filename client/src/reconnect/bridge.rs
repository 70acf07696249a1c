//! Forwards messages between a connection of `acp-sdk` and successive connections to an agent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use acp_sdk::{ChannelTransport, MessageTransport as _, channel};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::resume::{Outgoing, Resume};
use super::{Closed, ConnectionState, Connector, LinkReceiver as _, LinkSender, Received};
use crate::error::{Error, Result};

/// Capacity in bytes between the two connections, in each direction.
const WAITING_BYTES: usize = 256 << 10;

/// The task that forwards messages between `acp-sdk` and the agent.
#[derive(Debug)]
pub struct Bridge {
    task: JoinHandle<()>,
    /// Cancelled when the client has closed the connection; disables reconnecting.
    closing: CancellationToken,
    done: CancellationToken,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Bridge {
    /// Connects and returns the transport for `acp-sdk`.
    ///
    /// # Errors
    ///
    /// Fails when the first connection cannot be opened.
    pub async fn open<C: Connector>(
        mut connector: C,
        state: watch::Sender<ConnectionState>,
    ) -> Result<(Self, ChannelTransport)> {
        let (sender, receiver) = connector.open().await?;
        let (near, client) = channel(WAITING_BYTES);
        let failure = Arc::default();
        let closing = CancellationToken::new();
        let settings = connector.reconnect().unwrap_or_default();
        let task = Task {
            backoff: Backoff::new(settings),
            connector,
            state,
            client,
            sender: Some(sender),
            broken: None,
            trouble: receiver.trouble(),
            receiver,
            resume: Resume::new(settings.continue_timeout),
            out: Outgoing::default(),
            is_open: true,
            closing: closing.clone(),
            failure: Arc::clone(&failure),
        };
        let done = CancellationToken::new();
        let guard = done.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _guard = guard;
            task.run().await;
        });
        let bridge = Self {
            task,
            closing,
            done,
            failure,
        };
        Ok((bridge, near))
    }

    /// Returns the error with which the connection has ended; `None` while it is open.
    pub fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Disables reconnecting from now on.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until all messages are sent and the agent is notified of the end.
    pub async fn closed(&self) {
        self.close();
        self.done.cancelled().await;
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) struct Task<C: Connector> {
    pub(super) connector: C,
    state: watch::Sender<ConnectionState>,
    client: ChannelTransport,
    /// `None` once nothing more is sent on the current connection.
    pub(super) sender: Option<C::Sender>,
    /// One that sends nothing more, because the connection is lost. Dropping it would say that this side has
    /// closed the connection.
    broken: Option<C::Sender>,
    pub(super) receiver: C::Receiver,
    /// Why the agent cannot be reached on the current connection.
    pub(super) trouble: Option<watch::Receiver<Option<Error>>>,
    pub(super) resume: Resume,
    /// Messages that wait for capacity of either connection.
    pub(super) out: Outgoing,
    /// Whether the client may send more messages.
    is_open: bool,
    backoff: Backoff,
    pub(super) closing: CancellationToken,
    failure: Arc<Mutex<Option<Error>>>,
}

/// An event on the side of the client.
enum ClientEvent {
    Sent(Option<Bytes>),
    Delivered,
    Closed,
}

impl<C: Connector> Task<C> {
    async fn run(mut self) {
        while let Err(error) = self.exchange().await {
            if let Err(error) = self.reconnect(error).await {
                self.record_failure(error);
                break;
            }
        }
        drop((self.sender, self.broken));
        // Messages received before the end are delivered.
        while !self.out.to_client.is_empty() {
            let deliver = poll_client(&mut self.client, &mut self.out.to_client, false);
            if matches!(deliver.await, ClientEvent::Closed) {
                break;
            }
        }
        // The client is notified of the end before the agent's connection has shut down.
        drop(self.client);
        self.receiver.closed().await;
    }

    /// Forwards messages until one side has closed its connection.
    ///
    /// # Errors
    ///
    /// Fails when the connection to the agent has ended or must be replaced.
    async fn exchange(&mut self) -> Result<()> {
        while self.step().await? {}
        Ok(())
    }

    /// Forwards one message; `false` when one side has closed its connection. Loses nothing if the
    /// future is dropped.
    ///
    /// # Errors
    ///
    /// Fails when the connection to the agent has ended or must be replaced.
    pub(super) async fn step(&mut self) -> Result<bool> {
        if !self.is_open && self.out.to_agent.is_empty() && !self.resume.is_holding() {
            self.sender = None;
        }
        let accepts = self.out.to_agent.is_empty() && self.resume.has_room() && self.is_open;
        let delivers = !self.out.to_client.is_empty();
        let began = Instant::now();
        let expiry = self.resume.deadline();
        let next = self.out.to_agent.front();
        let polled = poll_client(&mut self.client, &mut self.out.to_client, accepts);
        tokio::select! {
            event = polled, if accepts || delivers => match event {
                ClientEvent::Sent(Some(message)) => self.resume.accept(message, &mut self.out),
                ClientEvent::Sent(None) => self.is_open = false,
                ClientEvent::Delivered => {}
                ClientEvent::Closed => {
                    self.is_open = false;
                    return Ok(false);
                }
            },
            sent = send(self.sender.as_ref(), next), if next.is_some() && self.sender.is_some() => {
                self.out.to_agent.pop_front();
                if sent.is_err() {
                    // The receiver returns the reason, after earlier messages.
                    self.broken = self.sender.take();
                }
            }
            received = self.receiver.receive(), if !delivers => match received? {
                Some(Received::Message(message)) => {
                    // A message proves that the network works. A process may answer and exit
                    // at once, so its waits are reset by `Backoff::next` after `max_wait`.
                    if !self.connector.is_restart() && !self.resume.is_opening() {
                        self.backoff.reset();
                    }
                    self.resume.received(message, &mut self.out);
                }
                Some(Received::Refused(refused)) => {
                    if let Err(error) = self.resume.refused(&refused, &mut self.out) {
                        self.receiver.abandon();
                        return Err(error);
                    }
                }
                None => return Ok(false),
            },
            state = reachability(self.trouble.as_mut()) => {
                self.state.send_replace(state);
            }
            () = sleep_until(expiry.unwrap_or(began)), if expiry.is_some() && !delivers => {
                self.resume.expire(&mut self.out);
            }
        }
        if delivers {
            // The agent is not to blame for a client that takes no messages.
            self.resume.extend_deadline(began.elapsed());
        }
        Ok(true)
    }

    /// Replaces a lost connection and continues the sessions.
    ///
    /// # Errors
    ///
    /// Fails when reconnecting is disabled, not possible, or exceeded its time limit.
    async fn reconnect(&mut self, error: Error) -> Result<()> {
        let Some(settings) = self.connector.reconnect() else {
            return Err(error);
        };
        let may = self.resume.is_initialized() && error.is_temporary();
        if !may || !self.is_open || self.closing.is_cancelled() {
            return Err(error);
        }
        self.state.send_replace(ConnectionState::Lost {
            reason: error.cause(),
        });
        let mut last = error;
        loop {
            (self.sender, self.broken, self.trouble) = (None, None, None);
            self.out.to_agent.clear();
            self.resume.lost(&last.cause(), &mut self.out);
            let Some(wait) = self.backoff.next(Duration::ZERO) else {
                return Err(self.connector.reconnect_timeout(settings.limit, &last));
            };
            if !self.deliver_for(wait).await {
                return Err(last);
            }
            match self.handshake().await {
                Ok(()) => break,
                Err(error) if error.is_temporary() && self.is_open => last = error,
                Err(error) => return Err(error),
            }
        }
        self.backoff.opened();
        self.state.send_replace(ConnectionState::Open);
        let is_restart = self.connector.is_restart();
        self.resume.continue_sessions(is_restart, &mut self.out);
        Ok(())
    }

    /// Waits while delivering messages to the client; `false` if it has closed its connection.
    async fn deliver_for(&mut self, wait: Duration) -> bool {
        let delivering = async {
            while !self.out.to_client.is_empty() {
                let deliver = poll_client(&mut self.client, &mut self.out.to_client, false);
                if matches!(deliver.await, ClientEvent::Closed) {
                    return;
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            () = delivering => false,
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(wait) => true,
        }
    }

    fn record_failure(&self, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }
}

/// Waits until it changes whether the agent can be reached, and returns the state then.
async fn reachability(trouble: Option<&mut watch::Receiver<Option<Error>>>) -> ConnectionState {
    if let Some(trouble) = trouble
        && trouble.changed().await.is_ok()
    {
        return match &*trouble.borrow_and_update() {
            Some(error) => ConnectionState::Lost {
                reason: error.cause(),
            },
            None => ConnectionState::Open,
        };
    }
    std::future::pending().await
}

/// Waits for a message of the client, or for capacity to deliver one to it.
async fn poll_client(
    client: &mut ChannelTransport,
    to_client: &mut VecDeque<Bytes>,
    accepts: bool,
) -> ClientEvent {
    poll_fn(|cx| {
        if !to_client.is_empty() {
            match Pin::new(&mut *client).poll_ready(cx) {
                Poll::Ready(Ok(())) => {
                    let message = to_client.pop_front();
                    let sent = message.map(|message| Pin::new(&mut *client).start_send(message));
                    return Poll::Ready(match sent {
                        Some(Err(_)) => ClientEvent::Closed,
                        _ => ClientEvent::Delivered,
                    });
                }
                Poll::Ready(Err(_)) => return Poll::Ready(ClientEvent::Closed),
                Poll::Pending => {}
            }
        }
        if accepts {
            return match Pin::new(&mut *client).poll_receive(cx) {
                Poll::Ready(Ok(message)) => Poll::Ready(ClientEvent::Sent(message)),
                Poll::Ready(Err(_)) => Poll::Ready(ClientEvent::Closed),
                Poll::Pending => Poll::Pending,
            };
        }
        Poll::Pending
    })
    .await
}

async fn send<S: LinkSender>(
    sender: Option<&S>,
    message: Option<&Bytes>,
) -> std::result::Result<(), Closed> {
    match (sender, message) {
        (Some(sender), Some(message)) => sender.send(message.clone()).await,
        _ => Ok(()),
    }
}
