//! How a scenario tells the suite that it has reached a point at which the suite must act.
//!
//! The agent of a scenario is started by the client under test, so nothing of the suite's is
//! handed down to it but the name of its record. Next to the record the suite listens on a
//! socket; the agent sends it one datagram for each mark.

use std::io;
use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;

/// The path of the socket on which the marks of the scenario with this record are sent.
#[cfg(unix)]
fn place(record: &Path) -> PathBuf {
    record.with_extension("marks")
}

/// Tells a mark of the scenario with this record.
#[cfg(unix)]
pub(super) fn tell(record: &Path, mark: &str) {
    // Nobody listens when the scenario is acted without the suite.
    let _ = send(&place(record), mark);
}

/// Tells nobody: without signals there is nothing to be done to a client.
#[cfg(not(unix))]
pub(super) fn tell(_: &Path, _: &str) {}

#[cfg(unix)]
fn send(place: &Path, mark: &str) -> io::Result<usize> {
    std::os::unix::net::UnixDatagram::unbound()?.send_to(mark.as_bytes(), place)
}

/// What ends the listening.
#[cfg(unix)]
const END: &str = "end";

/// Listens for the marks of one scenario until it is dropped.
#[derive(Debug)]
pub(super) struct Marks {
    #[cfg(unix)]
    place: PathBuf,
}

impl Marks {
    /// Hands each mark of the scenario with this record to `hear`.
    #[cfg(unix)]
    pub(super) fn of(record: &Path, mut hear: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let place = place(record);
        let socket = std::os::unix::net::UnixDatagram::bind(&place)?;
        std::thread::spawn(move || {
            let mut mark = [0; 32];
            while let Ok(length) = socket.recv(&mut mark) {
                if mark.get(..length) == Some(END.as_bytes()) {
                    return;
                }
                hear();
            }
        });
        Ok(Self { place })
    }

    /// Hears nothing.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Path, _: impl FnMut() + Send + 'static) -> io::Result<Self> {
        Ok(Self {})
    }
}

#[cfg(unix)]
impl Drop for Marks {
    fn drop(&mut self) {
        // Not waited for: it may be about to hand a mark to somebody who does not listen.
        let _ = send(&self.place, END);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_mark_is_heard_at_once_and_no_thread_stays() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record.jsonl");
        let (heard, marks) = channel();
        let listening = Marks::of(&record, move || heard.send(()).unwrap()).unwrap();
        tell(&record, "interrupt");
        marks.recv_timeout(Duration::from_secs(10)).unwrap();
        drop(listening);
        // The thread is gone, and the sender with it.
        assert!(marks.recv().is_err());
        tell(&record, "interrupt");
    }
}
