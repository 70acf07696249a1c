//! The reference agent within this process, on a pair of sockets.
//!
//! Tests start hundreds of agents; without a process each they take milliseconds.

use std::os::unix::net::UnixStream;
use std::sync::LazyLock;

use acp_server::ReferenceAgent;
use tokio::runtime::Runtime;

use super::{Filter, Link};
use crate::{Error, Result};

/// All agents of this process run here.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
});

/// Starts a reference agent.
pub(super) fn start(filter: Option<Filter>) -> Result<Link> {
    let failed = |source| Error::Start {
        command: "the reference agent within this process".into(),
        source,
    };
    let runtime = RUNTIME
        .as_ref()
        .map_err(|error| failed(std::io::Error::new(error.kind(), error.to_string())))?;
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    theirs.set_nonblocking(true).map_err(failed)?;
    let output = ours.try_clone().map_err(failed)?;
    let _context = runtime.enter();
    let theirs = tokio::net::UnixStream::from_std(theirs).map_err(failed)?;
    let (reader, writer) = theirs.into_split();
    runtime.spawn(async move {
        // An agent whose client is gone has nobody to tell.
        let _ = acp_sdk::serve(ReferenceAgent::default(), reader, writer).await;
    });
    Ok(Link::new(output, Input(ours), None, filter))
}

/// Dropping one half of a socket pair does not end its stream; shutting it down does.
struct Input(UnixStream);

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
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}
