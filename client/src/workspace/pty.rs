//! Pseudo-terminals as the output of commands.
//!
//! The command gets no controlling terminal: it stays in the session of this process, so that its
//! process group can be killed as with pipes. Nobody types, so its standard input is empty.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, ReadBuf};

/// Variables of commands in a pseudo-terminal. A pager would wait for keys.
pub(super) const VARIABLES: [(&str, &str); 3] = [
    ("TERM", "xterm-256color"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// The size of a pseudo-terminal, in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

/// Opens a pseudo-terminal. Returns our end and both outputs of the command.
pub(super) fn open(size: Size) -> io::Result<(Master, Stdio, Stdio)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    fcntl_setfd(&master, FdFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let mut options = File::options();
    options.read(true).write(true);
    // Without it, the terminal would become that of a process without one.
    options.custom_flags(OFlags::NOCTTY.bits().cast_signed());
    let name = name.to_str().map_err(io::Error::other)?;
    let slave = options.open(name)?;
    let size = Winsize {
        ws_col: size.columns,
        ws_row: size.rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size)?;
    ioctl_fionbio(&master, true)?;
    #[allow(
        deprecated,
        reason = "an `OwnedFd` is open as long as it is owned, and `register` is unsafe"
    )]
    let master = Master(AsyncFd::new(master)?);
    Ok((master, slave.try_clone()?.into(), slave.into()))
}

/// Our end of a pseudo-terminal.
#[derive(Debug)]
pub(super) struct Master(AsyncFd<OwnedFd>);

impl AsFd for Master {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

impl AsyncRead for Master {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let unfilled = buffer.initialize_unfilled();
            let read = ready.try_io(|master| Ok(rustix::io::read(master, unfilled)?));
            return Poll::Ready(match read {
                Ok(Ok(bytes)) => {
                    buffer.advance(bytes);
                    Ok(())
                }
                // Linux reports so that the command and its children have closed their ends.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(()),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(Err(error)) => Err(error),
                Err(_would_block) => continue,
            });
        }
    }
}
