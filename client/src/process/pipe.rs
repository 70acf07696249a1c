//! Reads the output of a process up to its exit.
//!
//! A pipe ends when *all* of its writers have closed it, which may be long after the exit of the process
//! if a child of it continues. Waiting for the process must not depend on that. So reading stops
//! when the process has exited and the data that it left in the pipe was read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, DuplexStream, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};

use super::group::ExitWatch;

/// The maximum size of a pipe, which bounds the data that an exited process can have left.
const LARGEST_PIPE: usize = 1 << 20;

/// The size of one read, in bytes.
const CHUNK: usize = 16 << 10;

/// A stream whose descriptor can be read without the runtime.
#[cfg(unix)]
pub(crate) trait Pipe: AsyncRead + std::os::fd::AsFd + Unpin {}
#[cfg(unix)]
impl<T: AsyncRead + std::os::fd::AsFd + Unpin> Pipe for T {}

/// A stream of a process.
#[cfg(not(unix))]
pub(crate) trait Pipe: AsyncRead + Unpin {}
#[cfg(not(unix))]
impl<T: AsyncRead + Unpin> Pipe for T {}

/// Passes the output to `take` until the process has exited and all its output was read. Returns
/// whether the pipe is still open, because a child of the process holds it.
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

/// Passes all data to `take` until the pipe ends.
pub(crate) async fn read_to_end(pipe: &mut impl Pipe, take: &mut impl FnMut(&[u8])) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(bytes @ 1..) = pipe.read(&mut chunk).await {
        take(&chunk[..bytes]);
    }
}

/// Reads the bytes in the pipe without waiting; `None` if it is empty, 0 at its end.
///
/// The runtime may learn of data later than of the exit, so its readiness cannot tell an empty pipe
/// from one that it has not polled yet.
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

/// The standard output of an agent, or of its [adapter](crate::AgentCommand::adapter).
///
/// It ends when the agent exits, even if a child of the agent keeps the pipe open.
pub struct AgentOutput(Output);

enum Output {
    Process(ProcessOutput),
    Adapter(DuplexStream),
}

struct ProcessOutput {
    pipe: ChildStdout,
    exited: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    /// After the exit: the maximum number of remaining bytes of the agent itself.
    left: Option<usize>,
}

impl std::fmt::Debug for AgentOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentOutput").finish_non_exhaustive()
    }
}

impl AgentOutput {
    pub(crate) fn new(pipe: ChildStdout, mut exit: ExitWatch) -> Self {
        Self(Output::Process(ProcessOutput {
            pipe,
            exited: Box::pin(async move {
                exit.seen().await;
            }),
            left: None,
        }))
    }

    pub(super) fn adapted(stream: DuplexStream) -> Self {
        Self(Output::Adapter(stream))
    }
}

impl AsyncRead for AgentOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Output::Process(output) => output.poll_read(cx, buffer),
            Output::Adapter(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl ProcessOutput {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_none() {
            if let ready @ Poll::Ready(_) = Pin::new(&mut self.pipe).poll_read(cx, buffer) {
                return ready;
            }
            ready!(self.exited.as_mut().poll(cx));
            self.left = Some(LARGEST_PIPE);
        }
        if let Some(left) = &mut self.left
            && *left > 0
        {
            let bytes = read_now(&self.pipe, buffer.initialize_unfilled()).unwrap_or(0);
            buffer.advance(bytes);
            *left = left.saturating_sub(bytes);
        }
        Poll::Ready(Ok(()))
    }
}

/// The standard input of an agent, or of its [adapter](crate::AgentCommand::adapter). Shutting it down or
/// dropping it closes the pipe.
#[derive(Debug)]
pub struct AgentInput(Option<Input>);

#[derive(Debug)]
enum Input {
    Process(ChildStdin),
    Adapter(DuplexStream),
}

impl AgentInput {
    pub(crate) fn new(pipe: ChildStdin) -> Self {
        Self(Some(Input::Process(pipe)))
    }

    pub(super) fn adapted(stream: DuplexStream) -> Self {
        Self(Some(Input::Adapter(stream)))
    }

    fn stream(&mut self) -> io::Result<Pin<&mut (dyn AsyncWrite + Unpin)>> {
        match self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)? {
            Input::Process(pipe) => Ok(Pin::new(pipe)),
            Input::Adapter(stream) => Ok(Pin::new(stream)),
        }
    }
}

impl AsyncWrite for AgentInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    /// Closes the descriptor, because pipes have no shutdown.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}
