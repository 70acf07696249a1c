//! A chain that is started again when a part of it has ended.

use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use acp_client::internal::{
    Bridge, Closed, Connector, GAP, LinkReceiver, LinkSender, RESTARTED, Received, SessionGap,
};
use acp_client::{AgentCommand, ConnectionState, Error, Gap, Reconnect};
use acp_sdk::limits::MAX_MESSAGE_BYTES;
use acp_sdk::{ChannelTransport, MessageTransport as _, Transport, channel};
use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Conductor, ConductorError};
use crate::proxy::BETWEEN;
use crate::relay::{End, Explain};
use crate::shared::lock;
use crate::{Proxy, Side};

/// How long a chain that was started again may take to answer `initialize`.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// What is said of a chain of which nothing else is known.
const ENDED: &str = "the chain has ended";

impl Conductor {
    /// Runs one chain after the other.
    pub(super) async fn run_again(
        mut self,
        client: Transport,
        agent: AgentCommand,
        restart: Reconnect,
    ) -> Result<End, ConductorError> {
        let stop = std::mem::take(&mut self.stop);
        let chains = Chains {
            chain: self,
            agent,
            restart,
            current: None,
        };
        let state = watch::Sender::new(ConnectionState::Open);
        let (bridge, chain) = Bridge::open(chains, state).await?;
        let bridge = Arc::new(bridge);
        let ended = bridge.clone();
        let explain: Explain = Box::new(move |_| {
            Box::pin(async move {
                let failure = ended.failure();
                failure.map_or_else(|| ENDED.to_owned(), |error| error.to_string())
            })
        });
        // What cannot be resumed ends the chain.
        let lost = stop.child_token();
        let ends = [client.into_messages(MAX_MESSAGE_BYTES), Box::pin(chain)];
        let relay = without_replays(lost.clone()).relay(ends).explain(explain);
        let mut end = relay.stop(lost.clone()).run().await;
        if lost.is_cancelled() && !stop.is_cancelled() {
            end = End {
                side: Side::Agent,
                reason: "the chain was started again, and its agent cannot resume a session"
                    .to_owned(),
            };
        }
        bridge.closed().await;
        Ok(end)
    }
}

/// Passes everything on but what a client knows: the history that an agent replays after a restart.
fn without_replays(lost: CancellationToken) -> Proxy {
    let replaying: Arc<Mutex<HashSet<String>>> = Arc::default();
    let of_updates = replaying.clone();
    Proxy::new("conductor")
        .on_raw_notification(Some(GAP), move |forward, params| {
            let read = SessionGap::read(GAP, params.as_deref().map(RawValue::get));
            let (replaying, lost) = (replaying.clone(), lost.clone());
            async move {
                let Some(SessionGap { session, gap }) = read else {
                    return forward.send(params).await;
                };
                match gap {
                    Some(Gap::Loaded) => drop(lock(&replaying).insert(session.to_string())),
                    Some(Gap::Lost) => lost.cancel(),
                    _ => drop(lock(&replaying).remove(session.as_str())),
                }
                Ok(())
            }
        })
        .on_raw_notification(Some(RESTARTED), |_, _| async { Ok(()) })
        .on_raw_notification(Some("session/update"), move |forward, params| {
            let is_replayed = {
                let replaying = lock(&of_updates);
                !replaying.is_empty() && {
                    let update = crate::message::value(params.as_deref());
                    update["sessionId"]
                        .as_str()
                        .is_some_and(|session| replaying.contains(session))
                }
            };
            async move {
                match is_replayed {
                    true => Ok(()),
                    false => forward.send(params).await,
                }
            }
        })
}

/// Starts chains, one at a time.
struct Chains {
    chain: Conductor,
    agent: AgentCommand,
    restart: Reconnect,
    current: Option<Running>,
}

/// A chain that was started.
#[derive(Clone)]
struct Running {
    stop: CancellationToken,
    ended: CancellationToken,
    /// Why it has ended.
    reason: Arc<OnceLock<String>>,
}

impl Chains {
    fn failed(&self, reason: impl Into<String>) -> Error {
        Error::Spawn {
            command: self.agent.to_string(),
            reason: reason.into(),
        }
    }
}

impl Connector for Chains {
    type Sender = ChainSender;
    type Receiver = ChainReceiver;

    async fn open(&mut self) -> Result<(ChainSender, ChainReceiver), Error> {
        if let Some(earlier) = self.current.take() {
            earlier.stop.cancel();
            earlier.ended.cancelled().await;
        }
        let (near, far) = channel(BETWEEN);
        let running = Running {
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            reason: Arc::default(),
        };
        self.current = Some(running.clone());
        let chain = self.chain.clone().stop(running.stop.clone());
        let (agent, started) = (self.agent.clone(), running.clone());
        tokio::spawn(async move {
            let _ended = started.ended.drop_guard();
            let reason = match chain.run_once(far.into(), agent).await {
                Ok(end) => end.to_string(),
                Err(error) => error.to_string(),
            };
            // Set once, here.
            let _ = started.reason.set(reason);
        });
        let transport = Arc::new(Mutex::new(near));
        let is_closed = CancellationToken::new();
        let sender = ChainSender {
            transport: transport.clone(),
            _closed: is_closed.clone().drop_guard(),
        };
        let receiver = ChainReceiver {
            transport,
            is_closed,
            _stop: running.stop.clone().drop_guard(),
            running,
        };
        Ok((sender, receiver))
    }

    fn reconnect(&self) -> Option<Reconnect> {
        Some(self.restart)
    }

    fn answer_limit(&self) -> Duration {
        ANSWER_LIMIT
    }

    fn is_restart(&self) -> bool {
        true
    }

    fn unresponsive(&self, method: &str) -> Error {
        let limit = ANSWER_LIMIT.as_secs();
        self.failed(format!("it has not answered {method} within {limit} s"))
    }

    fn refused(&self, reason: &str) -> Error {
        self.failed(reason)
    }

    fn reconnect_timeout(&self, limit: Duration, last: &Error) -> Error {
        let limit = limit.as_secs_f32();
        self.failed(format!("tried for {limit} s; {last}"))
    }
}

struct ChainSender {
    transport: Arc<Mutex<ChannelTransport>>,
    /// Cancelled when this side has closed the connection.
    _closed: DropGuard,
}

impl LinkSender for ChainSender {
    async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let mut message = Some(message);
        let sending = poll_fn(|cx| {
            let mut transport = lock(&self.transport);
            let mut transport = Pin::new(&mut *transport);
            ready!(transport.as_mut().poll_ready(cx))?;
            Poll::Ready(
                message
                    .take()
                    .map_or(Ok(()), |message| transport.start_send(message)),
            )
        });
        sending.await.map_err(|_| Closed)
    }
}

impl Drop for ChainSender {
    fn drop(&mut self) {
        let mut transport = lock(&self.transport);
        // A transport in memory closes at once.
        let _ = Pin::new(&mut *transport).poll_close(&mut Context::from_waker(Waker::noop()));
    }
}

struct ChainReceiver {
    transport: Arc<Mutex<ChannelTransport>>,
    is_closed: CancellationToken,
    _stop: DropGuard,
    running: Running,
}

impl LinkReceiver for ChainReceiver {
    async fn receive(&mut self) -> Result<Option<Received>, Error> {
        let receiving = poll_fn(|cx| {
            let mut transport = lock(&self.transport);
            Pin::new(&mut *transport).poll_receive(cx)
        });
        if let Ok(Some(message)) = receiving.await {
            return Ok(Some(Received::Message(message)));
        }
        if self.is_closed.is_cancelled() {
            return Ok(None);
        }
        self.running.ended.cancelled().await;
        let reason = self.running.reason.get();
        let reason = reason.map_or(ENDED, String::as_str).to_owned();
        Err(Error::Ended { reason })
    }

    async fn closed(&self) {
        self.running.ended.cancelled().await;
    }
}
