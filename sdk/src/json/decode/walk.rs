//! The second pass: a text, walked through along a shape and written anew.
//!
//! What is written reads strictly as the type of the shape. An attempt that fails takes back
//! what it wrote and reported.

use std::borrow::Cow;
use std::fmt;

use serde_core::Deserializer as _;
use serde_core::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::members::{Member, collect};
use super::shape::Shape;
use super::{DecodeError, Leniency};
use crate::json::map::keep_last;
use crate::json::reader::{self, Reader, StrictError};
use crate::json::scan::special;

/// The deepest nesting of typed values; as the reader's own limit.
const MAX_DEPTH: usize = 128;

/// The most leniencies of one message that are reported one by one. A message
/// can hold millions of bad items, and memory must not follow.
const MAX_REPORTS: usize = 100;

/// A text that reads strictly, and what was dropped from it.
pub(super) struct Repaired {
    pub(super) text: String,
    reports: Vec<Leniency>,
    unreported: usize,
}

impl Repaired {
    /// Hands the leniencies to `observer`.
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

/// Where the walk stands, what it may tolerate, and what it has written.
pub(super) struct Walk {
    /// Whether nothing may be dropped at present.
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

impl Walk {
    /// Walks through `text` and drops what the schema allows to be dropped.
    ///
    /// # Errors
    /// When `text` is not JSON, or does not have the shape even so.
    pub(super) fn repair(text: &str, shape: &Shape) -> Result<Repaired, DecodeError> {
        let mut walk = Self {
            strict: false,
            depth: 0,
            path: Vec::new(),
            reports: Vec::new(),
            unreported: 0,
            out: String::with_capacity(text.len()),
        };
        let raw = walk.either(reader::read_deep(text), || serde_json::from_str(text))?;
        walk.value(raw, shape)?;
        Ok(Repaired {
            text: walk.out,
            reports: walk.reports,
            unreported: walk.unreported,
        })
    }

    /// Writes `raw` as a value of `shape`.
    pub(super) fn value(&mut self, raw: &RawValue, shape: &Shape) -> Result<(), DecodeError> {
        match shape {
            Shape::Any => self.write(raw),
            Shape::Leaf(check) => {
                check(raw).map_err(|error| self.invalid(&error))?;
                self.write(raw);
            }
            Shape::Nullable(_) if raw.get() == "null" => self.write(raw),
            Shape::Nullable(of) => return self.value(raw, of()),
            Shape::List(of) => return self.list(raw, of(), false),
            Shape::Map(of) => return self.map(raw, of()),
            Shape::FirstValue { expected, branches } => {
                return self.first_value(raw, expected, branches);
            }
            Shape::Object(_) | Shape::Tagged(_) | Shape::FirstObject { .. } => {
                return self.object(raw, shape);
            }
        }
        Ok(())
    }

    /// Writes the valid items of a list; anything else as [`Self::value`] does.
    pub(super) fn valid_items(&mut self, raw: &RawValue, shape: &Shape) -> Result<(), DecodeError> {
        match shape {
            Shape::Nullable(of) if raw.get() != "null" => self.valid_items(raw, of()),
            Shape::List(of) => self.list(raw, of(), true),
            _ => self.value(raw, shape),
        }
    }

    fn list(&mut self, raw: &RawValue, item: &Shape, skip: bool) -> Result<(), DecodeError> {
        let items = Reader::deep(raw.get()).deserialize_seq(Items);
        let items = self.either(items, || raw.deserialize_seq(Items))?;
        self.nested('[', ']', |walk| {
            for (index, raw) in items.into_iter().enumerate() {
                walk.at(Step::Item(index), |walk| {
                    let strict = walk.strict;
                    let read = |walk: &mut Self| {
                        walk.comma();
                        walk.value(raw, item)
                    };
                    match walk.attempt(strict, read) {
                        Err(error) if skip => walk.drop_value(error),
                        result => result,
                    }
                })?;
            }
            Ok(())
        })
    }

    fn map(&mut self, raw: &RawValue, value: &Shape) -> Result<(), DecodeError> {
        let members = self.collect(raw)?;
        let named = members
            .into_iter()
            .map(|member| (member.name.into_owned(), member.raw));
        let members: Vec<(String, Cow<'_, RawValue>)> = keep_last(named.collect());
        self.nested('{', '}', |walk| {
            for (name, raw) in members {
                walk.name(&name);
                walk.at(Step::Key(name), |walk| walk.value(&raw, value))?;
            }
            Ok(())
        })
    }

    /// The members of an object, which `raw` must be.
    pub(super) fn collect<'a>(&self, raw: &'a RawValue) -> Result<Vec<Member<'a>>, DecodeError> {
        if !raw.get().starts_with('{') {
            let wrong = format!("invalid type: {}, expected an object", kind(raw));
            return Err(self.error(wrong));
        }
        self.either(collect(&mut Reader::deep(raw.get())), || collect(raw))
    }

    /// What the strict reader has read, or what serde_json says that is wrong with it: the one
    /// is fast, the other has words.
    fn either<T>(
        &self,
        fast: Result<T, StrictError>,
        wordy: impl FnOnce() -> serde_json::Result<T>,
    ) -> Result<T, DecodeError> {
        match fast {
            Ok(value) => Ok(value),
            Err(_) => wordy().map_err(|error| self.invalid(&error)),
        }
    }

    /// Writes a value as it came.
    pub(super) fn write(&mut self, raw: &RawValue) {
        self.out.push_str(raw.get());
    }

    /// Writes what stands for nothing, where a value of `shape` must be.
    pub(super) fn write_default(&mut self, shape: &Shape) {
        self.out.push_str(match shape {
            Shape::List(_) => "[]",
            Shape::Map(_) => "{}",
            _ => "null",
        });
    }

    /// Writes a member's name and what stands around it.
    pub(super) fn name(&mut self, name: &str) {
        self.comma();
        if special(name.as_bytes()) == name.len() {
            self.out.extend(["\"", name, "\":"]);
        } else {
            let name = serde_json::Value::from(name);
            self.out.extend([&name.to_string(), ":"]);
        }
    }

    /// Writes a comma, unless what comes is the first of its object or list.
    fn comma(&mut self) {
        // No value ends in an opening bracket.
        if !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
    }

    /// An error at the place where the walk stands.
    pub(super) fn error(&self, message: impl Into<String>) -> DecodeError {
        DecodeError {
            path: self.pointer(),
            message: message.into(),
        }
    }

    /// The error of serde_json, at the place where the walk stands.
    pub(super) fn invalid(&self, error: &serde_json::Error) -> DecodeError {
        let text = error.to_string();
        // Line and column count from the start of a fragment, which nobody sees.
        let message = match text.rfind(" at line ") {
            Some(end) if !error.is_syntax() && !error.is_eof() => &text[..end],
            _ => &text,
        };
        self.error(message)
    }

    /// Drops the value that `error` is about, or fails when nothing may be dropped.
    pub(super) fn drop_value(&mut self, error: DecodeError) -> Result<(), DecodeError> {
        if self.strict {
            return Err(error);
        }
        if self.reports.len() < MAX_REPORTS {
            // The reason keeps the inner path when the error lies deeper than what is dropped.
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

    /// Runs `read` one step further down.
    pub(super) fn at<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Runs `read` between brackets, unless nesting is too deep.
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

    /// Runs `read` as an attempt: what a failed one wrote and reported is forgotten.
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

    /// Starts an attempt, which [`Self::finish`] ends.
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

pub(in crate::json) fn push_escaped(pointer: &mut String, name: &str) {
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// What kind of JSON value `raw` is, in words.
pub(super) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b'n') => "null",
        Some(b't' | b'f') => "boolean",
        _ => "number",
    }
}

/// Collects the items of a list, unparsed.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}
