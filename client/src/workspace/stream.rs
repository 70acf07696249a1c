//! The output of a terminal as it is printed, for the user interface.

use acp_sdk::v1::TerminalExitStatus;
use tokio::sync::watch;

use super::output::{Output, OutputChunk};
use crate::exit::Exit;

/// The output of one terminal from a position on.
///
/// A stream has no queue of its own and never delays the command: it reads what the terminal keeps, which
/// is the latest 64 KiB at least, and as much as `terminal/output` returns. Created by
/// [`Workspace::output_stream`](crate::Workspace::output_stream).
#[derive(Debug, Clone)]
pub struct OutputStream {
    pub(super) output: watch::Receiver<Output>,
    pub(super) done: watch::Receiver<Option<Exit>>,
    pub(super) position: u64,
}

impl OutputStream {
    /// Waits for output and returns it; `None` after the end of the output or of the terminal.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<OutputChunk> {
        let position = self.position;
        let ready = |output: &Output| output.is_ready(position);
        // An error means that the terminal was released; the output until then remains.
        let _ = self.output.wait_for(ready).await.is_ok();
        let chunk = self.output.borrow().chunk(position)?;
        self.position = chunk.position + chunk.bytes.len() as u64;
        Some(chunk)
    }

    /// Returns the exit status of the command if it has exited.
    #[must_use]
    pub fn exit(&self) -> Option<TerminalExitStatus> {
        self.done.borrow().as_ref().map(Exit::terminal_status)
    }
}
