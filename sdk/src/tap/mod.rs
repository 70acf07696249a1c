//! A transcript of a connection: what both sides wrote, without what is nobody's business.
//!
//! One JSON object a line: `{"dir":"c2a","at":1763700000.123456,"msg":{…}}`, where `dir` is
//! who wrote the message (`c2a`: the client, `a2c`: the agent) and `at` counts seconds since
//! 1970. In place of `msg`, `raw` stands for input that was no message and `lost` for a number
//! of messages that were not recorded, both with the reason in `why`. `acp-conformance check`
//! reads it.
//!
//! Guarantees: the connection never waits for the transcript, except for a second at its end.
//! Messages are masked and written by a thread of their own; what it cannot keep up with is
//! counted as lost, and a failure to write ends the transcript, not the connection.

pub(crate) mod mask;
mod policy;
mod queue;
mod writer;

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use self::queue::{Content, Queue, Record};
use crate::error::{Error, Result};

/// How long the end of a connection waits for the last records to be written.
const FLUSH: Duration = Duration::from_secs(1);

/// A transcript to write, for [`ConnectionBuilder::tap`](crate::ConnectionBuilder::tap).
///
/// By default the structure is kept and the content masked. Kept are the names of members,
/// numbers, booleans, and the strings that say what a message is and what it is about: ids,
/// methods, kinds, states, names, MIME types, dates and paths. Every other string becomes
/// `[redacted]`: text, file contents, output, commands, values of variables and headers, error
/// messages, what an extension defines. So do numbers where nobody but their sender knows
/// what they mean: in `_meta`, in a tool's raw input and output, in extensions and in what a
/// user filled into a form. Masked messages are still valid against the schema.
#[must_use]
pub struct Tap {
    writer: Box<dyn Write + Send>,
    masked: bool,
    max_bytes: u64,
    pub(crate) side: Option<Side>,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap")
            .field("masked", &self.masked)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Agent,
    Client,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Agent => Self::Client,
            Self::Client => Self::Agent,
        }
    }
}

impl Tap {
    /// A transcript that goes to `writer`, from a thread that may block.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            masked: true,
            max_bytes: 256 << 20,
            side: None,
        }
    }

    /// A transcript in a new file that only this user may read.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when the file exists or cannot be made.
    pub fn file(path: impl AsRef<Path>) -> Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let path = path.as_ref();
        let file = options.open(path).map_err(|error| {
            Error::io(format!("create the transcript `{}`", path.display()), error)
        });
        Ok(Self::new(file?))
    }

    /// Masks nothing. Such a transcript holds whatever the user and the agent said, read and
    /// wrote, secrets included.
    pub fn verbatim(mut self) -> Self {
        self.masked = false;
        self
    }

    /// The transcript ends at this size (default 256 MiB).
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// This side is the client. Only [`ConnectionBuilder::open`](crate::ConnectionBuilder::open)
    /// needs to be told, and takes itself for the agent otherwise.
    pub fn of_client(mut self) -> Self {
        self.side = Some(Side::Client);
        self
    }

    /// Starts the thread; `None` if there can be none, for a transcript is never worth a connection.
    pub(crate) fn start(self) -> Option<Recorder> {
        let ours = self.side.unwrap_or(Side::Agent);
        let queue = Arc::new(Queue::default());
        let (ended, end) = oneshot::channel::<()>();
        let worker = writer::Worker::new(self.writer, self.masked, self.max_bytes, queue.clone());
        let started = std::thread::Builder::new()
            .name("acp-tap".to_owned())
            .spawn(move || {
                let _ended = ended;
                worker.run();
            });
        if let Err(error) = started {
            tracing::warn!(%error, "there will be no transcript: no thread for it");
            return None;
        }
        Some(Recorder {
            queue,
            ours,
            end: Mutex::new(Some(end)),
        })
    }
}

/// The connection's end of a transcript.
#[derive(Debug)]
pub(crate) struct Recorder {
    queue: Arc<Queue>,
    ours: Side,
    /// Dropped by the thread when it ends.
    end: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Recorder {
    /// A message of the peer, or what should have been one.
    pub(crate) fn received(&self, text: &[u8]) {
        self.record(self.ours.other(), Content::Text(text.into()));
    }

    /// Input of the peer that was skipped.
    pub(crate) fn skipped(&self, why: String) {
        self.record(self.ours.other(), Content::Skipped(why));
    }

    /// Messages of ours, one a line.
    pub(crate) fn sent(&self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                self.record(self.ours, Content::Text(line.into()));
            }
        }
    }

    fn record(&self, from: Side, content: Content) {
        self.queue.push(Record {
            from,
            at: SystemTime::now(),
            content,
        });
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Closes, and waits for what is queued to be written, but not for long.
    pub(crate) async fn finish(&self) {
        self.close();
        let end = self
            .end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(end) = end
            && tokio::time::timeout(FLUSH, end).await.is_err()
        {
            tracing::warn!("the end of the transcript may be missing: writing it takes too long");
        }
    }
}

#[cfg(test)]
mod tests;
