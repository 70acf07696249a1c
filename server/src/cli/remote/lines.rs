//! Lines on standard error that hold nobody up.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

use super::super::note;

/// Lines that may wait. Further ones are counted and left out.
const WAITING: usize = 10_000;

/// Writes lines on a thread of its own: a pipe that nobody reads must not hold up requests.
#[derive(Clone)]
pub(super) struct Lines {
    sender: SyncSender<String>,
    left_out: Arc<AtomicU64>,
}

impl Lines {
    /// # Errors
    ///
    /// When the system has no thread left.
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let left_out = Arc::<AtomicU64>::default();
        let counted = left_out.clone();
        std::thread::Builder::new()
            .name("request log".to_owned())
            .spawn(move || write(&receiver, &counted))?;
        Ok(Self { sender, left_out })
    }

    pub(super) fn push(&self, line: String) {
        if self.sender.try_send(line).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends with the last sender.
fn write(lines: &Receiver<String>, left_out: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        note(&line);
        match left_out.swap(0, Ordering::Relaxed) {
            0 => {}
            count => note(&format!(
                "{count} requests are missing here: nobody read this output"
            )),
        }
    }
}
