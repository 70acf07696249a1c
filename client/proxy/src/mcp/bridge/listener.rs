//! The port to which the programs connect.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection;
use crate::Endpoint;
use crate::mcp::wire::Inner;
use crate::shared::lock;

/// The maximum number of connections, and of those that have not shown a secret.
const MOST_CONNECTIONS: usize = 256;

/// How long a connection may take to show its secret.
const SECRET_LIMIT: Duration = Duration::from_secs(5);

/// The maximum number of servers.
const MOST_SERVERS: usize = 10_000;

/// The length of a secret, in bytes.
const SECRET_BYTES: usize = 32;

/// A server that was declared as a program.
pub(super) struct Binding {
    pub(super) server: String,
    /// Who has declared it.
    pub(super) client: Endpoint,
    ended: CancellationToken,
    /// Held by the connection of the program: there is one at a time.
    use_of: Semaphore,
}

impl Binding {
    pub(super) fn new(server: String, client: Endpoint) -> Self {
        Self {
            server,
            client,
            ended: CancellationToken::new(),
            use_of: Semaphore::new(1),
        }
    }
}

/// A binding that ends when this is dropped, unless a session keeps it.
pub(super) struct Added {
    state: Arc<State>,
    secret: String,
    is_kept: bool,
}

impl Added {
    pub(super) fn keep_for(mut self, session: &str) {
        self.is_kept = true;
        let mut state = self.state.lock();
        let of_session = state.sessions.entry(session.to_owned()).or_default();
        of_session.push(self.secret.clone());
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        if !self.is_kept {
            self.state.end(&self.secret);
        }
    }
}

/// Accepts the programs of one connection's sessions. Dropped, it ends them.
#[derive(Default)]
pub(super) struct Listener {
    state: Arc<State>,
    address: OnceCell<(String, DropGuard)>,
}

#[derive(Default)]
pub(super) struct State(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    /// By secret.
    bindings: HashMap<String, Arc<Binding>>,
    /// The secrets of each session.
    sessions: HashMap<String, Vec<String>>,
    /// Where the notifications of requests go that are not answered, by their id in MCP.
    active: HashMap<String, mpsc::Sender<Inner>>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    /// Listens, if nobody has asked before, and returns where.
    pub(super) async fn address(&self) -> HandlerResult<String> {
        let listening = self.address.get_or_try_init(async || -> io::Result<_> {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?.to_string();
            let ended = CancellationToken::new();
            let accepting = accept(listener, self.state.clone(), ended.clone());
            tokio::spawn(ended.clone().run_until_cancelled_owned(accepting));
            Ok((address, ended.drop_guard()))
        });
        let (address, _) = listening.await.map_err(|error| {
            HandlerError::internal(format!(
                "cannot listen for the agent's MCP clients: {error}"
            ))
        })?;
        Ok(address.clone())
    }

    pub(super) fn add(&self, secret: String, binding: Binding) -> HandlerResult<Added> {
        let bindings = &mut self.state.lock().bindings;
        if bindings.len() >= MOST_SERVERS {
            let message = format!("there are {MOST_SERVERS} MCP servers inside of this connection");
            return Err(HandlerError::new(ErrorCode::INVALID_REQUEST, message));
        }
        bindings.insert(secret.clone(), Arc::new(binding));
        Ok(Added {
            state: self.state.clone(),
            secret,
            is_kept: false,
        })
    }

    /// Ends the programs of a session.
    pub(super) fn end_session(&self, session: &str) {
        let secrets = self.state.lock().sessions.remove(session);
        for secret in secrets.into_iter().flatten() {
            self.state.end(&secret);
        }
    }

    /// Returns where the notifications of a request go, until it is answered.
    pub(super) fn active(&self, request: &str) -> Option<mpsc::Sender<Inner>> {
        self.state.lock().active.get(request).cloned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let bindings = std::mem::take(&mut self.state.lock().bindings);
        for binding in bindings.values() {
            binding.ended.cancel();
        }
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        lock(&self.0)
    }

    fn end(&self, secret: &str) {
        let binding = self.lock().bindings.remove(secret);
        if let Some(binding) = binding {
            binding.ended.cancel();
        }
    }

    /// Returns what a request's notifications are received from while this is held.
    pub(super) fn activate(self: &Arc<Self>, request: &str, sender: mpsc::Sender<Inner>) -> Active {
        self.lock().active.insert(request.to_owned(), sender);
        Active {
            state: self.clone(),
            request: request.to_owned(),
        }
    }
}

/// A request that is not answered.
pub(super) struct Active {
    state: Arc<State>,
    request: String,
}

impl Drop for Active {
    fn drop(&mut self) {
        self.state.lock().active.remove(&self.request);
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, ended: CancellationToken) {
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // Never closed.
        let Ok(permit) = connections.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = serve(stream, state.clone());
                let ended = ended.clone();
                tokio::spawn(async move {
                    ended.run_until_cancelled(serving).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Without files to open, for one.
                tracing::warn!(%error, "cannot accept an MCP client of the agent");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let mut line = [0; SECRET_BYTES + 1];
    let shown = timeout(SECRET_LIMIT, stream.read_exact(&mut line)).await;
    let secret = match (shown, line.split_last()) {
        (Ok(Ok(_)), Some((b'\n', secret))) => str::from_utf8(secret).ok(),
        _ => None,
    };
    let binding = secret.and_then(|secret| state.lock().bindings.get(secret).cloned());
    let Some(binding) = binding else {
        tracing::warn!("refused a connection without the secret of an MCP server");
        return;
    };
    let Ok(_used) = binding.use_of.try_acquire() else {
        tracing::warn!(server = %binding.server, "refused a second connection to an MCP server");
        return;
    };
    let ended = binding.ended.clone();
    ended
        .run_until_cancelled(connection::serve(stream, &binding, &state))
        .await;
}
