//! A page that shows the messages between the parts of a chain.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use acp_sdk::MessageTransport;
use bytes::Bytes;
use serde_json::json;

/// What the file begins with.
const PAGE: &str = include_str!("trace.html");

/// Messages that wait to be written. More are counted, and left out.
const QUEUE: usize = 1 << 10;

/// Bytes after which nothing more is written: a browser could not show it.
const LARGEST: usize = 256 << 20;

/// Bytes of a message that are shown.
const SHOWN: usize = 64 << 10;

/// Writes messages to an HTML file, which a browser shows without a server, also while it is written.
///
/// The file has everything that is said, secrets too: only its owner can read it. It ends at 256 MiB.
#[derive(Clone, Debug)]
pub struct Trace {
    entries: SyncSender<Entry>,
    left_out: Arc<AtomicU64>,
    start: Instant,
}

#[derive(Debug)]
struct Entry {
    after: Duration,
    from: Arc<str>,
    to: Arc<str>,
    message: Bytes,
}

impl Trace {
    /// Creates the file, in place of an earlier trace.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created, or is no trace.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        if is_trace(path)? {
            std::fs::remove_file(path)?;
        }
        let mut file = options.open(path)?;
        file.write_all(PAGE.as_bytes())?;
        let (entries, queue) = sync_channel(QUEUE);
        let left_out = Arc::new(AtomicU64::new(0));
        let counter = left_out.clone();
        std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write_entries(&queue, file, &counter))?;
        Ok(Self {
            entries,
            left_out,
            start: Instant::now(),
        })
    }

    /// Returns the transport that `this` has to `peer`, whose messages are written.
    pub(crate) fn tap(
        &self,
        inner: Pin<Box<dyn MessageTransport>>,
        this: &str,
        peer: &str,
    ) -> Pin<Box<dyn MessageTransport>> {
        Box::pin(Tap {
            inner,
            trace: self.clone(),
            this: this.into(),
            peer: peer.into(),
        })
    }

    fn add(&self, from: &Arc<str>, to: &Arc<str>, message: &Bytes) {
        let entry = Entry {
            after: self.start.elapsed(),
            from: from.clone(),
            to: to.clone(),
            message: message.clone(),
        };
        if let Err(TrySendError::Full(_)) = self.entries.try_send(entry) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns whether there is an earlier trace, of any version: they have the same title. An empty file is one that was
/// not written.
///
/// # Errors
///
/// `AlreadyExists` for another file.
fn is_trace(path: &Path) -> io::Result<bool> {
    let title = PAGE.split("<style>").next().unwrap_or(PAGE).as_bytes();
    let mut start = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(title.len() as u64).read_to_end(&mut start)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !title.starts_with(&start) {
        let message = "the file exists and is no trace. Remove it, or choose another name";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    Ok(true)
}

fn write_entries(queue: &Receiver<Entry>, mut file: File, left_out: &AtomicU64) {
    let mut written = 0;
    while let Ok(entry) = queue.recv() {
        if written > LARGEST {
            tracing::warn!("the trace ends here: its file has 256 MiB");
            return;
        }
        let cut = entry.message.len().min(SHOWN);
        let text = String::from_utf8_lossy(&entry.message[..cut]);
        let entry = json!({
            "after": entry.after.as_secs_f64(),
            "from": &*entry.from,
            "to": &*entry.to,
            "bytes": entry.message.len(),
            "text": text,
            "leftOut": left_out.swap(0, Ordering::Relaxed),
        });
        // Nothing in a script may look like its end.
        let script = entry.to_string().replace('<', "\\u003c");
        written += script.len();
        if let Err(error) = writeln!(file, "<script>add({script})</script>") {
            tracing::warn!(%error, "the trace ends here: its file cannot be written");
            return;
        }
    }
}

/// A transport whose messages are written to a trace.
struct Tap {
    inner: Pin<Box<dyn MessageTransport>>,
    trace: Trace,
    this: Arc<str>,
    peer: Arc<str>,
}

impl MessageTransport for Tap {
    fn poll_receive(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        let received = self.inner.as_mut().poll_receive(cx);
        if let Poll::Ready(Ok(Some(message))) = &received {
            self.trace.add(&self.peer, &self.this, message);
        }
        received
    }

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_ready(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> io::Result<()> {
        self.trace.add(&self.this, &self.peer, &message);
        self.inner.as_mut().start_send(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_replaces_nothing_but_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.html");
        Trace::create(&path).unwrap();
        Trace::create(&path).unwrap();
        std::fs::write(&path, "notes").unwrap();
        let error = Trace::create(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
    }
}
