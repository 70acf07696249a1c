//! Decoding with exact paths and declared leniency.
//!
//! [`decode()`] is the entry. Types are read by serde alone. What the strict pass refuses is
//! walked through once more along the type's [`Shape`], without the type itself: [`Walk`]
//! finds where it is wrong, or writes the text anew without what the schema allows to be
//! dropped, which is then read strictly. Its time is linear in the input for each level of
//! nesting; its memory is the text written and the list of one object's members a level.

mod kept;
mod leaf;
mod members;
mod object;
mod shape;
#[cfg(test)]
mod tests;
mod union;
mod walk;

use std::fmt;

use serde_core::de::DeserializeOwned;

pub use self::kept::{Kept, first_object_of, first_value_of, object, read_raw};
pub(crate) use self::members::Name;
pub(super) use self::members::{AnyRaw, Member};
pub use self::shape::{Form, Of, Part, Shape, Shaped, Variants};
use self::walk::Walk;
pub(super) use self::walk::push_escaped;
use crate::json::reader;

/// Why a value could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeError {
    /// JSON Pointer of the offending value; empty for the whole document.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

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
pub fn decode<T: DeserializeOwned + Shaped>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    match reader::read(text) {
        Ok(value) => Ok(value),
        Err(_) => decode_leniently(text, observer),
    }
}

/// The second pass of [`decode()`], for a text that the first has refused; of any other it
/// makes the same value.
///
/// # Errors
/// As [`decode()`].
pub fn decode_leniently<T: DeserializeOwned + Shaped>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    let repaired = Walk::repair(text, T::shape())?;
    // The walk has checked what the shape describes. A type written by hand may ask for more,
    // and what is kept unparsed until its type is known may nest too deeply for the reader.
    let value = reader::read_or_locate(&repaired.text).map_err(|(path, error)| DecodeError {
        path,
        message: error.to_string(),
    })?;
    repaired.report(observer);
    Ok(value)
}

/// Reads the result of a request, as [`decode()`] does.
///
/// Some peers answer `null` where a result has nothing to say. Where an empty object
/// would do, that is what it is taken for, and reported.
///
/// # Errors
/// As [`decode()`].
pub fn decode_result<T: DeserializeOwned + Shaped>(
    text: &str,
    observer: &mut dyn FnMut(Leniency),
) -> Result<T, DecodeError> {
    let result = decode(text, observer);
    if result.is_ok() || text.trim() != "null" {
        return result;
    }
    let Ok(empty) = reader::read("{}") else {
        return result;
    };
    let reason = "null in place of an object".to_owned();
    observer(Leniency {
        path: String::new(),
        reason,
    });
    Ok(empty)
}
