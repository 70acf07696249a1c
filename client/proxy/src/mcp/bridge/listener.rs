//! The port to which the programs connect.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::{HandlerError, HandlerResult};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::bindings::Bindings;
use super::connection;

/// The maximum number of connections, and of those that have not shown a secret.
const MOST_CONNECTIONS: usize = 256;

/// How long a connection may take to show its secret.
const SECRET_LIMIT: Duration = Duration::from_secs(5);

/// The length of a secret, in bytes.
const SECRET_BYTES: usize = 32;

/// Accepts the programs of one connection's sessions. Dropped, it ends them.
#[derive(Default)]
pub(super) struct Listener {
    pub(super) bindings: Arc<Bindings>,
    address: OnceCell<(String, DropGuard)>,
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
            let accepting = accept(listener, self.bindings.clone(), ended.clone());
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
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.bindings.end_all();
    }
}

async fn accept(listener: TcpListener, bindings: Arc<Bindings>, ended: CancellationToken) {
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // Never closed.
        let Ok(permit) = connections.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = serve(stream, bindings.clone());
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

async fn serve(mut stream: TcpStream, bindings: Arc<Bindings>) {
    let mut line = [0; SECRET_BYTES + 1];
    let shown = timeout(SECRET_LIMIT, stream.read_exact(&mut line)).await;
    let secret = match (shown, line.split_last()) {
        (Ok(Ok(_)), Some((b'\n', secret))) => str::from_utf8(secret).ok(),
        _ => None,
    };
    let binding = secret.and_then(|secret| bindings.find(secret));
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
        .run_until_cancelled(connection::serve(stream, &binding, &bindings))
        .await;
}
