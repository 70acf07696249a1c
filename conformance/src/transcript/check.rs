//! Checks a recording, message by message.
//!
//! A recording is read in one pass; what is held is one line, the open requests
//! and the state of the sessions, all bounded.
//!
//! Both parties are judged, but a client that probes its agent is not at fault:
//! a malformed request that the agent refused, and a line that the recorder kept
//! as `raw`, are notes. Nothing a client sent counts against the agent.

use std::io::{self, Read};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::direction;
use super::lines::{LINE_LIMIT, Line, Splitter};
use super::record::{self, Record, RecordError};
use crate::wire::{
    Finding, Judged, Level, Observed, Party, Rule, Schema, Tracker, describe, read_envelope,
};

/// How a recording is read.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The longest line, in bytes.
    pub line_limit: usize,
    /// The writer of every message that carries no direction; `None` to infer it.
    pub from: Option<Party>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            line_limit: LINE_LIMIT,
            from: None,
        }
    }
}

/// Messages of one party, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All messages.
    pub messages: u64,
    /// Those that the schema accepts.
    pub valid: u64,
    /// Those that the schema or the envelope forbids.
    pub invalid: u64,
    /// Those that the schema does not define, such as extensions.
    pub open: u64,
    /// Lines that its recorder marked as no message.
    pub raw: u64,
}

impl Tally {
    fn count(&mut self, judged: Judged) {
        self.messages += 1;
        match judged {
            Judged::Valid => self.valid += 1,
            Judged::Invalid => self.invalid += 1,
            Judged::Open => self.open += 1,
        }
    }

    /// Adds what another tally counted.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.valid += other.valid;
        self.invalid += other.invalid;
        self.open += other.open;
        self.raw += other.raw;
    }
}

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Lines, blank ones included.
    pub lines: u64,
    /// What the agent wrote.
    pub agent: Tally,
    /// What the client wrote.
    pub client: Tally,
    /// Messages whose writer cannot be told.
    pub unknown: u64,
    /// Findings that decide the verdict.
    pub errors: u64,
    /// Findings that do so only when asked.
    pub warnings: u64,
    /// Findings that do not.
    pub notes: u64,
}

impl Summary {
    /// Adds what another summary counted.
    pub fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.agent.add(other.agent);
        self.client.add(other.client);
        self.unknown += other.unknown;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
    }

    /// All messages.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.agent.messages + self.client.messages + self.unknown
    }

    fn tally(&mut self, of: Party) -> &mut Tally {
        match of {
            Party::Agent => &mut self.agent,
            Party::Client => &mut self.client,
        }
    }
}

/// Checks what `reader` yields; `each` is given every finding, whose place is the
/// line, and `read` the number of bytes after each read.
///
/// # Errors
/// When reading fails. Whatever the bytes say is a finding instead.
pub fn check(
    mut reader: impl Read,
    schema: Arc<Schema>,
    options: &CheckOptions,
    mut each: impl FnMut(Finding),
    mut read: impl FnMut(u64),
) -> io::Result<Summary> {
    let mut checker = Checker {
        tracker: Tracker::new(schema),
        from: options.from,
        summary: Summary::default(),
        line: 0,
        each: &mut each,
    };
    let mut splitter = Splitter::new(options.line_limit);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        read(length as u64);
        let bytes = buffer.get(..length).unwrap_or_default();
        splitter.push(bytes, |line| checker.line(line));
    }
    splitter.finish(|line| checker.line(line));
    Ok(checker.finish())
}

struct Checker<'a> {
    tracker: Tracker,
    from: Option<Party>,
    summary: Summary,
    line: u64,
    each: &'a mut dyn FnMut(Finding),
}

impl Checker<'_> {
    fn line(&mut self, line: Line<'_>) {
        self.line += 1;
        self.summary.lines += 1;
        let (bytes, cut) = match line {
            Line::Whole(bytes) => (bytes, false),
            Line::Cut(bytes) => (bytes, true),
            Line::TooLong(length) => {
                let message = format!("a line of {length} bytes is over the limit; not checked");
                self.report(Level::Error, Rule::TooLong, None, message);
                return;
            }
        };
        if bytes.trim_ascii().is_empty() {
            return;
        }
        match record::parse(bytes) {
            Ok(Record::Message(from, value)) => self.message(from, &value),
            Ok(Record::Raw(from, text)) => self.raw(from, &text),
            Ok(Record::Plain(value)) => self.plain(&value),
            Err(error) if cut => {
                let message = format!("the last line is cut off; not checked ({error})");
                self.report(Level::Warning, Rule::Record, None, message);
            }
            Err(error) => {
                let rule = match error {
                    RecordError::Json(_) | RecordError::Utf8(_) => Rule::NotJson,
                    RecordError::Direction(_) | RecordError::Empty => Rule::Record,
                };
                self.report(Level::Error, rule, None, error.to_string());
            }
        }
    }

    fn message(&mut self, from: Party, value: &Value) {
        let Observed {
            judged, findings, ..
        } = self.tracker.observe(from, self.line, value);
        self.summary.tally(from).count(judged);
        for finding in findings {
            self.found(finding);
        }
    }

    fn raw(&mut self, from: Party, text: &str) {
        let value = serde_json::from_str::<Value>(text);
        match (from, value) {
            (Party::Client, value) => {
                self.summary.client.raw += 1;
                if let Ok(value) = value {
                    self.tracker.observe_probe(from, &value);
                }
            }
            (Party::Agent, Ok(value)) => self.message(from, &value),
            (Party::Agent, Err(error)) => {
                self.summary.agent.raw += 1;
                let message = format!("the agent's output holds what is no message: {error}");
                self.report(Level::Error, Rule::NotJson, Some(from), message);
            }
        }
    }

    fn plain(&mut self, value: &Value) {
        let inferred = self.from.or_else(|| direction::infer(&self.tracker, value));
        if let Some(from) = inferred {
            self.message(from, value);
            return;
        }
        self.summary.unknown += 1;
        let (message, defects) = read_envelope(value);
        for defect in defects {
            let mut text = defect.message;
            if message.is_none() && !value.is_object() {
                text = format!("{} is no message: {text}", describe(value));
            }
            self.found(Finding {
                place: self.line,
                level: Level::Error,
                rule: Rule::Envelope,
                by: None,
                method: None,
                pointer: defect.pointer.to_owned(),
                message: text,
            });
        }
    }

    fn report(&mut self, level: Level, rule: Rule, by: Option<Party>, message: String) {
        self.found(Finding {
            place: self.line,
            level,
            rule,
            by,
            method: None,
            pointer: String::new(),
            message,
        });
    }

    fn found(&mut self, finding: Finding) {
        // With one party's messages alone, no answer can find its request.
        if self.from.is_some() && finding.rule == Rule::UnmatchedAnswer {
            return;
        }
        match finding.level {
            Level::Error => self.summary.errors += 1,
            Level::Warning => self.summary.warnings += 1,
            Level::Note => self.summary.notes += 1,
        }
        (self.each)(finding);
    }

    fn finish(mut self) -> Summary {
        for finding in self.tracker.finish() {
            self.found(finding);
        }
        self.summary
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
