//! The connection that a script plays on.
//!
//! A thread reads lines and a thread writes, so that no step waits longer than it
//! may: not for a peer that says nothing, and not for one that reads nothing. At
//! most [`QUEUE`] lines wait to be read; the reader reads no further then.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use acp_conformance::Result;
use acp_conformance::process_group::{self, Agent};
use acp_conformance::transcript::{LINE_LIMIT, Line, Splitter};
use rustix::process::Signal as Number;
use serde::Deserialize;

/// How many lines wait to be read.
const QUEUE: usize = 1024;

/// What comes from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line without its newline; the last one may have had none.
    Line(Vec<u8>),
    /// A line of so many bytes, over the limit.
    TooLong(u64),
    /// The output has ended.
    End,
}

/// A signal that a script can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGTERM`
    #[serde(rename = "TERM")]
    Term,
    /// `SIGINT`
    #[serde(rename = "INT")]
    Int,
    /// `SIGKILL`
    #[serde(rename = "KILL")]
    Kill,
    /// `SIGSTOP`
    #[serde(rename = "STOP")]
    Stop,
    /// `SIGCONT`
    #[serde(rename = "CONT")]
    Cont,
}

/// Why bytes were not written, or a signal not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The peer's input was closed by an earlier step.
    #[error("an earlier step has closed the peer's input")]
    Closed,
    /// The peer is gone or has closed its input.
    #[error("the peer does not take what is written: {0}")]
    Refused(io::Error),
    /// The peer does not read.
    #[error("the peer has not read all of it within {0:?}")]
    Unread(Duration),
    /// There is no process: the script plays the agent, and whoever started it is
    /// not its to watch or end.
    #[error("the peer is not a process that this script has started")]
    NoProcess,
}

/// Bytes to write, and whom to tell when that is done.
type Order = (Vec<u8>, SyncSender<io::Result<()>>);

/// A connection to a peer; dropping it ends a process that it has started, and all
/// its children.
#[derive(Debug)]
pub struct Wire {
    events: Receiver<Event>,
    ended: bool,
    orders: Option<SyncSender<Order>>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    agent: Agent,
    exited: Receiver<()>,
    code: Option<u8>,
}

impl Wire {
    /// Starts an agent; the script plays its client.
    ///
    /// # Errors
    /// [`acp_conformance::Error::Start`] when it cannot be started.
    pub fn start(command: &[OsString]) -> Result<Self> {
        let (agent, streams) = Agent::start(command)?;
        let leader = agent.group();
        let (tell, exited) = sync_channel(1);
        thread::spawn(move || {
            process_group::wait_for(leader);
            // Nobody asks any more.
            let _ = tell.send(());
        });
        let mut wire = Self::over(streams.output, streams.input);
        wire.process = Some(Process {
            agent,
            exited,
            code: None,
        });
        Ok(wire)
    }

    /// Takes standard input and output; the script plays an agent that a client has
    /// started.
    ///
    /// # Errors
    /// When a descriptor is closed.
    pub fn stdio() -> io::Result<Self> {
        let (input, output) = process_group::take_stdio()?;
        Ok(Self::over(input, output))
    }

    fn over(source: File, sink: File) -> Self {
        let (tell, events) = sync_channel(QUEUE);
        // A step waits until its order is done, so that there is one at a time, or, after
        // a peer that did not read, one more.
        let (orders, ordered) = sync_channel(1);
        thread::spawn(move || read(source, &tell));
        thread::spawn(move || write(sink, &ordered));
        Self {
            events,
            ended: false,
            orders: Some(orders),
            process: None,
        }
    }

    /// Writes bytes, waiting until the peer's pipe has taken them.
    ///
    /// # Errors
    /// When it does not before `deadline`, or never will.
    pub fn send(
        &mut self,
        bytes: Vec<u8>,
        deadline: Instant,
    ) -> std::result::Result<(), WireError> {
        let patience = left(deadline);
        let orders = self.orders.as_ref().ok_or(WireError::Closed)?;
        let (tell, done) = sync_channel(1);
        let gone = || WireError::Refused(ErrorKind::BrokenPipe.into());
        match orders.try_send((bytes, tell)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(WireError::Unread(Duration::ZERO)),
            Err(TrySendError::Disconnected(_)) => return Err(gone()),
        }
        match done.recv_timeout(patience) {
            Ok(written) => written.map_err(WireError::Refused),
            Err(RecvTimeoutError::Timeout) => Err(WireError::Unread(patience)),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    /// Closes the peer's input.
    pub fn close(&mut self) {
        self.orders = None;
    }

    /// The next event before `deadline`, or `None`.
    pub fn next(&mut self, deadline: Instant) -> Option<Event> {
        if self.ended {
            return Some(Event::End);
        }
        let event = match self.events.recv_timeout(left(deadline)) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => Event::End,
        };
        self.ended = event == Event::End;
        Some(event)
    }

    /// The code that the process exits with before `deadline`; `None` while it runs.
    ///
    /// # Errors
    /// When there is no process.
    pub fn exit(&mut self, deadline: Instant) -> std::result::Result<Option<u8>, WireError> {
        let process = self.process.as_mut().ok_or(WireError::NoProcess)?;
        if process.code.is_none() && process.exited.recv_timeout(left(deadline)).is_ok() {
            process.code = Some(process.agent.reap());
        }
        Ok(process.code)
    }

    /// Sends a signal to the process and its children.
    ///
    /// # Errors
    /// When there is no process.
    pub fn kill(&mut self, signal: Signal) -> std::result::Result<(), WireError> {
        let process = self.process.as_ref().ok_or(WireError::NoProcess)?;
        process.agent.signal(match signal {
            Signal::Term => Number::TERM,
            Signal::Int => Number::INT,
            Signal::Kill => Number::KILL,
            Signal::Stop => Number::STOP,
            Signal::Cont => Number::CONT,
        });
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A leader that was reaped has given its number back; its children are not
        // looked for then.
        if self.code.is_none() {
            self.agent.signal(Number::KILL);
            self.agent.reap();
        }
    }
}

fn read(mut source: File, events: &SyncSender<Event>) {
    let mut splitter = Splitter::new(LINE_LIMIT);
    let mut listened = true;
    let mut tell = |line: Line<'_>| {
        let event = match line {
            Line::Whole(bytes) | Line::Cut(bytes) => Event::Line(bytes.to_vec()),
            Line::TooLong(length) => Event::TooLong(length),
        };
        listened &= events.send(event).is_ok();
    };
    // An error ends the output as its end does.
    while let Ok(1..) = splitter.pull(&mut source, &mut tell) {}
    if listened {
        // Nobody listens when the wire is gone.
        let _ = events.send(Event::End);
    }
}

fn write(mut sink: File, orders: &Receiver<Order>) {
    for (bytes, tell) in orders {
        let written = sink.write_all(&bytes);
        let failed = written.is_err();
        // The receiver no longer waits.
        let _ = tell.send(written);
        if failed {
            return;
        }
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
