//! An agent within this process, on a pair of sockets.
//!
//! No command is needed, and hundreds of agents start in milliseconds. Each connection
//! gets an agent of its own, as it would get a process.

use std::fmt;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use acp_sdk::service::Layer;
use acp_sdk::{ConnectionBuilder, IntoAgent};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;

use super::running::Behind;
use super::{Link, v2};
use crate::{Error, Result};

/// All agents of this process run here.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
});

/// Returns where agents and connections of this process run.
pub(crate) fn runtime() -> std::io::Result<&'static Runtime> {
    let runtime = RUNTIME.as_ref();
    runtime.map_err(|error| std::io::Error::new(error.kind(), error.to_string()))
}

/// Serves one connection.
type Serve = dyn Fn(ConnectionBuilder, OwnedReadHalf, OwnedWriteHalf) -> Serving + Send + Sync;

/// Ends with the connection.
type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How an agent is made for a connection.
#[derive(Clone)]
pub(super) struct Within {
    serve: Arc<Serve>,
    layers: Vec<Arc<dyn Layer>>,
}

impl Within {
    /// Serves what `make` yields.
    pub(super) fn new<V, A>(make: impl Fn() -> A + Send + Sync + 'static) -> Self
    where
        A: IntoAgent<V> + Send,
        A::Client: Send,
    {
        Self::of(move |connection, reader, writer| {
            let agent = make();
            Box::pin(async move {
                let connection = connection.agent(agent, (reader, writer));
                // The client may be gone.
                let _ = connection.start().closed().await;
            })
        })
    }

    fn of(
        serve: impl Fn(ConnectionBuilder, OwnedReadHalf, OwnedWriteHalf) -> Serving
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            serve: Arc::new(serve),
            layers: Vec::new(),
        }
    }

    /// Wraps the service of every agent by a layer.
    pub(super) fn layer(&mut self, layer: Arc<dyn Layer>) {
        self.layers.push(layer);
    }

    /// Serves the reference agent of version 2, which blocks its thread.
    pub(super) fn v2() -> Self {
        let store = v2::Store::default();
        Self::of(move |_, reader, writer| {
            let store = store.clone();
            Box::pin(async move {
                // The halves are of one socket, and an agent whose client is gone has nobody
                // to tell.
                let _ = serve_v2(store, reader, writer).await;
            })
        })
    }

    /// Starts an agent.
    pub(super) fn start(&self, filter: Option<Behind>) -> Result<Link> {
        let failed = Error::starting("the agent within this process");
        let runtime = runtime().map_err(failed)?;
        let (output, input, (reader, writer)) = sockets(runtime).map_err(failed)?;
        let layers = self.layers.iter().cloned();
        let connection = layers.fold(ConnectionBuilder::new(), |connection, layer| {
            connection.layer(layer)
        });
        let serve = self.serve.clone();
        runtime.spawn(async move { serve(connection, reader, writer).await });
        Ok(Link::new(output, input, None, filter))
    }
}

/// Makes a pair of sockets: the suite's output and input of an agent, and the end of an agent that runs here.
pub(super) fn sockets(
    runtime: &Runtime,
) -> std::io::Result<(UnixStream, Input, (OwnedReadHalf, OwnedWriteHalf))> {
    let (ours, theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    let output = ours.try_clone()?;
    let _context = runtime.enter();
    let theirs = tokio::net::UnixStream::from_std(theirs)?;
    Ok((output, Input(ours), theirs.into_split()))
}

async fn serve_v2(
    store: v2::Store,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
) -> std::io::Result<()> {
    let stream = reader.reunite(writer).map_err(std::io::Error::other)?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let serving = move || v2::serve(&store, std::io::BufReader::new(&stream), &stream);
    tokio::task::spawn_blocking(serving).await?
}

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Within")
    }
}

/// Dropping one half of a socket pair does not end its stream; shutting it down does.
pub(super) struct Input(UnixStream);

impl std::io::Write for Input {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // Fails when the other end is gone already.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
