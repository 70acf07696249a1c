//! Between a connection of `acp-sdk` and the ones to an agent, one after the other.

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
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::resume::{Out, Resume};
use super::{Closed, ConnectionState, Connector, LinkReceiver as _, LinkSender, Received};
use crate::error::{Error, Result};

/// Bytes that wait between the two connections, in each direction.
const WAITING_BYTES: usize = 256 << 10;

/// The task that moves messages between `acp-sdk` and the agent.
#[derive(Debug)]
pub(crate) struct Bridge {
    task: JoinHandle<()>,
    /// The client has closed the connection: it is not opened again.
    closing: CancellationToken,
    done: CancellationToken,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Bridge {
    /// Connects, and returns the transport for `acp-sdk`.
    ///
    /// # Errors
    ///
    /// When the first connection cannot be opened.
    pub(crate) async fn open<C: Connector>(
        mut connector: C,
        state: watch::Sender<ConnectionState>,
    ) -> Result<(Self, ChannelTransport)> {
        let (sender, receiver) = connector.open().await?;
        let (near, far) = channel(WAITING_BYTES);
        let failure = Arc::default();
        let closing = CancellationToken::new();
        let task = Task {
            backoff: Backoff::new(connector.reconnect().unwrap_or_default()),
            connector,
            state,
            far,
            sender: Some(sender),
            receiver,
            resume: Resume::new(),
            out: Out::default(),
            held: None,
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

    /// Returns why the connection has ended, if it is not known to go on.
    pub(crate) fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, a connection that is lost is not opened again.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until everything was sent and the agent knows of the end.
    pub(crate) async fn closed(&self) {
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
    far: ChannelTransport,
    /// `None` once nothing more is sent on the present connection.
    pub(super) sender: Option<C::Sender>,
    pub(super) receiver: C::Receiver,
    pub(super) resume: Resume,
    /// Messages on their way, for which there was no room yet.
    pub(super) out: Out,
    /// A message of the client that waits for its session to be continued.
    held: Option<Bytes>,
    /// The client may send more.
    is_open: bool,
    backoff: Backoff,
    pub(super) closing: CancellationToken,
    failure: Arc<Mutex<Option<Error>>>,
}

/// What has happened on the side of the client.
enum Local {
    Sent(Option<Bytes>),
    Delivered,
    Gone,
}

impl<C: Connector> Task<C> {
    async fn run(mut self) {
        while let Err(error) = self.exchange().await {
            if let Err(error) = self.reconnect(error).await {
                self.failed(error);
                break;
            }
        }
        drop(self.sender);
        // What came before the end is the client's.
        while !self.out.to_client.is_empty() {
            let deliver = local(&mut self.far, &mut self.out.to_client, false);
            if matches!(deliver.await, Local::Gone) {
                break;
            }
        }
        // The client sees the end while the agent is still notified of it.
        drop(self.far);
        self.receiver.closed().await;
    }

    /// Moves messages until one side is gone.
    ///
    /// # Errors
    ///
    /// When it is the agent's.
    async fn exchange(&mut self) -> Result<()> {
        loop {
            self.release();
            let wants = self.out.to_agent.is_empty() && self.held.is_none() && self.is_open;
            let delivers = !self.out.to_client.is_empty();
            let next = self.out.to_agent.front();
            let local = local(&mut self.far, &mut self.out.to_client, wants);
            tokio::select! {
                local = local, if wants || delivers => match local {
                    Local::Sent(Some(message)) => self.held = Some(message),
                    Local::Sent(None) => self.is_open = false,
                    Local::Delivered => {}
                    Local::Gone => return Ok(()),
                },
                sent = send(self.sender.as_ref(), next), if next.is_some() && self.sender.is_some() => {
                    self.out.to_agent.pop_front();
                    if sent.is_err() {
                        // The receiver has the reason, after what came before.
                        self.sender = None;
                    }
                }
                received = self.receiver.receive(), if !delivers => match received? {
                    Some(Received::Message(message)) => {
                        self.backoff.received(self.connector.healthy_after());
                        self.resume.received(message, &mut self.out);
                    }
                    Some(Received::Refused(refused)) => self.resume.refused(&refused, &mut self.out),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Sends what the client has sent, unless a session is being continued.
    fn release(&mut self) {
        if self.resume.is_resuming() {
            return;
        }
        if let Some(message) = self.held.take() {
            let message = self.resume.sent(message);
            self.out.to_agent.extend(message);
        }
        if !self.is_open && self.out.to_agent.is_empty() {
            self.sender = None;
        }
    }

    /// Opens another connection in place of one that was lost, and continues the sessions.
    ///
    /// # Errors
    ///
    /// When that is not wanted, not possible, or has taken too long.
    async fn reconnect(&mut self, error: Error) -> Result<()> {
        let Some(settings) = self.connector.reconnect() else {
            return Err(error);
        };
        let may = self.resume.is_initialized() && error.is_temporary();
        if !may || !self.is_open || self.closing.is_cancelled() {
            return Err(error);
        }
        self.sender = None;
        self.out.to_agent.clear();
        let reason = error.cause();
        self.resume.lost(&reason, &mut self.out);
        self.state.send_replace(ConnectionState::Lost { reason });
        let mut last = error;
        loop {
            let Some(wait) = self.backoff.next(Duration::ZERO) else {
                return Err(self.connector.gave_up(settings.limit, &last));
            };
            if !self.deliver_for(wait).await {
                return Err(last);
            }
            match self.hello().await {
                Ok(()) => break,
                Err(error) if error.is_temporary() => last = error,
                Err(error) => return Err(error),
            }
        }
        self.backoff.opened();
        self.state.send_replace(ConnectionState::Open);
        let is_restart = self.connector.is_restart();
        self.resume.continue_sessions(is_restart, &mut self.out);
        Ok(())
    }

    /// Waits, while the client gets what is there for it; `false` if it has gone.
    async fn deliver_for(&mut self, wait: Duration) -> bool {
        let delivering = async {
            while !self.out.to_client.is_empty() {
                let deliver = local(&mut self.far, &mut self.out.to_client, false);
                if matches!(deliver.await, Local::Gone) {
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

    fn failed(&self, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }
}

/// Waits for a message of the client, or for room for one to it.
async fn local(far: &mut ChannelTransport, to_client: &mut VecDeque<Bytes>, wants: bool) -> Local {
    poll_fn(|cx| {
        if !to_client.is_empty() {
            match Pin::new(&mut *far).poll_ready(cx) {
                Poll::Ready(Ok(())) => {
                    let message = to_client.pop_front();
                    let sent = message.map(|message| Pin::new(&mut *far).start_send(message));
                    return Poll::Ready(match sent {
                        Some(Err(_)) => Local::Gone,
                        _ => Local::Delivered,
                    });
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Local::Gone),
                Poll::Pending => {}
            }
        }
        if wants {
            return match Pin::new(&mut *far).poll_receive(cx) {
                Poll::Ready(Ok(message)) => Poll::Ready(Local::Sent(message)),
                Poll::Ready(Err(_)) => Poll::Ready(Local::Gone),
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
