//! Standard input and output as a transport.
//!
//! The protocol owns both: they are moved to private descriptors, so that a stray
//! `println!` goes to standard error instead of between two messages, and a child
//! process that reads its inherited standard input finds it empty.
//!
//! They are taken over once in the life of a process: there is nothing left for a second connection.
//!
//! Pipes and sockets are read and written without a helper thread. Files and terminals have a
//! thread each. So does an output that standard error shares: it could not be made
//! non-blocking without that one becoming so too.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
use super::blocking::{BlockingReader, BlockingWriter};
use super::message::Transport;
#[cfg(unix)]
use super::message::{Reader, TransportKind, Writer};
use super::peek::FirstMessage;

/// What has become of standard input and output.
enum State {
    Free,
    /// Taken over, and not used by a connection yet.
    Peeked(Transport),
    Taken,
}

static STATE: Mutex<State> = Mutex::new(State::Free);

/// Takes standard input and output over.
///
/// # Errors
///
/// Fails when they were taken over before, when a descriptor is closed or cannot be duplicated, and
/// when standard output is the null device.
pub(crate) fn stdio() -> io::Result<Transport> {
    let mut state = lock();
    let transport = match std::mem::replace(&mut *state, State::Taken) {
        State::Free => take_over().inspect_err(|_| *state = State::Free)?,
        State::Peeked(transport) => transport,
        State::Taken => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another connection of this process has taken them over; serve all agents by one \
                 connection, or open sockets",
            ));
        }
    };
    Ok(transport)
}

/// Takes them over, reads the first message, and leaves it for [`stdio`].
pub(crate) async fn peek_stdio() -> io::Result<Option<FirstMessage>> {
    let (first, transport) = stdio()?.peek().await?;
    *lock() = State::Peeked(transport);
    Ok(first)
}

fn lock() -> MutexGuard<'static, State> {
    // Nothing panics while the lock is held.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn take_over() -> io::Result<Transport> {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if is_null_device(&output) {
        return Err(io::Error::new(
            io::ErrorKind::NotConnected,
            "standard output is closed, or is the null device: the protocol needs it",
        ));
    }
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    let (reader, writer) = (reader(input)?, writer(output)?);
    Ok(Transport(TransportKind::Stream { reader, writer }))
}

/// Returns whether everything written here is discarded. Rust opens the null device in place
/// of a standard stream that the process was started without.
#[cfg(unix)]
fn is_null_device(output: &std::fs::File) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let null = std::fs::metadata("/dev/null").map(|null| null.rdev());
    match (output.metadata(), null) {
        (Ok(output), Ok(null)) => output.rdev() == null && null != 0,
        _ => false,
    }
}

#[cfg(not(unix))]
fn take_over() -> io::Result<Transport> {
    Ok(Transport::stream(tokio::io::stdin(), tokio::io::stdout()))
}

#[cfg(unix)]
fn reader(input: std::fs::File) -> io::Result<Reader> {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::FileTypeExt as _;
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    let kind = input.metadata()?.file_type();
    Ok(if kind.is_fifo() {
        Box::pin(pipe::Receiver::from_file(input)?)
    } else if kind.is_socket() {
        Box::pin(unix_stream(OwnedFd::from(input)).and_then(UnixStream::from_std)?)
    } else {
        Box::pin(BlockingReader::start(input)?)
    })
}

#[cfg(unix)]
fn writer(output: std::fs::File) -> io::Result<Writer> {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    let metadata = output.metadata()?;
    let kind = metadata.file_type();
    let shared = stderr_inode().is_some_and(|inode| inode == (metadata.dev(), metadata.ino()));
    Ok(if kind.is_fifo() && !shared {
        Box::pin(pipe::Sender::from_file(output)?)
    } else if kind.is_socket() && !shared {
        Box::pin(unix_stream(OwnedFd::from(output)).and_then(UnixStream::from_std)?)
    } else {
        Box::pin(BlockingWriter::start(output)?)
    })
}

#[cfg(unix)]
fn unix_stream(socket: std::os::fd::OwnedFd) -> io::Result<std::os::unix::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Device and inode of standard error, if it is open.
#[cfg(unix)]
fn stderr_inode() -> Option<(u64, u64)> {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;

    let stderr = std::fs::File::from(io::stderr().as_fd().try_clone_to_owned().ok()?);
    let metadata = stderr.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}
