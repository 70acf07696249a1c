//! A proxy between an editor and an agent that nobody notices.
//!
//! [`run`] starts the agent and forwards standard input and output byte by byte,
//! whatever the bytes are. Each direction has a thread that reads, puts a copy
//! into a tap, and writes; a third thread judges the copies. The tap is bounded:
//! when the judge falls behind, messages go unjudged and are counted, and neither
//! does the wire wait nor memory grow; or the wire waits, if everything must be
//! judged.
//!
//! The ends of the connection are passed on as they happen: the end of either
//! stream, a reader that went away, signals, and the exit code. The agent leads a
//! process group of its own; once the editor is gone, or the proxy was killed and a
//! [reaper](acp_conformance::orphan_reaper::protect) stands by, the group is ended: end of
//! input, `SIGTERM`, `SIGKILL`.
//!
//! Only for Unix: elsewhere the crate is empty.

#![cfg(unix)]

mod error;
mod judge;
mod pump;
mod recorder;
pub mod signals;
mod supervise;
mod tap;

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::time::Duration;

use acp_conformance::judge::{Diagnostic, Summary};
use acp_conformance::wire::Version;

pub use self::error::ProxyError;
pub use self::recorder::Recorder;
pub use self::supervise::run;

/// What the proxy does besides forwarding.
pub struct Options {
    /// The agent and its arguments.
    pub command: Vec<OsString>,
    /// The version of the protocol by which messages are judged; `None` for the one that
    /// the connection agrees on.
    pub version: Option<Version>,
    /// Where the transcript goes.
    pub log: Option<Box<dyn Write + Send>>,
    /// Whether secrets are taken out before anything is judged or written.
    pub redact: bool,
    /// Told of each finding, from the judging thread.
    pub findings: Box<dyn FnMut(&Diagnostic) + Send>,
    /// Whether the wire waits for the judge when it falls behind, so that every message
    /// is judged; otherwise messages go unjudged and are counted.
    pub complete: bool,
    /// How long the agent may take to end after its input has, and again after
    /// `SIGTERM`, once the editor is gone.
    pub grace: Duration,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("command", &self.command)
            .field("version", &self.version)
            .field("log", &self.log.is_some())
            .field("redact", &self.redact)
            .field("complete", &self.complete)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// The result of a proxied connection.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The agent's exit code; 128 and the signal's number when one ended it.
    pub code: u8,
    /// What was judged; `None` when the judge did not finish in time.
    pub summary: Option<Summary>,
}
