//! Errors of the strict reader and the path of the invalid value.

use std::fmt;

use serde_core::de::{Expected, Unexpected};

use super::Reader;
use super::string::Text;
use crate::json::decode::push_escaped;

/// Error of the strict reader.
///
/// The message is boxed to keep results small. An error without a message is invalid syntax.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StrictError(Option<Box<Reason>>);

#[derive(Debug, PartialEq, Eq)]
struct Reason(String);

impl StrictError {
    /// Invalid syntax.
    pub(super) const SYNTAX: Self = Self(None);

    #[cold]
    pub(super) fn new(reason: impl fmt::Display) -> Self {
        Self(Some(Box::new(Reason(reason.to_string()))))
    }

    /// The text exceeds the maximum depth.
    #[cold]
    pub(super) fn too_deep() -> Self {
        Self::new("nested too deeply")
    }

    /// A list or an object has more values than the type reads.
    #[cold]
    pub(super) fn too_many(close: u8) -> Self {
        Self::new(match close {
            b']' => "more items than expected",
            _ => "more members than expected",
        })
    }
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(reason) => f.write_str(&reason.0),
            None => f.write_str("invalid JSON"),
        }
    }
}

impl std::error::Error for StrictError {}

impl serde_core::de::Error for StrictError {
    #[cold]
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self::new(reason)
    }
}

impl<'de> Reader<'de> {
    /// Returns the error of a value at the current position that is not of the expected type.
    #[cold]
    #[inline(never)]
    pub(super) fn mismatch(&mut self, expected: &dyn Expected) -> StrictError {
        let start = self.at;
        let error = self.unexpected(expected).unwrap_or_else(|error| error);
        self.at = start;
        error
    }

    fn unexpected(&mut self, expected: &dyn Expected) -> Result<StrictError, StrictError> {
        let text: Text<'de>;
        let found = match self.next()? {
            b'{' => Unexpected::Map,
            b'[' => Unexpected::Seq,
            b'n' => Unexpected::Unit,
            b't' => Unexpected::Bool(true),
            b'f' => Unexpected::Bool(false),
            b'"' => {
                text = self.string()?;
                Unexpected::Str(text.as_str())
            }
            _ => self.unexpected_number()?,
        };
        Ok(serde_core::de::Error::invalid_type(found, expected))
    }

    /// Returns the JSON Pointer of the value that failed.
    #[cold]
    pub(super) fn place(&self) -> String {
        Place::find(self.text, self.at, self.closed == self.at)
    }
}

/// Scans a text up to the position of an error.
struct Place<'de> {
    reader: Reader<'de>,
    /// Lists and objects that contain the position.
    open: Vec<Open<'de>>,
}

struct Open<'de> {
    object: bool,
    index: usize,
    /// The current member or item.
    child: Option<Step<'de>>,
}

enum Step<'de> {
    Name(Text<'de>),
    Index(usize),
}

impl Place<'_> {
    /// `closed`: the error belongs to the list or object that ends at `at`, not to its last value.
    fn find(text: &str, at: usize, closed: bool) -> String {
        let mut place = Place {
            reader: Reader::deep(text),
            open: Vec::new(),
        };
        // Stops early in invalid JSON; the path so far is used.
        let _ = place.scan(at, closed);
        let mut pointer = String::new();
        for step in place.open.iter().filter_map(|open| open.child.as_ref()) {
            pointer.push('/');
            match step {
                Step::Name(name) => push_escaped(&mut pointer, name.as_str()),
                Step::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }

    fn scan(&mut self, at: usize, closed: bool) -> Result<(), StrictError> {
        loop {
            // At the start of a value.
            let first = self.reader.next()?;
            if let Some(open) = self.open.last_mut().filter(|open| !open.object) {
                open.child = Some(Step::Index(open.index));
            }
            if self.reader.at >= at {
                return Ok(());
            }
            if matches!(first, b'{' | b'[') {
                self.reader.at += 1;
                self.open.push(Open {
                    object: first == b'{',
                    index: 0,
                    child: None,
                });
                if !matches!(self.reader.next()?, b'}' | b']') {
                    self.name(at)?;
                    continue;
                }
            } else {
                self.reader.skip()?;
                if self.is_past(at, closed) {
                    return Ok(());
                }
            }
            // After a value, close the objects and lists that end with it.
            while let Some(open) = self.open.last_mut() {
                let next = self.reader.next()?;
                if self.reader.at >= at {
                    open.child = None;
                    return Ok(());
                }
                self.reader.at += 1;
                if next == b',' {
                    (open.child, open.index) = (None, open.index + 1);
                    self.name(at)?;
                    break;
                }
                self.open.pop();
                if self.is_past(at, closed) {
                    return Ok(());
                }
            }
            if self.open.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns whether the value that just ended is the invalid one.
    fn is_past(&self, at: usize, closed: bool) -> bool {
        self.reader.at > at || (self.reader.at == at && !closed)
    }

    /// Reads the name of a member, if an object is open.
    fn name(&mut self, at: usize) -> Result<(), StrictError> {
        let Some(open) = self.open.last_mut().filter(|open| open.object) else {
            return Ok(());
        };
        if self.reader.next()? != b'"' || self.reader.at >= at {
            return Err(StrictError::SYNTAX);
        }
        open.child = Some(Step::Name(self.reader.string()?));
        if self.reader.at >= at {
            return Err(StrictError::SYNTAX);
        }
        self.reader.expect(b':')
    }
}
