//! The connection to the agent, which is opened on demand.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use tokio::sync::Mutex;

use super::restarts::{RestartLimit, Restarts};
use crate::client::Client;
use crate::error::Result;

type Connecting = Pin<Box<dyn Future<Output = Result<Client>> + Send>>;

/// Holds at most one connection. Clones share it.
#[derive(Clone)]
pub(super) enum Slot {
    /// The application's connection, which is not replaced.
    Connected(Client),
    /// A connection that a function opens when there is none.
    Connecting {
        connect: Arc<dyn Fn() -> Connecting + Send + Sync>,
        /// Locked while the agent is starting, so that it is started once.
        current: Arc<Mutex<Current>>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Current {
    client: Option<Client>,
    /// The number of connections so far.
    generation: u64,
    restarts: Restarts,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(client) => f.debug_tuple("Connected").field(client).finish(),
            Self::Connecting { current, .. } => f.debug_tuple("Connecting").field(current).finish(),
        }
    }
}

impl Slot {
    pub(super) fn connecting<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client>> + Send + 'static,
    {
        Self::Connecting {
            connect: Arc::new(move || Box::pin(connect())),
            current: Arc::default(),
        }
    }

    /// Returns the connection and its number; opens one if there is none.
    pub(super) async fn client(&self, limit: Option<RestartLimit>) -> Result<(Client, u64)> {
        let (connect, current) = match self {
            Self::Connected(client) => return Ok((client.clone(), 0)),
            Self::Connecting { connect, current } => (connect, current),
        };
        let mut current = current.lock().await;
        if let Some(client) = current.client.take_if(|client| client.has_ended()) {
            // Dropping the last handle kills a process that is still running.
            drop(client);
            current.restarts.has_failed = true;
        }
        let client = match &current.client {
            Some(client) => client.clone(),
            None => {
                current.restarts.count(limit)?;
                let connected = connect().await;
                current.restarts.has_failed = connected.is_err();
                let client = connected?;
                current.generation += 1;
                current.client.insert(client).clone()
            }
        };
        Ok((client, current.generation))
    }

    /// Drops a failed connection unless it was replaced. Returns whether the next call of
    /// [`client`](Self::client) returns another connection.
    pub(super) async fn replace(&self, failed: u64) -> bool {
        let Self::Connecting { current, .. } = self else {
            return false;
        };
        let mut current = current.lock().await;
        if current.generation == failed {
            current.client = None;
            current.restarts.has_failed = true;
        }
        true
    }

    /// Takes the connection, if there is one.
    pub(super) async fn take(&self) -> Option<Client> {
        match self {
            Self::Connected(client) => Some(client.clone()),
            Self::Connecting { current, .. } => current.lock().await.client.take(),
        }
    }

    /// Returns a reference to the connections of a function that keeps none of them open.
    pub(super) fn downgrade(&self) -> Option<Weak<Mutex<Current>>> {
        match self {
            Self::Connected(_) => None,
            Self::Connecting { current, .. } => Some(Arc::downgrade(current)),
        }
    }
}

/// Takes the connection, if there is one and the condition holds while none is opened.
pub(super) async fn take_if(
    current: &Weak<Mutex<Current>>,
    condition: impl FnOnce() -> bool,
) -> Option<Client> {
    let current = current.upgrade()?;
    let mut current = current.lock().await;
    current.client.take_if(|_| condition())
}
