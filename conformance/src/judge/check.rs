//! Checks a recording, message by message.
//!
//! A recording is read in one pass; what is held is one line and what
//! [`Judge`] holds.

use std::io::{self, Read};

use super::{Diagnostic, Judge, Summary};
use crate::transcript::{self, LINE_LIMIT, Line, RecordError, Splitter};
use crate::wire::{FindingKind, Party, Schemas};

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

/// Checks what `reader` yields; `each` is given every finding, whose place is the
/// line, and `read` the number of bytes after each read.
///
/// # Errors
/// When reading fails. Whatever the bytes say is a finding instead.
pub fn check(
    mut reader: impl Read,
    schemas: impl Into<Schemas>,
    options: &CheckOptions,
    mut each: impl FnMut(Diagnostic),
    mut read: impl FnMut(u64),
) -> io::Result<Summary> {
    let mut checker = Checker {
        judge: Judge::new(schemas, options.from),
        line: 0,
        each: &mut each,
    };
    let mut splitter = Splitter::new(options.line_limit);
    while let length @ 1.. = splitter.pull(&mut reader, |line| checker.line(line))? {
        read(length as u64);
    }
    Ok(checker.judge.finish(checker.each))
}

struct Checker<'a> {
    judge: Judge,
    line: u64,
    each: &'a mut dyn FnMut(Diagnostic),
}

impl Checker<'_> {
    fn line(&mut self, line: Line<'_>) {
        self.line += 1;
        self.judge.summary().lines += 1;
        let (bytes, cut) = match line {
            Line::Whole(bytes) => (bytes, false),
            Line::Cut(bytes) => (bytes, true),
            Line::TooLong(length) => {
                let message = format!("a line of {length} bytes is over the limit; not checked");
                self.judge.skipped();
                self.report(FindingKind::TooLong, message);
                return;
            }
        };
        if bytes.trim_ascii().is_empty() {
            return;
        }
        match transcript::parse(bytes) {
            Ok(record) => self.judge.record(self.line, &record, self.each),
            Err(error) if cut => {
                let message = format!("the last line is cut off; not checked ({error})");
                self.report(FindingKind::Lost, message);
            }
            Err(error) => {
                let rule = match error {
                    RecordError::Json(_) | RecordError::Utf8(_) => FindingKind::NotJson,
                    RecordError::Direction(_) | RecordError::Empty => FindingKind::Record,
                };
                self.report(rule, error.to_string());
            }
        }
    }

    fn report(&mut self, rule: FindingKind, message: String) {
        self.judge.report(self.line, rule, None, message, self.each);
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
