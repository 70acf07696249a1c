//! One running agent: bytes in, lines out.
//!
//! A thread reads the agent's output and a thread writes its input, so that a
//! check neither blocks on a full pipe nor waits without a limit. The reader hands
//! over at most [`QUEUE`] lines before it stops reading; as many pieces wait for the
//! writer, and what an agent that reads nothing is sent beyond that is lost. Both end
//! with the agent.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::process::Process;
use super::running::{Behind, Running};
use crate::transcript::{LINE_LIMIT, Line, Splitter};

/// How many lines wait to be read, and how many pieces to be written.
const QUEUE: usize = 4096;

/// What comes from an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line without its newline; the last one may have had none.
    Line(Vec<u8>),
    /// A line of so many bytes, over the limit.
    TooLong(u64),
    /// The request of the client with this id will not be answered. Only an agent behind a
    /// filter that says so tells this.
    Unanswered(Value),
    /// A marker of the link was set, which is not the agent's doing.
    Mark,
    /// The output has ended.
    End,
}

/// How much of a line without an end is kept, in bytes.
const START: usize = 200;

/// A line whose end has not come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unended {
    /// How many bytes of it have come.
    pub(crate) bytes: u64,
    /// The first of them.
    pub(crate) start: Vec<u8>,
}

/// Wakes whoever waits for the next event of a link.
#[derive(Clone, Debug)]
pub(crate) struct Marker(SyncSender<Event>);

impl Marker {
    /// Adds [`Event::Mark`] to the events.
    pub(crate) fn tell(&self) {
        // Nobody listens when the link is gone.
        let _ = self.0.send(Event::Mark);
    }
}

/// A running agent.
#[derive(Debug)]
pub struct Link {
    events: Receiver<Event>,
    told: SyncSender<Event>,
    /// `None` once the input is closed.
    input: Option<SyncSender<Vec<u8>>>,
    filter: Option<Running>,
    unended: Arc<Mutex<Unended>>,
    ended: bool,
    process: Option<Process>,
    /// Why a connection that is no process has ended; empty before.
    #[cfg(all(unix, feature = "remote"))]
    explained: Option<std::sync::Arc<std::sync::Mutex<String>>>,
}

impl Link {
    /// A link over an agent's output and input.
    pub(super) fn new(
        output: impl Read + Send + 'static,
        input: impl Write + Send + 'static,
        process: Option<Process>,
        filter: Option<Behind>,
    ) -> Self {
        let (events, received) = sync_channel(QUEUE);
        let (bytes, to_write) = sync_channel(QUEUE);
        let filter = filter.map(|behind| Running::new(behind, events.clone(), bytes.clone()));
        let (tap, told) = (filter.clone(), events.clone());
        let unended = Arc::<Mutex<Unended>>::default();
        let last = unended.clone();
        thread::spawn(move || read(output, &events, tap.as_ref(), &last));
        thread::spawn(move || write(input, &to_write));
        Self {
            events: received,
            told,
            input: Some(bytes),
            filter,
            unended,
            ended: false,
            process,
            #[cfg(all(unix, feature = "remote"))]
            explained: None,
        }
    }

    /// The same link, whose end is explained by this text.
    #[cfg(all(unix, feature = "remote"))]
    pub(super) fn explained_by(mut self, text: std::sync::Arc<std::sync::Mutex<String>>) -> Self {
        self.explained = Some(text);
        self
    }

    /// Writes bytes to the agent's input. What it does not read is lost in silence:
    /// the missing answer tells.
    pub fn send(&mut self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            match &self.filter {
                Some(filter) => filter.to_agent(bytes),
                // The writer has ended because the agent has, or the agent does not read.
                None => drop(input.try_send(bytes)),
            }
        }
    }

    /// Somebody else may add an event.
    pub(crate) fn marker(&self) -> Marker {
        Marker(self.told.clone())
    }

    /// Hands the sending to somebody else, through the filter; `None` without one. The
    /// agent's input is closed by whoever has it.
    pub(crate) fn inlet(&mut self) -> Option<Running> {
        self.input = None;
        self.filter.take()
    }

    /// Closes the agent's input.
    pub fn close(&mut self) {
        self.input = None;
        if let Some(filter) = &self.filter {
            filter.close();
        }
    }

    /// Whether the agent's input was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.input.is_none()
    }

    /// The next event before `deadline`, or `None`.
    pub fn next(&mut self, deadline: Instant) -> Option<Event> {
        if self.ended {
            return Some(Event::End);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let event = match self.events.recv_timeout(left) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => Event::End,
        };
        self.ended = event == Event::End;
        Some(event)
    }

    /// Ends the agent; nothing more is read of it.
    pub fn end(&mut self) {
        self.close();
        self.ended = true;
        self.process = None;
    }

    /// Returns what has come of a line whose end has not.
    pub(crate) fn unended(&self) -> Unended {
        let unended = self.unended.lock();
        unended.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the output has ended, as far as it was read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// How the agent ended, waiting until `deadline`; `None` while it runs, and for
    /// one that is no process.
    pub fn exit(&mut self, deadline: Instant) -> Option<String> {
        #[cfg(all(unix, feature = "remote"))]
        if let Some(text) = &self.explained {
            let text = text
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            return Some(text.clone()).filter(|text| !text.is_empty());
        }
        self.process.as_mut()?.exit(deadline)
    }

    /// The exit code of a process that has ended, waiting until `deadline`: `None`
    /// while it runs, `Some(None)` when a signal ended it.
    pub fn exit_code(&mut self, deadline: Instant) -> Option<Option<i32>> {
        self.process.as_mut()?.exit_code(deadline)
    }

    /// Interrupts the process, as Ctrl-C does.
    pub fn interrupt(&self) {
        if let Some(process) = &self.process {
            process.interrupt();
        }
    }

    /// Whether the agent is a process of its own.
    #[must_use]
    pub fn is_process(&self) -> bool {
        self.process.is_some()
    }

    /// The last lines of the agent's standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.process
            .as_ref()
            .map_or_else(String::new, Process::stderr)
    }
}

fn read(
    mut output: impl Read,
    events: &SyncSender<Event>,
    tap: Option<&Running>,
    last: &Mutex<Unended>,
) {
    let mut splitter = Splitter::new(LINE_LIMIT);
    let mut listened = true;
    let mut forward = |line: Line<'_>| {
        let event = match line {
            Line::Whole(bytes) | Line::Cut(bytes) => match tap {
                Some(tap) => return tap.to_client(bytes),
                None => Event::Line(bytes.to_vec()),
            },
            Line::TooLong(length) => Event::TooLong(length),
        };
        listened &= events.send(event).is_ok();
    };
    // An error ends the output as its end does.
    while let Ok(1..) = splitter.pull(&mut output, &mut forward) {
        let (bytes, held) = splitter.unended();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        last.bytes = bytes;
        // What is held of a line is dropped once it is too long.
        if bytes == 0 || !held.is_empty() {
            last.start.clear();
            last.start.extend(held.iter().take(START));
        }
    }
    if listened {
        // Nobody listens when the link is gone.
        let _ = events.send(Event::End);
    }
}

fn write(mut input: impl Write, bytes: &Receiver<Vec<u8>>) {
    for bytes in bytes {
        if input
            .write_all(&bytes)
            .and_then(|()| input.flush())
            .is_err()
        {
            return;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}
