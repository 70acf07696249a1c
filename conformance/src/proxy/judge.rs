//! The thread that judges: it takes copies from the tap and hands them to the
//! recorder, and flushes the transcript whenever it has caught up.

use std::io::{self, Write as _};

use super::recorder::Recorder;
use super::tap::{Entry, Tap};
use crate::transcript::Summary;

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
