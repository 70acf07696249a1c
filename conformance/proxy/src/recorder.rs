//! Bytes of a live connection into judged records, and into a transcript.
//!
//! What is judged is what is written down, secrets already taken out: `check` on
//! the transcript has the same findings at the same places. At most one line
//! a direction is held; longer ones are counted as lost.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use acp_conformance::judge::{Diagnostic, Judge, Summary};
use acp_conformance::transcript::{
    LINE_LIMIT, Line, Record, Splitter, Writer, redact, redact_text,
};
use acp_conformance::wire::{Party, Schemas};
use serde_json::Value;

/// The longest message, so that its record stays within what `check` reads.
const MESSAGE_LIMIT: usize = LINE_LIMIT - 256;

/// The longest line that is no message and still recorded. Escaping makes it up to
/// six times as long.
const RAW_LIMIT: usize = LINE_LIMIT / 8;

/// Records and judges one connection.
pub struct Recorder {
    agent: Direction,
    client: Direction,
    book: Book,
}

/// One direction's bytes on their way to become lines.
#[derive(Debug)]
struct Direction {
    splitter: Splitter,
    /// The line that is arriving began in a gap and is counted already.
    begun_in_gap: bool,
}

/// Where records go.
struct Book {
    judge: Judge,
    findings: Box<dyn FnMut(&Diagnostic) + Send>,
    log: Option<Writer<Box<dyn Write + Send>>>,
    /// Why the log ended before the connection did.
    log_error: Option<io::Error>,
    redact: bool,
    place: u64,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("agent", &self.agent)
            .field("client", &self.client)
            .field("place", &self.book.place)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder of a connection on which nothing was sent yet. `findings` is called with
    /// what is found; a finding's place is the line of the transcript.
    pub fn new(
        schemas: impl Into<Schemas>,
        log: Option<Box<dyn Write + Send>>,
        redact: bool,
        findings: Box<dyn FnMut(&Diagnostic) + Send>,
    ) -> Self {
        let direction = || Direction {
            splitter: Splitter::new(MESSAGE_LIMIT),
            begun_in_gap: false,
        };
        Self {
            agent: direction(),
            client: direction(),
            book: Book {
                judge: Judge::new(schemas, None),
                findings,
                log: log.map(Writer::new),
                log_error: None,
                redact,
                place: 0,
            },
        }
    }

    /// A party wrote bytes.
    pub fn bytes(&mut self, from: Party, at: SystemTime, bytes: &[u8]) {
        let at = seconds(at);
        let (direction, book) = self.direction(from);
        let begun_in_gap = &mut direction.begun_in_gap;
        direction.splitter.push(bytes, |line| match line {
            Line::TooLong(_) if std::mem::take(begun_in_gap) => {}
            line => book.line(from, at, line),
        });
    }

    /// A party wrote bytes that nobody kept. `lines` lines ended in them, and if
    /// `open`, the last one goes on after them.
    pub fn gap(&mut self, from: Party, lines: u64, open: bool) {
        let (direction, book) = self.direction(from);
        // The line in which the gap begins ends in it, or after it, and is counted there.
        let counted = u64::from(direction.begun_in_gap);
        let lost = (lines + u64::from(open)).saturating_sub(counted);
        direction.splitter.skip(open);
        direction.begun_in_gap = open;
        if lost > 0 {
            let why = "the judge was behind, and the wire does not wait for it";
            book.lost(from, seconds(SystemTime::now()), lost, why.into());
        }
    }

    /// A party will write no more.
    pub fn end(&mut self, from: Party) {
        let at = seconds(SystemTime::now());
        let (direction, book) = self.direction(from);
        let begun_in_gap = &mut direction.begun_in_gap;
        direction.splitter.finish(|line| match line {
            Line::TooLong(_) if std::mem::take(begun_in_gap) => {}
            line => book.line(from, at, line),
        });
    }

    /// Writes out what the transcript's writer buffers.
    pub fn flush(&mut self) {
        self.book.try_log(Writer::flush);
    }

    /// Why the transcript ends before the connection does, once.
    pub fn take_log_error(&mut self) -> Option<io::Error> {
        self.book.log_error.take()
    }

    /// Ends the connection.
    pub fn finish(mut self) -> Summary {
        self.end(Party::Client);
        self.end(Party::Agent);
        self.flush();
        let mut findings = self.book.findings;
        self.book.judge.finish(&mut |finding| findings(&finding))
    }

    fn direction(&mut self, from: Party) -> (&mut Direction, &mut Book) {
        let direction = match from {
            Party::Agent => &mut self.agent,
            Party::Client => &mut self.client,
        };
        (direction, &mut self.book)
    }
}

impl Book {
    fn line(&mut self, from: Party, at: f64, line: Line<'_>) {
        match line {
            Line::TooLong(length) => self.too_long(from, at, length),
            Line::Whole(bytes) | Line::Cut(bytes) if bytes.trim_ascii().is_empty() => {}
            Line::Whole(bytes) => self.message(from, at, bytes, None),
            Line::Cut(bytes) => self.message(from, at, bytes, Some("the stream ended within it")),
        }
    }

    fn message(&mut self, from: Party, at: f64, bytes: &[u8], cut: Option<&str>) {
        let why = match std::str::from_utf8(bytes) {
            Err(error) => format!("not UTF-8 from byte {} on", error.valid_up_to()),
            Ok(text) => match serde_json::from_str::<Value>(text) {
                Err(error) => format!("not JSON: {error}"),
                Ok(mut value) => {
                    let redacted = self.redact && redact(&mut value);
                    let verbatim = (!redacted).then_some(bytes);
                    self.record(at, &Record::Message(from, value), verbatim);
                    return;
                }
            },
        };
        if let Some(cut) = cut {
            return self.lost(from, at, 1, cut.to_owned());
        }
        if bytes.len() > RAW_LIMIT {
            return self.too_long(from, at, bytes.len() as u64);
        }
        let text = String::from_utf8_lossy(bytes);
        let text = if self.redact {
            redact_text(&text)
        } else {
            text.into_owned()
        };
        let why = Some(why);
        self.record(at, &Record::Raw { from, text, why }, None);
    }

    fn too_long(&mut self, from: Party, at: f64, length: u64) {
        let why = format!("a line of {length} bytes is over the limit");
        self.lost(from, at, 1, why);
    }

    fn lost(&mut self, from: Party, at: f64, messages: u64, why: String) {
        let record = Record::Lost {
            from,
            messages,
            why,
            on_purpose: false,
        };
        self.record(at, &record, None);
    }

    fn record(&mut self, at: f64, record: &Record, verbatim: Option<&[u8]>) {
        self.place += 1;
        self.judge.summary().lines += 1;
        self.try_log(|log| log.write(at, record, verbatim));
        let findings = &mut self.findings;
        self.judge
            .record(self.place, record, &mut |finding| findings(&finding));
    }

    /// Does something with the transcript; after an error there is none any more.
    fn try_log(&mut self, act: impl FnOnce(&mut Writer<Box<dyn Write + Send>>) -> io::Result<()>) {
        if let Some(log) = &mut self.log
            && let Err(error) = act(log)
        {
            self.log = None;
            self.log_error = Some(error);
        }
    }
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
