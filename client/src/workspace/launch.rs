//! How the commands of agents are started, and where their output goes.

use std::io;
use std::process::Stdio;

use acp_sandbox::Sandbox;

#[cfg(all(unix, feature = "pty"))]
use super::pty;
use crate::process::pipe;

/// How commands are started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Launch {
    pub(crate) sandbox: Option<Sandbox>,
    /// The size of their pseudo-terminals; `None` for pipes.
    #[cfg(all(unix, feature = "pty"))]
    pub(crate) pty: Option<pty::Size>,
}

/// Our end of a command's output, and the command's ends for standard output and error.
type Streams = (Box<dyn pipe::Pipe + Send>, Stdio, Stdio);

impl Launch {
    pub(super) fn streams(&self) -> io::Result<Streams> {
        #[cfg(all(unix, feature = "pty"))]
        if let Some(size) = self.pty {
            let (master, stdout, stderr) = pty::open(size)?;
            return Ok((Box::new(master), stdout, stderr));
        }
        let (pipe, stdout, stderr) = shared_pipe()?;
        Ok((Box::new(pipe), stdout, stderr))
    }

    pub(super) fn variables(&self) -> &'static [(&'static str, &'static str)] {
        #[cfg(all(unix, feature = "pty"))]
        if self.pty.is_some() {
            return &pty::VARIABLES;
        }
        &[]
    }
}

/// Creates one pipe for both outputs of a command, so that their order is kept.
#[cfg(unix)]
fn shared_pipe() -> io::Result<(tokio::net::unix::pipe::Receiver, Stdio, Stdio)> {
    let (reader, writer) = io::pipe()?;
    let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())?;
    Ok((reader, writer.try_clone()?.into(), writer.into()))
}

/// Creates one pipe for both outputs of a command, read on the runtime's blocking threads.
#[cfg(not(unix))]
fn shared_pipe() -> io::Result<(tokio::fs::File, Stdio, Stdio)> {
    let (reader, writer) = io::pipe()?;
    let reader = std::fs::File::from(std::os::windows::io::OwnedHandle::from(reader));
    let reader = tokio::fs::File::from_std(reader);
    Ok((reader, writer.try_clone()?.into(), writer.into()))
}
