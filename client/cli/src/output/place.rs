//! Where the output of a run leads.

use std::io;

use tokio::io::{AsyncWriteExt as _, Stderr, Stdout};

use super::pieces::{Piece, Waiting};
use crate::exit::Code;

/// Where output goes.
#[derive(Debug)]
pub(super) enum Streams {
    Process(Stdout, Stderr),
    /// To another process, which writes it to its streams.
    Waiting(Waiting),
}

impl Streams {
    pub(super) fn process() -> Self {
        Self::Process(tokio::io::stdout(), tokio::io::stderr())
    }

    pub(super) async fn output(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Process(stdout, _) => {
                stdout.write_all(bytes).await?;
                stdout.flush().await
            }
            Self::Waiting(waiting) => waiting.send(Piece::Output, bytes).await,
        }
    }

    pub(super) async fn error(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Process(_, stderr) => {
                stderr.write_all(bytes).await?;
                stderr.flush().await
            }
            Self::Waiting(waiting) => waiting.send(Piece::Error, bytes).await,
        }
    }

    /// Reports the end of the output to another process.
    pub(super) async fn exit(&mut self, code: Code) {
        if let Self::Waiting(waiting) = self {
            // A failure means that it is gone.
            let _ = waiting.send(Piece::Exit, &[code as u8]).await;
        }
    }
}

/// Returns whether standard output and standard error lead to one terminal, pipe or file.
#[cfg(unix)]
pub(in super::super) fn same_place() -> bool {
    use std::fs::File;
    use std::os::fd::{AsFd as _, BorrowedFd};
    use std::os::unix::fs::MetadataExt as _;

    let place = |stream: BorrowedFd<'_>| {
        let metadata = File::from(stream.try_clone_to_owned()?).metadata()?;
        io::Result::Ok((metadata.dev(), metadata.ino()))
    };
    match (place(io::stdout().as_fd()), place(io::stderr().as_fd())) {
        (Ok(output), Ok(error)) => output == error,
        _ => false,
    }
}

/// Returns whether standard output and standard error lead to one terminal.
#[cfg(not(unix))]
pub(in super::super) fn same_place() -> bool {
    use std::io::IsTerminal as _;
    io::stdout().is_terminal() && io::stderr().is_terminal()
}
