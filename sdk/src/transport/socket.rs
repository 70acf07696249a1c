//! Unix and TCP sockets: a listener that serves an agent to each connection, and connecting.
//!
//! Guarantees: at most `max_connections` connections are served at once, the others wait in the
//! operating system's queue; a failure ends its own connection only; a shutdown stops accepting,
//! closes every connection as if its client had closed it, and waits for them.
//!
//! The protocol does not authenticate connections: every process that can open the socket can use
//! the agent. So a Unix socket is accessible to its owner only, and TCP listens on loopback
//! addresses by default. Every user of the machine can reach those, and so can web pages in a
//! browser; a connection whose first byte cannot begin a message is therefore closed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Sleep;

use super::message::{Reader, Writer};
use crate::connection::{Connection, ConnectionBuilder, joined};
use crate::error::{Error, Result};
use crate::version::{IntoAgent, IntoClient};

/// Consecutive failures to accept before a listener fails.
const ATTEMPTS: u32 = 10;

/// Serves an agent of its own to each connection of a socket.
///
/// ```no_run
/// # use acp_sdk::{HandlerResult, Listener, Result, v1::*};
/// # struct Echo;
/// # impl Agent for Echo {
/// #     async fn new_session(&self, _: &AgentContext, _: NewSessionRequest) -> HandlerResult<NewSessionResponse> { Ok(NewSessionResponse::new("s")) }
/// #     async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> { Ok(PromptResponse::new(StopReason::EndTurn)) }
/// #     async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> { Ok(()) }
/// # }
/// # async fn example() -> Result<()> {
/// let interrupted = async { let _ = tokio::signal::ctrl_c().await; };
/// Listener::tcp("127.0.0.1:7000").await?
///     .max_connections(8)
///     .serve_until(interrupted, || Echo)
///     .await
/// # }
/// ```
#[must_use = "a listener accepts nothing until it serves"]
pub struct Listener {
    socket: Socket,
    max_connections: usize,
    options: Arc<dyn Fn() -> ConnectionBuilder + Send + Sync>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local_addr", &self.local_addr())
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Listens on TCP, on loopback addresses only. Port 0 selects a free port.
    ///
    /// TCP is not authenticated, see [`tcp_exposed`](Self::tcp_exposed).
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when no address is a loopback one, or none can be bound.
    pub async fn tcp(addr: impl ToSocketAddrs) -> Result<Self> {
        let all: Vec<SocketAddr> = resolve(addr).await?;
        let near = |addr: &SocketAddr| addr.ip().is_loopback();
        let local: Vec<SocketAddr> = all.iter().copied().filter(near).collect();
        if local.is_empty() {
            let reason = format!(
                "{all:?} can be reached from other machines, and nothing would authenticate \
                 them: use a loopback address"
            );
            let refused = io::Error::new(io::ErrorKind::PermissionDenied, reason);
            return Err(Error::io("listen without authentication", refused));
        }
        Self::tcp_exposed(&local[..]).await
    }

    /// Listens on TCP, on any address.
    ///
    /// Connections are neither encrypted nor authenticated: every host that reaches the address
    /// can use the agent. Use it only in networks where that is intended.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when the address cannot be bound.
    pub async fn tcp_exposed(addr: impl ToSocketAddrs) -> Result<Self> {
        let all: Vec<SocketAddr> = resolve(addr).await?;
        let bound = TcpListener::bind(&all[..]).await;
        Ok(Self::new(Socket::Tcp(
            bound.map_err(failed("listen on", &all))?,
        )))
    }

    /// Listens on a Unix socket that only its owner may connect to. The file is removed at the
    /// end; a file that a dead process left behind is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when another process listens there, or the file cannot be created.
    #[cfg(unix)]
    pub fn unix(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bound = super::unix::UnixSocket::bind(path).map_err(failed("listen on", path))?;
        Ok(Self::new(Socket::Unix(bound)))
    }

    fn new(socket: Socket) -> Self {
        Self {
            socket,
            max_connections: 64,
            options: Arc::new(ConnectionBuilder::new),
        }
    }

    /// Sets how many connections are served at once, at least one (default 64).
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// Sets the options of each connection (default [`ConnectionBuilder::new`]).
    pub fn options(
        mut self,
        options: impl Fn() -> ConnectionBuilder + Send + Sync + 'static,
    ) -> Self {
        self.options = Arc::new(options);
        self
    }

    /// Returns the TCP address and port; `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Socket::Unix(_) => None,
        }
    }

    /// Serves until accepting fails repeatedly. Dropping the future drops every connection.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when accepting fails ten times in succession.
    pub async fn serve<V, A: IntoAgent<V>>(self, agent: impl FnMut() -> A) -> Result<()> {
        self.serve_until(std::future::pending(), agent).await
    }

    /// Starts serving as a task, and returns its handle.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start<V: 'static, A: IntoAgent<V>>(
        self,
        agent: impl FnMut() -> A + Send + 'static,
    ) -> RunningListener {
        let (stop, stopped) = oneshot::channel();
        let local_addr = self.local_addr();
        let stopped = async move {
            // Dropping the handle aborts the task, so only `shutdown` ends this.
            let _: Result<(), _> = stopped.await;
        };
        let mut task = JoinSet::new();
        task.spawn(self.serve_until(stopped, agent));
        RunningListener {
            local_addr,
            stop,
            task,
        }
    }

    /// Serves until `shutdown` completes, then closes every connection and waits for their end.
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    pub async fn serve_until<V, A: IntoAgent<V>>(
        self,
        shutdown: impl Future<Output = ()>,
        mut agent: impl FnMut() -> A,
    ) -> Result<()> {
        let (stop, stopped) = watch::channel(());
        let mut shutdown = pin!(shutdown);
        let mut accepting = Accepting {
            socket: &self.socket,
            failures: 0,
            pause: None,
        };
        let mut connections = JoinSet::new();
        let outcome = loop {
            let accepted = std::future::poll_fn(|cx| {
                if shutdown.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                while let Poll::Ready(Some(_)) = connections.poll_join_next(cx) {}
                if connections.len() >= self.max_connections {
                    return Poll::Pending;
                }
                accepting.poll(cx).map(Some)
            });
            match accepted.await {
                None => break Ok(()),
                Some(Err(error)) => break Err(Error::io("accept connections", error)),
                Some(Ok((reader, writer))) => {
                    let reader = Guarded::new(reader, stopped.clone());
                    let connection = (self.options)().agent(agent(), (reader, writer));
                    connections.spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%error, "a connection of the listener failed");
                        }
                    });
                }
            }
        };
        drop(stop);
        drop(self.socket);
        while connections.join_next().await.is_some() {}
        outcome
    }
}

/// A listener that serves as a task. Dropping it ends the listener and its connections at once.
#[derive(Debug)]
pub struct RunningListener {
    local_addr: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    task: JoinSet<Result<()>>,
}

impl RunningListener {
    /// Returns the TCP address and port; `None` for a Unix socket.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// Stops accepting, closes every connection gracefully, and waits for their end.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when accepting had failed before,
    /// [`Error::Closed`](crate::Error::Closed) when the runtime had aborted the listener.
    pub async fn shutdown(mut self) -> Result<()> {
        // Fails only if the task has ended, which the next line reports.
        let _ = self.stop.send(());
        joined(self.task.join_next().await)
    }
}

/// Serves an agent to each connection of a Unix socket, until accepting fails.
///
/// [`Listener`] has options and a graceful shutdown.
///
/// # Errors
///
/// As [`Listener::unix`] and [`Listener::serve`].
#[cfg(unix)]
pub async fn serve_unix<V, A: IntoAgent<V>>(
    path: impl AsRef<std::path::Path>,
    agent: impl FnMut() -> A,
) -> Result<()> {
    Listener::unix(path)?.serve(agent).await
}

/// Serves an agent to each TCP connection from this machine, until accepting fails.
///
/// TCP is not authenticated: see [`Listener::tcp_exposed`]. [`Listener`] has options
/// and a graceful shutdown.
///
/// # Errors
///
/// As [`Listener::tcp`] and [`Listener::serve`].
pub async fn serve_tcp<V, A: IntoAgent<V>>(
    addr: impl ToSocketAddrs,
    agent: impl FnMut() -> A,
) -> Result<()> {
    Listener::tcp(addr).await?.serve(agent).await
}

/// Connects to the agent behind a Unix socket. The connection must be started.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) when no process listens there.
#[cfg(unix)]
pub async fn connect_unix<V, C: IntoClient<V>>(
    path: impl AsRef<std::path::Path>,
    client: C,
) -> Result<Connection<C::Agent>> {
    let path = path.as_ref();
    let stream = tokio::net::UnixStream::connect(path).await;
    let (reader, writer) = stream.map_err(failed("connect to", path))?.into_split();
    Ok(ConnectionBuilder::new().client(client, (reader, writer)))
}

/// Connects to the agent behind a TCP port. The connection must be started.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) when no process listens there.
pub async fn connect_tcp<V, C: IntoClient<V>>(
    addr: impl ToSocketAddrs,
    client: C,
) -> Result<Connection<C::Agent>> {
    let all: Vec<SocketAddr> = resolve(addr).await?;
    let stream = TcpStream::connect(&all[..])
        .await
        .map_err(failed("connect to", &all))?;
    stream
        .set_nodelay(true)
        .map_err(failed("connect to", &all))?;
    let (reader, writer) = stream.into_split();
    Ok(ConnectionBuilder::new().client(client, (reader, writer)))
}

/// Adds to the system's error the address, which the system does not mention.
fn failed<T: fmt::Debug + ?Sized>(verb: &str, address: &T) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::io(format!("{verb} {address:?}"), error)
}

async fn resolve(addr: impl ToSocketAddrs) -> Result<Vec<SocketAddr>> {
    match tokio::net::lookup_host(addr).await {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(Error::io("resolve the address", error)),
    }
}

enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(super::unix::UnixSocket),
}

impl Socket {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Reader, Writer)>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = ready!(listener.poll_accept(cx))?;
                // Messages are small and waited for.
                stream.set_nodelay(true)?;
                let (reader, writer) = stream.into_split();
                Poll::Ready(Ok((Box::pin(reader), Box::pin(writer))))
            }
            #[cfg(unix)]
            Self::Unix(socket) => {
                let (reader, writer) = ready!(socket.poll_accept(cx))?.into_split();
                Poll::Ready(Ok((Box::pin(reader), Box::pin(writer))))
            }
        }
    }
}

/// Accepts, and pauses after a failure, because most are temporary: too many open files.
struct Accepting<'a> {
    socket: &'a Socket,
    failures: u32,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Accepting<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Reader, Writer)>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!(self.socket.poll_accept(cx)) {
                Ok(connection) => {
                    self.failures = 0;
                    return Poll::Ready(Ok(connection));
                }
                Err(error) if self.failures == ATTEMPTS => return Poll::Ready(Err(error)),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    let pause = Duration::from_millis(10 << self.failures.min(7));
                    self.failures += 1;
                    self.pause = Some(Box::pin(tokio::time::sleep(pause)));
                }
            }
        }
    }
}

/// A reader that ends at the listener's shutdown, and fails if the first byte is not one that
/// a message can begin with: a browser would begin with the name of an HTTP method.
struct Guarded {
    reader: Reader,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    begun: bool,
}

impl Guarded {
    fn new(reader: Reader, mut stopped: watch::Receiver<()>) -> Self {
        let stopped = async move {
            // The sender never sends; it is dropped.
            let _ = stopped.changed().await;
        };
        Self {
            reader,
            stopped: Box::pin(stopped),
            begun: false,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(self.reader.as_mut().poll_read(cx, buffer))?;
        if !self.begun
            && let Some(first) = buffer.filled()[before..].trim_ascii_start().first()
        {
            // An object, an array, a header, or the first byte of a byte order mark.
            if !matches!(first, b'{' | b'[' | b'C' | b'c' | 0xef) {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the input does not begin like a message",
                )));
            }
            self.begun = true;
        }
        Poll::Ready(Ok(()))
    }
}
