//! Connections in memory that are lost at random times, with what is on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, ContinuedBy};
use super::random::Random;
use crate::error::{Error, Result};
use crate::reconnect::{Closed, Connector, LinkReceiver, LinkSender, Received, Reconnect};

/// Opens connections to an agent in memory.
pub(super) struct Memory {
    pub(super) agent: Arc<Agent>,
    pub(super) random: Random,
    /// How many more connections are lost.
    pub(super) cuts: Arc<AtomicU64>,
    pub(super) is_first: bool,
}

pub(super) struct MemorySender {
    to_agent: UnboundedSender<Bytes>,
    cut: CancellationToken,
}

pub(super) struct MemoryReceiver {
    from_agent: UnboundedReceiver<Bytes>,
    cut: CancellationToken,
}

fn lost() -> Error {
    Error::AgentHungUp {
        command: "in memory".to_owned(),
        method: String::new(),
        stderr: Vec::new(),
        stray_output: Vec::new(),
    }
}

/// Passes messages on, each after a short time, until the connection is lost.
fn pass(
    mut from: UnboundedReceiver<Bytes>,
    random: Random,
    cut: CancellationToken,
) -> UnboundedReceiver<Bytes> {
    let (to, passed) = unbounded_channel();
    tokio::spawn(async move {
        let passing = async {
            while let Some(message) = from.recv().await {
                sleep(Duration::from_micros(random.below(1500))).await;
                let _ = to.send(message);
            }
        };
        let _ = cut.run_until_cancelled(passing).await;
    });
    passed
}

impl Connector for Memory {
    type Sender = MemorySender;
    type Receiver = MemoryReceiver;

    async fn open(&mut self) -> Result<(MemorySender, MemoryReceiver)> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        sleep(Duration::from_millis(self.random.below(5))).await;
        if !is_first && self.random.below(6) == 0 {
            return Err(lost());
        }
        let cut = CancellationToken::new();
        let (to_agent, outgoing) = unbounded_channel();
        let (to_client, incoming) = unbounded_channel();
        let messages = pass(outgoing, self.random.clone(), cut.clone());
        let from_agent = pass(incoming, self.random.clone(), cut.clone());
        tokio::spawn(self.agent.clone().serve(messages, to_client, cut.clone()));
        let lives =
            Duration::from_micros(if is_first { 20_000 } else { 0 } + self.random.below(60_000));
        let (dead, cuts) = (cut.clone(), self.cuts.clone());
        tokio::spawn(async move {
            sleep(lives).await;
            let left = |cuts: u64| cuts.checked_sub(1);
            if cuts
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                .is_ok()
            {
                dead.cancel();
            }
        });
        let sender = MemorySender {
            to_agent,
            cut: cut.clone(),
        };
        Ok((sender, MemoryReceiver { from_agent, cut }))
    }

    fn reconnect(&self) -> Option<Reconnect> {
        let wait = Duration::from_millis(2);
        Some(Reconnect::default().with_waits(wait, wait))
    }

    fn answer_limit(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn is_restart(&self) -> bool {
        self.agent.continued_by == ContinuedBy::LoadInNewProcess
    }

    fn unresponsive(&self, method: &str) -> Error {
        panic!("the agent does not answer {method}");
    }

    fn refused(&self, reason: &str) -> Error {
        panic!("{reason}");
    }

    fn reconnect_timeout(&self, limit: Duration, last: &Error) -> Error {
        panic!("not connected within {limit:?}: {last}");
    }
}

impl LinkSender for MemorySender {
    async fn send(&self, message: Bytes) -> Result<(), Closed> {
        if self.cut.is_cancelled() {
            return Err(Closed);
        }
        self.to_agent.send(message).map_err(|_| Closed)
    }
}

impl LinkReceiver for MemoryReceiver {
    async fn receive(&mut self) -> Result<Option<Received>> {
        tokio::select! {
            biased;
            () = self.cut.cancelled() => Err(lost()),
            message = self.from_agent.recv() => Ok(message.map(Received::Message)),
        }
    }

    async fn closed(&self) {}
}
