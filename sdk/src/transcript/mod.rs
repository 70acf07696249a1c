//! Transcripts: the messages of a connection in both directions, with sensitive text masked.
//!
//! One JSON object per line: `{"dir":"c2a","at":1763700000.123456,"msg":{…}}`. `dir` is the
//! direction (`c2a`: client to agent, `a2c`: agent to client), `at` the Unix time in seconds.
//! In place of `msg`, `raw` stands for input that was not a message and `lost` for the number
//! of messages that were not recorded, both with the reason in `why`. `acp-conformance check`
//! reads this format.
//!
//! Guarantees: the connection never waits for the transcript, except for up to one second at
//! its end. A thread masks and writes the messages. Its queue holds up to 4 MiB; further
//! messages are counted as lost. A failure to write ends the transcript, not the connection.
//!
//! The masking rules come from the documents of the protocol ([`MaskingRules`]).

pub(crate) mod mask;
mod place;
mod policy;
mod queue;
mod rules;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use self::queue::{Content, Queue, Record};
pub(crate) use self::rules::Rules;
pub use self::rules::{MaskingRules, MethodMasking, PayloadMasking, Visible};
use crate::error::{Error, Result};

/// How long the end of a connection waits for the last records.
const FLUSH: Duration = Duration::from_secs(1);

/// Records the messages of a connection.
///
/// For [`ConnectionBuilder::transcript`](crate::ConnectionBuilder::transcript).
///
/// By default, content is masked and structure is kept. Kept are member names, numbers,
/// booleans, and the strings that identify messages and their subjects: ids, methods, kinds,
/// states, names, MIME types, dates and paths. Every other string becomes `[redacted]`: text,
/// file contents, output, commands, values of variables and headers, error messages, and
/// extension data. Numbers become `0` where the protocol's schema does not describe them: in
/// `_meta`, in a tool's raw input and output, in extension methods and in a user's answer to a
/// form. Masked messages are still valid against the schema.
#[must_use]
pub struct Transcript {
    writer: Box<dyn Write + Send>,
    masked: bool,
    max_bytes: u64,
    pub(crate) side: Option<Side>,
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("masked", &self.masked)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

/// The side that wrote a message.
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

impl Transcript {
    /// Creates a transcript that a thread writes to `writer`, which may block.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            masked: true,
            max_bytes: 256 << 20,
            side: None,
        }
    }

    /// Creates a transcript in a new file with access for this user only. In a directory its name is of the time
    /// and the process: `acp-1795000000-4711.jsonl`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when the file exists or cannot be created.
    pub fn file(path: impl AsRef<Path>) -> Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut path = Cow::Borrowed(path.as_ref());
        if path.is_dir() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let seconds = now.unwrap_or_default().as_secs();
            path = Cow::Owned(path.join(format!("acp-{seconds}-{}.jsonl", std::process::id())));
        }
        let file = options.open(&path).map_err(|error| {
            Error::io(format!("create the transcript `{}`", path.display()), error)
        });
        Ok(Self::new(file?))
    }

    /// Turns masking off. The transcript contains all content, secrets included.
    pub fn verbatim(mut self) -> Self {
        self.masked = false;
        self
    }

    /// Sets the size at which the transcript ends (default 256 MiB).
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Records this side as the client. Needed only with
    /// [`ConnectionBuilder::open`](crate::ConnectionBuilder::open), which otherwise records it
    /// as the agent.
    pub fn of_client(mut self) -> Self {
        self.side = Some(Side::Client);
        self
    }

    /// Starts a transcript of messages that other processes exchange, such as those that a proxy
    /// forwards.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when its thread cannot be started.
    pub fn record(mut self) -> Result<Recording> {
        self.side = Some(Side::Client);
        let rules: Vec<&'static MaskingRules> = vec![
            &crate::v1::MASKING,
            #[cfg(feature = "v2")]
            &crate::v2::MASKING,
        ];
        match self.start(Rules::new(rules)) {
            Some(recorder) => Ok(Recording(recorder)),
            None => {
                let error = std::io::Error::other("the system has no thread for it");
                Err(Error::io("start the transcript", error))
            }
        }
    }

    /// Starts the thread. Without one there is no transcript, and the connection goes on.
    pub(crate) fn start(self, rules: Rules) -> Option<Recorder> {
        let ours = self.side.unwrap_or(Side::Agent);
        let queue = Arc::new(Queue::default());
        let (ended, end) = oneshot::channel::<()>();
        let worker = writer::Worker::new(
            self.writer,
            self.masked,
            self.max_bytes,
            queue.clone(),
            rules,
        );
        let started = std::thread::Builder::new()
            .name("acp-transcript".to_owned())
            .spawn(move || {
                let _ended = ended;
                worker.run();
            });
        if let Err(error) = started {
            tracing::warn!(%error, "no transcript: starting its thread failed");
            return None;
        }
        Some(Recorder {
            queue,
            ours,
            end: Mutex::new(Some(end)),
        })
    }
}

/// A transcript of messages that other processes exchange; made by [`Transcript::record`].
///
/// Nothing waits for it: messages that arrive faster than they can be written are counted as lost.
#[derive(Debug)]
pub struct Recording(Recorder);

impl Recording {
    /// Records a line that the client wrote, without its line feed.
    pub fn from_client(&self, line: &[u8]) {
        self.0.record(Side::Client, Content::Text(line.into()));
    }

    /// Records a line that the agent wrote, without its line feed.
    pub fn from_agent(&self, line: &[u8]) {
        self.0.record(Side::Agent, Content::Text(line.into()));
    }

    /// Records that the client wrote a line that was not kept.
    pub fn skipped_from_client(&self, why: impl Into<String>) {
        self.0.record(Side::Client, Content::Skipped(why.into()));
    }

    /// Records that the agent wrote a line that was not kept.
    pub fn skipped_from_agent(&self, why: impl Into<String>) {
        self.0.record(Side::Agent, Content::Skipped(why.into()));
    }

    /// Ends the transcript, and waits up to one second for what is queued to be written.
    pub async fn finish(self) {
        self.0.finish().await;
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
    /// Records input of the peer: a message, or an invalid one.
    pub(crate) fn received(&self, text: &[u8]) {
        self.record(self.ours.other(), Content::Text(text.into()));
    }

    /// Records that input of the peer was skipped.
    pub(crate) fn skipped(&self, why: String) {
        self.record(self.ours.other(), Content::Skipped(why));
    }

    /// Records messages of this side, one per line.
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

    /// Ends the transcript after what is queued.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Ends the transcript, and waits up to one second for what is queued to be written.
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
            tracing::warn!("the end of the transcript may be missing: not written within a second");
        }
    }
}

#[cfg(test)]
mod tests;
