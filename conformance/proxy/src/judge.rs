//! The thread that judges: it takes copies from the tap and hands them to the
//! recorder, and flushes the transcript whenever it has caught up.
//!
//! It rests between batches, so that a conversation of small messages is not held
//! up by waking it, nor by its work, for each of them.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use acp_conformance::judge::Summary;

use super::recorder::Recorder;
use super::tap::{Entry, Tap};

/// How long it rests; findings come so much later.
const REST: Duration = Duration::from_millis(2);

/// Judges until the tap is closed and empty.
pub(super) fn run(tap: &Tap, mut recorder: Recorder) -> Summary {
    let mut batch = Vec::new();
    while tap.take(&mut batch) {
        for entry in &batch {
            match entry {
                Entry::Bytes(from, at, bytes) => recorder.bytes(*from, *at, bytes),
                Entry::Gap { from, lines, open } => recorder.gap(*from, *lines, *open),
                Entry::End(from) => recorder.end(*from),
            }
        }
        if tap.is_empty() {
            recorder.flush();
        }
        report(&mut recorder);
        if !tap.is_closed() {
            thread::sleep(REST);
        }
    }
    recorder.flush();
    report(&mut recorder);
    recorder.finish()
}

fn report(recorder: &mut Recorder) {
    if let Some(error) = recorder.take_log_error() {
        // Standard error may be closed; the wire goes on regardless.
        let _ = writeln!(
            io::stderr(),
            "acp-conformance: the transcript ends here, it cannot be written: {error}"
        );
    }
}
