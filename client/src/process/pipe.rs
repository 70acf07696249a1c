//! Reading what a process writes, up to its exit and not beyond.
//!
//! A pipe ends when *everybody* who holds it has closed it, which may be long after
//! the process has exited if a child of its lives on. Whoever waits for the process
//! should not wait for that. So everything here looks at the exit too: once it is
//! seen, what the process left in the pipe is read, and that is the end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};

use super::group::ExitWatch;

/// The largest pipe there is: more than this a process cannot have left behind.
const LARGEST_PIPE: usize = 1 << 20;

/// Bytes asked for at once.
const CHUNK: usize = 16 << 10;

/// A stream whose descriptor can be read past the runtime's back.
#[cfg(unix)]
pub(crate) trait Pipe: AsyncRead + std::os::fd::AsFd + Unpin {}
#[cfg(unix)]
impl<T: AsyncRead + std::os::fd::AsFd + Unpin> Pipe for T {}

/// A stream from a process.
#[cfg(not(unix))]
pub(crate) trait Pipe: AsyncRead + Unpin {}
#[cfg(not(unix))]
impl<T: AsyncRead + Unpin> Pipe for T {}

/// Hands what the process writes to `take` until it has exited and all it wrote is taken.
/// Yields whether the pipe is still open, which means that a child of the process holds it.
pub(crate) async fn read_until_exit(
    pipe: &mut impl Pipe,
    mut exit: ExitWatch,
    take: &mut impl FnMut(&[u8]),
) -> bool {
    let mut chunk = vec![0; CHUNK];
    loop {
        tokio::select! {
            biased;
            read = pipe.read(&mut chunk) => match read {
                Ok(0) | Err(_) => {
                    exit.seen().await;
                    return false;
                }
                Ok(bytes) => take(&chunk[..bytes]),
            },
            _ = exit.seen() => break,
        }
    }
    let mut left = LARGEST_PIPE;
    while left > 0 {
        match read_now(pipe, &mut chunk) {
            Some(0) => return false,
            Some(bytes) => {
                take(&chunk[..bytes]);
                left = left.saturating_sub(bytes);
            }
            None => break,
        }
    }
    true
}

/// Hands everything to `take` until the pipe ends.
pub(crate) async fn read_to_end(pipe: &mut impl Pipe, take: &mut impl FnMut(&[u8])) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(bytes @ 1..) = pipe.read(&mut chunk).await {
        take(&chunk[..bytes]);
    }
}

/// Bytes that are in the pipe at this moment: none if it is empty, 0 at its end.
///
/// The runtime learns of data a little later than of the exit, or the other way round, so
/// its own notion of readiness cannot tell an empty pipe from one that it has not looked at.
#[cfg(unix)]
fn read_now(pipe: &impl Pipe, buffer: &mut [u8]) -> Option<usize> {
    loop {
        return match rustix::io::read(pipe, &mut *buffer) {
            Ok(bytes) => Some(bytes),
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::AGAIN) => None,
            Err(_) => Some(0),
        };
    }
}

#[cfg(not(unix))]
fn read_now(_: &impl Pipe, _: &mut [u8]) -> Option<usize> {
    None
}

/// What an agent writes: its standard output, which ends when the agent exits even if a
/// child of the agent keeps the pipe open.
pub struct AgentOutput {
    pipe: ChildStdout,
    exited: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    /// Once the exit is seen: how many more bytes can be the agent's own.
    left: Option<usize>,
}

impl std::fmt::Debug for AgentOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentOutput").finish_non_exhaustive()
    }
}

impl AgentOutput {
    pub(crate) fn new(pipe: ChildStdout, mut exit: ExitWatch) -> Self {
        Self {
            pipe,
            exited: Box::pin(async move {
                exit.seen().await;
            }),
            left: None,
        }
    }
}

impl AsyncRead for AgentOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.left.is_none() {
            if let ready @ Poll::Ready(_) = Pin::new(&mut this.pipe).poll_read(cx, buffer) {
                return ready;
            }
            ready!(this.exited.as_mut().poll(cx));
            this.left = Some(LARGEST_PIPE);
        }
        if let Some(left) = &mut this.left
            && *left > 0
        {
            let bytes = read_now(&this.pipe, buffer.initialize_unfilled()).unwrap_or(0);
            buffer.advance(bytes);
            *left = left.saturating_sub(bytes);
        }
        Poll::Ready(Ok(()))
    }
}

/// What an agent reads: its standard input, which ends when this is shut down or dropped.
#[derive(Debug)]
pub struct AgentInput(Option<ChildStdin>);

impl AgentInput {
    pub(crate) fn new(pipe: ChildStdin) -> Self {
        Self(Some(pipe))
    }

    fn pipe(&mut self) -> io::Result<Pin<&mut ChildStdin>> {
        let pipe = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Pin::new(pipe))
    }
}

impl AsyncWrite for AgentInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pipe()?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe()?.poll_flush(cx)
    }

    /// A pipe knows no shutdown; the agent sees the end when the descriptor is closed.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}
