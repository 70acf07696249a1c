//! Decoding with exact paths and declared leniency.
//!
//! [`decode()`] is the entry. The state of the lenient pass is [`Decode`]: where
//! the decoder stands, whether leniency is allowed, and what was dropped so far.
//! Its time is linear in the input for each level of nesting; its memory is the
//! list of one object's members a level.

mod kept;
mod leaf;
mod members;
mod object;
mod union;

use std::fmt;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use self::kept::{Kept, first_object_of};
pub use self::leaf::value_of;
pub(super) use self::members::{AnyRaw, Member, Name, collect};
pub use self::object::Object;
pub use self::union::{Form, first_of};
use crate::json::reader;

/// The deepest nesting of typed values; as serde_json's own limit.
const MAX_DEPTH: usize = 128;

/// The most leniencies of one message that are reported one by one. A message
/// can hold millions of bad items, and memory must not follow.
const MAX_REPORTS: usize = 100;

/// A type that can be read from raw JSON with paths and leniency.
pub trait FromJson: Sized {
    /// Reads `raw`, which stands where `cx` says.
    ///
    /// # Errors
    /// When `raw` does not have the form of the type, even with the leniency allowed.
    fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError>;
}

/// A type whose JSON form is an object, or part of one.
pub trait FromObject: Sized {
    /// Reads the members that belong to the type and leaves the others.
    ///
    /// # Errors
    /// As [`FromJson::from_json`].
    fn from_object(object: &mut Object<'_>) -> Result<Self, DecodeError>;
}

impl<T: FromObject> FromJson for T {
    fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        cx.nested(|cx| T::from_object(&mut Object::parse(raw, cx)?))
    }
}

/// Why a value could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", At(path))]
#[non_exhaustive]
pub struct DecodeError {
    /// JSON Pointer of the offending value; empty for the whole document.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

struct At<'a>(&'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, "{}: ", self.0)
        }
    }
}

/// A part of a message that was dropped because the schema tolerates its loss.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leniency {
    /// JSON Pointer of the dropped value.
    pub path: String,
    /// What was wrong with it.
    pub reason: String,
}

/// Reads `text` as a `T`: strictly if possible, otherwise with the leniency that
/// the schema allows.
///
/// `observer` hears of every part that was dropped, once the message as a whole
/// is accepted. After the hundredth of one message the rest come as one.
///
/// # Errors
/// When `text` is not JSON or not a `T`; the error says where.
pub fn decode<T: DeserializeOwned + FromJson>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    match reader::read(text) {
        Ok(value) => Ok(value),
        Err(_) => decode_leniently(text, observer),
    }
}

fn decode_leniently<T: FromJson>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    let mut cx = Decode::lenient();
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| cx.invalid(&error))?;
    let value = T::from_json(raw, &mut cx)?;
    cx.report(observer);
    Ok(value)
}

/// Reads the result of a request, as [`decode()`] does.
///
/// Some peers answer `null` where a result has nothing to say. Where an empty object
/// would do, that is what it is taken for, and reported.
///
/// # Errors
/// As [`decode()`].
pub fn decode_result<T: DeserializeOwned + FromJson>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    let result = decode(text, observer);
    if result.is_ok() || text.trim() != "null" {
        return result;
    }
    let Ok(empty) = serde_json::from_str("{}") else {
        return result;
    };
    let reason = "null in place of an object".to_owned();
    observer(Leniency {
        path: String::new(),
        reason,
    });
    Ok(empty)
}

/// The state of a decoder: where it stands, and what it may tolerate.
#[derive(Debug)]
pub struct Decode {
    pub(crate) strict: bool,
    depth: usize,
    path: Vec<Step>,
    reports: Vec<Leniency>,
    unreported: usize,
}

/// The state at the start of an attempt.
struct Attempt {
    strict: bool,
    reports: usize,
    unreported: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Field(&'static str),
    Key(String),
    Item(usize),
}

impl Decode {
    /// A decoder that tolerates nothing.
    #[must_use]
    pub fn strict() -> Self {
        Self {
            strict: true,
            depth: 0,
            path: Vec::new(),
            reports: Vec::new(),
            unreported: 0,
        }
    }

    /// A decoder that drops what the schema allows to be dropped.
    #[must_use]
    pub fn lenient() -> Self {
        Self {
            strict: false,
            ..Self::strict()
        }
    }

    /// An error at the place where the decoder stands.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> DecodeError {
        DecodeError {
            path: self.pointer(),
            message: message.into(),
        }
    }

    /// The error of serde_json, at the place where the decoder stands.
    pub(crate) fn invalid(&self, error: &serde_json::Error) -> DecodeError {
        let text = error.to_string();
        // Line and column count from the start of a fragment, which nobody sees.
        let message = match text.rfind(" at line ") {
            Some(end) if !error.is_syntax() && !error.is_eof() => &text[..end],
            _ => &text,
        };
        self.error(message)
    }

    /// Hands the leniencies so far to `observer`.
    fn report(self, observer: &mut dyn FnMut(Leniency)) {
        let more = self.unreported;
        self.reports.into_iter().for_each(&mut *observer);
        if more > 0 {
            let reason = format!("{more} more values were dropped from this message");
            observer(Leniency {
                path: String::new(),
                reason,
            });
        }
    }

    /// Drops the value that `error` is about, or fails when nothing may be dropped.
    fn drop_value<T>(&mut self, value: T, error: DecodeError) -> Result<T, DecodeError> {
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
        Ok(value)
    }

    /// Runs `read` one step further down.
    fn at<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Runs `read` for a nested value, unless nesting is too deep.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Runs `read` as an attempt: what a failed one reported is forgotten.
    fn attempt<T>(
        &mut self,
        strict: bool,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let attempt = self.start(strict);
        let result = read(self);
        self.finish(attempt, result.is_ok());
        result
    }

    /// Starts an attempt, which [`Self::finish`] ends.
    fn start(&mut self, strict: bool) -> Attempt {
        let before = std::mem::replace(&mut self.strict, strict);
        Attempt {
            strict: before,
            reports: self.reports.len(),
            unreported: self.unreported,
        }
    }

    fn finish(&mut self, attempt: Attempt, succeeded: bool) {
        self.strict = attempt.strict;
        if !succeeded {
            self.reports.truncate(attempt.reports);
            self.unreported = attempt.unreported;
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

fn push_escaped(pointer: &mut String, name: &str) {
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// `Deserialize` for a type that needs to see its JSON as a whole.
///
/// # Errors
/// When the input is not a `T`.
pub fn json<'de, T: FromJson, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    T::from_json(&raw, &mut Decode::strict()).map_err(D::Error::custom)
}

/// `Deserialize` for an object whose members belong to several types.
///
/// # Errors
/// When the input is not a `T`.
pub fn object<'de, T: FromObject, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let members = collect(deserializer)?;
    let mut cx = Decode::strict();
    T::from_object(&mut Object::new(members, &mut cx)).map_err(D::Error::custom)
}

/// `deserialize_with` of a field for which `null` means its default.
///
/// # Errors
/// When the input is neither `null` nor a `T`.
pub fn default_on_null<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
