//! A queue of lines for standard error, or for the conversation in a terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use acp_client::AgentCommand;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Capacity of the queue; further lines are counted and dropped.
const WAITING: usize = 1000;

/// Timeout for writing queued lines at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Writes lines to standard error on a separate thread, so that a blocked standard error does not block
/// the connection and Ctrl-C.
#[derive(Clone)]
pub(super) struct Notes {
    waiting: SyncSender<Note>,
    left_out: Arc<AtomicU64>,
}

enum Note {
    Line(String),
    Bytes(Vec<u8>),
    /// Later lines go there, until its receiver is dropped.
    Divert(mpsc::Sender<String>),
    /// Everything before has been written.
    Mark(oneshot::Sender<()>),
}

impl Notes {
    pub(super) fn new() -> Self {
        let (waiting, notes) = sync_channel(WAITING);
        let left_out = Arc::<AtomicU64>::default();
        let counted = left_out.clone();
        // The thread is not joined; it ends with the process.
        thread::spawn(move || write(&notes, &counted));
        Self { waiting, left_out }
    }

    pub(super) fn line(&self, line: impl Display) {
        if self.waiting.try_send(Note::Line(line.to_string())).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the later lines, if standard error is a terminal: in raw mode they would damage what is
    /// shown there. They go to standard error again when the receiver is dropped.
    pub(super) fn divert(&self) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel(1);
        if std::io::stderr().is_terminal() {
            // A full queue means that standard error is blocked; the lines stay there.
            let _ = self.waiting.try_send(Note::Divert(sender));
        }
        lines
    }

    /// Writes bytes unchanged. A piece that is left out is counted as a line.
    pub(super) fn bytes(&self, bytes: &[u8]) {
        if self
            .waiting
            .try_send(Note::Bytes(bytes.to_owned()))
            .is_err()
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until the lines so far have been written, but not for long.
    pub(super) async fn written(&self) {
        let (mark, reached) = oneshot::channel();
        // A full queue means that standard error is blocked.
        if self.waiting.try_send(Note::Mark(mark)).is_ok() {
            let _ = timeout(LAST_LINES, reached).await;
        }
    }
}

fn write(notes: &Receiver<Note>, left_out: &AtomicU64) {
    let mut receiver = None;
    for note in notes {
        match note {
            Note::Line(line) => write_line(line, receiver.as_ref()),
            Note::Bytes(bytes) => {
                // Standard error may be closed.
                let _ = std::io::stderr().write_all(&bytes);
            }
            Note::Divert(sender) => receiver = Some(sender),
            Note::Mark(mark) => {
                let _ = mark.send(());
            }
        }
        let count = left_out.swap(0, Ordering::Relaxed);
        if count > 0 {
            let line = format!("acp: {count} lines are left out here");
            write_line(line, receiver.as_ref());
        }
    }
}

fn write_line(line: String, receiver: Option<&mpsc::Sender<String>>) {
    let line = match receiver.map(|receiver| receiver.blocking_send(line.clone())) {
        Some(Ok(())) => return,
        _ => line,
    };
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Passes standard error of a program on: unchanged to a pipe or file, to a terminal without what would
/// control it.
pub(super) fn with_stderr(command: AgentCommand, notes: &Notes) -> AgentCommand {
    let notes = notes.clone();
    match io::stderr().is_terminal() {
        true => command.on_stderr(move |line| notes.line(acp_sdk::text::printable(line))),
        false => command.on_stderr_bytes(move |bytes| notes.bytes(bytes)),
    }
}
