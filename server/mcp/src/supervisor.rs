//! The task of one server: it connects, connects again, and ends the server with the session.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_client::internal::Backoff;
use acp_sdk::v1::McpServer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Live, OpenError, Origin};
use crate::{McpTool, Options};

/// Time between two reads of a list of tools that changes continuously.
const LIST_PAUSE: Duration = Duration::from_secs(1);

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It starts, or is initialized for the first time.
    Connecting,
    /// Its tools can be called.
    Ready {
        /// Number of its tools.
        tools: usize,
    },
    /// It has ended, or could not be reached, and is started again. Calls fail at once.
    Restarting {
        /// Number of the attempt since it was stable, from 1 on.
        attempt: u32,
        /// Time between the failure and the attempt.
        wait: Duration,
        /// Why it has ended.
        reason: String,
    },
    /// It is not started any more.
    Failed {
        /// Why it could not be started, or has ended.
        reason: String,
    },
    /// It has ended with the session.
    Closed,
}

/// A server and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The server's name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
}

/// A server of the session. Its task writes it.
pub(crate) struct Entry {
    pub(crate) name: String,
    current: Mutex<Current>,
    /// Counts the changes of all servers of the session.
    changes: watch::Sender<u64>,
}

pub(crate) struct Current {
    pub(crate) state: ServerState,
    /// Present while it is ready.
    pub(crate) live: Option<Live>,
    /// Those of the last connection; none once it has failed.
    pub(crate) tools: Vec<McpTool>,
}

impl Entry {
    pub(crate) fn new(name: &str, changes: watch::Sender<u64>) -> Self {
        Self {
            name: name.to_owned(),
            current: Mutex::new(Current {
                state: ServerState::Connecting,
                live: None,
                tools: Vec::new(),
            }),
            changes,
        }
    }

    pub(crate) fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Current)) {
        change(&mut self.current());
        self.changes.send_modify(|count| *count += 1);
    }

    fn ready(&self, live: &Live, tools: Vec<McpTool>) {
        self.change(|current| {
            current.state = ServerState::Ready { tools: tools.len() };
            current.live = Some(live.clone());
            current.tools = tools;
        });
    }

    fn down(&self, state: ServerState) {
        self.change(|current| {
            current.live = None;
            if !matches!(state, ServerState::Restarting { .. }) {
                current.tools.clear();
            }
            current.state = state;
        });
    }

    pub(crate) fn fail(&self, reason: String) {
        let server = &*self.name;
        tracing::warn!(server, reason, "MCP server failed");
        self.down(ServerState::Failed { reason });
    }
}

/// Keeps a server connected until `stop` is cancelled, or until it has failed.
pub(crate) async fn supervise(
    entry: &Entry,
    server: &McpServer,
    origin: &Origin,
    options: &Options,
    stop: &CancellationToken,
) {
    let mut backoff = options.restart.map(Backoff::new);
    let (mut attempt, mut was_ready) = (0, false);
    loop {
        let mut connection = Connection::new(options);
        let mut opened = None;
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            error = serve(&mut connection, entry, server, origin, || {
                (was_ready, opened) = (true, Some(Instant::now()));
                if let Some(backoff) = &mut backoff {
                    backoff.opened();
                }
            }) => Some(error),
        };
        let Some(error) = ended else {
            connection.close().await;
            return entry.down(ServerState::Closed);
        };
        // A program that never worked is not started over and over.
        let is_final = error.is_final && !was_ready;
        let restart = options.restart.filter(|_| !is_final);
        let lived = opened.map(|opened| opened.elapsed()).unwrap_or_default();
        if restart.is_some_and(|restart| lived >= restart.max_wait) {
            attempt = 0;
        }
        attempt += 1;
        let reason = error.reason;
        let wait = backoff.as_mut().filter(|_| restart.is_some());
        let wait = wait.and_then(|backoff| backoff.next(Duration::ZERO));
        match wait {
            Some(wait) => {
                let server = &*entry.name;
                tracing::info!(server, reason, attempt, "MCP server is started again");
                entry.down(ServerState::Restarting {
                    attempt,
                    wait,
                    reason,
                });
            }
            None => entry.fail(reason),
        }
        // What is left of it ends while the others and this one go on.
        connection.close().await;
        let Some(wait) = wait else { return };
        tokio::select! {
            biased;
            () = stop.cancelled() => return entry.down(ServerState::Closed),
            () = sleep(wait) => {}
        }
    }
}

/// Connects to the server and serves it until the connection has ended. Returns why.
async fn serve(
    connection: &mut Connection<'_>,
    entry: &Entry,
    server: &McpServer,
    origin: &Origin,
    ready: impl FnOnce(),
) -> OpenError {
    let options = connection.options();
    if let Err(error) = connection.open(server, origin).await {
        return error;
    }
    let Some(live) = connection.live() else {
        return OpenError::is_final("is not connected");
    };
    let mut subscription = pin!(live.subscription(&entry.name));
    let tools = tokio::select! {
        biased;
        tools = live.tools(&entry.name, options) => tools,
        reason = connection.ended() => Err(reason),
        never = &mut subscription => match never {},
    };
    match tools {
        Ok(tools) => entry.ready(&live, tools),
        Err(reason) => return OpenError::is_final(reason),
    }
    ready();
    let reason = tokio::select! {
        biased;
        reason = connection.ended() => reason,
        never = follow(&live, entry, options) => match never {},
        never = subscription => match never {},
    };
    OpenError {
        reason,
        is_final: false,
    }
}

/// Reads the list of tools again when it has changed.
async fn follow(live: &Live, entry: &Entry, options: &Options) -> Infallible {
    let mut next = Instant::now();
    loop {
        live.wire.tools_changed.notified().await;
        sleep_until(next).await;
        match live.tools(&entry.name, options).await {
            Ok(tools) => entry.ready(live, tools),
            // The earlier tools stay; a call of one that is gone fails with the server's error.
            Err(reason) => {
                tracing::info!(
                    server = entry.name,
                    reason,
                    "MCP server's tools are not known"
                );
            }
        }
        next = Instant::now() + LIST_PAUSE;
    }
}
