//! Between a connection of `acp-sdk` and one to a remote agent.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use acp_sdk::{ChannelTransport, MessageTransport as _, channel};
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::envelope::Envelope;
use super::http::Access;
use super::link::{self, RawReceiver, RawSender, Received, Refused};
use super::{RemoteAgent, RemoteError};

/// Bytes that wait between the two connections, in each direction.
const WAITING_BYTES: usize = 256 << 10;

/// The task that moves messages between `acp-sdk` and the server.
#[derive(Debug)]
pub(crate) struct Bridge {
    task: JoinHandle<()>,
    done: CancellationToken,
    failure: Arc<Mutex<Option<RemoteError>>>,
}

impl Bridge {
    /// Connects, and returns the transport for `acp-sdk`.
    pub(crate) async fn open(agent: RemoteAgent) -> Result<(Self, ChannelTransport), RemoteError> {
        let access = Access::new(&agent)?;
        let (sender, receiver) = link::open(&agent, &access).await?;
        let (near, far) = channel(WAITING_BYTES);
        let failure = Arc::default();
        let task = Task {
            far,
            sender: Some(sender),
            receiver,
            to_agent: None,
            to_client: None,
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
            done,
            failure,
        };
        Ok((bridge, near))
    }

    /// Returns why the connection has ended, if it is not known to go on.
    pub(crate) fn failure(&self) -> Option<RemoteError> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until everything was sent and the server knows of the end.
    pub(crate) async fn closed(&self) {
        self.done.cancelled().await;
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Task {
    far: ChannelTransport,
    /// `None` once the client has closed its side.
    sender: Option<RawSender>,
    receiver: RawReceiver,
    /// A message on its way, for which there was no room yet.
    to_agent: Option<Bytes>,
    to_client: Option<Bytes>,
    failure: Arc<Mutex<Option<RemoteError>>>,
}

/// What has happened on the side of the client.
enum Local {
    Sent(Option<Bytes>),
    Delivered,
    Gone,
}

impl Task {
    async fn run(mut self) {
        loop {
            let wants = self.to_agent.is_none() && self.sender.is_some();
            let delivers = self.to_client.is_some();
            let local = local(&mut self.far, &mut self.to_client, wants);
            tokio::select! {
                local = local, if wants || delivers => match local {
                    Local::Sent(Some(message)) => self.to_agent = Some(message),
                    Local::Sent(None) => self.sender = None,
                    Local::Delivered => {}
                    Local::Gone => break,
                },
                sent = send(&self.sender, &self.to_agent), if self.to_agent.is_some() => {
                    self.to_agent = None;
                    if sent.is_err() {
                        // The receiver has the reason, after what came before.
                        self.sender = None;
                    }
                }
                received = self.receiver.receive(), if !delivers => match received {
                    Ok(Some(Received::Message(message))) => self.to_client = Some(message),
                    Ok(Some(Received::Refused(refused))) => self.to_client = answer(&refused),
                    Ok(None) => break,
                    Err(error) => {
                        self.failed(error);
                        break;
                    }
                },
            }
        }
        drop(self.sender);
        // The client sees the end, while the server is told.
        drop(self.far);
        self.receiver.closed().await;
    }

    fn failed(&self, error: RemoteError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }
}

/// Waits for a message of the client, or for room for one to it.
async fn local(far: &mut ChannelTransport, to_client: &mut Option<Bytes>, wants: bool) -> Local {
    poll_fn(|cx| {
        if to_client.is_some() {
            match Pin::new(&mut *far).poll_ready(cx) {
                Poll::Ready(Ok(())) => {
                    let sent = to_client
                        .take()
                        .map(|message| Pin::new(&mut *far).start_send(message));
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

async fn send(sender: &Option<RawSender>, message: &Option<Bytes>) -> Result<(), RemoteError> {
    match (sender, message) {
        (Some(sender), Some(message)) => sender.send(message.clone()).await,
        _ => Ok(()),
    }
}

/// Returns the answer to a request that the server did not accept.
fn answer(refused: &Refused) -> Option<Bytes> {
    let id = refused.request.as_deref()?;
    let body = refused.body.as_deref().map(Envelope::read);
    let error = body.and_then(|body| body.error.map(|error| error.get().to_owned()));
    let error = error.unwrap_or_else(|| {
        let message = match refused.is_uncertain {
            true => format!("{}; the agent may have carried it out", refused.error),
            false => refused.error.to_string(),
        };
        serde_json::json!({ "code": -32603, "message": message }).to_string()
    });
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into())
}
