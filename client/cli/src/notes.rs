//! A queue of lines for standard error.

use std::fmt::Display;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
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
    for note in notes {
        // Standard error may be closed.
        let mut stderr = std::io::stderr();
        match note {
            Note::Line(line) => {
                let _ = writeln!(stderr, "{line}");
            }
            Note::Bytes(bytes) => {
                let _ = stderr.write_all(&bytes);
            }
            Note::Mark(mark) => {
                let _ = mark.send(());
            }
        }
        let count = left_out.swap(0, Ordering::Relaxed);
        if count > 0 {
            let _ = writeln!(stderr, "acp: {count} lines are left out here");
        }
    }
}
