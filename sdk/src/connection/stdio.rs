//! A connection on standard input and output, which closes on `SIGTERM`.

#[cfg(unix)]
use std::task::Poll;

use super::ConnectionBuilder;
use super::running::RunningConnection;
#[cfg(unix)]
use super::running::joined;
#[cfg(unix)]
use super::sigterm::Sigterm;
#[cfg(unix)]
use crate::error::CloseReason;
use crate::error::{Error, Result};
use crate::transport::{self, FirstMessage, Transport};
use crate::version::IntoAgent;

impl ConnectionBuilder {
    /// Sets whether [`serve_stdio`](Self::serve_stdio) and [`start_stdio`](Self::start_stdio)
    /// close the connection on `SIGTERM` (default: yes, on Unix): handlers are cancelled and
    /// pending responses written. A second `SIGTERM` ends the connection at once. After its end the
    /// signal ends the process, as without a handler: an application with a handler of its own says
    /// no here.
    pub fn handle_sigterm(mut self, handle: bool) -> Self {
        self.handles_sigterm = handle;
        self
    }

    /// Serves `agent` on standard input and output until the client closes them, as
    /// [`acp_sdk::serve_stdio`](crate::serve_stdio) does with the defaults.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when standard input or output cannot be used, [`Error::Closed`] when
    /// reading or writing fails later, and when the client does not read the last output.
    pub async fn serve_stdio<V, A: IntoAgent<V>>(self, agent: A) -> Result<()> {
        self.start_stdio(agent)?.closed().await
    }

    /// Starts serving `agent` on standard input and output, as a task.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when standard input or output cannot be used.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start_stdio<V, A: IntoAgent<V>>(self, agent: A) -> Result<RunningConnection<A::Client>> {
        let handles_sigterm = self.handles_sigterm;
        let mut connection = self.agent(agent, stdio()?).start();
        if handles_sigterm {
            connection.close_on_sigterm()?;
        }
        Ok(connection)
    }
}

impl<H> RunningConnection<H> {
    /// Closes the connection on `SIGTERM`, and aborts it on a second one.
    #[cfg(unix)]
    fn close_on_sigterm(&mut self) -> Result<()> {
        let mut sigterm = Sigterm::handle().map_err(|error| Error::io("handle SIGTERM", error))?;
        let (peer, mut connection) = (self.peer.clone(), std::mem::take(&mut self.task));
        let mut closing = false;
        self.task.spawn(std::future::poll_fn(move |cx| {
            while let Poll::Ready(Some(())) = sigterm.received.poll_recv(cx) {
                if closing {
                    return Poll::Ready(Err(Error::Closed(CloseReason::Dropped)));
                }
                closing = true;
                peer.close();
            }
            connection.poll_join_next(cx).map(joined)
        }));
        Ok(())
    }

    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps, reason = "the signature is that of Unix")]
    fn close_on_sigterm(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Serves an agent on standard input and output until the client closes them.
///
/// Takes both over: what the process prints by accident goes to standard error. On `SIGTERM` the
/// connection is closed gracefully ([`ConnectionBuilder::handle_sigterm`]).
///
/// # Errors
///
/// [`Error::Io`] when standard input or output cannot be used, [`Error::Closed`] when reading
/// or writing fails later, and when the client does not read the last output.
pub async fn serve_stdio<V, A: IntoAgent<V>>(agent: A) -> Result<()> {
    ConnectionBuilder::new().serve_stdio(agent).await
}

/// Takes over standard input and output as a transport, for [`connect`](crate::connect) and
/// [`ConnectionBuilder`].
///
/// What the process prints by accident goes to standard error. Must be called within a tokio
/// runtime.
///
/// # Errors
///
/// [`Error::Io`] when one of them is closed or cannot be used.
pub fn stdio() -> Result<Transport> {
    transport::stdio()
        .map_err(|error| Error::io("use standard input and output as the transport", error))
}

/// Reads the first message on standard input, which the next connection on it receives as well.
///
/// For programs that need to know what a client offers before they serve it. Takes standard input and
/// output over like [`stdio`]. Returns `None` if the input ends before, or begins with what is no message
/// or longer than 1 MiB.
///
/// # Errors
///
/// [`Error::Io`] when one of them is closed or cannot be used, and when reading fails.
pub async fn peek_stdio() -> Result<Option<FirstMessage>> {
    let peeked = transport::peek_stdio().await;
    peeked.map_err(|error| Error::io("read the first message on standard input", error))
}
