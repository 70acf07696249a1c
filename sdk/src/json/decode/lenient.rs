//! The lenient pass: reads a text by a descriptor and writes it anew.
//!
//! The strict pass accepts the written text. A failed attempt reverts its output and reports.

use std::collections::HashMap;

use serde_core::de::IgnoredAny;
use serde_json::value::RawValue;

use super::members::{Member, collect};
use super::{DecodeError, Leniency};
use crate::json::descriptor::TypeDescriptor;
use crate::json::errors::{kind, message, push_escaped};
use crate::json::reader::items;
use crate::json::scan::special;

/// The deepest nesting of typed values, as in the strict reader.
const MAX_DEPTH: usize = 128;

/// The number of dropped values that are reported one by one.
///
/// A message can hold millions of invalid items; this bounds the memory for their reports.
const MAX_REPORTS: usize = 100;

/// A text that the strict pass accepts, with the values dropped from it.
pub(super) struct Repaired {
    pub(super) text: String,
    reports: Vec<Leniency>,
    unreported: usize,
}

impl Repaired {
    /// Passes the dropped values to `observer`.
    pub(super) fn report(self, observer: &mut dyn FnMut(Leniency)) {
        self.reports.into_iter().for_each(&mut *observer);
        if self.unreported > 0 {
            let reason = format!(
                "{} more values were dropped from this message",
                self.unreported
            );
            observer(Leniency {
                path: String::new(),
                reason,
            });
        }
    }
}

/// The state of the lenient pass: position, leniency and output.
pub(super) struct LenientReader {
    /// Whether no value may be dropped at present.
    pub(super) strict: bool,
    depth: usize,
    path: Vec<Step>,
    reports: Vec<Leniency>,
    unreported: usize,
    out: String,
}

/// One step of a path.
pub(super) enum Step {
    Field(&'static str),
    Key(String),
    Item(usize),
}

/// The state at the start of an attempt.
pub(super) struct Attempt {
    strict: bool,
    reports: usize,
    unreported: usize,
    written: usize,
}

impl LenientReader {
    /// Drops from `text` the invalid values that the schema allows to be dropped.
    ///
    /// # Errors
    /// Fails when `text` is not JSON, or another value is invalid.
    pub(super) fn repair(text: &str, descriptor: &TypeDescriptor) -> Result<Repaired, DecodeError> {
        Self::run(text, descriptor, false)
    }

    /// Runs the pass; with `strict`, no value may be dropped.
    ///
    /// # Errors
    /// Fails as [`Self::repair`] does.
    pub(super) fn run(
        text: &str,
        descriptor: &TypeDescriptor,
        strict: bool,
    ) -> Result<Repaired, DecodeError> {
        let mut reader = Self {
            strict,
            depth: 0,
            path: Vec::new(),
            reports: Vec::new(),
            unreported: 0,
            out: String::with_capacity(text.len()),
        };
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| reader.invalid(&error))?;
        reader.value(raw.get(), descriptor)?;
        Ok(Repaired {
            text: reader.out,
            reports: reader.reports,
            unreported: reader.unreported,
        })
    }

    /// Reads and writes a value of the described type.
    pub(super) fn value(
        &mut self,
        raw: &str,
        descriptor: &TypeDescriptor,
    ) -> Result<(), DecodeError> {
        match descriptor {
            TypeDescriptor::Any => self.write(raw),
            TypeDescriptor::Scalar(check) => {
                check(raw).map_err(|error| self.invalid(&error))?;
                self.write(raw);
            }
            TypeDescriptor::Nullable(_) if raw == "null" => self.write(raw),
            TypeDescriptor::Nullable(of) => return self.value(raw, of()),
            TypeDescriptor::List(of) => return self.list(raw, of(), false),
            TypeDescriptor::ValueUnion { expected, branches } => {
                return self.first_value(raw, expected, branches);
            }
            TypeDescriptor::Map(_)
            | TypeDescriptor::Object(_)
            | TypeDescriptor::TaggedUnion(_)
            | TypeDescriptor::ObjectUnion { .. } => {
                return self.object(raw, descriptor);
            }
        }
        Ok(())
    }

    /// Writes the valid items of a list, and any other value as [`Self::value`] does.
    pub(super) fn valid_items(
        &mut self,
        raw: &str,
        descriptor: &TypeDescriptor,
    ) -> Result<(), DecodeError> {
        match descriptor {
            TypeDescriptor::Nullable(of) if raw != "null" => self.valid_items(raw, of()),
            TypeDescriptor::List(of) => self.list(raw, of(), true),
            _ => self.value(raw, descriptor),
        }
    }

    fn list(&mut self, raw: &str, item: &TypeDescriptor, skip: bool) -> Result<(), DecodeError> {
        let Ok(items) = items(raw) else {
            return Err(self.error(format!("invalid type: {}, expected an array", kind(raw))));
        };
        self.nested('[', ']', |reader| {
            for (index, raw) in items.into_iter().enumerate() {
                reader.at(Step::Item(index), |reader| {
                    let strict = reader.strict;
                    let read = |reader: &mut Self| {
                        reader.comma();
                        reader.value(raw, item)
                    };
                    match reader.attempt(strict, read) {
                        Err(error) if skip => reader.drop_value(error),
                        result => result,
                    }
                })?;
            }
            Ok(())
        })
    }

    /// Collects the members of the object `raw`.
    pub(super) fn collect<'a>(&self, raw: &'a str) -> Result<Vec<Member<'a>>, DecodeError> {
        if !raw.starts_with('{') {
            let wrong = format!("invalid type: {}, expected an object", kind(raw));
            return Err(self.error(wrong));
        }
        let members = collect(raw);
        members.map_err(
            |_| match serde_json::from_str::<HashMap<String, IgnoredAny>>(raw) {
                Ok(_) => self.error("invalid JSON"),
                Err(error) => self.invalid(&error),
            },
        )
    }

    /// Writes a value unchanged.
    pub(super) fn write(&mut self, raw: &str) {
        self.out.push_str(raw);
    }

    /// Writes the empty value of the described type.
    pub(super) fn write_default(&mut self, descriptor: &TypeDescriptor) {
        self.out.push_str(match descriptor {
            TypeDescriptor::List(_) => "[]",
            TypeDescriptor::Map(_) => "{}",
            _ => "null",
        });
    }

    /// Writes the name of a member, with comma and colon.
    pub(super) fn name(&mut self, name: &str) {
        self.comma();
        if special(name.as_bytes()) == name.len() {
            self.out.extend(["\"", name, "\":"]);
        } else {
            let name = serde_json::Value::from(name);
            self.out.extend([&name.to_string(), ":"]);
        }
    }

    /// Writes a comma, except before the first member or item.
    fn comma(&mut self) {
        // No value ends with an opening bracket.
        if !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
    }

    /// Returns an error at the current path.
    pub(super) fn error(&self, message: impl Into<String>) -> DecodeError {
        DecodeError {
            path: self.pointer(),
            message: message.into(),
        }
    }

    /// Returns an error of serde_json at the current path.
    pub(super) fn invalid(&self, error: &serde_json::Error) -> DecodeError {
        self.error(message(error))
    }

    /// Drops the value that caused `error`, or fails in strict mode.
    pub(super) fn drop_value(&mut self, error: DecodeError) -> Result<(), DecodeError> {
        if self.strict {
            return Err(error);
        }
        if self.reports.len() < MAX_REPORTS {
            // The reason keeps the inner path of an error inside the dropped value.
            let path = self.pointer();
            let reason = match error.path.strip_prefix(path.as_str()) {
                Some(inner) if !inner.is_empty() => format!("{inner}: {}", error.message),
                _ => error.message,
            };
            self.reports.push(Leniency { path, reason });
        } else {
            self.unreported += 1;
        }
        Ok(())
    }

    /// Runs `read` with one more step on the path.
    pub(super) fn at<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Runs `read` between brackets; fails beyond the maximum depth.
    pub(super) fn nested(
        &mut self,
        open: char,
        close: char,
        read: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.out.push(open);
        let result = read(self);
        self.out.push(close);
        self.depth -= 1;
        result
    }

    /// Runs `read` as an attempt. A failed attempt reverts its output and reports.
    pub(super) fn attempt(
        &mut self,
        strict: bool,
        read: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let attempt = self.start(strict);
        let result = read(self);
        self.finish(&attempt, result.is_ok());
        result
    }

    /// Starts an attempt; [`Self::finish`] ends it.
    pub(super) fn start(&mut self, strict: bool) -> Attempt {
        let before = std::mem::replace(&mut self.strict, strict);
        Attempt {
            strict: before,
            reports: self.reports.len(),
            unreported: self.unreported,
            written: self.out.len(),
        }
    }

    pub(super) fn finish(&mut self, attempt: &Attempt, succeeded: bool) {
        self.strict = attempt.strict;
        if !succeeded {
            self.reports.truncate(attempt.reports);
            self.unreported = attempt.unreported;
            self.out.truncate(attempt.written);
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            pointer.push('/');
            match step {
                Step::Field(name) => push_escaped(&mut pointer, name),
                Step::Key(name) => push_escaped(&mut pointer, name),
                Step::Item(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }
}
