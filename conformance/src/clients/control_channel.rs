//! How a scenario tells the suite that it has reached a point at which the suite must act.
//!
//! The agent of a scenario is started by the client under test, so nothing of the suite's is
//! handed down to it but the name of its record. Next to the record the suite listens on a
//! socket; the agent sends it one datagram for each mark.
//!
//! The agent locks its record while it runs, by which the suite sees that the client has killed it.

use std::fs::File;
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

/// The mark of an agent that ends by itself.
pub(super) const ENDED: &str = "ended";

/// Locks the record until its agent has ended, however it does.
#[cfg(unix)]
pub(super) fn hold(record: &File) {
    // Nobody else has the file yet.
    let _ = record.try_lock();
}

/// Locks nothing: elsewhere nobody could read the record meanwhile.
#[cfg(not(unix))]
pub(super) fn hold(_: &File) {}

/// Whether the agent with this record was killed.
#[cfg(unix)]
pub(super) fn was_killed(record: &Path) -> bool {
    let is_free = File::open(record).is_ok_and(|file| file.try_lock_shared().is_ok());
    let text = std::fs::read_to_string(record);
    is_free && text.is_ok_and(|text| !text.contains(&format!(r#"{{"mark":"{ENDED}"}}"#)))
}

/// Whether the agent with this record was killed, which cannot be seen.
#[cfg(not(unix))]
pub(super) fn was_killed(_: &Path) -> bool {
    false
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
    fn an_agent_without_its_lock_was_killed_unless_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        assert!(!was_killed(&path));
        let record = File::create(&path).unwrap();
        hold(&record);
        assert!(!was_killed(&path));
        drop(record);
        assert!(was_killed(&path));
        let line = serde_json::json!({"mark": ENDED}).to_string();
        std::fs::write(&path, line).unwrap();
        assert!(!was_killed(&path));
    }

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
